/* The model behind the server: loading, the choice of a chat template, evaluation.
 * Invariant: the context holds sequence 0 and no other, is evaluated by one thread, and
 * its parameters never change: batch size, threads and flash attention decide the bits of
 * the result. Failure: creation says why in words; an evaluation that fails leaves the
 * sequence to be cleared. */
#include "engine_parts.h"

#include "log.h"

#include <ggml-backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BATCH_SIZE = 512,
    THREADS_MAX = 16,
    PIECE_SIZE = 256,
};

static void log_llama(enum ggml_log_level level, const char *text, void *ctx)
{
    size_t length = strcspn(text, "\n");

    (void)ctx;
    if (level == GGML_LOG_LEVEL_ERROR && length > 0)
        srv_log("llama: %.*s", (int)(length > 512 ? 512 : length), text);
}

static void load_backends(void)
{
#ifdef COLDKV_GGML_BACKEND_DIR
    ggml_backend_load_all_from_path(COLDKV_GGML_BACKEND_DIR);
#else
    ggml_backend_load_all();
#endif
}

/* "/models/SmolLM2.gguf" is called "SmolLM2". */
static void set_name(struct srv_engine *engine, const char *path)
{
    const char *base = strrchr(path, '/');
    size_t length;

    base = base ? base + 1 : path;
    snprintf(engine->name, sizeof(engine->name), "%s", base);
    length = strlen(engine->name);
    if (length > 5 && strcmp(engine->name + length - 5, ".gguf") == 0)
        engine->name[length - 5] = '\0';
}

static bool go_on_loading(float progress, void *ctx)
{
    const struct srv_engine_options *options = ctx;

    (void)progress;
    return !options->is_cancelled || !options->is_cancelled(options->cancel_ctx);
}

static bool load_model(struct srv_engine *engine,
                       const struct srv_engine_options *options, struct srv_fault *fault)
{
    ggml_backend_dev_t no_devices[] = {NULL};
    struct llama_model_params params = llama_model_default_params();

    if (access(options->model_path, R_OK) != 0)
        return srv_fault_set(fault, 500, NULL, NULL, "cannot read the model %s",
                             options->model_path);
    params.devices = no_devices;
    params.n_gpu_layers = 0;
    params.progress_callback = go_on_loading;
    params.progress_callback_user_data = (void *)(uintptr_t)options;
    engine->model = llama_model_load_from_file(options->model_path, params);
    if (!engine->model)
        return srv_fault_set(fault, 500, NULL, NULL, "cannot load the model %s",
                             options->model_path);
    if (llama_model_has_encoder(engine->model) || !llama_model_has_decoder(engine->model))
        return srv_fault_set(fault, 500, NULL, NULL,
                             "%s is no text-generating decoder model",
                             options->model_path);
    engine->vocab = llama_model_get_vocab(engine->model);
    return true;
}

static uint32_t choose_threads(uint32_t wanted)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);

    if (wanted > 0)
        return wanted;
    if (online < 1)
        return 1;
    return online > THREADS_MAX ? THREADS_MAX : (uint32_t)online;
}

static bool make_context(struct srv_engine *engine,
                         const struct srv_engine_options *options,
                         struct srv_fault *fault)
{
    struct llama_context_params params = llama_context_default_params();

    params.n_ctx = options->context_size;
    params.n_batch = BATCH_SIZE;
    params.n_ubatch = BATCH_SIZE;
    params.n_seq_max = 1;
    params.n_threads = (int32_t)choose_threads(options->thread_count);
    params.n_threads_batch = params.n_threads;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    params.type_k = GGML_TYPE_F16;
    params.type_v = GGML_TYPE_F16;
    params.kv_unified = true;
    params.offload_kqv = false;
    params.op_offload = false;
    params.no_perf = true;
    engine->params = params;
    engine->context = llama_init_from_model(engine->model, params);
    if (!engine->context)
        return srv_fault_set(
            fault, 500, NULL, NULL,
            "cannot make a context of %u tokens (try a smaller --ctx-size)",
            options->context_size ? options->context_size
                                  : (uint32_t)llama_model_n_ctx_train(engine->model));
    engine->batch = llama_batch_init(BATCH_SIZE, 0, 1);
    if (!engine->batch.token || !engine->batch.logits)
        return srv_fault_set(fault, 500, NULL, NULL, "out of memory");
    return true;
}

/* All known names in one line, for the message that asks for one of them. */
static void list_templates(char *text, size_t size)
{
    const char *names[128];
    int32_t count = llama_chat_builtin_templates(names, 128);
    size_t used = 0;
    int32_t i;

    text[0] = '\0';
    for (i = 0; i < count && i < 128; i++) {
        int added =
            snprintf(text + used, size - used, "%s%s", i > 0 ? " " : "", names[i]);

        if (added < 0 || (size_t)added >= size - used)
            return;
        used += (size_t)added;
    }
}

static bool is_known_name(const char *name)
{
    const char *names[128];
    int32_t count = llama_chat_builtin_templates(names, 128);
    int32_t i;

    for (i = 0; i < count && i < 128; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

static bool choose_template(struct srv_engine *engine, const char *name,
                            struct srv_fault *fault)
{
    const struct llama_chat_message probe = {.role = "user", .content = "x"};
    char known[1024];
    const char *problem = NULL;

    engine->chat_template = name ? name : llama_model_chat_template(engine->model, NULL);
    if (name && !is_known_name(name))
        problem = "--chat-template is no known name";
    else if (!engine->chat_template)
        problem = "the model has no chat template; name one with --chat-template";
    else if (llama_chat_apply_template(engine->chat_template, &probe, 1, true, NULL, 0) <
             0)
        problem = "the model's chat template is of no known family; name one with "
                  "--chat-template";
    if (!problem)
        return true;
    list_templates(known, sizeof(known));
    srv_log("known chat templates: %s", known);
    return srv_fault_set(fault, 500, NULL, NULL, "%s", problem);
}

/* Bounds from below how many tokens a text can have, before any work is spent on it. A
 * piece longer than the buffer gives its length as a negative number. */
static void measure_pieces(struct srv_engine *engine)
{
    int32_t count = llama_vocab_n_tokens(engine->vocab);
    int32_t token;

    engine->longest_piece_bytes = 1;
    for (token = 0; token < count; token++) {
        int32_t length = llama_token_to_piece(engine->vocab, token, engine->piece,
                                              (int32_t)engine->piece_size, 0, true);
        size_t bytes = (size_t)(length < 0 ? -(int64_t)length : length);

        if (bytes > engine->longest_piece_bytes)
            engine->longest_piece_bytes = bytes;
    }
}

bool srv_engine_create(const struct srv_engine_options *options, struct srv_engine **out,
                       struct srv_fault *fault)
{
    struct srv_engine *engine = calloc(1, sizeof(*engine));
    bool ok;

    *out = NULL;
    if (!engine)
        return srv_fault_set(fault, 500, NULL, NULL, "out of memory");
    /* ggml starts a debugger on itself when it aborts, unless it is told not to. */
    (void)setenv("GGML_NO_BACKTRACE", "1", 0);
    llama_log_set(log_llama, NULL);
    load_backends();
    llama_backend_init();
    engine->backend_ready = true;
    engine->piece_size = PIECE_SIZE;
    engine->piece = malloc(engine->piece_size);
    set_name(engine, options->model_path);
    ok = engine->piece || srv_fault_set(fault, 500, NULL, NULL, "out of memory");
    ok = ok && load_model(engine, options, fault) &&
         choose_template(engine, options->chat_template, fault) &&
         make_context(engine, options, fault);
    if (ok) {
        measure_pieces(engine);
        *out = engine;
    } else {
        srv_engine_destroy(engine);
    }
    return ok;
}

void srv_engine_destroy(struct srv_engine *engine)
{
    if (!engine)
        return;
    if (engine->sampler)
        llama_sampler_free(engine->sampler);
    if (engine->batch.token)
        llama_batch_free(engine->batch);
    if (engine->context)
        llama_free(engine->context);
    if (engine->model)
        llama_model_free(engine->model);
    if (engine->backend_ready)
        llama_backend_free();
    free(engine->piece);
    free(engine);
}

uint32_t srv_engine_context_size(const struct srv_engine *engine)
{
    return llama_n_ctx(engine->context);
}

uint32_t srv_engine_thread_count(const struct srv_engine *engine)
{
    return (uint32_t)engine->params.n_threads;
}

uint32_t srv_engine_batch_size(const struct srv_engine *engine)
{
    uint32_t size = llama_n_batch(engine->context);

    return size < BATCH_SIZE ? size : BATCH_SIZE;
}

const char *srv_engine_model_name(const struct srv_engine *engine)
{
    return engine->name;
}

struct llama_context *srv_engine_context(struct srv_engine *engine)
{
    return engine->context;
}

const struct llama_context_params *srv_engine_context_params(
    const struct srv_engine *engine)
{
    return &engine->params;
}

void srv_engine_clear(struct srv_engine *engine)
{
    llama_memory_clear(llama_get_memory(engine->context), false);
}

bool srv_engine_evaluate(struct srv_engine *engine, const int32_t *tokens, size_t count,
                         size_t position, bool want_logits)
{
    struct llama_batch *batch = &engine->batch;
    size_t i;

    if (count == 0 || count > srv_engine_batch_size(engine) ||
        position + count > srv_engine_context_size(engine))
        return false;
    batch->n_tokens = (int32_t)count;
    for (i = 0; i < count; i++) {
        batch->token[i] = tokens[i];
        batch->pos[i] = (llama_pos)(position + i);
        batch->n_seq_id[i] = 1;
        batch->seq_id[i][0] = 0;
        batch->logits[i] = want_logits && i == count - 1;
    }
    return llama_decode(engine->context, *batch) == 0;
}

const float *srv_engine_logits(struct srv_engine *engine, size_t *count)
{
    *count = (size_t)llama_vocab_n_tokens(engine->vocab);
    return llama_get_logits_ith(engine->context, -1);
}

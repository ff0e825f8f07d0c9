/* Owns running libllama in tests. */
#include "llama_session.h"

#include "require.h"

#include <stdlib.h>
#include <string.h>

static void be_quiet(enum ggml_log_level level, const char *text, void *ctx)
{
    (void)level;
    (void)text;
    (void)ctx;
}

void test_llama_start(void)
{
    setenv("GGML_NO_BACKTRACE", "1", 1);
    llama_log_set(be_quiet, NULL);
#ifdef COLDKV_GGML_BACKEND_DIR
    ggml_backend_load_all_from_path(COLDKV_GGML_BACKEND_DIR);
#else
    ggml_backend_load_all();
#endif
    llama_backend_init();
}

void test_llama_stop(void)
{
    llama_backend_free();
}

struct llama_model *test_llama_load(const char *path)
{
    ggml_backend_dev_t no_devices[] = {NULL};
    struct llama_model_params params = llama_model_default_params();
    struct llama_model *model;
    params.devices = no_devices;
    params.n_gpu_layers = 0;
    model = llama_model_load_from_file(path, params);
    TEST_LLAMA_REQUIRE(model);
    return model;
}

struct llama_context_params test_llama_params(void)
{
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = 1024;
    params.n_batch = 256;
    params.n_ubatch = 256;
    params.n_seq_max = 1;
    params.n_threads = 2;
    params.n_threads_batch = 2;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    params.type_k = GGML_TYPE_F16;
    params.type_v = GGML_TYPE_F16;
    params.kv_unified = true;
    params.offload_kqv = false;
    params.op_offload = false;
    params.no_perf = true;
    return params;
}

struct llama_context *test_llama_context(struct llama_model *model,
                                         const struct llama_context_params *params)
{
    struct llama_context *context = llama_init_from_model(model, *params);
    TEST_LLAMA_REQUIRE(context);
    return context;
}

static void evaluate_batch(struct llama_context *context, int32_t sequence,
                           const int32_t *tokens, size_t count, size_t position)
{
    struct llama_batch batch = llama_batch_init((int32_t)count, 0, 1);
    batch.n_tokens = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        batch.token[i] = tokens[i];
        batch.pos[i] = (llama_pos)(position + i);
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = sequence;
        batch.logits[i] = i == count - 1;
    }
    TEST_LLAMA_REQUIRE(llama_decode(context, batch) == 0);
    llama_batch_free(batch);
}

void test_llama_evaluate(struct llama_context *context, int32_t sequence,
                         const int32_t *tokens, size_t count, size_t position)
{
    size_t most = llama_n_batch(context);
    for (size_t done = 0; done < count;) {
        size_t size = count - done < most ? count - done : most;
        evaluate_batch(context, sequence, tokens + done, size, position + done);
        done += size;
    }
}

static int32_t likeliest(const float *logits, size_t width)
{
    size_t best = 0;
    for (size_t i = 1; i < width; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

struct test_run *test_llama_generate(struct llama_context *context, int32_t sequence,
                                     int32_t token, size_t position, size_t count)
{
    const struct llama_vocab *vocab = llama_model_get_vocab(llama_get_model(context));
    struct test_run *run = calloc(1, sizeof *run);
    TEST_LLAMA_REQUIRE(run);
    run->count = count;
    run->width = (size_t)llama_vocab_n_tokens(vocab);
    run->tokens = calloc(count, sizeof *run->tokens);
    run->logits = calloc(count * run->width, sizeof *run->logits);
    TEST_LLAMA_REQUIRE(run->tokens && run->logits);
    for (size_t i = 0; i < count; i++) {
        const float *row;
        test_llama_evaluate(context, sequence, &token, 1, position + i);
        row = llama_get_logits_ith(context, -1);
        TEST_LLAMA_REQUIRE(row);
        memcpy(run->logits + i * run->width, row, run->width * sizeof *row);
        token = likeliest(row, run->width);
        run->tokens[i] = token;
    }
    return run;
}

void test_run_destroy(struct test_run *run)
{
    if (!run)
        return;
    free(run->tokens);
    free(run->logits);
    free(run);
}

bool test_run_equals(const struct test_run *a, const struct test_run *b)
{
    return a->count == b->count && a->width == b->width &&
           memcmp(a->tokens, b->tokens, a->count * sizeof *a->tokens) == 0 &&
           memcmp(a->logits, b->logits, a->count * a->width * sizeof *a->logits) == 0;
}

bool test_llama_is_empty(struct llama_context *context, int32_t sequence)
{
    llama_memory_t memory = llama_get_memory(context);
    return llama_memory_seq_pos_min(memory, sequence) == -1 &&
           llama_memory_seq_pos_max(memory, sequence) == -1 &&
           llama_state_seq_get_size(context, sequence) == 16;
}

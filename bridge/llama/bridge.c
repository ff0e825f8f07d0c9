/*
 * Owns the bridge object: made once per context, constant after that.
 *
 * Invariant: a bridge exists only for a context whose states can be kept faithfully, with
 * an identity made and a layout seen.
 *
 * Failure story: creation that fails leaves the context empty and nothing behind. The
 * bridge never calls libllama with a sequence that the context does not have.
 */
#include "bridge.h"

#include "identity.h"
#include "memory.h"
#include "support.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define LOG_BYTES_MAX 512

void ckv_llama_options_init(struct ckv_llama_options *options)
{
    *options = (struct ckv_llama_options){.size = sizeof *options};
}

/* Options of another version of this header: shorter ones are completed with defaults,
 * longer ones must hold nothing that this version does not know. */
static enum ckv_status copy_options(struct ckv_llama_options *out,
                                    const struct ckv_llama_options *options,
                                    struct ckv_error *error)
{
    const unsigned char *bytes = (const unsigned char *)options;
    size_t size;
    ckv_llama_options_init(out);
    out->alloc = ckv_alloc_default();
    if (options) {
        size = options->size;
        if (size < sizeof options->size)
            return ckv_error_set(error, CKV_INVALID,
                                 "bridge options: size is %zu; use "
                                 "ckv_llama_options_init",
                                 size);
        for (size_t i = sizeof *out; i < size; i++)
            if (bytes[i] != 0)
                return ckv_error_set(error, CKV_INVALID,
                                     "bridge options: unknown value at byte %zu", i);
        memcpy(out, options, size < sizeof *out ? size : sizeof *out);
        out->size = sizeof *out;
    }
    if (!out->alloc)
        out->alloc = ckv_alloc_default();
    return CKV_OK;
}

void ckvi_llama_log(const struct ckv_llama *bridge, enum ckv_log_level level,
                    const char *id, const char *format, ...)
{
    char text[LOG_BYTES_MAX];
    va_list arguments;
    if (!bridge->log.fn || level > bridge->log.level)
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    bridge->log.fn(bridge->log.ctx, level, id, text);
}

enum ckv_status ckv_llama_create(struct llama_context *context,
                                 const struct llama_context_params *params,
                                 const char *model_path,
                                 const struct ckv_llama_options *options,
                                 struct ckv_llama **out, struct ckv_error *error)
{
    struct ckv_llama_options own;
    struct ckv_llama *bridge;
    enum ckv_status status;
    *out = NULL;
    if (!context || !params || !model_path)
        return ckv_error_set(error, CKV_INVALID,
                             "context, parameters and model path are needed");
    status = copy_options(&own, options, error);
    if (!status)
        status = ckvi_llama_support_check(context, params, error);
    if (status)
        return status;
    bridge = ckvi_llama_allocate(own.alloc, 1, sizeof *bridge);
    if (!bridge)
        return ckvi_llama_nomem(error, "the bridge");
    bridge->alloc = own.alloc;
    bridge->log = own.log;
    bridge->context = context;
    bridge->memory = llama_get_memory(context);
    ckvi_llama_text_init(&bridge->model_id, own.alloc);
    ckvi_llama_text_init(&bridge->description, own.alloc);
    status = ckvi_llama_support_probe(context, params, own.alloc, &bridge->layout, error);
    if (!status)
        status = ckvi_llama_identity_make(bridge, params, model_path, &own, error);
    if (status) {
        ckv_llama_destroy(bridge);
        return status;
    }
    ckvi_llama_log(bridge, CKV_LOG_INFO, "llama.identity",
                   "%s, %" PRIu64 " bytes per token, fingerprint %s",
                   bridge->identity.model_id, bridge->layout.token_bytes,
                   bridge->fingerprint);
    *out = bridge;
    return CKV_OK;
}

void ckv_llama_destroy(struct ckv_llama *bridge)
{
    const struct ckv_alloc *alloc;
    if (!bridge)
        return;
    alloc = bridge->alloc;
    ckv_llama_snapshot_destroy(bridge->arriving);
    ckvi_llama_layout_deinit(&bridge->layout);
    ckvi_llama_text_deinit(&bridge->model_id);
    ckvi_llama_text_deinit(&bridge->description);
    ckvi_llama_release(alloc, bridge, 1, sizeof *bridge);
}

const struct ckv_store_identity *ckv_llama_identity(const struct ckv_llama *bridge)
{
    return &bridge->identity;
}

bool ckvi_llama_sequence_valid(const struct ckv_llama *bridge, int32_t sequence)
{
    return sequence >= 0 && (uint32_t)sequence < llama_n_seq_max(bridge->context);
}

enum ckv_status ckvi_llama_sequence_clear(const struct ckv_llama *bridge,
                                          int32_t sequence, struct ckv_error *error)
{
    (void)llama_memory_seq_rm(bridge->memory, sequence, -1, -1);
    if (llama_memory_seq_pos_max(bridge->memory, sequence) == -1)
        return CKV_OK;
    return ckv_error_set(error, CKV_ENGINE, "llama.cpp does not empty sequence %" PRId32,
                         sequence);
}

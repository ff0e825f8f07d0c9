/*
 * Owns the decision whether a context's states can be kept.
 *
 * Invariant: a context that passes has one stream, an attention cache that holds every
 * position of a sequence, and a layout that was seen, not assumed: types and
 * transposition come from a state that the context wrote. That also refuses caches that
 * no public function tells apart (several caches in one, cells with extra data).
 *
 * Failure story: whatever fails, the context is left empty.
 */
#include "support.h"

#include "memory.h"

#include <inttypes.h>

static enum ckv_status unsupported(struct ckv_error *error, const char *reason)
{
    return ckv_error_set(error, CKV_UNSUPPORTED, "llama.cpp context: %s", reason);
}

static enum ckv_status check_model(const struct llama_model *model,
                                   struct ckv_error *error)
{
    enum llama_rope_type rope = llama_model_rope_type(model);
    if (llama_model_has_encoder(model) || !llama_model_has_decoder(model))
        return unsupported(error, "the model has an encoder; only decoders are kept");
    if (llama_model_is_diffusion(model))
        return unsupported(error, "a diffusion model has no prefix to reuse");
    if (llama_model_is_recurrent(model))
        return unsupported(error,
                           "a recurrent model's state cannot be cut, and keeping it at "
                           "boundaries is not there yet");
    if (llama_model_is_hybrid(model))
        return unsupported(error,
                           "a hybrid model's recurrent state cannot be cut, and keeping "
                           "it at boundaries is not there yet");
    if (llama_model_n_swa(model) > 0)
        return ckv_error_set(error, CKV_UNSUPPORTED,
                             "llama.cpp context: the model attends through a sliding "
                             "window of %" PRId32
                             " tokens, and its state can hardly be cut",
                             llama_model_n_swa(model));
    if (rope == LLAMA_ROPE_TYPE_MROPE || rope == LLAMA_ROPE_TYPE_IMROPE ||
        rope == LLAMA_ROPE_TYPE_VISION)
        return unsupported(error,
                           "the model has positions of several dimensions (M-RoPE)");
    return CKV_OK;
}

enum ckv_status ckvi_llama_support_check(struct llama_context *context,
                                         const struct llama_context_params *params,
                                         struct ckv_error *error)
{
    if (params->flash_attn_type != LLAMA_FLASH_ATTN_TYPE_ENABLED &&
        params->flash_attn_type != LLAMA_FLASH_ATTN_TYPE_DISABLED)
        return unsupported(error, "flash attention is left on auto, and it decides the "
                                  "layout: set flash_attn_type to enabled or disabled");
    if (llama_n_seq_max(context) > 1 && !params->kv_unified)
        return unsupported(error, "several sequences in streams of their own: set "
                                  "kv_unified, or n_seq_max to 1");
    if (params->ctx_type != LLAMA_CONTEXT_TYPE_DEFAULT || params->ctx_other)
        return unsupported(error, "it is not a context of its own (draft or shared)");
    if (params->attention_type != LLAMA_ATTENTION_TYPE_UNSPECIFIED &&
        params->attention_type != LLAMA_ATTENTION_TYPE_CAUSAL)
        return unsupported(error, "attention is not causal");
    if (!llama_get_memory(context))
        return unsupported(error, "the model keeps no state between tokens");
    return check_model(llama_get_model(context), error);
}

static bool is_empty(struct llama_context *context)
{
    llama_memory_t memory = llama_get_memory(context);
    int32_t count = (int32_t)llama_n_seq_max(context);
    for (int32_t i = 0; i < count; i++)
        if (llama_memory_seq_pos_max(memory, i) >= 0)
            return false;
    return true;
}

/* Any token will do; the first special one is surely in the vocabulary. */
static llama_token probe_token(struct llama_context *context)
{
    llama_token token = llama_vocab_bos(llama_model_get_vocab(llama_get_model(context)));
    return token == LLAMA_TOKEN_NULL ? 0 : token;
}

static enum ckv_status evaluate_one(struct llama_context *context,
                                    struct ckv_error *error)
{
    llama_token token = probe_token(context);
    llama_pos position = 0;
    llama_seq_id sequence = 0;
    llama_seq_id *sequences = &sequence;
    int32_t sequence_count = 1;
    int8_t want_logits = 0;
    struct llama_batch batch = {
        .n_tokens = 1,
        .token = &token,
        .pos = &position,
        .n_seq_id = &sequence_count,
        .seq_id = &sequences,
        .logits = &want_logits,
    };
    int32_t result = llama_decode(context, batch);
    if (result == 0)
        return CKV_OK;
    return ckv_error_set(error, CKV_ENGINE,
                         "llama.cpp could not evaluate one token in the empty context "
                         "(%" PRId32 ")",
                         result);
}

static enum ckv_status learn(struct llama_context *context, const struct ckv_alloc *alloc,
                             struct ckvi_llama_layout *layout, struct ckv_error *error)
{
    size_t size = llama_state_seq_get_size(context, 0);
    uint8_t *state;
    enum ckv_status status;
    if (size == 0)
        return ckv_error_set(error, CKV_ENGINE, "llama.cpp gave no state");
    state = ckvi_llama_allocate(alloc, size, 1);
    if (!state)
        return ckvi_llama_nomem(error, "the state of one token");
    if (llama_state_seq_get_data(context, state, size, 0) == size)
        status = ckvi_llama_layout_learn(layout, alloc, state, size, error);
    else
        status = ckv_error_set(error, CKV_ENGINE,
                               "llama.cpp gave less state than it announced");
    ckvi_llama_release(alloc, state, size, 1);
    return status;
}

/* Differences mean that params are not those of the context, or that libllama changed
 * them; either way the identity would be wrong. */
static enum ckv_status compare(const struct ckvi_llama_layout *layout,
                               const struct llama_context_params *params,
                               struct ckv_error *error)
{
    bool flash = params->flash_attn_type == LLAMA_FLASH_ATTN_TYPE_ENABLED;
    if (layout->values_transposed == flash)
        return unsupported(error, flash ? "this model runs without flash attention "
                                          "whatever is asked: set flash_attn_type to "
                                          "disabled"
                                        : "it runs with flash attention though the "
                                          "parameters say disabled");
    for (uint32_t i = 0; i < layout->layer_count + layout->value_count; i++) {
        enum ggml_type expected =
            i < layout->layer_count ? params->type_k : params->type_v;
        if (layout->rows[i].type != (int32_t)expected)
            return ckv_error_set(error, CKV_INVALID,
                                 "the context keeps type %" PRId32
                                 " where its parameters say %s",
                                 layout->rows[i].type, ggml_type_name(expected));
    }
    return CKV_OK;
}

enum ckv_status ckvi_llama_support_probe(struct llama_context *context,
                                         const struct llama_context_params *params,
                                         const struct ckv_alloc *alloc,
                                         struct ckvi_llama_layout *layout,
                                         struct ckv_error *error)
{
    enum ckv_status status;
    if (!is_empty(context))
        return ckv_error_set(error, CKV_INVALID,
                             "the context must be empty when its bridge is made");
    status = evaluate_one(context, error);
    if (!status)
        status = learn(context, alloc, layout, error);
    if (!status)
        status = compare(layout, params, error);
    (void)llama_memory_seq_rm(llama_get_memory(context), 0, -1, -1);
    if (status)
        ckvi_llama_layout_deinit(layout);
    return status;
}

/*
 * The settings of a context that change what its state means, in canonical text and in
 * effective values: what a parameter left to the model is written as the number that it
 * comes out as, or as "model" when only libllama knows it (the model's keys are in the
 * identity too).
 */
#ifndef COLDKV_BRIDGE_LLAMA_SETTINGS_H
#define COLDKV_BRIDGE_LLAMA_SETTINGS_H

#include "blob.h"
#include "text.h"

#include <gguf.h>
#include <llama.h>
#include <stdbool.h>
#include <stdint.h>

struct ckvi_llama_settings {
    const struct gguf_context *keys;
    const char *architecture;
    const struct llama_context_params *params;
    enum llama_rope_type rope_type;
    float freq_scale_train;  /* llama_model_rope_freq_scale_train */
    uint32_t context_tokens; /* of one sequence; decides between two sets of factors */
    bool has_long_factors;   /* the model has RoPE factors for long contexts */
    uint32_t embedding_length;
    uint32_t head_count;
    enum llama_pooling_type pooling;
    bool rotation_disabled; /* by LLAMA_ATTN_ROT_DISABLE */
};

/* {"base":…} */
void ckvi_llama_settings_put_rope(struct ckvi_llama_text *text,
                                  const struct ckvi_llama_settings *settings);
/* {"key_type":…}, from what the context was seen to write. */
void ckvi_llama_settings_put_cache(struct ckvi_llama_text *text,
                                   const struct ckvi_llama_settings *settings,
                                   const struct ckvi_llama_layout *layout);
/* {"causal":…} */
void ckvi_llama_settings_put_attention(struct ckvi_llama_text *text,
                                       const struct ckvi_llama_settings *settings);

/* "<architecture>.<name>" read from the keys; false when absent. */
bool ckvi_llama_settings_get_bool(const struct ckvi_llama_settings *settings,
                                  const char *name, bool *value);

#endif

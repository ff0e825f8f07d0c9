/*
 * Owns resolving a context's settings the way libllama does.
 *
 * Invariant: two contexts with the same text compute the same keys and values from the
 * same tokens, up to rounding. A value that cannot be resolved here is named, never
 * guessed: the cost of that is a miss.
 *
 * Failure story: only memory can fail; text.h remembers it.
 */
#include "settings.h"

#include "keys.h"

#include <stdio.h>
#include <string.h>

#define KEY_BYTES_MAX 256
/* Below this head size libllama does not rotate quantized keys and values. */
#define ROTATION_HEAD_SIZE 64u
/* libllama's values for models that name none. */
#define FREQ_BASE_DEFAULT 10000.0f
#define YARN_ATTENTION_DEFAULT 1.0f
#define YARN_BETA_FAST_DEFAULT 32.0f
#define YARN_BETA_SLOW_DEFAULT 1.0f

static const char *full_key(const struct ckvi_llama_settings *settings, const char *name,
                            char key[KEY_BYTES_MAX])
{
    int length = snprintf(key, KEY_BYTES_MAX, "%s.%s", settings->architecture, name);
    if (length < 0 || length >= KEY_BYTES_MAX)
        key[0] = '\0';
    return key;
}

static bool has_key(const struct ckvi_llama_settings *settings, const char *name)
{
    char key[KEY_BYTES_MAX];
    return gguf_find_key(settings->keys, full_key(settings, name, key)) >= 0;
}

static bool get_float(const struct ckvi_llama_settings *settings, const char *name,
                      float *value)
{
    char key[KEY_BYTES_MAX];
    return ckvi_llama_keys_get_float(settings->keys, full_key(settings, name, key),
                                     value);
}

static bool get_u64(const struct ckvi_llama_settings *settings, const char *name,
                    uint64_t *value)
{
    char key[KEY_BYTES_MAX];
    return ckvi_llama_keys_get_u64(settings->keys, full_key(settings, name, key), value);
}

bool ckvi_llama_settings_get_bool(const struct ckvi_llama_settings *settings,
                                  const char *name, bool *value)
{
    char key[KEY_BYTES_MAX];
    return ckvi_llama_keys_get_bool(settings->keys, full_key(settings, name, key), value);
}

static void put_float(struct ckvi_llama_text *text, const char *name, float value)
{
    ckvi_llama_text_key(text, name);
    ckvi_llama_text_put(text, "\"");
    ckvi_llama_text_float(text, value);
    ckvi_llama_text_put(text, "\",");
}

static void put_name(struct ckvi_llama_text *text, const char *name, const char *value)
{
    ckvi_llama_text_key(text, name);
    ckvi_llama_text_string(text, value);
    ckvi_llama_text_put(text, ",");
}

/* The effective scaling; "linear" is what libllama takes for models that name none. */
static const char *scaling_name(const struct ckvi_llama_settings *settings)
{
    char key[KEY_BYTES_MAX];
    const char *named;
    switch (settings->params->rope_scaling_type) {
    case LLAMA_ROPE_SCALING_TYPE_NONE:
        return "none";
    case LLAMA_ROPE_SCALING_TYPE_LINEAR:
        return "linear";
    case LLAMA_ROPE_SCALING_TYPE_YARN:
        return "yarn";
    case LLAMA_ROPE_SCALING_TYPE_LONGROPE:
        return "longrope";
    default:
        named = ckvi_llama_keys_get_string(settings->keys,
                                           full_key(settings, "rope.scaling.type", key));
        return named ? named : "linear";
    }
}

static void put_base(struct ckvi_llama_text *text,
                     const struct ckvi_llama_settings *settings)
{
    float base = FREQ_BASE_DEFAULT;
    if (settings->params->rope_freq_base != 0.0f)
        base = settings->params->rope_freq_base;
    else if (has_key(settings, "rope.scaling.alpha"))
        return put_name(text, "base", "model");
    else if (!get_float(settings, "rope.freq_base", &base) &&
             has_key(settings, "rope.freq_base"))
        return put_name(text, "base", "model");
    put_float(text, "base", base);
}

static void put_scale(struct ckvi_llama_text *text,
                      const struct ckvi_llama_settings *settings)
{
    float scale = settings->freq_scale_train;
    if (strcmp(scaling_name(settings), "none") == 0)
        scale = 1.0f;
    else if (settings->params->rope_freq_scale != 0.0f)
        scale = settings->params->rope_freq_scale;
    put_float(text, "scale", scale);
}

/* A YaRN value: as given, else libllama's default, unless the model has its own, which
 * some architectures read and others do not. */
static void put_yarn(struct ckvi_llama_text *text,
                     const struct ckvi_llama_settings *settings, const char *name,
                     float given, float standard)
{
    char suffix[KEY_BYTES_MAX];
    snprintf(suffix, sizeof suffix, "rope.scaling.%s", name);
    if (given >= 0.0f)
        put_float(text, name, given);
    else if (has_key(settings, suffix))
        put_name(text, name, "model");
    else
        put_float(text, name, standard);
}

/* Positions up to which the model was trained before any scaling; 0 = not known. */
static uint64_t original_context(const struct ckvi_llama_settings *settings)
{
    uint64_t tokens = 0;
    if (!get_u64(settings, "rope.scaling.original_context_length", &tokens))
        (void)get_u64(settings, "context_length", &tokens);
    return tokens;
}

/* Models with two sets of factors take one by the size of the context: there, and only
 * there, the context size changes what keys mean. */
static const char *factors_name(const struct ckvi_llama_settings *settings)
{
    if (!settings->has_long_factors)
        return "none";
    return settings->context_tokens > original_context(settings) ? "long" : "short";
}

static const char *rope_name(enum llama_rope_type type)
{
    switch (type) {
    case LLAMA_ROPE_TYPE_NONE:
        return "none";
    case LLAMA_ROPE_TYPE_NORM:
        return "norm";
    case LLAMA_ROPE_TYPE_NEOX:
        return "neox";
    default:
        return "other";
    }
}

void ckvi_llama_settings_put_rope(struct ckvi_llama_text *text,
                                  const struct ckvi_llama_settings *settings)
{
    const struct llama_context_params *params = settings->params;
    const char *scaling = scaling_name(settings);
    uint64_t original = params->yarn_orig_ctx;
    if (original == 0)
        original = original_context(settings);
    ckvi_llama_text_put(text, "{");
    put_name(text, "type", rope_name(settings->rope_type));
    put_base(text, settings);
    put_name(text, "scaling", scaling);
    put_scale(text, settings);
    put_yarn(text, settings, "yarn_ext_factor", params->yarn_ext_factor,
             strcmp(scaling, "yarn") == 0 ? 1.0f : 0.0f);
    put_yarn(text, settings, "yarn_attn_factor", params->yarn_attn_factor,
             YARN_ATTENTION_DEFAULT);
    put_yarn(text, settings, "yarn_beta_fast", params->yarn_beta_fast,
             YARN_BETA_FAST_DEFAULT);
    put_yarn(text, settings, "yarn_beta_slow", params->yarn_beta_slow,
             YARN_BETA_SLOW_DEFAULT);
    ckvi_llama_text_key(text, "original_context");
    ckvi_llama_text_unsigned(text, original);
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "factors");
    ckvi_llama_text_string(text, factors_name(settings));
    ckvi_llama_text_put(text, "}");
}

/* libllama multiplies quantized keys and values by a fixed rotation, unless told not to;
 * states with and without it look the same and mean different things. */
static bool is_rotated(const struct ckvi_llama_settings *settings, int32_t type,
                       const char *length_key)
{
    uint64_t head_size = 0;
    if (settings->rotation_disabled || !ggml_is_quantized((enum ggml_type)type))
        return false;
    if (!get_u64(settings, length_key, &head_size) && settings->head_count > 0)
        head_size = settings->embedding_length / settings->head_count;
    return head_size % ROTATION_HEAD_SIZE == 0;
}

void ckvi_llama_settings_put_cache(struct ckvi_llama_text *text,
                                   const struct ckvi_llama_settings *settings,
                                   const struct ckvi_llama_layout *layout)
{
    int32_t key_type = layout->rows[0].type;
    int32_t value_type =
        layout->value_count > 0 ? layout->rows[layout->layer_count].type : key_type;
    ckvi_llama_text_put(text, "{");
    put_name(text, "key_type", ggml_type_name((enum ggml_type)key_type));
    put_name(text, "value_type", ggml_type_name((enum ggml_type)value_type));
    ckvi_llama_text_key(text, "flash_attention");
    ckvi_llama_text_boolean(text, !layout->values_transposed);
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "keys_rotated");
    ckvi_llama_text_boolean(text, is_rotated(settings, key_type, "attention.key_length"));
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "values_rotated");
    ckvi_llama_text_boolean(text,
                            is_rotated(settings, value_type, "attention.value_length"));
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "streams");
    ckvi_llama_text_unsigned(text, 1);
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "layers");
    ckvi_llama_text_unsigned(text, layout->layer_count);
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "bytes_per_token");
    ckvi_llama_text_unsigned(text, layout->token_bytes);
    ckvi_llama_text_put(text, "}");
}

static const char *pooling_name(enum llama_pooling_type type)
{
    switch (type) {
    case LLAMA_POOLING_TYPE_NONE:
        return "none";
    case LLAMA_POOLING_TYPE_MEAN:
        return "mean";
    case LLAMA_POOLING_TYPE_CLS:
        return "cls";
    case LLAMA_POOLING_TYPE_LAST:
        return "last";
    case LLAMA_POOLING_TYPE_RANK:
        return "rank";
    default:
        return "other";
    }
}

void ckvi_llama_settings_put_attention(struct ckvi_llama_text *text,
                                       const struct ckvi_llama_settings *settings)
{
    ckvi_llama_text_put(text, "{");
    /* Nothing else gets this far. */
    put_name(text, "mask", "causal");
    put_name(text, "context", "default");
    ckvi_llama_text_key(text, "pooling");
    ckvi_llama_text_string(text, pooling_name(settings->pooling));
    ckvi_llama_text_put(text, "}");
}

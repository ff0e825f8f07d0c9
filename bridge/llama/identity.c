/*
 * Owns the identity: the canonical JSON text whose SHA-256 is the fingerprint.
 *
 * Invariant: what changes the meaning or the layout of a state is in the text, in
 * effective values; paths, times, context size, threads and batch sizes are not. The text
 * is kept beside the entries, so that two fingerprints can be compared field by field.
 *
 * Not visible through llama.h, and so the caller's to name (extra_identity, or the
 * namespace): metadata overrides, adapters with their scales, control vectors.
 *
 * Failure story: no identity, no bridge; nothing half-made is hashed.
 */
#include "identity.h"

#include "digest.h"
#include "keys.h"
#include "memory.h"
#include "model_file.h"
#include "settings.h"
#include "vocabulary.h"

#include <inttypes.h>
#include <stdlib.h>

#define NAME_BYTES_MAX 256u

static bool has_long_factors(const struct ckvi_llama_model_file *file)
{
    for (size_t i = 0; i < file->weight_count; i++)
        if (strstr(file->weights[i].name, "rope_factors_long"))
            return true;
    return false;
}

/* The bridge's only look at the environment, because libllama looks there too: any number
 * but 0 means yes, what is no number is 0. */
static bool is_rotation_disabled(void)
{
    const char *value = getenv("LLAMA_ATTN_ROT_DISABLE");
    return value && strtol(value, NULL, 10) != 0;
}

static void put_engine(struct ckvi_llama_text *text)
{
    ckvi_llama_text_put(text, "{");
    ckvi_llama_text_key(text, "name");
    ckvi_llama_text_string(text, CKVI_LLAMA_ENGINE);
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "version");
    ckvi_llama_text_string(text, llama_version());
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "ggml");
    ckvi_llama_text_string(text, ggml_version());
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "commit");
    ckvi_llama_text_string(text, ggml_commit());
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "sequence_state");
    ckvi_llama_text_unsigned(text, LLAMA_STATE_SEQ_VERSION);
    ckvi_llama_text_put(text, "}");
}

static enum ckv_status put_weights(struct ckvi_llama_text *text,
                                   const struct ckvi_llama_model_file *file, bool full,
                                   struct ckv_error *error)
{
    char hash[CKV_SHA256_TEXT_SIZE];
    enum ckv_status status = ckvi_llama_model_file_digest(file, hash, error);
    ckvi_llama_text_put(text, "{");
    ckvi_llama_text_key(text, "read");
    ckvi_llama_text_string(text, full ? "all" : "samples");
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "tensors");
    ckvi_llama_text_unsigned(text, file->weight_count);
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "bytes");
    ckvi_llama_text_unsigned(text, file->weight_bytes);
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "sha256");
    ckvi_llama_text_string(text, hash);
    ckvi_llama_text_put(text, "}");
    return status;
}

/* The whole text, in this order. */
static enum ckv_status put_description(struct ckvi_llama_text *text,
                                       const struct ckvi_llama_model_file *file,
                                       const struct ckvi_llama_settings *settings,
                                       const struct ckvi_llama_layout *layout,
                                       const struct ckv_llama_options *options,
                                       struct ckv_error *error)
{
    enum ckv_status status;
    ckvi_llama_text_put(text, "{");
    ckvi_llama_text_key(text, "scheme");
    ckvi_llama_text_unsigned(text, CKVI_LLAMA_IDENTITY_SCHEME);
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "engine");
    put_engine(text);
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "architecture");
    ckvi_llama_text_string(text, settings->architecture);
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "weights");
    status = put_weights(text, file, options->full_identity, error);
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "cache");
    ckvi_llama_settings_put_cache(text, settings, layout);
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "rope");
    ckvi_llama_settings_put_rope(text, settings);
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "attention");
    ckvi_llama_settings_put_attention(text, settings);
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "extra");
    ckvi_llama_text_string(text, options->extra_identity ? options->extra_identity : "");
    ckvi_llama_text_put(text, ",");
    ckvi_llama_text_key(text, "keys");
    if (!status)
        status = ckvi_llama_keys_put(text, settings->keys, CKVI_LLAMA_KEYS_MODEL, error);
    ckvi_llama_text_put(text, "}");
    if (!status && text->failed)
        status = ckvi_llama_nomem(error, "the identity");
    return status;
}

/* Bytes of the UTF-8 character at `text`; 0 when it is none. */
static size_t character_bytes(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t size = 0;
    if (at[0] < 0x80)
        return 1;
    if (at[0] >= 0xc2 && at[0] <= 0xdf)
        size = 2;
    else if (at[0] >= 0xe0 && at[0] <= 0xef)
        size = 3;
    else if (at[0] >= 0xf0 && at[0] <= 0xf4)
        size = 4;
    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    /* Overlong forms, surrogates and what lies beyond U+10FFFF. */
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
        (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
        return 0;
    return size;
}

/* Length of the part of a name that is kept: whole characters; 0 when it is no UTF-8. */
static size_t name_bytes(const char *name)
{
    size_t length = 0;
    while (name[length]) {
        size_t size = character_bytes(name + length);
        if (size == 0)
            return 0;
        if (length + size > NAME_BYTES_MAX)
            break;
        length += size;
    }
    return length;
}

void ckvi_llama_identity_put_name(struct ckvi_llama_text *text,
                                  const struct gguf_context *keys, const char *model_path)
{
    const char *name = ckvi_llama_keys_get_string(keys, "general.name");
    if (!name || name_bytes(name) == 0) {
        name = strrchr(model_path, '/');
        name = name ? name + 1 : model_path;
    }
    if (name_bytes(name) == 0)
        name = "unnamed";
    ckvi_llama_text_put_bytes(text, name, name_bytes(name));
}

static enum ckv_status check_causal(const struct ckvi_llama_settings *settings,
                                    struct ckv_error *error)
{
    bool causal = true;
    if (settings->params->attention_type == LLAMA_ATTENTION_TYPE_UNSPECIFIED &&
        ckvi_llama_settings_get_bool(settings, "attention.causal", &causal) && !causal)
        return ckv_error_set(error, CKV_UNSUPPORTED,
                             "llama.cpp context: the model's attention is not causal");
    return CKV_OK;
}

/* Catches a path that names another model, or a file that was replaced after loading. */
static enum ckv_status check_file(const struct ckvi_llama_model_file *file,
                                  const struct llama_model *model, const char *path,
                                  struct ckv_error *error)
{
    uint64_t loaded = llama_model_size(model);
    if (file->weight_bytes == loaded)
        return CKV_OK;
    return ckv_error_set(error, CKV_INVALID,
                         "%s holds %" PRIu64
                         " bytes of weights, the loaded model %" PRIu64
                         ": it is not the file that was loaded",
                         path, file->weight_bytes, loaded);
}

static void fill_settings(struct ckvi_llama_settings *settings,
                          const struct ckv_llama *bridge,
                          const struct llama_context_params *params,
                          const struct ckvi_llama_model_file *file)
{
    const struct llama_model *model = llama_get_model(bridge->context);
    const struct gguf_context *keys = ckvi_llama_model_file_keys(file);
    const char *architecture = ckvi_llama_keys_get_string(keys, "general.architecture");
    *settings = (struct ckvi_llama_settings){
        .keys = keys,
        .architecture = architecture ? architecture : "",
        .params = params,
        .rope_type = llama_model_rope_type(model),
        .freq_scale_train = llama_model_rope_freq_scale_train(model),
        .context_tokens = llama_n_ctx_seq(bridge->context),
        .has_long_factors = has_long_factors(file),
        .embedding_length = (uint32_t)llama_model_n_embd(model),
        .head_count = (uint32_t)llama_model_n_head(model),
        .pooling = llama_pooling_type(bridge->context),
        .rotation_disabled = is_rotation_disabled(),
    };
}

static enum ckv_status hash_description(struct ckv_llama *bridge, struct ckv_error *error)
{
    struct ckvi_llama_digest digest;
    ckvi_llama_digest_init(&digest, bridge->alloc, error);
    ckvi_llama_digest_put(&digest, bridge->description.data, bridge->description.length);
    return ckvi_llama_digest_finish(&digest, bridge->fingerprint);
}

enum ckv_status ckvi_llama_identity_make(struct ckv_llama *bridge,
                                         const struct llama_context_params *params,
                                         const char *model_path,
                                         const struct ckv_llama_options *options,
                                         struct ckv_error *error)
{
    const struct llama_model *model = llama_get_model(bridge->context);
    struct ckvi_llama_model_file file;
    struct ckvi_llama_settings settings;
    enum ckv_status status = ckvi_llama_model_file_load(&file, bridge->alloc, model_path,
                                                        options->full_identity, error);
    if (status)
        return status;
    fill_settings(&settings, bridge, params, &file);
    status = check_file(&file, model, model_path, error);
    if (!status)
        status = check_causal(&settings, error);
    if (!status)
        status = put_description(&bridge->description, &file, &settings, &bridge->layout,
                                 options, error);
    if (!status)
        status = hash_description(bridge, error);
    if (!status)
        status =
            ckvi_llama_vocabulary_digest(llama_model_get_vocab(model), settings.keys,
                                         bridge->alloc, bridge->tokenizer_hash, error);
    ckvi_llama_identity_put_name(&bridge->model_id, settings.keys, model_path);
    if (!status && bridge->model_id.failed)
        status = ckvi_llama_nomem(error, "the model's name");
    ckvi_llama_model_file_deinit(&file);
    bridge->identity = (struct ckv_store_identity){
        .fingerprint = bridge->fingerprint,
        .tokenizer_hash = bridge->tokenizer_hash,
        .model_id = bridge->model_id.data,
        .description = bridge->description.data,
    };
    return status;
}

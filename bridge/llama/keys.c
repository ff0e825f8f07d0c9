/*
 * Owns the canonical text of GGUF keys and typed access to them.
 *
 * Invariant: a key's text changes when its name, type or value changes, and with nothing
 * else. gguf.h aborts when it is asked for the wrong type; here every access looks first.
 *
 * Failure story: memory and hashing may fail; unknown types (of a later GGUF) are
 * UNSUPPORTED, since leaving them out could make two models look the same.
 */
#include "keys.h"

#include "digest.h"
#include "memory.h"

#include <stdlib.h>

#define STRING_BYTES_SHOWN 256u

static size_t scalar_size(enum gguf_type type)
{
    switch (type) {
    case GGUF_TYPE_UINT8:
    case GGUF_TYPE_INT8:
    case GGUF_TYPE_BOOL:
        return 1;
    case GGUF_TYPE_UINT16:
    case GGUF_TYPE_INT16:
        return 2;
    case GGUF_TYPE_UINT32:
    case GGUF_TYPE_INT32:
    case GGUF_TYPE_FLOAT32:
        return 4;
    case GGUF_TYPE_UINT64:
    case GGUF_TYPE_INT64:
    case GGUF_TYPE_FLOAT64:
        return 8;
    default:
        return 0;
    }
}

static enum ckv_status put_string(struct ckvi_llama_text *text, const char *value,
                                  struct ckv_error *error)
{
    char hash[CKV_SHA256_TEXT_SIZE];
    struct ckvi_llama_digest digest;
    enum ckv_status status;
    size_t size = strlen(value);
    if (size <= STRING_BYTES_SHOWN) {
        ckvi_llama_text_put(text, "str:");
        ckvi_llama_text_escape(text, value, size);
        return CKV_OK;
    }
    ckvi_llama_digest_init(&digest, text->alloc, error);
    ckvi_llama_digest_put(&digest, value, size);
    status = ckvi_llama_digest_finish(&digest, hash);
    ckvi_llama_text_put(text, "str#");
    ckvi_llama_text_unsigned(text, size);
    ckvi_llama_text_put(text, ":");
    ckvi_llama_text_put(text, hash);
    return status;
}

static enum ckv_status put_array(struct ckvi_llama_text *text,
                                 const struct gguf_context *gguf, int64_t id,
                                 struct ckv_error *error)
{
    enum gguf_type type = gguf_get_arr_type(gguf, id);
    size_t count = gguf_get_arr_n(gguf, id);
    char hash[CKV_SHA256_TEXT_SIZE];
    struct ckvi_llama_digest digest;
    enum ckv_status status;
    if (type != GGUF_TYPE_STRING && scalar_size(type) == 0)
        return ckv_error_set(error, CKV_UNSUPPORTED, "GGUF array of unknown type %d",
                             (int)type);
    ckvi_llama_digest_init(&digest, text->alloc, error);
    for (size_t i = 0; type == GGUF_TYPE_STRING && i < count; i++) {
        const char *value = gguf_get_arr_str(gguf, id, i);
        ckvi_llama_digest_put_string(&digest, value, strlen(value));
    }
    if (type != GGUF_TYPE_STRING && count > 0)
        ckvi_llama_digest_put(&digest, gguf_get_arr_data(gguf, id),
                              count * scalar_size(type));
    status = ckvi_llama_digest_finish(&digest, hash);
    ckvi_llama_text_put(text, "[");
    ckvi_llama_text_put(text, gguf_type_name(type));
    ckvi_llama_text_put(text, "#");
    ckvi_llama_text_unsigned(text, count);
    ckvi_llama_text_put(text, "]:");
    ckvi_llama_text_put(text, hash);
    return status;
}

static void put_signed(struct ckvi_llama_text *text, const char *type, int64_t value)
{
    ckvi_llama_text_put(text, type);
    ckvi_llama_text_signed(text, value);
}

static void put_unsigned(struct ckvi_llama_text *text, const char *type, uint64_t value)
{
    ckvi_llama_text_put(text, type);
    ckvi_llama_text_unsigned(text, value);
}

/* The inside of the quotes. */
static enum ckv_status put_value(struct ckvi_llama_text *text,
                                 const struct gguf_context *gguf, int64_t id,
                                 struct ckv_error *error)
{
    switch (gguf_get_kv_type(gguf, id)) {
    case GGUF_TYPE_UINT8:
        put_unsigned(text, "u8:", gguf_get_val_u8(gguf, id));
        return CKV_OK;
    case GGUF_TYPE_INT8:
        put_signed(text, "i8:", gguf_get_val_i8(gguf, id));
        return CKV_OK;
    case GGUF_TYPE_UINT16:
        put_unsigned(text, "u16:", gguf_get_val_u16(gguf, id));
        return CKV_OK;
    case GGUF_TYPE_INT16:
        put_signed(text, "i16:", gguf_get_val_i16(gguf, id));
        return CKV_OK;
    case GGUF_TYPE_UINT32:
        put_unsigned(text, "u32:", gguf_get_val_u32(gguf, id));
        return CKV_OK;
    case GGUF_TYPE_INT32:
        put_signed(text, "i32:", gguf_get_val_i32(gguf, id));
        return CKV_OK;
    case GGUF_TYPE_UINT64:
        put_unsigned(text, "u64:", gguf_get_val_u64(gguf, id));
        return CKV_OK;
    case GGUF_TYPE_INT64:
        put_signed(text, "i64:", gguf_get_val_i64(gguf, id));
        return CKV_OK;
    case GGUF_TYPE_FLOAT32:
        ckvi_llama_text_put(text, "f32:");
        ckvi_llama_text_float(text, gguf_get_val_f32(gguf, id));
        return CKV_OK;
    case GGUF_TYPE_FLOAT64:
        ckvi_llama_text_put(text, "f64:");
        ckvi_llama_text_double(text, gguf_get_val_f64(gguf, id));
        return CKV_OK;
    case GGUF_TYPE_BOOL:
        ckvi_llama_text_put(text, "bool:");
        ckvi_llama_text_boolean(text, gguf_get_val_bool(gguf, id));
        return CKV_OK;
    case GGUF_TYPE_STRING:
        return put_string(text, gguf_get_val_str(gguf, id), error);
    case GGUF_TYPE_ARRAY:
        return put_array(text, gguf, id, error);
    default:
        return ckv_error_set(error, CKV_UNSUPPORTED, "GGUF key of unknown type %d",
                             (int)gguf_get_kv_type(gguf, id));
    }
}

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool in_group(const char *key, enum ckvi_llama_key_group group)
{
    if (group == CKVI_LLAMA_KEYS_TOKENIZER)
        return begins(key, "tokenizer.") && !begins(key, "tokenizer.chat_template");
    return !begins(key, "tokenizer.") && !begins(key, "general.") &&
           !begins(key, "split.");
}

struct named_key {
    const char *name;
    int64_t id;
};

static int compare_keys(const void *a, const void *b)
{
    const struct named_key *left = a;
    const struct named_key *right = b;
    return strcmp(left->name, right->name);
}

static enum ckv_status put_sorted(struct ckvi_llama_text *text,
                                  const struct gguf_context *gguf, struct named_key *keys,
                                  size_t count, struct ckv_error *error)
{
    enum ckv_status status = CKV_OK;
    if (count > 1)
        qsort(keys, count, sizeof *keys, compare_keys);
    ckvi_llama_text_put(text, "{");
    for (size_t i = 0; !status && i < count; i++) {
        if (i > 0)
            ckvi_llama_text_put(text, ",");
        ckvi_llama_text_key(text, keys[i].name);
        ckvi_llama_text_put(text, "\"");
        status = put_value(text, gguf, keys[i].id, error);
        ckvi_llama_text_put(text, "\"");
    }
    ckvi_llama_text_put(text, "}");
    return status;
}

enum ckv_status ckvi_llama_keys_put(struct ckvi_llama_text *text,
                                    const struct gguf_context *gguf,
                                    enum ckvi_llama_key_group group,
                                    struct ckv_error *error)
{
    int64_t total = gguf_get_n_kv(gguf);
    struct named_key *keys;
    enum ckv_status status;
    size_t count = 0;
    if (total <= 0) {
        ckvi_llama_text_put(text, "{}");
        return CKV_OK;
    }
    keys = ckvi_llama_allocate(text->alloc, (size_t)total, sizeof *keys);
    if (!keys)
        return ckvi_llama_nomem(error, "the model's keys");
    for (int64_t i = 0; i < total; i++)
        if (in_group(gguf_get_key(gguf, i), group))
            keys[count++] = (struct named_key){gguf_get_key(gguf, i), i};
    status = put_sorted(text, gguf, keys, count, error);
    ckvi_llama_release(text->alloc, keys, (size_t)total, sizeof *keys);
    if (!status && text->failed)
        status = ckvi_llama_nomem(error, "the model's keys");
    return status;
}

bool ckvi_llama_keys_get_u64(const struct gguf_context *gguf, const char *key,
                             uint64_t *value)
{
    int64_t id = gguf_find_key(gguf, key);
    int64_t with_sign = 0;
    switch (id < 0 ? GGUF_TYPE_COUNT : gguf_get_kv_type(gguf, id)) {
    case GGUF_TYPE_UINT8:
        with_sign = gguf_get_val_u8(gguf, id);
        break;
    case GGUF_TYPE_UINT16:
        with_sign = gguf_get_val_u16(gguf, id);
        break;
    case GGUF_TYPE_UINT32:
        with_sign = gguf_get_val_u32(gguf, id);
        break;
    case GGUF_TYPE_INT32:
        with_sign = gguf_get_val_i32(gguf, id);
        break;
    case GGUF_TYPE_INT64:
        with_sign = gguf_get_val_i64(gguf, id);
        break;
    case GGUF_TYPE_UINT64:
        *value = gguf_get_val_u64(gguf, id);
        return true;
    default:
        return false;
    }
    *value = (uint64_t)with_sign;
    return with_sign >= 0;
}

bool ckvi_llama_keys_get_float(const struct gguf_context *gguf, const char *key,
                               float *value)
{
    int64_t id = gguf_find_key(gguf, key);
    if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_FLOAT32)
        return false;
    *value = gguf_get_val_f32(gguf, id);
    return true;
}

bool ckvi_llama_keys_get_bool(const struct gguf_context *gguf, const char *key,
                              bool *value)
{
    int64_t id = gguf_find_key(gguf, key);
    if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_BOOL)
        return false;
    *value = gguf_get_val_bool(gguf, id);
    return true;
}

const char *ckvi_llama_keys_get_string(const struct gguf_context *gguf, const char *key)
{
    int64_t id = gguf_find_key(gguf, key);
    if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_STRING)
        return NULL;
    return gguf_get_val_str(gguf, id);
}

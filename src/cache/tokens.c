/*
 * Owns the way of new tokens into arrays: the checks of keys and values against each
 * other and against the cache, and the loop over KV heads that hands contiguous rows to a
 * codec.
 *
 * Failure story: everything is checked and made contiguous before a row is written.
 */
#include "cache/live.h"

#include "tensor/rows.h"

static bool is_float(enum ckv_dtype dtype)
{
    return dtype == CKV_DTYPE_FLOAT16 || dtype == CKV_DTYPE_BFLOAT16 ||
           dtype == CKV_DTYPE_FLOAT32;
}

static enum ckv_status check_pair(const struct ckv_array *keys,
                                  const struct ckv_array *values, struct ckv_error *error)
{
    if (!keys || !values || keys->rank != 4 || values->rank != 4)
        return ckv_error_set(error, CKV_INVALID,
                             "append: keys and values must have rank 4");
    if (!is_float(keys->dtype) || keys->dtype != values->dtype)
        return ckv_error_set(error, CKV_INVALID,
                             "append: keys are %s and values %s, expected one float type",
                             ckv_dtype_name(keys->dtype), ckv_dtype_name(values->dtype));
    for (uint32_t i = 0; i < 3; i++)
        if (keys->shape[i] != values->shape[i] || keys->shape[i] == 0)
            return ckv_error_set(error, CKV_INVALID,
                                 "append: axis %u is %llu in keys and %llu in values", i,
                                 (unsigned long long)keys->shape[i],
                                 (unsigned long long)values->shape[i]);
    if (keys->shape[3] == 0 || values->shape[3] == 0)
        return ckv_error_set(error, CKV_INVALID, "append: a head dim is 0");
    return CKV_OK;
}

/* The rows must fit what the cache holds already. */
static enum ckv_status check_fit(const struct ckv_live_cache *cache,
                                 const struct ckvi_tokens *tokens,
                                 struct ckv_error *error)
{
    for (size_t i = 0; i < cache->array_count; i++) {
        const struct ckv_array *array = &cache->arrays[i];
        if (array->shape[0] != tokens->batch || array->shape[1] != tokens->heads ||
            array->shape[3] != tokens->forms[i].width)
            return ckv_error_set(
                error, CKV_INVALID,
                "append: array %zu is [%llu,%llu,_,%llu], new rows are "
                "[%llu,%llu,_,%llu]",
                i, (unsigned long long)array->shape[0],
                (unsigned long long)array->shape[1], (unsigned long long)array->shape[3],
                (unsigned long long)tokens->batch, (unsigned long long)tokens->heads,
                (unsigned long long)tokens->forms[i].width);
        if (array->dtype != tokens->forms[i].dtype)
            return ckv_error_set(
                error, CKV_INVALID, "append: array %zu holds %s, new rows are %s", i,
                ckv_dtype_name(array->dtype), ckv_dtype_name(tokens->forms[i].dtype));
    }
    return CKV_OK;
}

/* A reference whose rows lie together per KV head; copies only what does not. */
static enum ckv_status rows_together(const struct ckv_array *array, struct ckv_array *out,
                                     struct ckv_error *error)
{
    bool together = (array->stride[3] == 1 || array->shape[3] == 1) &&
                    (array->stride[2] == array->shape[3] || array->shape[2] == 1);
    if (!together)
        return ckv_array_contiguous(array, out, error);
    *out = ckv_array_ref(array);
    return CKV_OK;
}

enum ckv_status ckvi_tokens_init(const struct ckv_live_cache *cache,
                                 const struct ckv_array *keys,
                                 const struct ckv_array *values, struct ckvi_tokens *out,
                                 struct ckv_error *error)
{
    const struct ckvi_codec *codec = ckvi_cache_codec(cache->params.kind);
    enum ckv_status status;
    *out = (struct ckvi_tokens){0};
    status = check_pair(keys, values, error);
    if (status)
        goto fail;
    out->batch = keys->shape[0];
    out->heads = keys->shape[1];
    out->count = keys->shape[TOKEN_AXIS];
    status = codec->forms(cache, keys, values, out->forms, error);
    if (status)
        goto fail;
    status = check_fit(cache, out, error);
    if (status)
        goto fail;
    if (out->count > UINT64_MAX / 4 - cache->offset) {
        status = ckv_error_set(error, CKV_TOOBIG, "append: the offset overflows");
        goto fail;
    }
    status = rows_together(keys, &out->keys, error);
    if (status)
        goto fail;
    status = rows_together(values, &out->values, error);
    if (status)
        goto fail;
    return CKV_OK;
fail:
    ckvi_tokens_deinit(out);
    return status;
}

void ckvi_tokens_deinit(struct ckvi_tokens *tokens)
{
    ckv_array_unref(&tokens->keys);
    ckv_array_unref(&tokens->values);
}

enum ckv_status ckvi_tokens_encode(const struct ckv_live_cache *cache,
                                   const struct ckvi_tokens *tokens,
                                   struct ckv_array *arrays, uint64_t row,
                                   struct ckv_error *error)
{
    const struct ckvi_codec *codec = ckvi_cache_codec(cache->params.kind);
    for (uint64_t at = 0; at < tokens->batch * tokens->heads; at++) {
        uint64_t b = at / tokens->heads;
        uint64_t h = at % tokens->heads;
        void *out[CKV_CACHE_ARRAYS_MAX];
        enum ckv_status status;
        for (size_t i = 0; i < codec->array_count; i++)
            out[i] = ckvi_array_at(&arrays[i], b, h, row);
        status = codec->encode(
            cache, tokens->keys.dtype, ckvi_array_at(&tokens->keys, b, h, 0),
            tokens->keys.shape[3], ckvi_array_at(&tokens->values, b, h, 0),
            tokens->values.shape[3], tokens->count, out, error);
        if (status)
            return status;
    }
    return CKV_OK;
}

enum ckv_status ckvi_tokens_create_arrays(const struct ckv_live_cache *cache,
                                          const struct ckvi_tokens *tokens, uint64_t rows,
                                          struct ckv_array *out, struct ckv_error *error)
{
    const struct ckvi_codec *codec = ckvi_cache_codec(cache->params.kind);
    for (size_t i = 0; i < codec->array_count; i++) {
        uint64_t shape[4] = {tokens->batch, tokens->heads, rows, tokens->forms[i].width};
        enum ckv_status status = ckv_array_create(cache->alloc, tokens->forms[i].dtype, 4,
                                                  shape, TOKEN_AXIS, &out[i], error);
        if (status) {
            ckvi_arrays_unref(out, i);
            return status;
        }
    }
    return CKV_OK;
}

void ckvi_arrays_unref(struct ckv_array *arrays, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ckv_array_unref(&arrays[i]);
}

void ckvi_cache_replace(struct ckv_live_cache *cache, struct ckv_array *arrays,
                        size_t count)
{
    ckvi_arrays_unref(cache->arrays, cache->array_count);
    for (size_t i = 0; i < count; i++)
        cache->arrays[i] = arrays[i];
    cache->array_count = count;
}

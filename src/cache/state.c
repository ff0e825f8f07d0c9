/*
 * Owns what a cache shows of itself: the arrays as they would be stored, what they cost,
 * and the floats behind quantized rows.
 */
#include "cache/live.h"

#include "base/checked.h"

uint64_t ckvi_cache_rows(const struct ckv_live_cache *cache)
{
    if (cache->params.kind == CKV_CACHE_SSM || cache->array_count == 0)
        return 0;
    if (ckvi_cache_is_ring(cache->params.kind))
        return cache->arrays[0].shape[TOKEN_AXIS];
    return ckv_array_capacity(&cache->arrays[0]);
}

size_t ckv_cache_state(const struct ckv_live_cache *cache,
                       struct ckv_array out[CKV_CACHE_ARRAYS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < cache->array_count; i++)
        if (cache->arrays[i].buffer)
            out[count++] = ckv_array_ref(&cache->arrays[i]);
    return count;
}

static uint64_t product_without_rows(const struct ckv_array *array)
{
    return array->shape[0] * array->shape[1] * array->shape[3] *
           ckv_dtype_size(array->dtype);
}

uint64_t ckv_cache_bytes(const struct ckv_live_cache *cache)
{
    uint64_t rows = ckvi_cache_rows(cache);
    uint64_t bytes = 0;
    for (size_t i = 0; i < cache->array_count; i++) {
        if (cache->params.kind == CKV_CACHE_SSM)
            bytes += ckv_array_bytes(&cache->arrays[i]);
        else
            bytes += rows * product_without_rows(&cache->arrays[i]);
    }
    return bytes;
}

uint64_t ckv_cache_bytes_per_token(const struct ckv_live_cache *cache)
{
    uint64_t rows = ckvi_cache_rows(cache);
    return rows == 0 ? 0 : ckv_cache_bytes(cache) / rows;
}

enum ckv_status ckv_cache_temporal(const struct ckv_live_cache *cache,
                                   struct ckv_array out[CKV_CACHE_ARRAYS_MAX],
                                   size_t *count, struct ckv_error *error)
{
    uint64_t rows = ckvi_min_u64(cache->offset, cache->params.max_size);
    enum ckv_status status;
    *count = 0;
    if (!ckvi_cache_is_ring(cache->params.kind))
        return ckv_error_set(error, CKV_INVALID, "temporal: the cache is no ring");
    status = ckvi_ring_temporal(cache, rows, out, error);
    if (status == CKV_OK)
        *count = cache->array_count;
    return status;
}

/* Decodes one half (packed, scales, biases) of a quantized cache. */
static enum ckv_status fetch_affine(const struct ckv_live_cache *cache,
                                    const struct ckv_array *triple, struct ckv_array *out,
                                    struct ckv_error *error)
{
    struct ckv_affine affine = {cache->params.bits, cache->params.group_size};
    struct ckv_array whole[3] = {{0}};
    uint64_t dim = triple[1].shape[3] * affine.group_size;
    uint64_t shape[4] = {triple[0].shape[0], triple[0].shape[1], triple[0].shape[2], dim};
    uint64_t rows = shape[0] * shape[1] * shape[2];
    size_t run;
    enum ckv_status status;
    for (size_t i = 0; i < 3; i++) {
        status = ckv_array_contiguous(&triple[i], &whole[i], error);
        if (status)
            goto out;
    }
    status =
        ckv_array_create(cache->alloc, triple[1].dtype, 4, shape, TOKEN_AXIS, out, error);
    if (status || rows == 0)
        goto out;
    status = ckv_affine_decode(
        affine, out->dtype, ckv_array_run(&whole[0], 0, &run),
        ckv_array_run(&whole[1], 0, &run), ckv_array_run(&whole[2], 0, &run),
        (size_t)rows, (size_t)dim, (void *)(uintptr_t)ckv_array_run(out, 0, &run), error);
    if (status)
        ckv_array_unref(out);
out:
    ckvi_arrays_unref(whole, 3);
    return status;
}

static enum ckv_status fetch_turboquant(const struct ckv_live_cache *cache, bool deferred,
                                        struct ckv_array *keys, struct ckv_array *values,
                                        struct ckv_error *error)
{
    struct ckv_turboquant codec = {cache->params.k_bits, cache->params.v_bits,
                                   cache->head_dim};
    struct ckv_array whole[5] = {{0}};
    const void *bytes[5];
    const struct ckv_array *first = &cache->arrays[0];
    uint64_t shape[4] = {first->shape[0], first->shape[1], first->shape[2],
                         cache->head_dim};
    size_t rows = (size_t)(shape[0] * shape[1] * shape[2]);
    size_t run;
    uint16_t *k_out;
    uint16_t *v_out;
    enum ckv_status status;
    for (size_t i = 0; i < 5; i++) {
        status = ckv_array_contiguous(&cache->arrays[i], &whole[i], error);
        if (status)
            goto out;
        bytes[i] = rows ? ckv_array_run(&whole[i], 0, &run) : NULL;
    }
    status = ckv_array_create(cache->alloc, CKV_DTYPE_BFLOAT16, 4, shape, TOKEN_AXIS,
                              keys, error);
    if (status)
        goto out;
    status = ckv_array_create(cache->alloc, CKV_DTYPE_BFLOAT16, 4, shape, TOKEN_AXIS,
                              values, error);
    if (status || rows == 0)
        goto out;
    k_out = (uint16_t *)(uintptr_t)ckv_array_run(keys, 0, &run);
    v_out = (uint16_t *)(uintptr_t)ckv_array_run(values, 0, &run);
    status = ckv_turboquant_decode_keys(codec, bytes[0], bytes[1], bytes[2], rows, k_out,
                                        error);
    if (status)
        goto out;
    status = deferred ? ckv_turboquant_decode_values_deferred(codec, bytes[3], bytes[4],
                                                              rows, v_out, error)
                      : ckv_turboquant_decode_values(codec, bytes[3], bytes[4], rows,
                                                     v_out, error);
out:
    ckvi_arrays_unref(whole, 5);
    if (status) {
        ckv_array_unref(keys);
        ckv_array_unref(values);
    }
    return status;
}

enum ckv_status ckv_cache_fetch(const struct ckv_live_cache *cache,
                                struct ckv_array *keys, struct ckv_array *values,
                                struct ckv_error *error)
{
    enum ckv_status status;
    *keys = CKV_ARRAY_NONE;
    *values = CKV_ARRAY_NONE;
    if (cache->params.kind == CKV_CACHE_SSM || cache->array_count == 0)
        return ckv_error_set(error, CKV_INVALID,
                             "fetch: the cache is empty or recurrent");
    if (cache->params.kind == CKV_CACHE_TURBOQUANT)
        return fetch_turboquant(cache, false, keys, values, error);
    if (ckvi_cache_codec(cache->params.kind) == &ckvi_codec_plain) {
        *keys = ckv_array_ref(&cache->arrays[0]);
        *values = ckv_array_ref(&cache->arrays[1]);
        return CKV_OK;
    }
    status = fetch_affine(cache, cache->arrays, keys, error);
    if (status)
        return status;
    status = fetch_affine(cache, cache->arrays + 3, values, error);
    if (status)
        ckv_array_unref(keys);
    return status;
}

enum ckv_status ckv_cache_fetch_deferred(const struct ckv_live_cache *cache,
                                         struct ckv_array *keys, struct ckv_array *values,
                                         struct ckv_error *error)
{
    *keys = CKV_ARRAY_NONE;
    *values = CKV_ARRAY_NONE;
    if (cache->params.kind != CKV_CACHE_TURBOQUANT || cache->array_count == 0)
        return ckv_error_set(error, CKV_INVALID,
                             "deferred fetch: not a turboquant cache with tokens");
    return fetch_turboquant(cache, true, keys, values, error);
}

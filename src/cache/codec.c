/*
 * Owns the three ways in which a token's keys and values become rows of a cache's arrays,
 * in the tensor order of the file format.
 */
#include "cache/live.h"

#include <string.h>

static enum ckv_status plain_forms(const struct ckv_live_cache *cache,
                                   const struct ckv_array *keys,
                                   const struct ckv_array *values,
                                   struct ckvi_row_form *out, struct ckv_error *error)
{
    (void)cache;
    (void)error;
    out[0] = (struct ckvi_row_form){keys->dtype, keys->shape[3]};
    out[1] = (struct ckvi_row_form){values->dtype, values->shape[3]};
    return CKV_OK;
}

static enum ckv_status plain_encode(const struct ckv_live_cache *cache,
                                    enum ckv_dtype dtype, const void *keys,
                                    uint64_t k_dim, const void *values, uint64_t v_dim,
                                    uint64_t rows, void *const *out,
                                    struct ckv_error *error)
{
    size_t item = ckv_dtype_size(dtype);
    (void)cache;
    (void)error;
    memcpy(out[0], keys, (size_t)(rows * k_dim) * item);
    memcpy(out[1], values, (size_t)(rows * v_dim) * item);
    return CKV_OK;
}

const struct ckvi_codec ckvi_codec_plain = {2, plain_forms, plain_encode};

static struct ckv_affine affine_of(const struct ckv_live_cache *cache)
{
    return (struct ckv_affine){cache->params.bits, cache->params.group_size};
}

static enum ckv_status affine_half(struct ckv_affine affine,
                                   const struct ckv_array *array,
                                   struct ckvi_row_form *out, struct ckv_error *error)
{
    size_t dim = (size_t)array->shape[3];
    enum ckv_status status = ckv_affine_check(affine, dim, error);
    if (status)
        return status;
    out[0] =
        (struct ckvi_row_form){CKV_DTYPE_UINT32, ckv_affine_packed_words(affine, dim)};
    out[1] = (struct ckvi_row_form){array->dtype, ckv_affine_groups(affine, dim)};
    out[2] = out[1];
    return CKV_OK;
}

static enum ckv_status affine_forms(const struct ckv_live_cache *cache,
                                    const struct ckv_array *keys,
                                    const struct ckv_array *values,
                                    struct ckvi_row_form *out, struct ckv_error *error)
{
    enum ckv_status status = affine_half(affine_of(cache), keys, out, error);
    if (status)
        return status;
    return affine_half(affine_of(cache), values, out + 3, error);
}

static enum ckv_status affine_encode(const struct ckv_live_cache *cache,
                                     enum ckv_dtype dtype, const void *keys,
                                     uint64_t k_dim, const void *values, uint64_t v_dim,
                                     uint64_t rows, void *const *out,
                                     struct ckv_error *error)
{
    enum ckv_status status =
        ckv_affine_encode(affine_of(cache), dtype, keys, (size_t)rows, (size_t)k_dim,
                          out[0], out[1], out[2], error);
    if (status)
        return status;
    return ckv_affine_encode(affine_of(cache), dtype, values, (size_t)rows, (size_t)v_dim,
                             out[3], out[4], out[5], error);
}

const struct ckvi_codec ckvi_codec_affine = {6, affine_forms, affine_encode};

static struct ckv_turboquant turboquant_of(const struct ckv_live_cache *cache,
                                           uint64_t head_dim)
{
    uint32_t dim = head_dim <= UINT32_MAX ? (uint32_t)head_dim : 0;
    return (struct ckv_turboquant){cache->params.k_bits, cache->params.v_bits, dim};
}

static enum ckv_status turboquant_forms(const struct ckv_live_cache *cache,
                                        const struct ckv_array *keys,
                                        const struct ckv_array *values,
                                        struct ckvi_row_form *out,
                                        struct ckv_error *error)
{
    struct ckv_turboquant codec = turboquant_of(cache, keys->shape[3]);
    enum ckv_status status;
    uint64_t blocks;
    if (keys->shape[3] != values->shape[3])
        return ckv_error_set(
            error, CKV_INVALID, "append: head dim %llu of keys and %llu of values differ",
            (unsigned long long)keys->shape[3], (unsigned long long)values->shape[3]);
    status = ckv_turboquant_check(codec, error);
    if (status)
        return status;
    blocks = ckv_turboquant_blocks(codec);
    out[0] = (struct ckvi_row_form){codec.k_bits == 8 ? CKV_DTYPE_INT8 : CKV_DTYPE_UINT8,
                                    ckv_turboquant_key_bytes(codec)};
    out[1] = (struct ckvi_row_form){CKV_DTYPE_FLOAT16, blocks};
    out[2] = out[1];
    out[3] = (struct ckvi_row_form){CKV_DTYPE_UINT8, ckv_turboquant_value_bytes(codec)};
    out[4] = out[1];
    return CKV_OK;
}

static enum ckv_status turboquant_encode(const struct ckv_live_cache *cache,
                                         enum ckv_dtype dtype, const void *keys,
                                         uint64_t k_dim, const void *values,
                                         uint64_t v_dim, uint64_t rows, void *const *out,
                                         struct ckv_error *error)
{
    struct ckv_turboquant codec = turboquant_of(cache, k_dim);
    enum ckv_status status;
    (void)v_dim;
    status = ckv_turboquant_encode_keys(codec, dtype, keys, (size_t)rows, out[0], out[1],
                                        out[2], error);
    if (status)
        return status;
    return ckv_turboquant_encode_values(codec, dtype, values, (size_t)rows, out[3],
                                        out[4], error);
}

const struct ckvi_codec ckvi_codec_turboquant = {5, turboquant_forms, turboquant_encode};

const struct ckvi_codec *ckvi_cache_codec(enum ckv_cache_kind kind)
{
    switch (kind) {
    case CKV_CACHE_KV:
    case CKV_CACHE_ROTATING:
        return &ckvi_codec_plain;
    case CKV_CACHE_QKV:
    case CKV_CACHE_ROTATING_QKV:
        return &ckvi_codec_affine;
    case CKV_CACHE_TURBOQUANT:
        return &ckvi_codec_turboquant;
    case CKV_CACHE_SSM:
    case CKV_CACHE_STATE:
        break;
    }
    return NULL;
}

bool ckvi_cache_is_ring(enum ckv_cache_kind kind)
{
    return kind == CKV_CACHE_ROTATING || kind == CKV_CACHE_ROTATING_QKV;
}

/*
 * Owns the change of a populated cache into a quantized kind. The new cache is built
 * beside the old one; only when it is whole does it take its place.
 */
#include "cache/live.h"

#include "base/alloc.h"
#include "tensor/rows.h"
#include <string.h>

static bool same_params(const struct ckv_cache_params *a,
                        const struct ckv_cache_params *b)
{
    return a->kind == b->kind && a->max_size == b->max_size && a->bits == b->bits &&
           a->group_size == b->group_size && a->k_bits == b->k_bits &&
           a->v_bits == b->v_bits;
}

/* Whether `from` can become `to`; says why not. */
static enum ckv_status check_pair(const struct ckv_live_cache *from,
                                  const struct ckv_live_cache *to,
                                  struct ckv_error *error)
{
    enum ckv_cache_kind a = from->params.kind;
    enum ckv_cache_kind b = to->params.kind;
    bool allowed =
        (a == CKV_CACHE_KV && b == CKV_CACHE_QKV) ||
        (a == CKV_CACHE_ROTATING && b == CKV_CACHE_ROTATING_QKV) ||
        ((a == CKV_CACHE_KV || a == CKV_CACHE_ROTATING) && b == CKV_CACHE_TURBOQUANT);
    if (!allowed)
        return ckv_error_set(error, CKV_REFUSED, "convert: %s cannot become %s",
                             ckv_cache_kind_name(a), ckv_cache_kind_name(b));
    if (b == CKV_CACHE_ROTATING_QKV && from->params.max_size != to->params.max_size)
        return ckv_error_set(error, CKV_REFUSED, "convert: the window must stay %llu",
                             (unsigned long long)from->params.max_size);
    return CKV_OK;
}

/* The rows that are to be coded, as references, and the capacity they keep. */
static enum ckv_status source_rows(const struct ckv_live_cache *from,
                                   const struct ckv_live_cache *to,
                                   struct ckv_array rows[CKV_CACHE_ARRAYS_MAX],
                                   uint64_t *capacity, struct ckv_error *error)
{
    size_t count;
    *capacity = ckvi_cache_rows(from);
    if (from->params.kind == CKV_CACHE_ROTATING &&
        to->params.kind == CKV_CACHE_TURBOQUANT) {
        enum ckv_status status = ckv_cache_temporal(from, rows, &count, error);
        if (status)
            return status;
        *capacity = rows[0].shape[TOKEN_AXIS];
        if (*capacity == from->offset)
            return CKV_OK;
        ckvi_arrays_unref(rows, count);
        return ckv_error_set(
            error, CKV_REFUSED, "convert: the ring holds %llu of %llu tokens",
            (unsigned long long)*capacity, (unsigned long long)from->offset);
    }
    if (to->params.kind == CKV_CACHE_TURBOQUANT)
        *capacity = from->offset;
    (void)ckv_cache_state(from, rows);
    return CKV_OK;
}

static enum ckv_status fill(const struct ckv_live_cache *from, struct ckv_live_cache *to,
                            struct ckv_error *error)
{
    struct ckv_array rows[CKV_CACHE_ARRAYS_MAX];
    struct ckv_array arrays[CKV_CACHE_ARRAYS_MAX];
    size_t array_count = ckvi_cache_codec(to->params.kind)->array_count;
    struct ckvi_tokens tokens = {0};
    uint64_t capacity;
    enum ckv_status status = source_rows(from, to, rows, &capacity, error);
    if (status)
        return status;
    status = ckvi_tokens_init(to, &rows[0], &rows[1], &tokens, error);
    if (status)
        goto out;
    status = ckvi_tokens_create_arrays(to, &tokens, capacity, arrays, error);
    if (status)
        goto out;
    status = ckvi_tokens_encode(to, &tokens, arrays, 0, error);
    if (status) {
        ckvi_arrays_unref(arrays, array_count);
        goto out;
    }
    for (size_t i = 0; i < array_count; i++)
        ckvi_array_cut(&arrays[i], tokens.count);
    ckvi_cache_replace(to, arrays, array_count);
    to->offset = from->offset;
    to->idx = ckvi_cache_is_ring(to->params.kind) ? from->idx : 0;
    if (to->params.kind == CKV_CACHE_TURBOQUANT)
        to->head_dim = (uint32_t)tokens.keys.shape[3];
out:
    ckvi_tokens_deinit(&tokens);
    ckvi_arrays_unref(rows, 2);
    return status;
}

enum ckv_status ckv_cache_convert(struct ckv_live_cache *cache,
                                  const struct ckv_cache_params *params,
                                  struct ckv_error *error)
{
    struct ckv_live_cache *made = NULL;
    struct ckv_live_cache old;
    enum ckv_status status = ckv_cache_create(cache->alloc, params, &made, error);
    if (status)
        return status;
    if (same_params(&made->params, &cache->params))
        goto out;
    status = check_pair(cache, made, error);
    if (status)
        goto out;
    if (cache->array_count > 0 && cache->offset > 0) {
        status = fill(cache, made, error);
        if (status)
            goto out;
    }
    old = *cache;
    *cache = *made;
    *made = old;
out:
    ckv_cache_destroy(made);
    return status;
}

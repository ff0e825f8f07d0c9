/*
 * Owns what can be taken back from a cache. A cache that cannot be trimmed refuses and
 * stays as it was; a trim never claims more than it dropped.
 */
#include "cache/live.h"

#include "base/checked.h"
#include "tensor/rows.h"

bool ckv_cache_is_trimmable(const struct ckv_live_cache *cache)
{
    if (cache->params.kind == CKV_CACHE_SSM)
        return false;
    if (!ckvi_cache_is_ring(cache->params.kind))
        return true;
    return cache->offset < cache->params.max_size;
}

enum ckv_status ckv_cache_trim(struct ckv_live_cache *cache, uint64_t n,
                               uint64_t *dropped, struct ckv_error *error)
{
    uint64_t count = ckvi_min_u64(n, cache->offset);
    bool ring = ckvi_cache_is_ring(cache->params.kind);
    if (dropped)
        *dropped = 0;
    if (!ckv_cache_is_trimmable(cache))
        return ckv_error_set(error, CKV_REFUSED,
                             "trim: a cache of the kind %s at offset %llu cannot be cut",
                             ckv_cache_kind_name(cache->params.kind),
                             (unsigned long long)cache->offset);
    if (ring && count > cache->idx)
        return ckv_error_set(error, CKV_REFUSED,
                             "trim: the ring's write row %llu is not behind %llu tokens",
                             (unsigned long long)cache->idx, (unsigned long long)count);
    cache->offset -= count;
    if (ring) {
        cache->idx -= count;
        if (count > 0)
            cache->undoable = 0;
    } else {
        for (size_t i = 0; i < cache->array_count; i++)
            ckvi_array_cut(&cache->arrays[i], cache->offset);
    }
    if (dropped)
        *dropped = count;
    return CKV_OK;
}

enum ckv_status ckv_cache_bypass_trim(struct ckv_live_cache *cache, uint64_t n,
                                      uint64_t *dropped, struct ckv_error *error)
{
    uint64_t count;
    if (dropped)
        *dropped = 0;
    if (!ckvi_cache_is_ring(cache->params.kind) || cache->undoable == 0)
        return ckv_error_set(
            error, CKV_REFUSED,
            "bypass trim: the last change was no multi-token append to a ring");
    count = ckvi_min_u64(n, cache->undoable - 1);
    if (count > 0) {
        for (size_t i = 0; i < cache->array_count; i++)
            cache->arrays[i].shape[TOKEN_AXIS] -= count;
        cache->offset -= count;
        cache->idx = cache->arrays[0].shape[TOKEN_AXIS];
        cache->undoable -= count;
    }
    if (dropped)
        *dropped = count;
    return CKV_OK;
}

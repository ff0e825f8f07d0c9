/*
 * Owns the way of given arrays into a cache: everything a header is checked for is
 * checked for arrays too, by the same function, before anything changes.
 */
#include "cache/live.h"

#include <string.h>

/* The cache as an entry would describe it. */
static void describe(const struct ckv_live_cache *cache, const struct ckv_array *arrays,
                     size_t count, uint64_t offset, uint64_t idx,
                     struct ckv_tensor *tensors, struct ckv_cache *out)
{
    memset(out, 0, sizeof *out);
    out->kind = cache->params.kind;
    out->offset = offset;
    out->idx = idx;
    out->max_size = cache->params.max_size;
    out->group_size = cache->params.group_size;
    out->bits = cache->params.bits;
    out->k_bits = cache->params.k_bits;
    out->v_bits = cache->params.v_bits;
    out->tensors = tensors;
    out->tensor_count = count;
    for (size_t i = 0; i < count; i++) {
        memset(&tensors[i], 0, sizeof tensors[i]);
        tensors[i].dtype = arrays[i].dtype;
        tensors[i].rank = arrays[i].rank;
        memcpy(tensors[i].shape, arrays[i].shape, sizeof tensors[i].shape);
        tensors[i].bytes = ckv_array_bytes(&arrays[i]);
    }
}

/* The head dim that a turboquant cache's key indices stand for. */
static uint64_t head_dim_of(const struct ckv_live_cache *cache,
                            const struct ckv_array *arrays, size_t count)
{
    if (cache->params.kind != CKV_CACHE_TURBOQUANT || count < 2)
        return 0;
    return arrays[1].shape[3] * CKV_TURBOQUANT_BLOCK;
}

enum ckv_status ckv_cache_restore_state(struct ckv_live_cache *cache,
                                        const struct ckv_array *arrays, size_t count,
                                        uint64_t offset, uint64_t idx,
                                        struct ckv_error *error)
{
    struct ckv_tensor tensors[CKV_CACHE_ARRAYS_MAX];
    struct ckv_cache record;
    struct ckv_entry entry = {.caches = &record, .cache_count = 1};
    struct ckv_array taken[CKV_CACHE_ARRAYS_MAX];
    uint64_t head_dim = head_dim_of(cache, arrays, count);
    enum ckv_status status;
    if (count > CKV_CACHE_ARRAYS_MAX)
        return ckv_error_set(error, CKV_UNSUPPORTED,
                             "restore: %zu arrays, a live cache holds at most %d", count,
                             CKV_CACHE_ARRAYS_MAX);
    if (head_dim > UINT32_MAX)
        return ckv_error_set(error, CKV_INVALID, "restore: the head dim is out of range");
    for (size_t i = 0; i < count; i++)
        if (!arrays[i].buffer)
            return ckv_error_set(error, CKV_INVALID, "restore: array %zu is missing", i);
    describe(cache, arrays, count, offset, idx, tensors, &record);
    record.head_dim = (uint32_t)head_dim;
    status = ckv_entry_validate(&entry, error);
    if (status) {
        if (error)
            error->status = CKV_INVALID;
        return CKV_INVALID;
    }
    for (size_t i = 0; i < count; i++)
        taken[i] = ckv_array_ref(&arrays[i]);
    ckvi_cache_replace(cache, taken, count);
    cache->offset = offset;
    cache->idx = ckvi_cache_is_ring(cache->params.kind) ? idx : 0;
    cache->head_dim = record.head_dim;
    cache->undoable = 0;
    return CKV_OK;
}

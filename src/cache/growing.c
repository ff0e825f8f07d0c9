/*
 * Owns the machine behind kv, qkv and turboquant: rows only come at the end, capacity
 * grows in steps of 256.
 *
 * Invariant: every array is a view of exactly `offset` rows. Rows behind it are capacity;
 * whether they may be written in place is the arrays' business (see <coldkv/array.h>).
 */
#include "cache/live.h"

#include "base/checked.h"
#include "tensor/rows.h"

static uint64_t steps(uint64_t rows)
{
    return (rows + CKV_CACHE_STEP - 1) / CKV_CACHE_STEP * CKV_CACHE_STEP;
}

static enum ckv_status first_append(struct ckv_live_cache *cache,
                                    const struct ckvi_tokens *tokens,
                                    struct ckv_error *error)
{
    const struct ckvi_codec *codec = ckvi_cache_codec(cache->params.kind);
    struct ckv_array arrays[CKV_CACHE_ARRAYS_MAX];
    enum ckv_status status =
        ckvi_tokens_create_arrays(cache, tokens, steps(tokens->count), arrays, error);
    if (status)
        return status;
    status = ckvi_tokens_encode(cache, tokens, arrays, 0, error);
    if (status) {
        ckvi_arrays_unref(arrays, codec->array_count);
        return status;
    }
    for (size_t i = 0; i < codec->array_count; i++)
        ckvi_array_cut(&arrays[i], tokens->count);
    ckvi_cache_replace(cache, arrays, codec->array_count);
    cache->offset = tokens->count;
    return CKV_OK;
}

/* Rows that the buffer has after this append, as the origin counts them: a buffer that
 * ends in the middle of a step is cut to its live rows before zero rows are added. */
static uint64_t capacity_after(uint64_t live, uint64_t added, uint64_t capacity)
{
    if (added <= capacity - live)
        return capacity;
    return (live % CKV_CACHE_STEP != 0 ? live : capacity) + steps(added);
}

enum ckv_status ckvi_growing_append(struct ckv_live_cache *cache,
                                    const struct ckvi_tokens *tokens,
                                    struct ckv_error *error)
{
    uint64_t row = cache->offset;
    uint64_t capacity;
    if (cache->array_count == 0)
        return first_append(cache, tokens, error);
    capacity = capacity_after(row, tokens->count, ckv_array_capacity(&cache->arrays[0]));
    for (size_t i = 0; i < cache->array_count; i++) {
        enum ckv_status status =
            ckv_array_reserve(&cache->arrays[i], tokens->count, capacity, error);
        if (status)
            return status;
    }
    for (size_t i = 0; i < cache->array_count; i++)
        ckvi_array_extend(&cache->arrays[i], tokens->count);
    cache->offset += tokens->count;
    /* Parameters were checked with the forms: nothing is left that could fail. */
    return ckvi_tokens_encode(cache, tokens, cache->arrays, row, error);
}

/*
 * Owns the sliding-window ring (keep = 0) behind rotating and rotating-qkv.
 *
 * State: S buffer rows, idx the row to be written next, offset the count of all tokens
 * ever seen. A multi-token append lays the buffer out in temporal order and may leave it
 * longer than the window; the next single token cuts it back and goes on in ring order.
 *
 * Failure story: a new layout is built beside the old one and swapped in whole.
 */
#include "cache/live.h"

#include "base/checked.h"

/* The part of the buffer that comes first in time, [begin, end), and the one after it. */
struct order {
    uint64_t first_begin, first_end;
    uint64_t second_end; /* second part is [0, second_end) */
};

static struct order temporal_order(const struct ckv_live_cache *cache)
{
    uint64_t rows = cache->array_count ? cache->arrays[0].shape[TOKEN_AXIS] : 0;
    if (cache->idx == rows)
        return (struct order){0, rows, 0};
    if (cache->idx < cache->offset)
        return (struct order){cache->idx, rows, cache->idx};
    return (struct order){0, cache->idx, 0};
}

static uint64_t order_length(struct order order)
{
    return order.first_end - order.first_begin + order.second_end;
}

/* The same without its oldest `count` rows. */
static struct order order_drop(struct order order, uint64_t count)
{
    uint64_t first = ckvi_min_u64(count, order.first_end - order.first_begin);
    uint64_t left = count - first;
    order.first_begin += first;
    if (order.first_begin == order.first_end && left > 0) {
        order.first_begin = left;
        order.first_end = order.second_end;
        order.second_end = 0;
    }
    return order;
}

/* Copies rows [begin, end) of one array to row `at` of another. */
static enum ckv_status copy_rows(const struct ckv_array *from, uint64_t begin,
                                 uint64_t end, struct ckv_array *to, uint64_t at,
                                 struct ckv_error *error)
{
    struct ckv_array part;
    enum ckv_status status = ckv_array_slice(from, TOKEN_AXIS, begin, end, &part, error);
    if (status)
        return status;
    ckv_array_write(to, TOKEN_AXIS, at, &part);
    ckv_array_unref(&part);
    return CKV_OK;
}

/* New arrays: the rows of `order`, then `extra` zero rows. */
static enum ckv_status lay_out(const struct ckv_live_cache *cache, struct order order,
                               uint64_t extra, struct ckv_array *out,
                               struct ckv_error *error)
{
    uint64_t first = order.first_end - order.first_begin;
    enum ckv_status status = CKV_OK;
    size_t made = 0;
    while (made < cache->array_count) {
        const struct ckv_array *old = &cache->arrays[made];
        uint64_t shape[4] = {old->shape[0], old->shape[1], order_length(order) + extra,
                             old->shape[3]};
        status = ckv_array_create(cache->alloc, old->dtype, 4, shape, TOKEN_AXIS,
                                  &out[made], error);
        if (status)
            break;
        made++;
        status =
            copy_rows(old, order.first_begin, order.first_end, &out[made - 1], 0, error);
        if (status)
            break;
        status = copy_rows(old, 0, order.second_end, &out[made - 1], first, error);
        if (status)
            break;
    }
    if (status)
        ckvi_arrays_unref(out, made);
    return status;
}

static enum ckv_status append_many(struct ckv_live_cache *cache,
                                   const struct ckvi_tokens *tokens,
                                   struct ckv_error *error)
{
    struct ckv_array arrays[CKV_CACHE_ARRAYS_MAX];
    size_t count = ckvi_cache_codec(cache->params.kind)->array_count;
    struct order order = temporal_order(cache);
    uint64_t kept;
    enum ckv_status status;
    if (order_length(order) + 1 > cache->params.max_size)
        order = order_drop(order, order_length(order) + 1 - cache->params.max_size);
    kept = order_length(order);
    if (cache->array_count == 0)
        status = ckvi_tokens_create_arrays(cache, tokens, tokens->count, arrays, error);
    else
        status = lay_out(cache, order, tokens->count, arrays, error);
    if (status)
        return status;
    status = ckvi_tokens_encode(cache, tokens, arrays, kept, error);
    if (status) {
        ckvi_arrays_unref(arrays, count);
        return status;
    }
    ckvi_cache_replace(cache, arrays, count);
    cache->offset += tokens->count;
    cache->idx = kept + tokens->count;
    cache->undoable = tokens->count;
    return CKV_OK;
}

/* Brings the buffer into a shape in which one row can be written at idx. */
static enum ckv_status make_room_for_one(struct ckv_live_cache *cache,
                                         const struct ckvi_tokens *tokens,
                                         struct ckv_error *error)
{
    struct ckv_array arrays[CKV_CACHE_ARRAYS_MAX];
    size_t count = ckvi_cache_codec(cache->params.kind)->array_count;
    uint64_t rows = cache->array_count ? cache->arrays[0].shape[TOKEN_AXIS] : 0;
    uint64_t window = cache->params.max_size;
    enum ckv_status status;
    if (rows < window && (cache->array_count == 0 || cache->offset >= rows)) {
        uint64_t added = ckvi_min_u64(CKV_CACHE_STEP, window - cache->offset);
        if (cache->array_count == 0)
            status = ckvi_tokens_create_arrays(cache, tokens, added, arrays, error);
        else
            status = lay_out(cache, (struct order){0, rows, 0}, added, arrays, error);
        if (status)
            return status;
        ckvi_cache_replace(cache, arrays, count);
        cache->idx = cache->offset;
    } else if (rows > window) {
        status = lay_out(cache, (struct order){rows - window, rows, 0}, 0, arrays, error);
        if (status)
            return status;
        ckvi_cache_replace(cache, arrays, count);
        cache->idx = window;
    }
    return CKV_OK;
}

static enum ckv_status append_one(struct ckv_live_cache *cache,
                                  const struct ckvi_tokens *tokens,
                                  struct ckv_error *error)
{
    enum ckv_status status = make_room_for_one(cache, tokens, error);
    if (status)
        return status;
    for (size_t i = 0; i < cache->array_count; i++) {
        status = ckv_array_own(&cache->arrays[i], error);
        if (status)
            return status;
    }
    if (cache->idx == cache->params.max_size)
        cache->idx = 0;
    status = ckvi_tokens_encode(cache, tokens, cache->arrays, cache->idx, error);
    if (status)
        return status;
    cache->offset += 1;
    cache->idx += 1;
    cache->undoable = 0;
    return CKV_OK;
}

enum ckv_status ckvi_ring_append(struct ckv_live_cache *cache,
                                 const struct ckvi_tokens *tokens,
                                 struct ckv_error *error)
{
    if (tokens->count == 1)
        return append_one(cache, tokens, error);
    return append_many(cache, tokens, error);
}

enum ckv_status ckvi_ring_temporal(const struct ckv_live_cache *cache, uint64_t rows,
                                   struct ckv_array *out, struct ckv_error *error)
{
    struct order order = temporal_order(cache);
    uint64_t length = order_length(order);
    if (length > rows)
        order = order_drop(order, length - rows);
    return lay_out(cache, order, 0, out, error);
}

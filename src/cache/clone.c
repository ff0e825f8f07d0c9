/*
 * Owns snapshots of live caches. A clone shares the donor's buffers; views of growing
 * kinds are sealed, so that exactly one holder, the donor, may go on in place.
 */
#include "cache/live.h"

#include "base/alloc.h"

static struct ckv_live_cache *clone_one(const struct ckv_live_cache *cache)
{
    struct ckv_live_cache *clone = CKVI_NEW(cache->alloc, struct ckv_live_cache);
    if (!clone)
        return NULL;
    *clone = *cache;
    clone->undoable = 0;
    for (size_t i = 0; i < cache->array_count; i++) {
        clone->arrays[i] = ckv_array_ref(&cache->arrays[i]);
        clone->arrays[i].sealed = true;
    }
    return clone;
}

enum ckv_status ckv_caches_clone(struct ckv_live_cache *const *caches, size_t count,
                                 struct ckv_live_cache **out, struct ckv_error *error)
{
    for (size_t i = 0; i < count; i++)
        out[i] = NULL;
    for (size_t i = 0; i < count; i++)
        if (!caches[i] || ckv_cache_is_empty(caches[i]))
            return ckv_error_set(error, CKV_INVALID, "clone: cache %zu is empty", i);
    for (size_t i = 0; i < count; i++) {
        out[i] = clone_one(caches[i]);
        if (out[i])
            continue;
        ckv_caches_destroy(out, i);
        return ckvi_nomem(error, sizeof *out[i], "a clone");
    }
    return CKV_OK;
}

void ckv_caches_destroy(struct ckv_live_cache **caches, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ckv_cache_destroy(caches[i]);
        caches[i] = NULL;
    }
}

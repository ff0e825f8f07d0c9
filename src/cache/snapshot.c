/*
 * Owns the picture of a list of live caches that a writer works from: clones, the entry
 * that describes them, and a source that lends their rows run by run, without a copy.
 *
 * Invariant: the clones never change, so neither does what the source lends, whatever the
 * caches do meanwhile and whichever thread reads.
 */
#include <coldkv/lifecycle.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "cache/live.h"
#include <string.h>

struct ckv_snapshot {
    const struct ckv_alloc *alloc;
    struct ckv_entry entry;
    struct ckv_source source;
    struct ckv_live_cache **clones;
    struct ckv_cache *records;
    struct ckv_tensor *tensors; /* of all caches, in order */
    size_t cache_count;
    size_t tensor_count;
    uint32_t *tokens;
    size_t token_count;
};

static enum ckv_status view(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                            size_t wanted, const void **data, size_t *size,
                            struct ckv_error *error)
{
    const struct ckv_snapshot *snapshot = ctx;
    const struct ckv_array *array;
    size_t run;
    if (cache >= snapshot->cache_count || tensor >= snapshot->clones[cache]->array_count)
        return ckv_error_set(error, CKV_INVALID, "snapshot: no tensor %zu in cache %zu",
                             tensor, cache);
    array = &snapshot->clones[cache]->arrays[tensor];
    if (offset >= ckv_array_bytes(array))
        return ckv_error_set(error, CKV_INVALID, "snapshot: offset beyond tensor %zu",
                             tensor);
    *data = ckv_array_run(array, offset, &run);
    *size = run < wanted ? run : wanted;
    return CKV_OK;
}

static void describe_cache(const struct ckv_live_cache *cache, struct ckv_tensor *tensors,
                           struct ckv_cache *out)
{
    out->kind = cache->params.kind;
    out->offset = cache->offset;
    out->idx = cache->idx;
    out->max_size = cache->params.max_size;
    out->group_size = cache->params.group_size;
    out->bits = cache->params.bits;
    out->k_bits = cache->params.k_bits;
    out->v_bits = cache->params.v_bits;
    out->head_dim = cache->head_dim;
    out->tensors = tensors;
    out->tensor_count = cache->array_count;
    for (size_t i = 0; i < cache->array_count; i++) {
        const struct ckv_array *array = &cache->arrays[i];
        tensors[i].dtype = array->dtype;
        tensors[i].rank = array->rank;
        memcpy(tensors[i].shape, array->shape, sizeof array->shape);
        tensors[i].bytes = ckv_array_bytes(array);
    }
}

static void describe(struct ckv_snapshot *snapshot)
{
    struct ckv_tensor *next = snapshot->tensors;
    for (size_t i = 0; i < snapshot->cache_count; i++) {
        describe_cache(snapshot->clones[i], next, &snapshot->records[i]);
        next += snapshot->records[i].tensor_count;
    }
    snapshot->entry.tokens = snapshot->tokens;
    snapshot->entry.token_count = snapshot->token_count;
    snapshot->entry.caches = snapshot->records;
    snapshot->entry.cache_count = snapshot->cache_count;
    snapshot->source.ctx = snapshot;
    snapshot->source.any_thread = true;
    snapshot->source.view = view;
}

static enum ckv_status take(struct ckv_snapshot *snapshot,
                            struct ckv_live_cache *const *caches, const uint32_t *tokens,
                            struct ckv_error *error)
{
    enum ckv_status status;
    const struct ckv_alloc *alloc = snapshot->alloc;
    snapshot->clones =
        ckvi_zalloc(alloc, snapshot->cache_count, sizeof *snapshot->clones);
    snapshot->records =
        ckvi_zalloc(alloc, snapshot->cache_count, sizeof *snapshot->records);
    snapshot->tokens =
        ckvi_zalloc(alloc, snapshot->token_count, sizeof *snapshot->tokens);
    if (!snapshot->clones || !snapshot->records || !snapshot->tokens)
        return ckvi_nomem(error, snapshot->token_count * sizeof *snapshot->tokens,
                          "a snapshot");
    status = ckv_caches_clone(caches, snapshot->cache_count, snapshot->clones, error);
    if (status)
        return status;
    for (size_t i = 0; i < snapshot->cache_count; i++)
        snapshot->tensor_count += snapshot->clones[i]->array_count;
    snapshot->tensors =
        ckvi_zalloc(alloc, snapshot->tensor_count, sizeof *snapshot->tensors);
    if (!snapshot->tensors)
        return ckvi_nomem(error, snapshot->tensor_count * sizeof *snapshot->tensors,
                          "a snapshot");
    if (snapshot->token_count > 0)
        memcpy(snapshot->tokens, tokens, snapshot->token_count * sizeof *tokens);
    describe(snapshot);
    return CKV_OK;
}

enum ckv_status ckv_snapshot_create(const struct ckv_alloc *alloc,
                                    struct ckv_live_cache *const *caches,
                                    size_t cache_count, const uint32_t *tokens,
                                    size_t token_count, struct ckv_snapshot **out,
                                    struct ckv_error *error)
{
    struct ckv_snapshot *snapshot;
    enum ckv_status status;
    *out = NULL;
    if (cache_count == 0 || cache_count > CKV_CACHES_MAX)
        return ckv_error_set(error, CKV_INVALID, "snapshot: %zu caches, expected 1 to %d",
                             cache_count, CKV_CACHES_MAX);
    alloc = ckvi_alloc_or_default(alloc);
    snapshot = CKVI_NEW(alloc, struct ckv_snapshot);
    if (!snapshot)
        return ckvi_nomem(error, sizeof *snapshot, "a snapshot");
    snapshot->alloc = alloc;
    snapshot->cache_count = cache_count;
    snapshot->token_count = token_count;
    status = take(snapshot, caches, tokens, error);
    if (status) {
        ckv_snapshot_destroy(snapshot);
        return status;
    }
    *out = snapshot;
    return CKV_OK;
}

void ckv_snapshot_destroy(struct ckv_snapshot *snapshot)
{
    const struct ckv_alloc *alloc;
    if (!snapshot)
        return;
    alloc = snapshot->alloc;
    if (snapshot->clones)
        ckv_caches_destroy(snapshot->clones, snapshot->cache_count);
    ckvi_free(alloc, snapshot->clones, snapshot->cache_count, sizeof *snapshot->clones);
    ckvi_free(alloc, snapshot->records, snapshot->cache_count, sizeof *snapshot->records);
    ckvi_free(alloc, snapshot->tensors, snapshot->tensor_count,
              sizeof *snapshot->tensors);
    ckvi_free(alloc, snapshot->tokens, snapshot->token_count, sizeof *snapshot->tokens);
    CKVI_DELETE(alloc, snapshot);
}

const struct ckv_entry *ckv_snapshot_entry(const struct ckv_snapshot *snapshot)
{
    return &snapshot->entry;
}

const struct ckv_source *ckv_snapshot_source(const struct ckv_snapshot *snapshot)
{
    return &snapshot->source;
}

/*
 * Owns the way from a store to live caches: a restore whose target is a load.
 *
 * Failure story: an entry that cannot become live caches of this model is passed over and
 * left alone; what was made of it is released before the next one is tried.
 */
#include <coldkv/store.h>

#include "file/load.h"
#include "store/state.h"
#include <string.h>

struct target {
    const struct ckv_alloc *alloc;
    uint64_t cache_count;
    struct ckvi_load load;
    struct ckv_loaded *loaded;
};

static enum ckv_status prepare(void *ctx, const struct ckv_entry *entry, uint64_t prefix,
                               struct ckv_sink *sink, struct ckv_error *error)
{
    struct target *target = ctx;
    enum ckv_status status;
    ckvi_load_deinit(&target->load);
    if (target->cache_count != CKV_LOAD_ANY && target->cache_count != entry->cache_count)
        return ckv_error_set(error, CKV_REFUSED,
                             "cached layers: the model has %llu, the file %zu",
                             (unsigned long long)target->cache_count, entry->cache_count);
    status = ckvi_load_check(entry, prefix, error);
    if (status == CKV_OK) {
        target->load.alloc = target->alloc;
        target->load.entry = entry;
        target->load.rows = prefix;
        status = ckvi_load_begin(&target->load, sink, error);
    }
    if (status != CKV_OK)
        ckvi_load_deinit(&target->load);
    return status;
}

static enum ckv_status accept(void *ctx, const struct ckv_entry *entry, uint64_t prefix,
                              struct ckv_error *error)
{
    struct target *target = ctx;
    enum ckv_status status = ckvi_load_finish(&target->load, target->loaded, error);
    (void)entry;
    (void)prefix;
    ckvi_load_deinit(&target->load);
    return status;
}

enum ckv_status ckv_store_load(struct ckv_store *store, const char *ns,
                               const uint32_t *prompt, size_t prompt_length,
                               uint64_t cache_count, const struct ckv_alloc *alloc,
                               struct ckv_loaded *loaded, struct ckv_restored *restored,
                               struct ckv_error *error)
{
    struct target target = {.cache_count = cache_count, .loaded = loaded};
    const struct ckv_restore_target how = {
        .ctx = &target, .prepare = prepare, .accept = accept, .prefix_only = true};
    struct ckv_restored result = {0};
    enum ckv_status status;
    if (!store || !loaded)
        return ckv_error_set(error, CKV_INVALID, "load needs a store and a place");
    memset(loaded, 0, sizeof *loaded);
    target.alloc = alloc ? alloc : store->alloc;
    status = ckv_store_restore(store, ns, prompt, prompt_length, &how, &result, error);
    ckvi_load_deinit(&target.load);
    if (status != CKV_OK)
        return status;
    loaded->read_bytes = result.read_bytes;
    if (restored)
        *restored = result;
    return CKV_OK;
}

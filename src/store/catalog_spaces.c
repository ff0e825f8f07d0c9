/*
 * Owns the namespaces of a catalog and the questions that their prefix indexes answer. A
 * namespace that was never stored to has no index and answers "nothing" without memory.
 */
#include "store/catalog_internal.h"

#include "base/alloc.h"
#include "base/checked.h"
#include <coldkv/hash.h>
#include <string.h>

static uint64_t hash_ns(const char *ns)
{
    return ckv_wyhash(ns, strlen(ns), 0);
}

struct ckvi_space *ckvi_space_find(const struct ckvi_catalog *catalog, const char *ns)
{
    struct ckvi_node *node = ckvi_map_first(&catalog->spaces, hash_ns(ns));
    for (; node; node = ckvi_map_same(node)) {
        struct ckvi_space *space = CKVI_CONTAINER(node, struct ckvi_space, node);
        if (strcmp(space->ns, ns) == 0)
            return space;
    }
    return NULL;
}

struct ckvi_space *ckvi_space_ensure(struct ckvi_catalog *catalog, const char *ns,
                                     struct ckv_error *error)
{
    struct ckvi_space *space = ckvi_space_find(catalog, ns);
    if (space)
        return space;
    space = CKVI_NEW(catalog->alloc, struct ckvi_space);
    if (!space) {
        (void)ckvi_nomem(error, sizeof *space, "a namespace");
        return NULL;
    }
    space->ns = ckvi_strdup(catalog->alloc, ns);
    if (!space->ns) {
        (void)ckvi_nomem(error, strlen(ns) + 1, "a namespace");
    } else if (ckv_index_create(catalog->alloc, &space->index, error) == CKV_OK) {
        ckvi_map_insert(&catalog->spaces, &space->node, hash_ns(ns));
        return space;
    }
    ckvi_strfree(catalog->alloc, space->ns);
    CKVI_DELETE(catalog->alloc, space);
    return NULL;
}

void ckvi_space_destroy(struct ckvi_catalog *catalog, struct ckvi_space *space)
{
    ckvi_map_remove(&catalog->spaces, &space->node);
    ckv_index_destroy(space->index);
    ckvi_strfree(catalog->alloc, space->ns);
    CKVI_DELETE(catalog->alloc, space);
}

size_t ckvi_catalog_find(struct ckvi_catalog *catalog, const char *ns,
                         const uint32_t *prompt, size_t prompt_length,
                         struct ckv_index_match *out, size_t capacity)
{
    const struct ckvi_space *space;
    size_t count = 0;
    (void)pthread_mutex_lock(&catalog->mu);
    space = ckvi_space_find(catalog, ns);
    if (space)
        count = ckv_index_find(space->index, prompt, prompt_length, out, capacity);
    (void)pthread_mutex_unlock(&catalog->mu);
    return count;
}

bool ckvi_catalog_covers(struct ckvi_catalog *catalog, const char *ns,
                         const uint32_t *tokens, size_t token_count, uint64_t *id)
{
    const struct ckvi_space *space;
    bool covers;
    (void)pthread_mutex_lock(&catalog->mu);
    space = ckvi_space_find(catalog, ns);
    covers = space && ckv_index_covers(space->index, tokens, token_count, id);
    (void)pthread_mutex_unlock(&catalog->mu);
    return covers;
}

static void take_id(void *ctx, uint64_t id)
{
    uint64_t *out = ctx;
    *out = id;
}

bool ckvi_catalog_same(struct ckvi_catalog *catalog, const char *ns,
                       const uint32_t *tokens, size_t token_count, uint64_t *id)
{
    const struct ckvi_space *space;
    size_t count = 0;
    (void)pthread_mutex_lock(&catalog->mu);
    space = ckvi_space_find(catalog, ns);
    /* No floor is beyond this one, so strict prefixes are left out. */
    if (space)
        count =
            ckv_index_covered(space->index, tokens, token_count, UINT64_MAX, take_id, id);
    (void)pthread_mutex_unlock(&catalog->mu);
    return count > 0;
}

struct collecting {
    struct ckvi_ids *ids;
    const struct ckv_alloc *alloc;
    uint64_t except;
    bool failed;
};

static void collect_id(void *ctx, uint64_t id)
{
    struct collecting *collecting = ctx;
    struct ckvi_ids *ids = collecting->ids;
    size_t capacity = ids->capacity ? ids->capacity * 2 : 8;
    if (collecting->failed || id == collecting->except)
        return;
    if (ids->count == ids->capacity) {
        uint64_t *moved = ckvi_regrow(collecting->alloc, ids->items, ids->capacity,
                                      capacity, sizeof *moved);
        if (!moved) {
            collecting->failed = true;
            return;
        }
        ids->items = moved;
        ids->capacity = capacity;
    }
    ids->items[ids->count++] = id;
}

static enum ckv_status finish_collecting(const struct collecting *collecting,
                                         struct ckv_error *error)
{
    if (!collecting->failed)
        return CKV_OK;
    ckvi_ids_deinit(collecting->ids, collecting->alloc);
    return ckvi_nomem(error, sizeof(uint64_t), "a list of entries");
}

enum ckv_status ckvi_catalog_covered(struct ckvi_catalog *catalog, const char *ns,
                                     const uint32_t *tokens, size_t token_count,
                                     uint64_t floor, uint64_t except,
                                     struct ckvi_ids *ids, struct ckv_error *error)
{
    struct collecting collecting = {ids, catalog->alloc, except, false};
    const struct ckvi_space *space;
    (void)pthread_mutex_lock(&catalog->mu);
    space = ckvi_space_find(catalog, ns);
    if (space)
        (void)ckv_index_covered(space->index, tokens, token_count, floor, collect_id,
                                &collecting);
    (void)pthread_mutex_unlock(&catalog->mu);
    return finish_collecting(&collecting, error);
}

static void collect_entry(void *ctx, const struct ckv_index_entry *entry)
{
    collect_id(ctx, entry->id);
}

enum ckv_status ckvi_catalog_space_ids(struct ckvi_catalog *catalog, const char *ns,
                                       struct ckvi_ids *ids, struct ckv_error *error)
{
    struct collecting collecting = {ids, catalog->alloc, 0, false};
    const struct ckvi_space *space;
    (void)pthread_mutex_lock(&catalog->mu);
    space = ckvi_space_find(catalog, ns);
    if (space)
        ckv_index_visit(space->index, collect_entry, &collecting);
    (void)pthread_mutex_unlock(&catalog->mu);
    return finish_collecting(&collecting, error);
}

void ckvi_ids_deinit(struct ckvi_ids *ids, const struct ckv_alloc *alloc)
{
    if (ids->items)
        ckvi_free(alloc, ids->items, ids->capacity, sizeof *ids->items);
    *ids = (struct ckvi_ids){0};
}

int64_t ckvi_catalog_next_mtime(struct ckvi_catalog *catalog, int64_t now_ns)
{
    const int64_t step_ns = 1000;
    int64_t next;
    (void)pthread_mutex_lock(&catalog->mu);
    next = catalog->newest_mtime_ns;
    next = next > INT64_MAX - step_ns ? next : next + step_ns;
    if (now_ns > next)
        next = now_ns;
    catalog->newest_mtime_ns = next;
    (void)pthread_mutex_unlock(&catalog->mu);
    return next;
}

void ckvi_catalog_saw_mtime(struct ckvi_catalog *catalog, int64_t mtime_ns)
{
    (void)pthread_mutex_lock(&catalog->mu);
    if (mtime_ns > catalog->newest_mtime_ns)
        catalog->newest_mtime_ns = mtime_ns;
    (void)pthread_mutex_unlock(&catalog->mu);
}

void ckvi_catalog_touch(struct ckvi_catalog *catalog, uint64_t id, int64_t mtime_ns)
{
    const struct ckvi_record *record;
    (void)pthread_mutex_lock(&catalog->mu);
    record = ckvi_record_by_id(catalog, id);
    if (record && record->space)
        (void)ckv_index_touch(record->space->index, id,
                              mtime_ns > 0 ? (uint64_t)mtime_ns : 0);
    (void)pthread_mutex_unlock(&catalog->mu);
}

void ckvi_catalog_count(struct ckvi_catalog *catalog, struct ckvi_catalog_counts *out)
{
    struct ckvi_node *node = NULL;
    (void)pthread_mutex_lock(&catalog->mu);
    out->entries = catalog->entry_count;
    out->longest_tokens = 0;
    while ((node = ckvi_map_next(&catalog->spaces, node))) {
        const struct ckvi_space *space = CKVI_CONTAINER(node, struct ckvi_space, node);
        out->longest_tokens =
            ckvi_max_u64(out->longest_tokens, ckv_index_longest(space->index));
    }
    (void)pthread_mutex_unlock(&catalog->mu);
}

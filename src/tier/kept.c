/*
 * Owns the tables of a prompt cache.
 *
 * Invariant: an entry is in by_id and in its shelf's index, or in neither; `charged` says
 * whether it is in the order of use and its buffers are counted. A shelf exists while an
 * entry is on it. Failure story: adding undoes itself when memory is out; nothing else
 * allocates.
 */
#include "tier/kept.h"

#include "base/alloc.h"
#include "base/assert.h"
#include <coldkv/hash.h>
#include <string.h>

enum ckv_status ckvi_kept_init(struct ckvi_kept_set *set, const struct ckv_alloc *alloc,
                               struct ckv_error *error)
{
    enum ckv_status status;
    *set = (struct ckvi_kept_set){.alloc = alloc, .next_id = 1};
    status = ckvi_map_init(&set->shelves, alloc, error);
    if (status == CKV_OK)
        status = ckvi_map_init(&set->by_id, alloc, error);
    if (status == CKV_OK)
        status = ckvi_buffers_init(&set->buffers, alloc, error);
    return status;
}

/* --- shelves --- */

static uint64_t hash_ns(const char *ns)
{
    return ckv_wyhash(ns, strlen(ns), 0);
}

static struct ckvi_shelf *find_shelf(const struct ckvi_kept_set *set, const char *ns)
{
    struct ckvi_node *node = ckvi_map_first(&set->shelves, hash_ns(ns));
    for (; node; node = ckvi_map_same(node)) {
        struct ckvi_shelf *shelf = CKVI_CONTAINER(node, struct ckvi_shelf, node);
        if (strcmp(shelf->ns, ns) == 0)
            return shelf;
    }
    return NULL;
}

static void destroy_shelf(struct ckvi_kept_set *set, struct ckvi_shelf *shelf)
{
    ckv_index_destroy(shelf->index);
    ckvi_strfree(set->alloc, shelf->ns);
    CKVI_DELETE(set->alloc, shelf);
}

static struct ckvi_shelf *ensure_shelf(struct ckvi_kept_set *set, const char *ns,
                                       struct ckv_error *error)
{
    struct ckvi_shelf *shelf = find_shelf(set, ns);
    if (shelf)
        return shelf;
    shelf = CKVI_NEW(set->alloc, struct ckvi_shelf);
    if (!shelf) {
        (void)ckvi_nomem(error, sizeof *shelf, "a namespace");
        return NULL;
    }
    shelf->ns = ckvi_strdup(set->alloc, ns);
    if (!shelf->ns) {
        (void)ckvi_nomem(error, strlen(ns) + 1, "a namespace");
    } else if (ckv_index_create(set->alloc, &shelf->index, error) == CKV_OK) {
        ckvi_map_insert(&set->shelves, &shelf->node, hash_ns(ns));
        return shelf;
    }
    destroy_shelf(set, shelf);
    return NULL;
}

static void forget_empty_shelf(struct ckvi_kept_set *set, struct ckvi_shelf *shelf)
{
    if (ckv_index_count(shelf->index) > 0)
        return;
    ckvi_map_remove(&set->shelves, &shelf->node);
    destroy_shelf(set, shelf);
}

/* --- order of use --- */

static void link_newest(struct ckvi_kept_set *set, struct ckvi_kept *kept)
{
    kept->newer = NULL;
    kept->older = set->newest;
    if (set->newest)
        set->newest->newer = kept;
    else
        set->oldest = kept;
    set->newest = kept;
}

static void unlink_use(struct ckvi_kept_set *set, struct ckvi_kept *kept)
{
    if (kept->older)
        kept->older->newer = kept->newer;
    else
        set->oldest = kept->newer;
    if (kept->newer)
        kept->newer->older = kept->older;
    else
        set->newest = kept->older;
}

void ckvi_kept_use(struct ckvi_kept_set *set, struct ckvi_kept *kept, int64_t now_ns)
{
    kept->used_ns = now_ns;
    kept->unused = false;
    (void)ckv_index_touch(kept->shelf->index, kept->id, ++set->uses);
    if (!kept->charged)
        return;
    unlink_use(set, kept);
    link_newest(set, kept);
}

void ckvi_kept_uncharge(struct ckvi_kept_set *set, struct ckvi_kept *kept)
{
    if (!kept->charged)
        return;
    unlink_use(set, kept);
    ckvi_buffers_remove(&set->buffers, kept->held);
    kept->charged = false;
}

/* --- in and out --- */

static enum ckv_status index_kept(struct ckvi_kept_set *set, struct ckvi_kept *kept,
                                  struct ckv_error *error)
{
    const struct ckv_entry *entry = ckv_held_entry(kept->held);
    struct ckv_index_entry described = {
        .id = kept->id,
        .floor = ckv_held_floor(kept->held),
        .bytes = ckv_held_bytes(kept->held),
        .recency = ++set->uses,
        .tokens = entry->tokens,
        .token_count = entry->token_count,
    };
    return ckv_index_insert(kept->shelf->index, &described, error);
}

/* An entry in no table yet. */
static struct ckvi_kept *make_kept(struct ckvi_kept_set *set, const char *ns,
                                   struct ckv_held *held)
{
    struct ckvi_kept *kept = CKVI_NEW(set->alloc, struct ckvi_kept);
    if (!kept)
        return NULL;
    kept->ns = ckvi_strdup(set->alloc, ns);
    if (!kept->ns) {
        CKVI_DELETE(set->alloc, kept);
        return NULL;
    }
    kept->id = set->next_id++;
    kept->held = held;
    return kept;
}

static void discard_kept(struct ckvi_kept_set *set, struct ckvi_kept *kept)
{
    ckvi_strfree(set->alloc, kept->ns);
    CKVI_DELETE(set->alloc, kept);
}

enum ckv_status ckvi_kept_add(struct ckvi_kept_set *set, const char *ns,
                              struct ckv_held *held, int64_t now_ns,
                              struct ckvi_kept **out, struct ckv_error *error)
{
    struct ckvi_kept *kept = make_kept(set, ns, held);
    enum ckv_status status;
    if (!kept)
        return ckvi_nomem(error, sizeof *kept, "a kept entry");
    status = ckvi_buffers_add(&set->buffers, held, error);
    if (status != CKV_OK) {
        discard_kept(set, kept);
        return status;
    }
    kept->shelf = ensure_shelf(set, ns, error);
    status = kept->shelf ? index_kept(set, kept, error) : CKV_NOMEM;
    if (status != CKV_OK) {
        if (kept->shelf)
            forget_empty_shelf(set, kept->shelf);
        ckvi_buffers_remove(&set->buffers, held);
        discard_kept(set, kept);
        return status;
    }
    (void)ckv_held_ref(held);
    kept->used_ns = now_ns;
    kept->touched_ns = now_ns;
    kept->charged = true;
    link_newest(set, kept);
    ckvi_map_insert(&set->by_id, &kept->by_id, ckvi_map_hash_u64(kept->id));
    *out = kept;
    return CKV_OK;
}

void ckvi_kept_take_out(struct ckvi_kept_set *set, struct ckvi_kept *kept,
                        struct ckvi_kept_list *out)
{
    bool indexed = ckv_index_remove(kept->shelf->index, kept->id);
    CKV_ASSERT(indexed);
    forget_empty_shelf(set, kept->shelf);
    kept->shelf = NULL;
    ckvi_map_remove(&set->by_id, &kept->by_id);
    ckvi_kept_uncharge(set, kept);
    kept->gone = true;
    if (!kept->leaving)
        ckvi_kept_push(out, kept);
}

void ckvi_kept_deinit(struct ckvi_kept_set *set)
{
    struct ckvi_kept_list out = {NULL, NULL};
    struct ckvi_kept *kept;
    struct ckvi_node *node;
    while (set->by_id.count > 0 && (node = ckvi_map_any(&set->by_id)))
        ckvi_kept_take_out(set, CKVI_CONTAINER(node, struct ckvi_kept, by_id), &out);
    while ((kept = ckvi_kept_pop(&out)))
        ckvi_kept_free(set->alloc, kept);
    ckvi_buffers_deinit(&set->buffers);
    ckvi_map_deinit(&set->by_id);
    ckvi_map_deinit(&set->shelves);
}

/* --- looking --- */

struct ckvi_kept *ckvi_kept_by_id(const struct ckvi_kept_set *set, uint64_t id)
{
    struct ckvi_node *node = ckvi_map_first(&set->by_id, ckvi_map_hash_u64(id));
    for (; node; node = ckvi_map_same(node)) {
        struct ckvi_kept *kept = CKVI_CONTAINER(node, struct ckvi_kept, by_id);
        if (kept->id == id)
            return kept;
    }
    return NULL;
}

struct ckvi_kept *ckvi_kept_match(const struct ckvi_kept_set *set, const char *ns,
                                  const uint32_t *prompt, size_t prompt_length,
                                  uint64_t *prefix)
{
    const struct ckvi_shelf *shelf = find_shelf(set, ns);
    struct ckv_index_match match;
    *prefix = 0;
    if (!shelf || ckv_index_find(shelf->index, prompt, prompt_length, &match, 1) == 0)
        return NULL;
    *prefix = match.prefix;
    return ckvi_kept_by_id(set, match.id);
}

static void take_id(void *ctx, uint64_t id)
{
    uint64_t *out = ctx;
    *out = id;
}

struct ckvi_kept *ckvi_kept_same(const struct ckvi_kept_set *set, const char *ns,
                                 const uint32_t *tokens, size_t token_count)
{
    const struct ckvi_shelf *shelf = find_shelf(set, ns);
    uint64_t id = 0;
    /* No floor is beyond this one, so strict prefixes are left out. */
    if (!shelf || ckv_index_covered(shelf->index, tokens, token_count, UINT64_MAX,
                                    take_id, &id) == 0)
        return NULL;
    return ckvi_kept_by_id(set, id);
}

struct collecting {
    const struct ckvi_kept_set *set;
    struct ckvi_kept *found;
    uint64_t except;
};

static void collect_id(void *ctx, uint64_t id)
{
    struct collecting *collecting = ctx;
    struct ckvi_kept *kept;
    if (id == collecting->except)
        return;
    kept = ckvi_kept_by_id(collecting->set, id);
    kept->found = collecting->found;
    collecting->found = kept;
}

struct ckvi_kept *ckvi_kept_covered(const struct ckvi_kept_set *set,
                                    const struct ckvi_kept *kept)
{
    const struct ckv_entry *entry = ckv_held_entry(kept->held);
    struct collecting collecting = {set, NULL, kept->id};
    (void)ckv_index_covered(kept->shelf->index, entry->tokens, entry->token_count,
                            ckv_held_floor(kept->held), collect_id, &collecting);
    return collecting.found;
}

struct ckvi_kept *ckvi_kept_all(const struct ckvi_kept_set *set, const char *ns)
{
    struct ckvi_node *node = ckvi_map_next(&set->by_id, NULL);
    struct ckvi_kept *found = NULL;
    for (; node; node = ckvi_map_next(&set->by_id, node)) {
        struct ckvi_kept *kept = CKVI_CONTAINER(node, struct ckvi_kept, by_id);
        if (ns && strcmp(kept->ns, ns) != 0)
            continue;
        kept->found = found;
        found = kept;
    }
    return found;
}

/* --- lists --- */

void ckvi_kept_push(struct ckvi_kept_list *list, struct ckvi_kept *kept)
{
    kept->next = NULL;
    if (list->last)
        list->last->next = kept;
    else
        list->first = kept;
    list->last = kept;
}

struct ckvi_kept *ckvi_kept_pop(struct ckvi_kept_list *list)
{
    struct ckvi_kept *kept = list->first;
    if (!kept)
        return NULL;
    list->first = kept->next;
    if (!list->first)
        list->last = NULL;
    kept->next = NULL;
    return kept;
}

void ckvi_kept_free(const struct ckv_alloc *alloc, struct ckvi_kept *kept)
{
    ckv_held_unref(kept->held);
    ckvi_strfree(alloc, kept->ns);
    CKVI_DELETE(alloc, kept);
}

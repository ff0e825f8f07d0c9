/*
 * Owns the prefix index: its entries by id, and their tokens in a prefix tree (tree.h).
 *
 * Invariant: an entry is in the table of ids and in its node's list, or nowhere; it has
 * at least one token and floor <= its length. Failure story: only insert allocates; when
 * it fails, the index is as it was before.
 */
#include <coldkv/index.h>

#include "base/alloc.h"
#include "store/tree.h"
#include <string.h>

enum ckv_status ckv_index_create(const struct ckv_alloc *alloc, struct ckv_index **out,
                                 struct ckv_error *error)
{
    enum ckv_status status;
    struct ckv_index *index;
    alloc = ckvi_alloc_or_default(alloc);
    *out = NULL;
    index = CKVI_NEW(alloc, struct ckv_index);
    if (!index)
        return ckvi_nomem(error, sizeof *index, "a prefix index");
    index->alloc = alloc;
    status = ckvi_map_init(&index->ids, alloc, error);
    if (status != CKV_OK)
        goto out;
    index->root = ckvi_tree_create(alloc);
    if (!index->root) {
        status = ckvi_nomem(error, sizeof *index->root, "a prefix index");
        goto out;
    }
    *out = index;
    index = NULL;
out:
    ckv_index_destroy(index);
    return status;
}

void ckv_index_destroy(struct ckv_index *index)
{
    if (!index)
        return;
    ckvi_tree_destroy(index->alloc, index->root);
    ckvi_map_deinit(&index->ids);
    CKVI_DELETE(index->alloc, index);
}

static struct ckvi_tree_entry *entry_of(struct ckvi_node *node)
{
    return CKVI_CONTAINER(node, struct ckvi_tree_entry, by_id);
}

static struct ckvi_tree_entry *find_entry(const struct ckv_index *index, uint64_t id)
{
    struct ckvi_node *node = ckvi_map_first(&index->ids, ckvi_map_hash_u64(id));
    while (node && entry_of(node)->id != id)
        node = ckvi_map_same(node);
    return node ? entry_of(node) : NULL;
}

static enum ckv_status check_entry(const struct ckv_index *index,
                                   const struct ckv_index_entry *entry,
                                   struct ckv_error *error)
{
    if (entry->token_count == 0 || !entry->tokens)
        return ckv_error_set(error, CKV_INVALID, "an indexed entry needs tokens");
    if (entry->token_count >= CKVI_TREE_DEPTH_MAX)
        return ckv_error_set(error, CKV_INVALID,
                             "%zu tokens are more than can be indexed",
                             entry->token_count);
    if (entry->floor > entry->token_count)
        return ckv_error_set(error, CKV_INVALID, "floor %llu is beyond %zu tokens",
                             (unsigned long long)entry->floor, entry->token_count);
    if (find_entry(index, entry->id))
        return ckv_error_set(error, CKV_EXISTS, "entry %llu is indexed already",
                             (unsigned long long)entry->id);
    return CKV_OK;
}

enum ckv_status ckv_index_insert(struct ckv_index *index,
                                 const struct ckv_index_entry *entry,
                                 struct ckv_error *error)
{
    enum ckv_status status = check_entry(index, entry, error);
    struct ckvi_tree_entry *made;
    if (status != CKV_OK)
        return status;
    made = CKVI_NEW(index->alloc, struct ckvi_tree_entry);
    if (!made)
        return ckvi_nomem(error, sizeof *made, "an indexed entry");
    made->id = entry->id;
    made->bytes = entry->bytes;
    made->recency = entry->recency;
    made->floor = (uint32_t)entry->floor;
    made->cost = ckvi_cost_of(entry->bytes);
    status = ckvi_tree_add(index->alloc, index->root, made, entry->tokens,
                           (uint32_t)entry->token_count, error);
    if (status != CKV_OK) {
        CKVI_DELETE(index->alloc, made);
        return status;
    }
    ckvi_map_insert(&index->ids, &made->by_id, ckvi_map_hash_u64(made->id));
    return CKV_OK;
}

bool ckv_index_remove(struct ckv_index *index, uint64_t id)
{
    struct ckvi_tree_entry *entry = find_entry(index, id);
    if (!entry)
        return false;
    ckvi_map_remove(&index->ids, &entry->by_id);
    ckvi_tree_drop(index->alloc, entry);
    CKVI_DELETE(index->alloc, entry);
    return true;
}

bool ckv_index_touch(struct ckv_index *index, uint64_t id, uint64_t recency)
{
    struct ckvi_tree_entry *entry = find_entry(index, id);
    if (!entry)
        return false;
    if (entry->recency != recency)
        ckvi_tree_touch(entry, recency);
    return true;
}

static struct ckv_index_entry describe(const struct ckvi_tree_entry *entry)
{
    return (struct ckv_index_entry){
        .id = entry->id,
        .floor = entry->floor,
        .bytes = entry->bytes,
        .recency = entry->recency,
        .token_count = entry->node->end,
    };
}

bool ckv_index_get(const struct ckv_index *index, uint64_t id,
                   struct ckv_index_entry *out)
{
    const struct ckvi_tree_entry *entry = find_entry(index, id);
    if (!entry)
        return false;
    *out = describe(entry);
    return true;
}

size_t ckv_index_tokens(const struct ckv_index *index, uint64_t id, uint32_t *out,
                        size_t capacity)
{
    const struct ckvi_tree_entry *entry = find_entry(index, id);
    const struct ckvi_tree_node *node;
    if (!entry)
        return 0;
    for (node = entry->node; node->up; node = ckvi_tree_parent(node)) {
        size_t end = node->end < capacity ? node->end : capacity;
        if (node->start < end)
            memcpy(out + node->start, ckvi_tree_edge(node),
                   (end - node->start) * sizeof *out);
    }
    return entry->node->end;
}

size_t ckv_index_count(const struct ckv_index *index)
{
    return index->ids.count;
}

uint64_t ckv_index_longest(const struct ckv_index *index)
{
    return index->root->bounds.longest;
}

void ckv_index_visit(const struct ckv_index *index, ckv_index_visit_fn fn, void *fn_ctx)
{
    struct ckvi_node *node = NULL;
    while ((node = ckvi_map_next(&index->ids, node))) {
        struct ckv_index_entry entry = describe(entry_of(node));
        fn(fn_ctx, &entry);
    }
}

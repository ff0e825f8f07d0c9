/*
 * Owns the records of a durability coordinator.
 *
 * Invariant: a record is in the map and in the list, or in neither (`listed`); it is
 * freed with its last reference. Failure story: adding undoes itself when memory is out.
 */
#include "tier/dirty.h"

#include "base/alloc.h"
#include "base/assert.h"
#include <coldkv/hash.h>
#include <string.h>

enum ckv_status ckvi_dirty_init(struct ckvi_dirty_table *table,
                                const struct ckv_alloc *alloc, struct ckv_error *error)
{
    table->alloc = alloc;
    return ckvi_map_init(&table->map, alloc, error);
}

void ckvi_dirty_deinit(struct ckvi_dirty_table *table)
{
    while (table->first)
        ckvi_dirty_remove(table, table->first);
    ckvi_map_deinit(&table->map);
}

static uint64_t hash_key(const char *ns, const uint32_t *tokens, size_t token_count)
{
    return ckv_wyhash(tokens, token_count * sizeof *tokens,
                      ckv_wyhash(ns, strlen(ns), 0));
}

struct ckvi_dirty *ckvi_dirty_find(const struct ckvi_dirty_table *table, const char *ns,
                                   const uint32_t *tokens, size_t token_count)
{
    struct ckvi_node *node =
        ckvi_map_first(&table->map, hash_key(ns, tokens, token_count));
    for (; node; node = ckvi_map_same(node)) {
        struct ckvi_dirty *dirty = CKVI_CONTAINER(node, struct ckvi_dirty, node);
        if (dirty->token_count == token_count && strcmp(dirty->ns, ns) == 0 &&
            memcmp(dirty->tokens, tokens, token_count * sizeof *tokens) == 0)
            return dirty;
    }
    return NULL;
}

static void free_dirty(struct ckvi_dirty_table *table, struct ckvi_dirty *dirty)
{
    ckvi_strfree(table->alloc, dirty->ns);
    if (dirty->tokens)
        ckvi_free(table->alloc, dirty->tokens, dirty->token_count, sizeof *dirty->tokens);
    CKVI_DELETE(table->alloc, dirty);
}

struct ckvi_dirty *ckvi_dirty_add(struct ckvi_dirty_table *table, const char *ns,
                                  const uint32_t *tokens, size_t token_count)
{
    struct ckvi_dirty *dirty = CKVI_NEW(table->alloc, struct ckvi_dirty);
    if (!dirty)
        return NULL;
    dirty->ns = ckvi_strdup(table->alloc, ns);
    dirty->token_count = token_count;
    dirty->tokens = ckvi_zalloc(table->alloc, token_count, sizeof *tokens);
    if (!dirty->ns || !dirty->tokens) {
        free_dirty(table, dirty);
        return NULL;
    }
    memcpy(dirty->tokens, tokens, token_count * sizeof *tokens);
    dirty->references = 1;
    dirty->listed = true;
    dirty->prev = table->last;
    if (table->last)
        table->last->next = dirty;
    else
        table->first = dirty;
    table->last = dirty;
    table->token_bytes += token_count * sizeof *tokens;
    ckvi_map_insert(&table->map, &dirty->node, hash_key(ns, tokens, token_count));
    return dirty;
}

void ckvi_dirty_remove(struct ckvi_dirty_table *table, struct ckvi_dirty *dirty)
{
    if (!dirty->listed)
        return;
    if (dirty->prev)
        dirty->prev->next = dirty->next;
    else
        table->first = dirty->next;
    if (dirty->next)
        dirty->next->prev = dirty->prev;
    else
        table->last = dirty->prev;
    ckvi_map_remove(&table->map, &dirty->node);
    table->token_bytes -= dirty->token_count * sizeof *dirty->tokens;
    dirty->listed = false;
    ckvi_dirty_unref(table, dirty);
}

void ckvi_dirty_unref(struct ckvi_dirty_table *table, struct ckvi_dirty *dirty)
{
    CKV_ASSERT(dirty->references > 0);
    if (--dirty->references == 0)
        free_dirty(table, dirty);
}

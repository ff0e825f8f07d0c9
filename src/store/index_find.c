/*
 * Owns the questions to the prefix index. All of them walk down the tree along the tokens
 * and then up again; nothing here allocates or fails.
 */
#include <coldkv/index.h>

#include "store/tree.h"

struct matches {
    struct ckv_index_match *items;
    size_t count;
    size_t capacity;
};

static void add_best(struct matches *matches, uint64_t prefix,
                     const struct ckvi_best *best)
{
    for (size_t i = 0; i < CKVI_BEST_MAX && best->items[i]; i++) {
        const struct ckvi_tree_entry *entry = best->items[i];
        if (matches->count == matches->capacity)
            return;
        matches->items[matches->count++] = (struct ckv_index_match){
            .id = entry->id,
            .prefix = prefix,
            .length = entry->node->end,
            .bytes = entry->bytes,
            .recency = entry->recency,
        };
    }
}

static void offer_whole(const struct ckvi_tree_node *node, struct ckvi_best *best)
{
    for (struct ckvi_tree_entry *entry = node->entries; entry; entry = entry->next) {
        if (!ckvi_best_offer(best, entry))
            return;
    }
}

/* One token of the prompt stays to be evaluated, so the walk leaves it out: what an entry
 * shares with the rest is what ckv_usable_prefix makes of it, when its floor lets it. On
 * the way up the prefixes come longest first, and each node's list holds all that part
 * from the prompt right there. */
size_t ckv_index_find(const struct ckv_index *index, const uint32_t *prompt,
                      size_t prompt_length, struct ckv_index_match *out, size_t capacity)
{
    struct matches matches = {out, 0, capacity};
    const struct ckvi_tree_node *node;
    const struct ckvi_tree_node *child;
    struct ckvi_tree_place place;
    if (prompt_length < 2 || capacity == 0)
        return 0;
    place = ckvi_tree_walk(index->root, prompt, prompt_length - 1);
    child = place.partial;
    if (child) {
        struct ckvi_best best = {{NULL}};
        ckvi_search_node(child, (uint32_t)place.common, &best);
        add_best(&matches, place.common, &best);
    }
    for (node = place.node; node->up && matches.count < capacity;
         node = ckvi_tree_parent(node)) {
        struct ckvi_best best = {{NULL}};
        offer_whole(node, &best);
        ckvi_search_children(node, child, node->end, &best);
        add_best(&matches, node->end, &best);
        child = node;
    }
    return matches.count;
}

size_t ckv_index_covered(const struct ckv_index *index, const uint32_t *tokens,
                         size_t token_count, uint64_t floor, ckv_index_covered_fn fn,
                         void *fn_ctx)
{
    struct ckvi_tree_place place = ckvi_tree_walk(index->root, tokens, token_count);
    const struct ckvi_tree_node *node;
    size_t covered = 0;
    for (node = place.node; node->up; node = ckvi_tree_parent(node)) {
        const struct ckvi_tree_entry *entry = node->entries;
        for (; entry; entry = entry->next) {
            if (node->end < token_count && floor > entry->floor)
                continue;
            fn(fn_ctx, entry->id);
            covered++;
        }
    }
    return covered;
}

bool ckv_index_covers(const struct ckv_index *index, const uint32_t *tokens,
                      size_t token_count, uint64_t *id)
{
    struct ckvi_tree_place place = ckvi_tree_walk(index->root, tokens, token_count);
    struct ckvi_best best = {{NULL}};
    if (place.common < token_count)
        return false;
    if (place.partial) {
        ckvi_search_node(place.partial, (uint32_t)token_count, &best);
    } else {
        offer_whole(place.node, &best);
        ckvi_search_children(place.node, NULL, (uint32_t)token_count, &best);
    }
    if (best.items[0] && id)
        *id = best.items[0]->id;
    return best.items[0] != NULL;
}

/*
 * Owns the searches in the prefix tree for the best entries that can be cut to a prefix.
 * Summaries answer for all entries with floor 0; the others are looked for one by one,
 * but only in subtrees whose bounds let one hope for something better. No recursion and
 * no memory: a path may be as long as a prompt. Nothing here fails.
 */
#include "store/tree.h"

static bool leads_on(const struct ckvi_tree_node *node, uint32_t floor_max,
                     uint32_t cost_max)
{
    return node && node->bounds.floor_min <= floor_max &&
           node->bounds.cost_min <= cost_max;
}

const struct ckvi_tree_node *ckvi_search_next(const struct ckvi_tree_node *node,
                                              const struct ckvi_tree_node *top,
                                              uint32_t floor_max, uint32_t cost_max)
{
    const struct ckvi_tree_node *from = NULL;
    for (;;) {
        const struct ckvi_tree_node *subtrees[] = {node->down, node->left, node->right};
        bool ahead = !from;
        for (size_t i = 0; i < 3; i++) {
            if (ahead && leads_on(subtrees[i], floor_max, cost_max))
                return subtrees[i];
            ahead = ahead || subtrees[i] == from;
        }
        if (node == top)
            return NULL;
        from = node;
        node = node->up;
    }
}

/* Offers the node's entries with a floor in this range. */
static void offer_entries(const struct ckvi_tree_node *node, uint32_t floor_min,
                          uint32_t floor_max, struct ckvi_best *best)
{
    for (struct ckvi_tree_entry *entry = node->entries; entry; entry = entry->next) {
        if (entry->floor < floor_min || entry->floor > floor_max)
            continue;
        /* They are in order. */
        if (!ckvi_best_offer(best, entry))
            return;
    }
}

/* What costs more need not be looked at. */
static uint32_t cost_limit(const struct ckvi_best *best)
{
    const struct ckvi_tree_entry *last = best->items[CKVI_BEST_MAX - 1];
    return last ? last->cost : UINT32_MAX;
}

/* Everything in the node, its siblings below it and their descendants. */
static void search_subtree(const struct ckvi_tree_node *top, uint32_t limit,
                           struct ckvi_best *best)
{
    const struct ckvi_tree_node *node = top;
    if (!top)
        return;
    for (size_t i = 0; i < CKVI_BEST_MAX && top->best.items[i]; i++) {
        if (!ckvi_best_offer(best, top->best.items[i]))
            break;
    }
    if (!leads_on(top, limit, cost_limit(best)))
        return;
    for (; node; node = ckvi_search_next(node, top, limit, cost_limit(best)))
        offer_entries(node, 1, limit, best);
}

void ckvi_search_node(const struct ckvi_tree_node *node, uint32_t limit,
                      struct ckvi_best *best)
{
    offer_entries(node, 0, limit, best);
    search_subtree(node->down, limit, best);
}

void ckvi_search_children(const struct ckvi_tree_node *parent,
                          const struct ckvi_tree_node *except, uint32_t limit,
                          struct ckvi_best *best)
{
    const struct ckvi_tree_node *at = except;
    if (!except) {
        search_subtree(parent->down, limit, best);
        return;
    }
    search_subtree(at->left, limit, best);
    search_subtree(at->right, limit, best);
    for (; !ckvi_siblings_top(at); at = at->up) {
        const struct ckvi_tree_node *above = at->up;
        ckvi_search_node(above, limit, best);
        search_subtree(above->left == at ? above->right : above->left, limit, best);
    }
}

/*
 * Owns the summaries of the prefix tree: what a search needs to know of a subtree without
 * going into it.
 *
 * Invariant: a node's summary is that of its own entries and its three subtrees. Nothing
 * here fails.
 */
#include "store/tree.h"

#include "base/checked.h"

bool ckvi_tree_goes_before(const struct ckvi_tree_entry *a,
                           const struct ckvi_tree_entry *b)
{
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes;
    if (a->recency != b->recency)
        return a->recency > b->recency;
    return a->id < b->id;
}

bool ckvi_best_offer(struct ckvi_best *best, struct ckvi_tree_entry *entry)
{
    struct ckvi_tree_entry **items = best->items;
    size_t hole = CKVI_BEST_MAX - 1;
    if (items[hole] && !ckvi_tree_goes_before(entry, items[hole]))
        return false;
    for (; hole > 0; hole--) {
        if (items[hole - 1] && !ckvi_tree_goes_before(entry, items[hole - 1]))
            break;
        items[hole] = items[hole - 1];
    }
    items[hole] = entry;
    return true;
}

static void add_entries(struct ckvi_summary *summary, const struct ckvi_tree_node *node)
{
    struct ckvi_tree_entry *entry = node->entries;
    if (entry)
        summary->longest = node->end;
    for (; entry; entry = entry->next) {
        if (entry->floor == 0)
            (void)ckvi_best_offer(&summary->best, entry);
        else if (entry->floor < summary->floor_min)
            summary->floor_min = entry->floor;
    }
}

static void add_subtree(struct ckvi_summary *summary, const struct ckvi_tree_node *node)
{
    const struct ckvi_summary *other;
    if (!node)
        return;
    other = &node->below;
    for (size_t i = 0; i < CKVI_BEST_MAX && other->best.items[i]; i++) {
        if (!ckvi_best_offer(&summary->best, other->best.items[i]))
            break;
    }
    if (other->floor_min < summary->floor_min)
        summary->floor_min = other->floor_min;
    if (other->longest > summary->longest)
        summary->longest = other->longest;
}

struct ckvi_summary ckvi_summary_make(const struct ckvi_tree_node *node)
{
    struct ckvi_summary summary = {.floor_min = CKVI_TREE_DEPTH_MAX};
    add_entries(&summary, node);
    add_subtree(&summary, node->down);
    add_subtree(&summary, node->left);
    add_subtree(&summary, node->right);
    return summary;
}

bool ckvi_summary_equal(const struct ckvi_summary *a, const struct ckvi_summary *b)
{
    for (size_t i = 0; i < CKVI_BEST_MAX; i++) {
        if (a->best.items[i] != b->best.items[i])
            return false;
    }
    return a->floor_min == b->floor_min && a->longest == b->longest;
}

static bool contains(const struct ckvi_summary *summary,
                     const struct ckvi_tree_entry *entry)
{
    for (size_t i = 0; i < CKVI_BEST_MAX; i++) {
        if (summary->best.items[i] && summary->best.items[i] == entry)
            return true;
    }
    return false;
}

/* Rotations among siblings leave behind summaries that may look unchanged by chance, so
 * those are all made again. Above them an unchanged one has nothing new to tell, but for
 * an entry in it that changed its place in the order. */
void ckvi_tree_update(struct ckvi_tree_node *node, const struct ckvi_tree_entry *touched)
{
    bool among_siblings = true;
    for (; node; node = node->up) {
        struct ckvi_summary fresh = ckvi_summary_make(node);
        bool settled =
            ckvi_summary_equal(&fresh, &node->below) && !contains(&fresh, touched);
        node->below = fresh;
        if (settled && !among_siblings)
            return;
        if (node->up && ckvi_siblings_top(node))
            among_siblings = false;
    }
}

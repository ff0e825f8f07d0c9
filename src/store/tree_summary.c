/*
 * Owns the summaries of the prefix tree: what a search needs to know of a subtree without
 * going into it.
 *
 * Invariant: a node's summary is that of its own entries and its three subtrees. Nothing
 * here fails.
 */
#include "store/tree.h"

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

bool ckvi_tree_goes_before(const struct ckvi_tree_entry *a,
                           const struct ckvi_tree_entry *b)
{
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes;
    if (a->recency != b->recency)
        return a->recency > b->recency;
    return a->id < b->id;
}

/* A floating point number: 6 bits of exponent above 26 bits. */
uint32_t ckvi_cost_of(uint64_t bytes)
{
    uint32_t exponent = 0;
    while (bytes >> exponent > (UINT32_C(1) << 26) - 1)
        exponent++;
    return exponent << 26 | (uint32_t)(bytes >> exponent);
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
    struct ckvi_bounds *bounds = &summary->bounds;
    struct ckvi_tree_entry *entry = node->entries;
    if (entry)
        bounds->longest = node->end;
    for (; entry; entry = entry->next) {
        if (entry->floor == 0) {
            (void)ckvi_best_offer(&summary->best, entry);
            continue;
        }
        bounds->floor_min = smaller(bounds->floor_min, entry->floor);
        bounds->cost_min = smaller(bounds->cost_min, entry->cost);
    }
}

static void add_subtree(struct ckvi_summary *summary, const struct ckvi_tree_node *node)
{
    struct ckvi_bounds *bounds = &summary->bounds;
    if (!node)
        return;
    for (size_t i = 0; i < CKVI_BEST_MAX && node->best.items[i]; i++) {
        if (!ckvi_best_offer(&summary->best, node->best.items[i]))
            break;
    }
    bounds->floor_min = smaller(bounds->floor_min, node->bounds.floor_min);
    bounds->cost_min = smaller(bounds->cost_min, node->bounds.cost_min);
    if (node->bounds.longest > bounds->longest)
        bounds->longest = node->bounds.longest;
}

struct ckvi_summary ckvi_summary_make(const struct ckvi_tree_node *node)
{
    struct ckvi_summary summary = {
        .bounds = {.floor_min = UINT32_MAX, .cost_min = UINT32_MAX}};
    add_entries(&summary, node);
    add_subtree(&summary, node->down);
    add_subtree(&summary, node->left);
    add_subtree(&summary, node->right);
    return summary;
}

void ckvi_summary_set(struct ckvi_tree_node *node, const struct ckvi_summary *summary)
{
    node->best = summary->best;
    node->bounds = summary->bounds;
}

void ckvi_summary_copy(struct ckvi_tree_node *to, const struct ckvi_tree_node *from)
{
    to->best = from->best;
    to->bounds = from->bounds;
}

bool ckvi_summary_holds(const struct ckvi_tree_node *node,
                        const struct ckvi_summary *summary)
{
    const struct ckvi_bounds *bounds = &summary->bounds;
    for (size_t i = 0; i < CKVI_BEST_MAX; i++) {
        if (node->best.items[i] != summary->best.items[i])
            return false;
    }
    return node->bounds.longest == bounds->longest &&
           node->bounds.floor_min == bounds->floor_min &&
           node->bounds.cost_min == bounds->cost_min;
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
        bool settled = ckvi_summary_holds(node, &fresh) && !contains(&fresh, touched);
        ckvi_summary_set(node, &fresh);
        if (settled && !among_siblings)
            return;
        if (node->up && ckvi_siblings_top(node))
            among_siblings = false;
    }
}

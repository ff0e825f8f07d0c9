/*
 * Owns the check of the prefix tree's invariants, for tests. It visits every node;
 * nothing here fails.
 */
#include "store/tree.h"

/* The next node in the order down, left, right; NULL = no more. */
static const struct ckvi_tree_node *next_node(const struct ckvi_tree_node *node,
                                              const struct ckvi_tree_node *root)
{
    return ckvi_search_next(node, root, UINT32_MAX, UINT32_MAX);
}

static bool links_hold(const struct ckvi_tree_node *node)
{
    const struct ckvi_tree_node *left = node->left;
    const struct ckvi_tree_node *right = node->right;
    if (node->down && node->down->up != node)
        return false;
    if (left && (left->up != node || ckvi_siblings_above(left, node)))
        return false;
    return !right || (right->up == node && !ckvi_siblings_above(right, node));
}

/* Whether the way down from the parent, as a search takes it, ends here: order and
 * uniqueness among siblings. */
static bool edge_holds(const struct ckvi_tree_node *node)
{
    const struct ckvi_tree_node *parent = ckvi_tree_parent(node);
    const struct ckvi_tokens *tokens = node->tokens;
    if (node->start != parent->end || node->end <= node->start)
        return false;
    if (node->start < tokens->begin || node->end > tokens->begin + tokens->count)
        return false;
    if (tokens->count > tokens->capacity || *ckvi_tree_edge(node) != node->first)
        return false;
    /* Slices follow each other, and the one with the first token begins the array. */
    if (node->start > tokens->begin && parent->tokens != tokens)
        return false;
    return ckvi_siblings_find(parent, node->first) == node;
}

static bool entries_hold(const struct ckvi_tree_node *node, size_t *count)
{
    const struct ckvi_tree_entry *entry = node->entries;
    for (; entry; entry = entry->next) {
        (*count)++;
        if (entry->node != node || entry->floor > node->end ||
            entry->cost != ckvi_cost_of(entry->bytes))
            return false;
        if (entry->next && !ckvi_tree_goes_before(entry, entry->next))
            return false;
    }
    return true;
}

static bool summary_holds(const struct ckvi_tree_node *node)
{
    struct ckvi_summary summary = ckvi_summary_make(node);
    return ckvi_summary_holds(node, &summary);
}

bool ckvi_tree_check(const struct ckv_index *index, struct ckvi_tree_facts *facts)
{
    const struct ckvi_tree_node *root = index->root;
    uint64_t in_arrays = 0;
    size_t refs = 0;
    *facts = (struct ckvi_tree_facts){0};
    if (root->up || root->left || root->right || root->tokens || root->entries)
        return false;
    for (const struct ckvi_tree_node *node = root; node; node = next_node(node, root)) {
        if (!links_hold(node) || !summary_holds(node))
            return false;
        if (node == root)
            continue;
        if (!edge_holds(node) || !entries_hold(node, &facts->entries))
            return false;
        if (!node->entries && !node->down)
            return false;
        if (!node->entries && !node->down->left && !node->down->right)
            facts->joints++;
        facts->nodes++;
        facts->tokens += node->end - node->start;
        if (node->start == node->tokens->begin) {
            refs += node->tokens->refs;
            in_arrays += node->tokens->count;
            facts->slack += node->tokens->capacity - node->tokens->count;
        }
    }
    return refs == facts->nodes && in_arrays == facts->tokens &&
           facts->entries == index->ids.count;
}

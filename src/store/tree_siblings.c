/*
 * Owns the order among the children of a node of the prefix tree: a treap by the first
 * tokens of their edges.
 *
 * Invariant: smaller first tokens are to the left, no two are equal, and no node is above
 * one of higher priority. A priority is the hash of the first token, so the shape depends
 * on the set of children only; whoever may choose tokens can build a chain out of those
 * whose hashes happen to ascend, about 2 * sqrt(vocabulary) long: hundreds. Nothing here
 * fails.
 */
#include "store/tree.h"

static uint64_t priority(const struct ckvi_tree_node *node)
{
    return ckvi_map_hash_u64((uint64_t)node->first + 1);
}

bool ckvi_siblings_above(const struct ckvi_tree_node *a, const struct ckvi_tree_node *b)
{
    return priority(a) > priority(b);
}

struct ckvi_tree_node *ckvi_tree_parent(const struct ckvi_tree_node *node)
{
    while (!ckvi_siblings_top(node))
        node = node->up;
    return node->up;
}

struct ckvi_tree_node *ckvi_siblings_find(const struct ckvi_tree_node *parent,
                                          uint32_t first)
{
    struct ckvi_tree_node *node = parent->down;
    while (node && node->first != first)
        node = first < node->first ? node->left : node->right;
    return node;
}

/* Where the node hangs. */
static struct ckvi_tree_node **link_of(const struct ckvi_tree_node *node)
{
    struct ckvi_tree_node *up = node->up;
    if (up->down == node)
        return &up->down;
    return up->left == node ? &up->left : &up->right;
}

/* Brings a node above the sibling that it hangs on. The summary of the one that goes down
 * is final with this, the other's is not. */
static void rotate_up(struct ckvi_tree_node *node)
{
    struct ckvi_tree_node *above = node->up;
    struct ckvi_tree_node *moved;
    struct ckvi_summary summary;
    *link_of(above) = node;
    node->up = above->up;
    if (above->left == node) {
        moved = node->right;
        above->left = moved;
        node->right = above;
    } else {
        moved = node->left;
        above->right = moved;
        node->left = above;
    }
    if (moved)
        moved->up = above;
    above->up = node;
    summary = ckvi_summary_make(above);
    ckvi_summary_set(above, &summary);
}

void ckvi_siblings_insert(struct ckvi_tree_node *parent, struct ckvi_tree_node *child)
{
    struct ckvi_tree_node **link = &parent->down;
    struct ckvi_tree_node *up = parent;
    while (*link) {
        up = *link;
        link = child->first < up->first ? &up->left : &up->right;
    }
    *link = child;
    child->up = up;
    while (!ckvi_siblings_top(child) && ckvi_siblings_above(child, child->up))
        rotate_up(child);
}

struct ckvi_tree_node *ckvi_siblings_remove(struct ckvi_tree_node *child)
{
    struct ckvi_tree_node *last;
    while (child->left && child->right)
        rotate_up(ckvi_siblings_above(child->left, child->right) ? child->left
                                                                 : child->right);
    last = child->left ? child->left : child->right;
    *link_of(child) = last;
    if (last)
        last->up = child->up;
    child->left = NULL;
    child->right = NULL;
    return child->up;
}

void ckvi_siblings_replace(struct ckvi_tree_node *old, struct ckvi_tree_node *fresh)
{
    *link_of(old) = fresh;
    fresh->up = old->up;
    fresh->left = old->left;
    fresh->right = old->right;
    if (fresh->left)
        fresh->left->up = fresh;
    if (fresh->right)
        fresh->right->up = fresh;
    old->left = NULL;
    old->right = NULL;
}

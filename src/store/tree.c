/*
 * Owns the nodes of the prefix tree: how they are split, hung and joined.
 *
 * Invariant: a node other than the root holds an entry or has at least two children; its
 * edge has at least one token. Failure story: ckvi_tree_add allocates everything before
 * it changes anything. Joining two nodes may need memory too; without it they stay two,
 * which costs room and nothing else.
 */
#include "store/tree.h"

#include "base/alloc.h"
#include "base/assert.h"

struct ckvi_tree_node *ckvi_tree_create(const struct ckv_alloc *alloc)
{
    struct ckvi_tree_node *root = CKVI_NEW(alloc, struct ckvi_tree_node);
    if (root)
        root->bounds = (struct ckvi_bounds){0, UINT32_MAX, UINT32_MAX};
    return root;
}

/* Gives back a node that nothing leads to any more. */
static void free_node(const struct ckv_alloc *alloc, struct ckvi_tree_node *node)
{
    if (node->tokens)
        ckvi_tokens_cut(alloc, node->tokens, node->start);
    CKVI_DELETE(alloc, node);
}

static void free_entries(const struct ckv_alloc *alloc, struct ckvi_tree_node *node)
{
    struct ckvi_tree_entry *entry = node->entries;
    while (entry) {
        struct ckvi_tree_entry *next = entry->next;
        CKVI_DELETE(alloc, entry);
        entry = next;
    }
}

void ckvi_tree_destroy(const struct ckv_alloc *alloc, struct ckvi_tree_node *root)
{
    struct ckvi_tree_node *node = root;
    while (node) {
        struct ckvi_tree_node **link = &node->down;
        if (!*link)
            link = node->left ? &node->left : &node->right;
        if (*link) {
            struct ckvi_tree_node *next = *link;
            *link = NULL;
            node = next;
        } else {
            struct ckvi_tree_node *up = node->up;
            free_entries(alloc, node);
            free_node(alloc, node);
            node = up;
        }
    }
}

struct ckvi_tree_place ckvi_tree_walk(struct ckvi_tree_node *root, const uint32_t *tokens,
                                      size_t token_count)
{
    struct ckvi_tree_place place = {root, NULL, 0};
    while (place.common < token_count) {
        struct ckvi_tree_node *child =
            ckvi_siblings_find(place.node, tokens[place.common]);
        size_t left = token_count - place.common;
        size_t length;
        if (!child)
            break;
        length = child->end - child->start;
        place.common += ckvi_tokens_common(ckvi_tree_edge(child), tokens + place.common,
                                           left < length ? left : length);
        if (place.common < child->end) {
            place.partial = child;
            break;
        }
        place.node = child;
    }
    return place;
}

static struct ckvi_tree_node *make_leaf(const struct ckv_alloc *alloc, uint32_t start,
                                        const uint32_t *tokens, uint32_t token_count)
{
    struct ckvi_tree_node *leaf = CKVI_NEW(alloc, struct ckvi_tree_node);
    if (!leaf)
        return NULL;
    leaf->tokens = ckvi_tokens_create(alloc, start, tokens + start, token_count - start);
    if (!leaf->tokens) {
        CKVI_DELETE(alloc, leaf);
        return NULL;
    }
    leaf->start = start;
    leaf->end = token_count;
    leaf->first = tokens[start];
    return leaf;
}

/* Cuts the edge of a node at a depth: `upper` becomes its parent. */
static void split(struct ckvi_tree_node *node, struct ckvi_tree_node *upper,
                  uint32_t depth)
{
    struct ckvi_summary summary;
    upper->tokens = node->tokens;
    upper->tokens->refs++;
    upper->start = node->start;
    upper->end = depth;
    upper->first = node->first;
    ckvi_summary_copy(upper, node);
    ckvi_siblings_replace(node, upper);
    upper->down = node;
    node->up = upper;
    node->start = depth;
    node->first = *ckvi_tree_edge(node);
    summary = ckvi_summary_make(node);
    ckvi_summary_set(node, &summary);
}

/* The other way: a node takes the place of its parent, whose only child it is. */
static void join(const struct ckv_alloc *alloc, struct ckvi_tree_node *upper)
{
    struct ckvi_tree_node *node = upper->down;
    if (node->tokens == upper->tokens) {
        upper->tokens->refs--;
        upper->tokens = NULL;
    } else {
        CKV_ASSERT(node->start == node->tokens->begin);
        if (!ckvi_tokens_prepend(alloc, node->tokens, ckvi_tree_edge(upper),
                                 upper->end - upper->start))
            return;
    }
    node->start = upper->start;
    node->first = upper->first;
    ckvi_summary_copy(node, upper);
    ckvi_siblings_replace(upper, node);
    free_node(alloc, upper);
}

static void link_entry(struct ckvi_tree_entry *entry)
{
    struct ckvi_tree_entry **link = &entry->node->entries;
    while (*link && ckvi_tree_goes_before(*link, entry))
        link = &(*link)->next;
    entry->next = *link;
    *link = entry;
}

static void unlink_entry(struct ckvi_tree_entry *entry)
{
    struct ckvi_tree_entry **link = &entry->node->entries;
    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
    entry->next = NULL;
}

enum ckv_status ckvi_tree_add(const struct ckv_alloc *alloc, struct ckvi_tree_node *root,
                              struct ckvi_tree_entry *entry, const uint32_t *tokens,
                              uint32_t token_count, struct ckv_error *error)
{
    struct ckvi_tree_place place = ckvi_tree_walk(root, tokens, token_count);
    struct ckvi_tree_node *node = place.node;
    uint32_t common = (uint32_t)place.common;
    struct ckvi_tree_node *upper = NULL;
    if (place.partial) {
        upper = CKVI_NEW(alloc, struct ckvi_tree_node);
        if (!upper)
            return ckvi_nomem(error, sizeof *upper, "a node of the prefix index");
    }
    if (common < token_count) {
        struct ckvi_tree_node *leaf = make_leaf(alloc, common, tokens, token_count);
        if (!leaf) {
            CKVI_DELETE(alloc, upper);
            return ckvi_nomem(error, (token_count - common) * sizeof *tokens,
                              "tokens of the prefix index");
        }
        node = leaf;
    }
    if (upper)
        split(place.partial, upper, common);
    if (common < token_count)
        ckvi_siblings_insert(upper ? upper : place.node, node);
    else if (upper)
        node = upper;
    entry->node = node;
    link_entry(entry);
    ckvi_tree_update(node, entry);
    return CKV_OK;
}

static bool has_one_child(const struct ckvi_tree_node *node)
{
    return node->down && !node->down->left && !node->down->right;
}

void ckvi_tree_drop(const struct ckv_alloc *alloc, struct ckvi_tree_entry *entry)
{
    struct ckvi_tree_node *node = entry->node;
    unlink_entry(entry);
    entry->node = NULL;
    /* More than one leaf goes when nodes once could not be joined. */
    while (node->up && !node->entries && !node->down) {
        struct ckvi_tree_node *parent = ckvi_tree_parent(node);
        ckvi_tree_update(ckvi_siblings_remove(node), NULL);
        free_node(alloc, node);
        node = parent;
    }
    ckvi_tree_update(node, NULL);
    if (node->up && !node->entries && has_one_child(node))
        join(alloc, node);
}

void ckvi_tree_touch(struct ckvi_tree_entry *entry, uint64_t recency)
{
    unlink_entry(entry);
    entry->recency = recency;
    link_entry(entry);
    ckvi_tree_update(entry->node, entry);
}

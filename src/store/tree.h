/*
 * The compressed prefix tree under the index, shared by its files.
 *
 * A node stands for the prefix that ends at it. Its edge, the tokens that it adds to its
 * parent's, is a slice of a shared array. The children of a node are a search tree of
 * their own, ordered by the first token of their edges (a treap): `down` leads to its
 * top, `left` and `right` to further siblings, `up` to the sibling above or, from the
 * top, to the parent. So every node has three subtrees, and what it says about them (its
 * summary) can be made from their three summaries in constant time, however many
 * children there are.
 *
 *     root ── down ──► "1 2 3" ── down ──► "4 5" ── right ──► "7"
 *                        └─ right ──► "9 9 9"
 */
#ifndef COLDKV_STORE_TREE_H
#define COLDKV_STORE_TREE_H

#include "store/map.h"
#include <coldkv/alloc.h>
#include <coldkv/index.h>
#include <coldkv/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More candidates than this at one prefix help no restore: it gives up before. */
#define CKVI_BEST_MAX 3
/* Every length that is indexed is below. */
#define CKVI_TREE_DEPTH_MAX UINT32_MAX

/* Tokens that edges are slices of. An array lies along one path: item i is the token at
 * depth begin + i of it, and the slices follow each other from begin to begin + count. */
struct ckvi_tokens {
    uint32_t *items;
    uint32_t begin;
    uint32_t count;
    uint32_t capacity; /* above count only when a block could not be made smaller */
    uint32_t refs;     /* slices */
};

struct ckvi_tree_entry {
    struct ckvi_node by_id;
    uint64_t id;
    uint64_t bytes;
    uint64_t recency;
    uint32_t floor;
    uint32_t cost;                /* ckvi_cost_of(bytes) */
    struct ckvi_tree_node *node;  /* the end of its tokens */
    struct ckvi_tree_entry *next; /* at the same node, best first */
};

/* The best entries of some set, best first; NULL behind the last. */
struct ckvi_best {
    struct ckvi_tree_entry *items[CKVI_BEST_MAX];
};

/* Bounds on some set of entries. */
struct ckvi_bounds {
    uint32_t longest;
    uint32_t floor_min; /* of those with a floor above 0; UINT32_MAX = there are none */
    uint32_t cost_min;  /* of the same */
};

/* What is in a node, its three subtrees included. */
struct ckvi_summary {
    struct ckvi_best best; /* of the entries with floor 0 */
    struct ckvi_bounds bounds;
};

struct ckvi_tree_node {
    struct ckvi_tree_node *up;
    struct ckvi_tree_node *left;
    struct ckvi_tree_node *right;
    struct ckvi_tree_node *down;
    struct ckvi_tokens *tokens;      /* NULL only in the root */
    struct ckvi_tree_entry *entries; /* that end here */
    uint32_t start;                  /* depths between which the edge lies */
    uint32_t end;
    uint32_t first; /* token of the edge */
    /* The summary, in two parts for the sake of its size. */
    struct ckvi_bounds bounds;
    struct ckvi_best best;
};

struct ckv_index {
    const struct ckv_alloc *alloc;
    struct ckvi_map ids;
    struct ckvi_tree_node *root; /* the empty prefix; holds no entry */
};

/* --- tokens --- */

/* A copy of them with one slice: all. NULL = no memory. */
struct ckvi_tokens *ckvi_tokens_create(const struct ckv_alloc *alloc, uint32_t begin,
                                       const uint32_t *items, uint32_t count);
/* Gives up the last slice of an array, which begins at depth `start`. */
void ckvi_tokens_cut(const struct ckv_alloc *alloc, struct ckvi_tokens *tokens,
                     uint32_t start);
/* Puts other tokens before the first slice, which grows by them; false = no memory. */
bool ckvi_tokens_prepend(const struct ckv_alloc *alloc, struct ckvi_tokens *tokens,
                         const uint32_t *items, uint32_t count);
/* How many tokens both have in common. */
size_t ckvi_tokens_common(const uint32_t *a, const uint32_t *b, size_t count);

static inline const uint32_t *ckvi_tree_edge(const struct ckvi_tree_node *node)
{
    return node->tokens->items + (node->start - node->tokens->begin);
}

/* --- summaries --- */

/* The order of candidates at one prefix: fewest bytes, newest, smallest id. */
bool ckvi_tree_goes_before(const struct ckvi_tree_entry *a,
                           const struct ckvi_tree_entry *b);
/* Bytes in fewer bits: never more for less. */
uint32_t ckvi_cost_of(uint64_t bytes);
/* False when it is not among the best. */
bool ckvi_best_offer(struct ckvi_best *best, struct ckvi_tree_entry *entry);
/* What the node's summary must be, from its entries and its subtrees' summaries. */
struct ckvi_summary ckvi_summary_make(const struct ckvi_tree_node *node);
void ckvi_summary_set(struct ckvi_tree_node *node, const struct ckvi_summary *summary);
bool ckvi_summary_holds(const struct ckvi_tree_node *node,
                        const struct ckvi_summary *summary);
/* The same summary on another node. */
void ckvi_summary_copy(struct ckvi_tree_node *to, const struct ckvi_tree_node *from);
/* Makes the node's summary and those above it true again. `touched` (or NULL) is an entry
 * whose place in the order changed. */
void ckvi_tree_update(struct ckvi_tree_node *node, const struct ckvi_tree_entry *touched);

/* --- siblings --- */

/* Whether `up` leads to the parent. Not for the root. */
static inline bool ckvi_siblings_top(const struct ckvi_tree_node *node)
{
    return node->up->down == node;
}

struct ckvi_tree_node *ckvi_tree_parent(const struct ckvi_tree_node *node);
/* The child whose edge begins with the token; NULL = none. */
struct ckvi_tree_node *ckvi_siblings_find(const struct ckvi_tree_node *parent,
                                          uint32_t first);
/* Adds a child; its summary and those above are left to ckvi_tree_update. */
void ckvi_siblings_insert(struct ckvi_tree_node *parent, struct ckvi_tree_node *child);
/* Takes a child out; the same goes for the node that is returned. */
struct ckvi_tree_node *ckvi_siblings_remove(struct ckvi_tree_node *child);
/* Puts a node with the same first token in the place of another. */
void ckvi_siblings_replace(struct ckvi_tree_node *old, struct ckvi_tree_node *fresh);
/* Whether the treap's order puts `a` above `b`. */
bool ckvi_siblings_above(const struct ckvi_tree_node *a, const struct ckvi_tree_node *b);

/* --- the tree --- */

struct ckvi_tree_node *ckvi_tree_create(const struct ckv_alloc *alloc);
/* Gives back nodes, tokens and entries. NULL is fine. */
void ckvi_tree_destroy(const struct ckv_alloc *alloc, struct ckvi_tree_node *root);

/* How far tokens lead into the tree. */
struct ckvi_tree_place {
    struct ckvi_tree_node *node;    /* the last one that they reach the end of */
    struct ckvi_tree_node *partial; /* its child that they end or differ in, or NULL */
    size_t common;
};
struct ckvi_tree_place ckvi_tree_walk(struct ckvi_tree_node *root, const uint32_t *tokens,
                                      size_t token_count);

/* Puts the entry at the end of its tokens; on failure nothing has changed. */
enum ckv_status ckvi_tree_add(const struct ckv_alloc *alloc, struct ckvi_tree_node *root,
                              struct ckvi_tree_entry *entry, const uint32_t *tokens,
                              uint32_t token_count,
                              struct ckv_error *error) CKV_WARN_UNUSED;
/* Takes it out, and nodes and tokens with it that nothing else needs. */
void ckvi_tree_drop(const struct ckv_alloc *alloc, struct ckvi_tree_entry *entry);
void ckvi_tree_touch(struct ckvi_tree_entry *entry, uint64_t recency);

/* --- searches --- */

/* Offers all entries at a node and below it that can be cut to `limit` tokens; not those
 * of its siblings. */
void ckvi_search_node(const struct ckvi_tree_node *node, uint32_t limit,
                      struct ckvi_best *best);
/* The same for the children of `parent`, without `except` (NULL = none). */
void ckvi_search_children(const struct ckvi_tree_node *parent,
                          const struct ckvi_tree_node *except, uint32_t limit,
                          struct ckvi_best *best);
/* From node to node through `top` and its three subtrees: the next one behind `node` that
 * may have an entry above floor 0 with at most this floor and cost, or leads to one. NULL
 * = no more. */
const struct ckvi_tree_node *ckvi_search_next(const struct ckvi_tree_node *node,
                                              const struct ckvi_tree_node *top,
                                              uint32_t floor_max, uint32_t cost_max);

/* --- for tests --- */

struct ckvi_tree_facts {
    size_t nodes; /* without the root */
    size_t entries;
    uint64_t tokens; /* distinct ones */
    uint64_t slack;  /* room for tokens that is not used */
    size_t joints;   /* nodes that could be one with their child */
};
/* Whether every invariant holds. */
bool ckvi_tree_check(const struct ckv_index *index, struct ckvi_tree_facts *facts);

#endif

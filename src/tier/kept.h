/* The entries that a prompt cache keeps: found by tokens, ordered by use, counted in
 * bytes. No locks of its own. */
#ifndef COLDKV_TIER_KEPT_H
#define COLDKV_TIER_KEPT_H

#include "store/map.h"
#include "tier/buffers.h"
#include <coldkv/held.h>
#include <coldkv/index.h>
#include <stdbool.h>

/* A namespace with its entries. */
struct ckvi_shelf {
    struct ckvi_node node;
    char *ns;
    struct ckv_index *index;
};

/*
 * One entry. An entry on its way out is `leaving`: it is still found, and whoever leads
 * it out owns the struct and frees it. When it is taken out meanwhile, it is `gone`.
 */
struct ckvi_kept {
    struct ckvi_node by_id;
    uint64_t id;
    char *ns; /* may be read without the lock by who leads it out */
    struct ckvi_shelf *shelf;
    struct ckv_held *held;
    struct ckvi_kept *older;
    struct ckvi_kept *newer;
    struct ckvi_kept *next;  /* in the list of who leads it out */
    struct ckvi_kept *found; /* in a list that lives as long as one lock is held */
    int64_t used_ns;
    int64_t touched_ns; /* when its file was touched for a hit in memory */
    bool charged;       /* in the order of use and in the account */
    bool leaving;
    bool unused; /* since it was chosen for demotion */
    bool gone;
};

/* Entries on their way out, linked by next. */
struct ckvi_kept_list {
    struct ckvi_kept *first;
    struct ckvi_kept *last;
};

struct ckvi_kept_set {
    const struct ckv_alloc *alloc;
    struct ckvi_map shelves;
    struct ckvi_map by_id;
    struct ckvi_buffers buffers; /* of those that are charged */
    struct ckvi_kept *oldest;
    struct ckvi_kept *newest;
    uint64_t next_id;
    uint64_t uses; /* recency in the indexes */
};

enum ckv_status ckvi_kept_init(struct ckvi_kept_set *set, const struct ckv_alloc *alloc,
                               struct ckv_error *error);
/* Lets go of everything; nothing may be leaving. A zeroed one is fine. */
void ckvi_kept_deinit(struct ckvi_kept_set *set);

/* Takes a reference; the entry is the newest. On failure nothing has changed. */
enum ckv_status ckvi_kept_add(struct ckvi_kept_set *set, const char *ns,
                              struct ckv_held *held, int64_t now_ns,
                              struct ckvi_kept **out, struct ckv_error *error);
void ckvi_kept_use(struct ckvi_kept_set *set, struct ckvi_kept *kept, int64_t now_ns);
/* Out of the order of use and the account; still found. */
void ckvi_kept_uncharge(struct ckvi_kept_set *set, struct ckvi_kept *kept);
/* Out of everything: to `out` for its end, or gone when another one leads it out. */
void ckvi_kept_take_out(struct ckvi_kept_set *set, struct ckvi_kept *kept,
                        struct ckvi_kept_list *out);

struct ckvi_kept *ckvi_kept_by_id(const struct ckvi_kept_set *set, uint64_t id);
/* The one with the longest usable prefix, or NULL. */
struct ckvi_kept *ckvi_kept_match(const struct ckvi_kept_set *set, const char *ns,
                                  const uint32_t *prompt, size_t prompt_length,
                                  uint64_t *prefix);
/* The one with exactly these tokens, or NULL. */
struct ckvi_kept *ckvi_kept_same(const struct ckvi_kept_set *set, const char *ns,
                                 const uint32_t *tokens, size_t token_count);
/* Those that this one makes superfluous, without it, linked by `found`. They stay. */
struct ckvi_kept *ckvi_kept_covered(const struct ckvi_kept_set *set,
                                    const struct ckvi_kept *kept);
/* All of a namespace, linked by `found`; ns NULL = of all. They stay. */
struct ckvi_kept *ckvi_kept_all(const struct ckvi_kept_set *set, const char *ns);

void ckvi_kept_push(struct ckvi_kept_list *list, struct ckvi_kept *kept);
/* The first one, which is no longer in the list; NULL = empty. */
struct ckvi_kept *ckvi_kept_pop(struct ckvi_kept_list *list);
/* Ends one that is in no table. No lock may be held: it may release engine memory. */
void ckvi_kept_free(const struct ckv_alloc *alloc, struct ckvi_kept *kept);

#endif

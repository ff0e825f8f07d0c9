/* Records of what is not durable yet: by key, in the order in which they were made. No
 * locks of its own. */
#ifndef COLDKV_TIER_DIRTY_H
#define COLDKV_TIER_DIRTY_H

#include "store/map.h"
#include <coldkv/alloc.h>
#include <coldkv/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckv_durability;

struct ckvi_dirty {
    struct ckvi_node node;
    struct ckvi_dirty *next;
    struct ckvi_dirty *prev;
    struct ckv_durability *owner;
    size_t references; /* the table's, and one per attempt */
    bool listed;       /* in the table */
    char *ns;
    uint32_t *tokens;
    size_t token_count;
    uint64_t version;         /* counts schedules */
    uint64_t attempt_version; /* what the attempt is for */
    int64_t since_ns;         /* dirty since */
    int64_t due_ns;
    uint32_t failures;
    bool running;          /* an attempt is on its way */
    bool stored;           /* so said the last attempt */
    bool missing;          /* so said the last attempt */
    uint64_t flush_number; /* the last flush that tried it, and what it tried */
    uint64_t flush_version;
    bool rechecked; /* by the present flush */
};

struct ckvi_dirty_table {
    const struct ckv_alloc *alloc;
    struct ckvi_map map;
    struct ckvi_dirty *first;
    struct ckvi_dirty *last;
    uint64_t token_bytes;
};

enum ckv_status ckvi_dirty_init(struct ckvi_dirty_table *table,
                                const struct ckv_alloc *alloc, struct ckv_error *error);
/* Gives up the table's references. A zeroed one is fine. */
void ckvi_dirty_deinit(struct ckvi_dirty_table *table);

struct ckvi_dirty *ckvi_dirty_find(const struct ckvi_dirty_table *table, const char *ns,
                                   const uint32_t *tokens, size_t token_count);
/* A new record, the last; NULL when memory is out. */
struct ckvi_dirty *ckvi_dirty_add(struct ckvi_dirty_table *table, const char *ns,
                                  const uint32_t *tokens, size_t token_count);
/* Out of the table; it lives on while an attempt is on its way. */
void ckvi_dirty_remove(struct ckvi_dirty_table *table, struct ckvi_dirty *dirty);
void ckvi_dirty_unref(struct ckvi_dirty_table *table, struct ckvi_dirty *dirty);

#endif

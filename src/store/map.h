/* A chained hash map whose nodes live inside the things it holds. It compares hashes
 * only: the caller looks through the chain for the one it means. */
#ifndef COLDKV_STORE_MAP_H
#define COLDKV_STORE_MAP_H

#include <coldkv/alloc.h>
#include <coldkv/status.h>
#include <stddef.h>
#include <stdint.h>

struct ckvi_node {
    struct ckvi_node *next;
    uint64_t hash;
};

struct ckvi_map {
    const struct ckv_alloc *alloc;
    struct ckvi_node **buckets;
    size_t bucket_count; /* a power of two */
    size_t count;
};

/* The struct that a node is member of. */
#define CKVI_CONTAINER(pointer, type, member)                                            \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

enum ckv_status ckvi_map_init(struct ckvi_map *map, const struct ckv_alloc *alloc,
                              struct ckv_error *error);
/* Forgets the nodes; they are the caller's. A zeroed map is fine. */
void ckvi_map_deinit(struct ckvi_map *map);

/* Never fails: when memory for more buckets is out, chains grow longer. */
void ckvi_map_insert(struct ckvi_map *map, struct ckvi_node *node, uint64_t hash);
void ckvi_map_remove(struct ckvi_map *map, struct ckvi_node *node);

/* First node with this hash, and the next one with the same hash; NULL = none. */
struct ckvi_node *ckvi_map_first(const struct ckvi_map *map, uint64_t hash);
struct ckvi_node *ckvi_map_same(const struct ckvi_node *node);

/* Any node at all; for emptying a map. */
struct ckvi_node *ckvi_map_any(const struct ckvi_map *map);
/* Every node once, in no order: start with NULL; NULL ends it. The map must not change
 * meanwhile. */
struct ckvi_node *ckvi_map_next(const struct ckvi_map *map, const struct ckvi_node *node);

/* Spreads small numbers over all bits. */
uint64_t ckvi_map_hash_u64(uint64_t value);

#endif

/*
 * Owns the buckets of an intrusive hash map. Invariant: a node is in the bucket of its
 * hash, at most once. Failure story: only init fails; growing is optional.
 */
#include "store/map.h"

#include "base/alloc.h"
#include "base/checked.h"

#define FIRST_BUCKETS 64

enum ckv_status ckvi_map_init(struct ckvi_map *map, const struct ckv_alloc *alloc,
                              struct ckv_error *error)
{
    *map = (struct ckvi_map){.alloc = alloc};
    map->buckets = ckvi_zalloc(alloc, FIRST_BUCKETS, sizeof(struct ckvi_node *));
    if (!map->buckets)
        return ckvi_nomem(error, FIRST_BUCKETS * sizeof(struct ckvi_node *), "a map");
    map->bucket_count = FIRST_BUCKETS;
    return CKV_OK;
}

void ckvi_map_deinit(struct ckvi_map *map)
{
    if (map->buckets)
        ckvi_free(map->alloc, map->buckets, map->bucket_count,
                  sizeof(struct ckvi_node *));
    map->buckets = NULL;
    map->bucket_count = 0;
    map->count = 0;
}

static struct ckvi_node **bucket_of(struct ckvi_node **buckets, size_t count,
                                    uint64_t hash)
{
    return &buckets[(size_t)hash & (count - 1)];
}

static void grow(struct ckvi_map *map)
{
    struct ckvi_node **wider;
    size_t wide;
    if (!ckvi_mul_size(map->bucket_count, 2, &wide))
        return;
    wider = ckvi_zalloc(map->alloc, wide, sizeof(struct ckvi_node *));
    if (!wider)
        return;
    for (size_t i = 0; i < map->bucket_count; i++) {
        struct ckvi_node *node = map->buckets[i];
        while (node) {
            struct ckvi_node *next = node->next;
            struct ckvi_node **bucket = bucket_of(wider, wide, node->hash);
            node->next = *bucket;
            *bucket = node;
            node = next;
        }
    }
    ckvi_free(map->alloc, map->buckets, map->bucket_count, sizeof(struct ckvi_node *));
    map->buckets = wider;
    map->bucket_count = wide;
}

void ckvi_map_insert(struct ckvi_map *map, struct ckvi_node *node, uint64_t hash)
{
    struct ckvi_node **bucket;
    if (map->count >= map->bucket_count)
        grow(map);
    bucket = bucket_of(map->buckets, map->bucket_count, hash);
    node->hash = hash;
    node->next = *bucket;
    *bucket = node;
    map->count++;
}

void ckvi_map_remove(struct ckvi_map *map, struct ckvi_node *node)
{
    struct ckvi_node **link = bucket_of(map->buckets, map->bucket_count, node->hash);
    while (*link && *link != node)
        link = &(*link)->next;
    if (!*link)
        return;
    *link = node->next;
    node->next = NULL;
    map->count--;
}

static struct ckvi_node *skip_to(struct ckvi_node *node, uint64_t hash)
{
    while (node && node->hash != hash)
        node = node->next;
    return node;
}

struct ckvi_node *ckvi_map_first(const struct ckvi_map *map, uint64_t hash)
{
    return skip_to(*bucket_of(map->buckets, map->bucket_count, hash), hash);
}

struct ckvi_node *ckvi_map_same(const struct ckvi_node *node)
{
    return skip_to(node->next, node->hash);
}

static struct ckvi_node *first_from(const struct ckvi_map *map, size_t bucket)
{
    for (size_t i = bucket; i < map->bucket_count; i++) {
        if (map->buckets[i])
            return map->buckets[i];
    }
    return NULL;
}

struct ckvi_node *ckvi_map_any(const struct ckvi_map *map)
{
    return first_from(map, 0);
}

struct ckvi_node *ckvi_map_next(const struct ckvi_map *map, const struct ckvi_node *node)
{
    if (!node)
        return first_from(map, 0);
    if (node->next)
        return node->next;
    return first_from(map, ((size_t)node->hash & (map->bucket_count - 1)) + 1);
}

uint64_t ckvi_map_hash_u64(uint64_t value)
{
    value ^= value >> 32;
    value *= UINT64_C(0x9e3779b97f4a7c15);
    return value ^ value >> 29;
}

/* The cache kinds: one table row each. */
#ifndef COLDKV_CACHE_KIND_H
#define COLDKV_CACHE_KIND_H

#include <coldkv/entry.h>
#include <coldkv/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Largest integer that a header may hold: what every JSON reader keeps exact. */
#define CKVI_INTEGER_MAX ((UINT64_C(1) << 53) - 1)

/* The scalars of a cache, in the order in which a header names them. */
enum ckvi_field {
    CKVI_FIELD_OFFSET,
    CKVI_FIELD_IDX,
    CKVI_FIELD_MAX_SIZE,
    CKVI_FIELD_GROUP_SIZE,
    CKVI_FIELD_BITS,
    CKVI_FIELD_K_BITS,
    CKVI_FIELD_V_BITS,
    CKVI_FIELD_HEAD_DIM,
    CKVI_FIELD_ENGINE, /* a string, all others are integers */
    CKVI_FIELD_FLOOR,
};
#define CKVI_FIELD_COUNT 10
#define CKVI_FIELD_BIT(field) (1u << (field))

/* Names in a header: "offset" ... "floor". */
const char *ckvi_field_name(enum ckvi_field field);
/* Largest value that the member of struct ckv_cache holds. */
uint64_t ckvi_field_max(enum ckvi_field field);
/* Integer fields only. The value must be within ckvi_field_max. */
uint64_t ckvi_field_get(const struct ckv_cache *cache, enum ckvi_field field);
void ckvi_field_set(struct ckv_cache *cache, enum ckvi_field field, uint64_t value);

/* A cache under examination: where it stands, and where the finding goes. */
struct ckvi_exam {
    const struct ckv_cache *cache;
    size_t index; /* of the cache in its entry */
    struct ckv_error *error;
};

struct ckvi_kind {
    const char *name;
    uint32_t fields; /* CKVI_FIELD_BIT of each scalar that the kind has */
    /* Tensor names for messages; count 0: any number, at least one, without names. */
    const char *const *tensor_names;
    size_t tensor_count;
    /* Scalars, ranks, shapes and types; the number of tensors, their own bytes and the
     * limits have been checked. */
    enum ckv_status (*check)(const struct ckvi_exam *exam);
    uint64_t (*floor)(const struct ckv_cache *cache);
};

/* NULL for a value that is no kind. */
const struct ckvi_kind *ckvi_kind_of(enum ckv_cache_kind kind);
/* The kind of that name; false when there is none. */
bool ckvi_kind_find(const char *name, size_t size, enum ckv_cache_kind *out);

#endif

/*
 * Owns the scalars of a cache by name: one list for writer and reader, so that neither
 * can know a key that the other does not.
 */
#include "base/assert.h"
#include "cache/kind.h"

static const char *const names[CKVI_FIELD_COUNT] = {
    [CKVI_FIELD_OFFSET] = "offset",    [CKVI_FIELD_IDX] = "idx",
    [CKVI_FIELD_MAX_SIZE] = "maxSize", [CKVI_FIELD_GROUP_SIZE] = "groupSize",
    [CKVI_FIELD_BITS] = "bits",        [CKVI_FIELD_K_BITS] = "kBits",
    [CKVI_FIELD_V_BITS] = "vBits",     [CKVI_FIELD_HEAD_DIM] = "headDim",
    [CKVI_FIELD_ENGINE] = "engine",    [CKVI_FIELD_FLOOR] = "floor",
};

/* Members of 64 and of 32 bits; exactly one of the two is set. */
struct member {
    uint64_t *wide;
    uint32_t *narrow;
};

static struct member member_of(struct ckv_cache *cache, enum ckvi_field field)
{
    switch (field) {
    case CKVI_FIELD_OFFSET:
        return (struct member){&cache->offset, NULL};
    case CKVI_FIELD_IDX:
        return (struct member){&cache->idx, NULL};
    case CKVI_FIELD_MAX_SIZE:
        return (struct member){&cache->max_size, NULL};
    case CKVI_FIELD_FLOOR:
        return (struct member){&cache->floor, NULL};
    case CKVI_FIELD_GROUP_SIZE:
        return (struct member){NULL, &cache->group_size};
    case CKVI_FIELD_BITS:
        return (struct member){NULL, &cache->bits};
    case CKVI_FIELD_K_BITS:
        return (struct member){NULL, &cache->k_bits};
    case CKVI_FIELD_V_BITS:
        return (struct member){NULL, &cache->v_bits};
    case CKVI_FIELD_HEAD_DIM:
        return (struct member){NULL, &cache->head_dim};
    case CKVI_FIELD_ENGINE:
        break;
    }
    CKV_ASSERT(0); /* the engine is a string */
    return (struct member){NULL, NULL};
}

const char *ckvi_field_name(enum ckvi_field field)
{
    return names[field];
}

uint64_t ckvi_field_max(enum ckvi_field field)
{
    struct ckv_cache any;
    return member_of(&any, field).wide ? CKVI_INTEGER_MAX : UINT32_MAX;
}

uint64_t ckvi_field_get(const struct ckv_cache *cache, enum ckvi_field field)
{
    struct ckv_cache copy = *cache;
    struct member member = member_of(&copy, field);
    return member.wide ? *member.wide : *member.narrow;
}

void ckvi_field_set(struct ckv_cache *cache, enum ckvi_field field, uint64_t value)
{
    struct member member = member_of(cache, field);
    if (member.wide)
        *member.wide = value;
    else if (member.narrow)
        *member.narrow = (uint32_t)value;
}

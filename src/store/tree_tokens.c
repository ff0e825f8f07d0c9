/*
 * Owns the token arrays of the prefix tree. Every distinct token of a tree is in exactly
 * one array, once.
 *
 * Invariant: the slices of an array lie on one path and cover it without gaps. Nodes are
 * removed from the leaves upwards, so what is given up is always the last slice. Failure
 * story: making an array and prepending to it may fail and then change nothing; when an
 * array cannot be made smaller, it keeps its room.
 */
#include "store/tree.h"

#include "base/alloc.h"
#include "base/assert.h"
#include <string.h>

/* So many at a time are compared by memcmp, before the place of a difference is sought.
 */
#define COMPARED_TOKENS 128

struct ckvi_tokens *ckvi_tokens_create(const struct ckv_alloc *alloc, uint32_t begin,
                                       const uint32_t *items, uint32_t count)
{
    struct ckvi_tokens *tokens = CKVI_NEW(alloc, struct ckvi_tokens);
    if (!tokens)
        return NULL;
    tokens->items = ckvi_zalloc(alloc, count, sizeof *items);
    if (!tokens->items) {
        CKVI_DELETE(alloc, tokens);
        return NULL;
    }
    memcpy(tokens->items, items, count * sizeof *items);
    tokens->begin = begin;
    tokens->count = count;
    tokens->capacity = count;
    tokens->refs = 1;
    return tokens;
}

static bool change_capacity(const struct ckv_alloc *alloc, struct ckvi_tokens *tokens,
                            uint32_t capacity)
{
    uint32_t *moved = ckvi_regrow(alloc, tokens->items, tokens->capacity, capacity,
                                  sizeof *tokens->items);
    if (!moved)
        return false;
    tokens->items = moved;
    tokens->capacity = capacity;
    return true;
}

void ckvi_tokens_cut(const struct ckv_alloc *alloc, struct ckvi_tokens *tokens,
                     uint32_t start)
{
    tokens->refs--;
    if (tokens->refs > 0) {
        tokens->count = start - tokens->begin;
        (void)change_capacity(alloc, tokens, tokens->count);
        return;
    }
    ckvi_free(alloc, tokens->items, tokens->capacity, sizeof *tokens->items);
    CKVI_DELETE(alloc, tokens);
}

bool ckvi_tokens_prepend(const struct ckv_alloc *alloc, struct ckvi_tokens *tokens,
                         const uint32_t *items, uint32_t count)
{
    /* Depths are below 2^32, so the sum is too. */
    uint32_t wanted = tokens->count + count;
    CKV_ASSERT(count <= tokens->begin);
    if (wanted > tokens->capacity && !change_capacity(alloc, tokens, wanted))
        return false;
    memmove(tokens->items + count, tokens->items, tokens->count * sizeof *items);
    memcpy(tokens->items, items, count * sizeof *items);
    tokens->begin -= count;
    tokens->count = wanted;
    return true;
}

size_t ckvi_tokens_common(const uint32_t *a, const uint32_t *b, size_t count)
{
    size_t common = 0;
    while (count - common >= COMPARED_TOKENS &&
           memcmp(a + common, b + common, COMPARED_TOKENS * sizeof *a) == 0)
        common += COMPARED_TOKENS;
    while (common < count && a[common] == b[common])
        common++;
    return common;
}

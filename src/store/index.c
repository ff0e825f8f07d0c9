/*
 * Owns the prefix index: which entries share how many tokens with a prompt.
 *
 * This is the plain form: an array of entries, compared one by one. It is the model that
 * a faster structure behind the same interface has to agree with. Invariant: entries are
 * ordered by id, ids are unique, every entry has at least one token and floor <=
 * token_count. Failure story: only insert allocates; when it fails, the index is as it
 * was before.
 */
#include <coldkv/entry.h>
#include <coldkv/index.h>

#include "base/alloc.h"
#include "base/checked.h"
#include <string.h>

/* More entries than this at one prefix help no restore: it gives up before. */
#define SAME_PREFIX_MAX 3

struct ckv_index {
    const struct ckv_alloc *alloc;
    struct ckv_index_entry *slots; /* by id; tokens owned */
    size_t count;
    size_t capacity;
};

enum ckv_status ckv_index_create(const struct ckv_alloc *alloc, struct ckv_index **out,
                                 struct ckv_error *error)
{
    struct ckv_index *index;
    alloc = ckvi_alloc_or_default(alloc);
    *out = NULL;
    index = CKVI_NEW(alloc, struct ckv_index);
    if (!index)
        return ckvi_nomem(error, sizeof *index, "a prefix index");
    index->alloc = alloc;
    *out = index;
    return CKV_OK;
}

static void free_tokens(const struct ckv_index *index, struct ckv_index_entry *entry)
{
    /* The cast gives back what insert allocated; readers see it const. */
    ckvi_free(index->alloc, (void *)(uintptr_t)entry->tokens, entry->token_count,
              sizeof(uint32_t));
    entry->tokens = NULL;
}

void ckv_index_destroy(struct ckv_index *index)
{
    if (!index)
        return;
    for (size_t i = 0; i < index->count; i++)
        free_tokens(index, &index->slots[i]);
    ckvi_free(index->alloc, index->slots, index->capacity, sizeof *index->slots);
    CKVI_DELETE(index->alloc, index);
}

/* Where the id is, or would have to be inserted. */
static size_t find_place(const struct ckv_index *index, uint64_t id)
{
    size_t low = 0;
    size_t high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->slots[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct ckv_index_entry *find_entry(const struct ckv_index *index, uint64_t id)
{
    size_t place = find_place(index, id);
    if (place == index->count || index->slots[place].id != id)
        return NULL;
    return &index->slots[place];
}

static enum ckv_status make_room(struct ckv_index *index, struct ckv_error *error)
{
    struct ckv_index_entry *moved;
    size_t capacity;
    if (index->count < index->capacity)
        return CKV_OK;
    if (!ckvi_mul_size(index->capacity ? index->capacity : 8, 2, &capacity))
        return ckvi_nomem(error, SIZE_MAX, "the prefix index");
    moved = ckvi_regrow(index->alloc, index->slots, index->capacity, capacity,
                        sizeof *index->slots);
    if (!moved)
        return ckvi_nomem(error, capacity * sizeof *moved, "the prefix index");
    index->slots = moved;
    index->capacity = capacity;
    return CKV_OK;
}

enum ckv_status ckv_index_insert(struct ckv_index *index,
                                 const struct ckv_index_entry *entry,
                                 struct ckv_error *error)
{
    enum ckv_status status;
    uint32_t *tokens;
    size_t place;
    if (entry->token_count == 0 || !entry->tokens)
        return ckv_error_set(error, CKV_INVALID, "an indexed entry needs tokens");
    if (entry->floor > entry->token_count)
        return ckv_error_set(error, CKV_INVALID, "floor %llu is beyond %zu tokens",
                             (unsigned long long)entry->floor, entry->token_count);
    if (find_entry(index, entry->id))
        return ckv_error_set(error, CKV_EXISTS, "entry %llu is indexed already",
                             (unsigned long long)entry->id);
    status = make_room(index, error);
    if (status != CKV_OK)
        return status;
    tokens = ckvi_zalloc(index->alloc, entry->token_count, sizeof *tokens);
    if (!tokens)
        return ckvi_nomem(error, entry->token_count * sizeof *tokens, "indexed tokens");
    memcpy(tokens, entry->tokens, entry->token_count * sizeof *tokens);
    /* Owners count ids upwards, so this is nearly always the end. */
    place = find_place(index, entry->id);
    memmove(&index->slots[place + 1], &index->slots[place],
            (index->count - place) * sizeof *index->slots);
    index->slots[place] = *entry;
    index->slots[place].tokens = tokens;
    index->count++;
    return CKV_OK;
}

bool ckv_index_remove(struct ckv_index *index, uint64_t id)
{
    struct ckv_index_entry *entry = find_entry(index, id);
    size_t behind;
    if (!entry)
        return false;
    free_tokens(index, entry);
    behind = index->count - 1 - (size_t)(entry - index->slots);
    memmove(entry, entry + 1, behind * sizeof *entry);
    index->count--;
    return true;
}

bool ckv_index_touch(struct ckv_index *index, uint64_t id, uint64_t recency)
{
    struct ckv_index_entry *entry = find_entry(index, id);
    if (!entry)
        return false;
    entry->recency = recency;
    return true;
}

bool ckv_index_get(const struct ckv_index *index, uint64_t id,
                   struct ckv_index_entry *out)
{
    const struct ckv_index_entry *entry = find_entry(index, id);
    if (!entry)
        return false;
    *out = *entry;
    return true;
}

size_t ckv_index_count(const struct ckv_index *index)
{
    return index->count;
}

/* How many leading tokens both have in common. */
static size_t common_prefix(const uint32_t *a, size_t a_count, const uint32_t *b,
                            size_t b_count)
{
    size_t limit = a_count < b_count ? a_count : b_count;
    size_t common = 0;
    while (common < limit && a[common] == b[common])
        common++;
    return common;
}

/* Whether `a` comes before `b` among candidates. */
static bool goes_before(const struct ckv_index_match *a, const struct ckv_index_match *b)
{
    if (a->prefix != b->prefix)
        return a->prefix > b->prefix;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes;
    if (a->recency != b->recency)
        return a->recency > b->recency;
    return a->id < b->id;
}

/* The position that the match has to give way for it: the last of its own prefix when
 * there are enough of those, the last of all when the list is full, else a new one. */
static size_t find_victim(const struct ckv_index_match *out, size_t count,
                          size_t capacity, const struct ckv_index_match *match)
{
    size_t same = 0;
    size_t last_same = 0;
    for (size_t i = 0; i < count; i++) {
        if (out[i].prefix == match->prefix) {
            same++;
            last_same = i;
        }
    }
    if (same == SAME_PREFIX_MAX)
        return last_same;
    return count < capacity ? count : count - 1;
}

/* Puts the match into the ordered list; returns the new length. Replacements are one for
 * one, so what was dropped earlier never deserves its place back. */
static size_t offer_match(struct ckv_index_match *out, size_t count, size_t capacity,
                          const struct ckv_index_match *match)
{
    size_t hole = find_victim(out, count, capacity, match);
    if (hole < count && !goes_before(match, &out[hole]))
        return count;
    if (hole == count)
        count++;
    while (hole > 0 && goes_before(match, &out[hole - 1])) {
        out[hole] = out[hole - 1];
        hole--;
    }
    out[hole] = *match;
    return count;
}

size_t ckv_index_find(const struct ckv_index *index, const uint32_t *prompt,
                      size_t prompt_length, struct ckv_index_match *out, size_t capacity)
{
    size_t count = 0;
    if (capacity == 0)
        return 0;
    for (size_t i = 0; i < index->count; i++) {
        const struct ckv_index_entry *entry = &index->slots[i];
        size_t common =
            common_prefix(entry->tokens, entry->token_count, prompt, prompt_length);
        struct ckv_index_match match = {
            .id = entry->id,
            .prefix = ckv_usable_prefix(entry->floor, entry->token_count, common,
                                        prompt_length),
            .length = entry->token_count,
            .bytes = entry->bytes,
            .recency = entry->recency,
        };
        if (match.prefix > 0)
            count = offer_match(out, count, capacity, &match);
    }
    return count;
}

size_t ckv_index_covered(const struct ckv_index *index, const uint32_t *tokens,
                         size_t token_count, uint64_t floor, ckv_index_covered_fn fn,
                         void *fn_ctx)
{
    size_t covered = 0;
    for (size_t i = 0; i < index->count; i++) {
        const struct ckv_index_entry *entry = &index->slots[i];
        size_t common =
            common_prefix(entry->tokens, entry->token_count, tokens, token_count);
        if (common < entry->token_count)
            continue;
        if (entry->token_count < token_count && floor > entry->floor)
            continue;
        fn(fn_ctx, entry->id);
        covered++;
    }
    return covered;
}

bool ckv_index_covers(const struct ckv_index *index, const uint32_t *tokens,
                      size_t token_count, uint64_t *id)
{
    for (size_t i = 0; i < index->count; i++) {
        const struct ckv_index_entry *entry = &index->slots[i];
        if (entry->token_count < token_count)
            continue;
        if (entry->token_count > token_count && entry->floor > token_count)
            continue;
        if (common_prefix(entry->tokens, entry->token_count, tokens, token_count) <
            token_count)
            continue;
        if (id)
            *id = entry->id;
        return true;
    }
    return false;
}

uint64_t ckv_index_longest(const struct ckv_index *index)
{
    uint64_t longest = 0;
    for (size_t i = 0; i < index->count; i++)
        longest = ckvi_max_u64(longest, index->slots[i].token_count);
    return longest;
}

void ckv_index_visit(const struct ckv_index *index, ckv_index_visit_fn fn, void *fn_ctx)
{
    for (size_t i = 0; i < index->count; i++)
        fn(fn_ctx, &index->slots[i]);
}

/*
 * Owns the model of the prefix index. Every question looks at every entry; memory comes
 * from the C library and a lack of it ends the program.
 */
#include "lib/index_model.h"

#include "lib/require.h"
#include <coldkv/entry.h>
#include <string.h>

#define SAME_PREFIX_MAX 3

static void free_tokens(struct ckv_index_entry *entry)
{
    /* The cast gives back what insert allocated; readers see it const. */
    free((void *)(uintptr_t)entry->tokens);
}

void index_model_deinit(struct index_model *model)
{
    for (size_t i = 0; i < model->count; i++)
        free_tokens(&model->entries[i]);
    free(model->entries);
    *model = (struct index_model){0};
}

static struct ckv_index_entry *find_entry(const struct index_model *model, uint64_t id)
{
    for (size_t i = 0; i < model->count; i++) {
        if (model->entries[i].id == id)
            return &model->entries[i];
    }
    return NULL;
}

enum ckv_status index_model_insert(struct index_model *model,
                                   const struct ckv_index_entry *entry)
{
    struct ckv_index_entry *made;
    uint32_t *tokens;
    if (entry->token_count == 0 || entry->floor > entry->token_count)
        return CKV_INVALID;
    if (find_entry(model, entry->id))
        return CKV_EXISTS;
    if (model->count == model->capacity) {
        model->capacity = model->capacity ? 2 * model->capacity : 64;
        model->entries = realloc(model->entries, model->capacity * sizeof *made);
        TEST_REQUIRE(model->entries);
    }
    tokens = malloc(entry->token_count * sizeof *tokens);
    TEST_REQUIRE(tokens);
    memcpy(tokens, entry->tokens, entry->token_count * sizeof *tokens);
    made = &model->entries[model->count++];
    *made = *entry;
    made->tokens = tokens;
    return CKV_OK;
}

bool index_model_remove(struct index_model *model, uint64_t id)
{
    struct ckv_index_entry *entry = find_entry(model, id);
    size_t behind;
    if (!entry)
        return false;
    free_tokens(entry);
    model->count--;
    behind = model->count - (size_t)(entry - model->entries);
    memmove(entry, entry + 1, behind * sizeof *entry);
    return true;
}

bool index_model_touch(struct index_model *model, uint64_t id, uint64_t recency)
{
    struct ckv_index_entry *entry = find_entry(model, id);
    if (!entry)
        return false;
    entry->recency = recency;
    return true;
}

const struct ckv_index_entry *index_model_get(const struct index_model *model,
                                              uint64_t id)
{
    return find_entry(model, id);
}

/* How many leading tokens both have in common. */
static size_t common_prefix(const struct ckv_index_entry *entry, const uint32_t *tokens,
                            size_t token_count)
{
    size_t common = 0;
    while (common < entry->token_count && common < token_count &&
           entry->tokens[common] == tokens[common])
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

size_t index_model_find(const struct index_model *model, const uint32_t *prompt,
                        size_t prompt_length, struct ckv_index_match *out,
                        size_t capacity)
{
    size_t count = 0;
    if (capacity == 0)
        return 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct ckv_index_entry *entry = &model->entries[i];
        size_t common = common_prefix(entry, prompt, prompt_length);
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

size_t index_model_covered(const struct index_model *model, const uint32_t *tokens,
                           size_t token_count, uint64_t floor, uint64_t *out)
{
    size_t covered = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct ckv_index_entry *entry = &model->entries[i];
        if (common_prefix(entry, tokens, token_count) < entry->token_count)
            continue;
        if (entry->token_count == token_count || floor <= entry->floor)
            out[covered++] = entry->id;
    }
    return covered;
}

bool index_model_serves(const struct ckv_index_entry *entry, const uint32_t *tokens,
                        size_t token_count)
{
    if (common_prefix(entry, tokens, token_count) < token_count)
        return false;
    return entry->token_count == token_count || entry->floor <= token_count;
}

bool index_model_covers(const struct index_model *model, const uint32_t *tokens,
                        size_t token_count)
{
    for (size_t i = 0; i < model->count; i++) {
        if (index_model_serves(&model->entries[i], tokens, token_count))
            return true;
    }
    return false;
}

uint64_t index_model_longest(const struct index_model *model)
{
    uint64_t longest = 0;
    for (size_t i = 0; i < model->count; i++) {
        if (model->entries[i].token_count > longest)
            longest = model->entries[i].token_count;
    }
    return longest;
}

static int compare_tokens(const void *a, const void *b)
{
    const struct ckv_index_entry *x = a;
    const struct ckv_index_entry *y = b;
    size_t common = common_prefix(x, y->tokens, y->token_count);
    if (common == x->token_count || common == y->token_count)
        return (x->token_count > y->token_count) - (x->token_count < y->token_count);
    return x->tokens[common] < y->tokens[common] ? -1 : 1;
}

/* In order of their tokens, what an entry shares with any other before it, it shares with
 * the one right before. */
uint64_t index_model_distinct(const struct index_model *model)
{
    size_t size = model->count * sizeof(struct ckv_index_entry);
    struct ckv_index_entry *sorted = malloc(size ? size : 1);
    uint64_t distinct = 0;
    TEST_REQUIRE(sorted);
    for (size_t i = 0; i < model->count; i++)
        sorted[i] = model->entries[i];
    qsort(sorted, model->count, sizeof *sorted, compare_tokens);
    for (size_t i = 0; i < model->count; i++) {
        distinct += sorted[i].token_count;
        if (i > 0)
            distinct -= common_prefix(&sorted[i], sorted[i - 1].tokens,
                                      sorted[i - 1].token_count);
    }
    free(sorted);
    return distinct;
}

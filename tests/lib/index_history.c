/*
 * Owns the histories of a prefix index. Tokens are drawn near those that are there:
 * prefixes, extensions and neighbours of entries are what splits and joins edges.
 */
#include "lib/index_history.h"

#include "lib/require.h"
#include <string.h>

#define MATCHES_MAX 256

/* Names the first thing that is not so. */
#define EXPECT(condition)                                                                \
    do {                                                                                 \
        if (!(condition))                                                                \
            return #condition;                                                           \
    } while (0)

bool index_history_goes_on(const struct index_history *history)
{
    return history->at < history->size;
}

void index_history_deinit(struct index_history *history)
{
    index_model_deinit(&history->model);
}

/* The next decision, below `bound`. */
static size_t draw(struct index_history *history, size_t bound)
{
    size_t value = 0;
    for (size_t scale = 1; scale < bound; scale *= 256) {
        if (history->at < history->size)
            value += scale * history->data[history->at];
        history->at++;
    }
    return value % bound;
}

static void draw_tail(struct index_history *history, size_t from)
{
    size_t room = history->length_max - from;
    size_t count = room ? draw(history, room + 1) : 0;
    history->token_count = from + count;
    for (size_t i = from; i < history->token_count; i++)
        history->tokens[i] = (uint32_t)draw(history, history->alphabet);
}

/* Zero to length_max tokens. */
static void draw_tokens(struct index_history *history)
{
    const struct index_model *model = &history->model;
    const struct ckv_index_entry *entry;
    size_t way = draw(history, 8);
    size_t kept;
    if (model->count == 0 || way == 0) {
        draw_tail(history, 0);
        return;
    }
    entry = &model->entries[draw(history, model->count)];
    kept = way < 3 ? entry->token_count : draw(history, entry->token_count + 1);
    memcpy(history->tokens, entry->tokens, kept * sizeof *entry->tokens);
    history->token_count = kept;
    if (way == 1 || way >= 6)
        draw_tail(history, kept);
    if (way == 5 && kept > 0) /* a neighbour */
        history->tokens[draw(history, kept)] = (uint32_t)draw(history, history->alphabet);
}

static uint64_t draw_floor(struct index_history *history, size_t length)
{
    switch (draw(history, 5)) {
    case 0:
        return length;
    case 1:
        return length ? length - 1 : 0;
    case 2:
        return draw(history, length + 1);
    default:
        return 0;
    }
}

/* An id of an entry; mostly. */
static uint64_t draw_id(struct index_history *history)
{
    if (history->model.count == 0 || draw(history, 16) == 0)
        return draw(history, 4) * UINT64_C(0x100000001);
    return history->model.entries[draw(history, history->model.count)].id;
}

static bool same_description(const struct ckv_index_entry *a,
                             const struct ckv_index_entry *b)
{
    return a->id == b->id && a->floor == b->floor && a->bytes == b->bytes &&
           a->recency == b->recency && a->token_count == b->token_count;
}

static const char *compare_entry(const struct index_history *history, uint64_t id)
{
    const struct ckv_index_entry *expected = index_model_get(&history->model, id);
    struct ckv_index_entry found = {0};
    uint32_t tokens[INDEX_HISTORY_TOKENS + 1];
    size_t count = ckv_index_tokens(history->index, id, tokens, INDEX_HISTORY_TOKENS);
    EXPECT(ckv_index_get(history->index, id, &found) == (expected != NULL));
    if (!expected) {
        EXPECT(count == 0);
        return NULL;
    }
    EXPECT(same_description(expected, &found));
    EXPECT(count == expected->token_count);
    EXPECT(memcmp(tokens, expected->tokens, count * sizeof *tokens) == 0);
    tokens[count / 2] = UINT32_MAX;
    EXPECT(ckv_index_tokens(history->index, id, tokens, count / 2) == count);
    EXPECT(tokens[count / 2] == UINT32_MAX);
    return NULL;
}

static bool same_match(const struct ckv_index_match *a, const struct ckv_index_match *b)
{
    return a->id == b->id && a->prefix == b->prefix && a->length == b->length &&
           a->bytes == b->bytes && a->recency == b->recency;
}

static const char *compare_find(const struct index_history *history, size_t capacity)
{
    struct ckv_index_match expected[MATCHES_MAX];
    struct ckv_index_match found[MATCHES_MAX];
    size_t expected_count = index_model_find(&history->model, history->tokens,
                                             history->token_count, expected, capacity);
    size_t count = ckv_index_find(history->index, history->tokens, history->token_count,
                                  found, capacity);
    EXPECT(count == expected_count);
    for (size_t i = 0; i < count; i++)
        EXPECT(same_match(&found[i], &expected[i]));
    return NULL;
}

struct ids {
    uint64_t *items;
    size_t count;
    size_t capacity;
};

static void take_id(void *ctx, uint64_t id)
{
    struct ids *ids = ctx;
    if (ids->count < ids->capacity)
        ids->items[ids->count] = id;
    ids->count++;
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static const char *compare_covered(const struct index_history *history, uint64_t floor)
{
    size_t capacity = history->model.count + 1;
    uint64_t *expected = calloc(2 * capacity, sizeof *expected);
    struct ids ids = {expected + capacity, 0, capacity};
    size_t count, returned;
    bool same;
    TEST_REQUIRE(expected);
    count = index_model_covered(&history->model, history->tokens, history->token_count,
                                floor, expected);
    returned = ckv_index_covered(history->index, history->tokens, history->token_count,
                                 floor, take_id, &ids);
    same = ids.count == count;
    if (same) {
        qsort(expected, count, sizeof *expected, compare_ids);
        qsort(ids.items, count, sizeof *expected, compare_ids);
        same = memcmp(expected, ids.items, count * sizeof *expected) == 0;
    }
    free(expected);
    EXPECT(returned == ids.count);
    EXPECT(same);
    return NULL;
}

static const char *compare_covers(const struct index_history *history)
{
    uint64_t id = 0;
    bool covers =
        ckv_index_covers(history->index, history->tokens, history->token_count, &id);
    EXPECT(covers ==
           index_model_covers(&history->model, history->tokens, history->token_count));
    if (covers) {
        const struct ckv_index_entry *entry = index_model_get(&history->model, id);
        EXPECT(entry);
        EXPECT(index_model_serves(entry, history->tokens, history->token_count));
    }
    return NULL;
}

static const char *compare(struct index_history *history)
{
    static const size_t capacities[] = {1, 2, 3, 4, 8, MATCHES_MAX};
    const char *difference = NULL;
    EXPECT(ckv_index_count(history->index) == history->model.count);
    EXPECT(ckv_index_longest(history->index) == index_model_longest(&history->model));
    for (int i = 0; i < 2 && !difference; i++) {
        draw_tokens(history);
        difference = compare_find(history, capacities[draw(history, 6)]);
        if (!difference)
            difference = compare_covered(history, draw_floor(history, 8));
        if (!difference)
            difference = compare_covers(history);
    }
    return difference;
}

static const char *insert(struct index_history *history)
{
    struct ckv_index_entry entry = {.tokens = history->tokens};
    enum ckv_status status = CKV_NOMEM;
    size_t attempt = history->arm ? 1 : 0;
    draw_tokens(history);
    entry.token_count = history->token_count;
    entry.floor = draw_floor(history, history->token_count);
    entry.bytes = draw(history, 6);
    if (draw(history, 4) == 0) /* so large that they differ by nearly nothing */
        entry.bytes = UINT64_MAX - entry.bytes;
    entry.recency = draw(history, 6);
    /* Now and then one that is taken. */
    entry.id = draw(history, 16) == 0 ? draw_id(history)
                                      : ++history->made * UINT64_C(0x10000000f);
    for (; status == CKV_NOMEM; attempt++) {
        if (history->arm)
            history->arm(history->arm_ctx, attempt);
        status = ckv_index_insert(history->index, &entry, NULL);
        EXPECT(status != CKV_NOMEM || history->arm);
        EXPECT(status != CKV_NOMEM ||
               ckv_index_count(history->index) == history->model.count);
    }
    if (history->arm)
        history->arm(history->arm_ctx, 0);
    EXPECT(status == index_model_insert(&history->model, &entry));
    return compare_entry(history, entry.id);
}

static const char *remove_entry(struct index_history *history, uint64_t id)
{
    bool removed;
    if (history->arm)
        history->arm(history->arm_ctx, draw(history, 3));
    removed = ckv_index_remove(history->index, id);
    if (history->arm)
        history->arm(history->arm_ctx, 0);
    EXPECT(removed == index_model_remove(&history->model, id));
    return compare_entry(history, id);
}

static const char *touch(struct index_history *history)
{
    uint64_t id = draw_id(history);
    uint64_t recency = draw(history, 8);
    EXPECT(ckv_index_touch(history->index, id, recency) ==
           index_model_touch(&history->model, id, recency));
    return compare_entry(history, id);
}

const char *index_history_step(struct index_history *history)
{
    bool full = history->model.count >= history->count_max;
    size_t change = draw(history, 16);
    const char *difference;
    if (change < (full ? 2 : 8))
        difference = insert(history);
    else if (change < 13)
        difference = remove_entry(history, draw_id(history));
    else
        difference = touch(history);
    return difference ? difference : compare(history);
}

const char *index_history_empty(struct index_history *history)
{
    const char *difference = NULL;
    while (history->model.count > 0 && !difference) {
        const struct ckv_index_entry *entries = history->model.entries;
        difference =
            remove_entry(history, entries[draw(history, history->model.count)].id);
        if (!difference)
            difference = compare(history);
    }
    return difference;
}

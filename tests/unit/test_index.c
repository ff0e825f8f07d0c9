/* The prefix index: candidates, their order, cover and supersede (spec I, S1, S4, S5,
 * S12, S60). */
#include "lib/counting_alloc.h"
#include "lib/random.h"
#include <coldkv/entry.h>
#include <coldkv/index.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TOKENS(...)                                                                      \
    (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4

struct fixture {
    struct test_alloc alloc;
    struct ckv_index *index;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    test_alloc_init(&f->alloc);
    assert_int_equal(ckv_index_create(&f->alloc.alloc, &f->index, NULL), CKV_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ckv_index_destroy(f->index);
    assert_true(test_alloc_clean(&f->alloc));
    test_alloc_deinit(&f->alloc);
    free(f);
    return 0;
}

static void insert(struct fixture *f, uint64_t id, uint64_t floor, uint64_t bytes,
                   uint64_t recency, const uint32_t *tokens, size_t count)
{
    struct ckv_index_entry entry = {id, floor, bytes, recency, tokens, count};
    struct ckv_error error;
    assert_int_equal(ckv_index_insert(f->index, &entry, &error), CKV_OK);
}

/* The best candidate; prefix 0 when there is none. */
static struct ckv_index_match best(struct fixture *f, const uint32_t *prompt,
                                   size_t length)
{
    struct ckv_index_match match = {0};
    (void)ckv_index_find(f->index, prompt, length, &match, 1);
    return match;
}

static void empty_index_finds_nothing(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(best(f, TOKENS(1, 2, 3)).prefix, 0);
    assert_int_equal(ckv_index_count(f->index), 0);
    assert_int_equal(ckv_index_longest(f->index), 0);
    assert_false(ckv_index_covers(f->index, TOKENS(1), NULL));
    assert_false(ckv_index_remove(f->index, 1));
    assert_false(ckv_index_touch(f->index, 1, 5));
}

static void m28_longest_common_prefix_wins(void **state)
{
    struct fixture *f = *state;
    insert(f, 1, 0, 40, 1, TOKENS(1, 2, 3, 4));
    insert(f, 2, 0, 20, 2, TOKENS(1, 2));
    assert_int_equal(best(f, TOKENS(1, 2, 3, 4, 5)).id, 1);
    assert_int_equal(best(f, TOKENS(1, 2, 3, 4, 5)).prefix, 4);
    assert_int_equal(best(f, TOKENS(1, 2, 9)).prefix, 2);
    assert_int_equal(best(f, TOKENS(1, 2, 9)).id, 2); /* fewer bytes to read */
    assert_int_equal(best(f, TOKENS(9)).prefix, 0);
}

static void s60_one_prompt_token_always_stays(void **state)
{
    struct fixture *f = *state;
    insert(f, 1, 0, 20, 1, TOKENS(1, 2));
    assert_int_equal(best(f, TOKENS(1, 2)).prefix, 1);
    assert_int_equal(best(f, TOKENS(1)).prefix, 0);
    assert_int_equal(ckv_index_find(f->index, NULL, 0, &(struct ckv_index_match){0}, 1),
                     0);
}

static void s1_untrimmable_entry_serves_only_its_exact_end(void **state)
{
    struct fixture *f = *state;
    insert(f, 1, 6, 60, 1, TOKENS(1, 2, 3, 4, 5, 6));
    assert_int_equal(best(f, TOKENS(1, 2, 3, 4, 5, 6, 7)).prefix, 6);
    assert_int_equal(best(f, TOKENS(1, 2, 3, 4, 5, 6)).prefix, 0);
    assert_int_equal(best(f, TOKENS(1, 2, 3, 4, 5, 9, 9)).prefix, 0);
}

static void s12_lookup_falls_back_to_the_longest_usable(void **state)
{
    struct fixture *f = *state;
    insert(f, 1, 0, 40, 1, TOKENS(1, 2, 3, 4));
    insert(f, 2, 6, 60, 2, TOKENS(1, 2, 3, 4, 5, 6));
    assert_int_equal(best(f, TOKENS(1, 2, 3, 4, 5)).id, 1);
    assert_int_equal(best(f, TOKENS(1, 2, 3, 4, 5)).prefix, 4);
    assert_int_equal(best(f, TOKENS(1, 2, 3, 4, 5, 6, 7)).id, 2);
}

static void a_floor_between_serves_down_to_it(void **state)
{
    struct fixture *f = *state;
    insert(f, 1, 3, 60, 1, TOKENS(1, 2, 3, 4, 5));
    assert_int_equal(best(f, TOKENS(1, 2, 3, 9)).prefix, 3);
    assert_int_equal(best(f, TOKENS(1, 2, 9, 9)).prefix, 0);
    assert_int_equal(best(f, TOKENS(1, 2, 3, 4)).prefix, 3);
    assert_int_equal(best(f, TOKENS(1, 2, 3)).prefix, 0);
}

static void candidates_come_by_prefix_then_bytes_then_newest(void **state)
{
    struct fixture *f = *state;
    struct ckv_index_match out[8];
    insert(f, 1, 0, 70, 1, TOKENS(1, 2, 3, 4, 5, 1));
    insert(f, 2, 0, 60, 2, TOKENS(1, 2, 3, 4, 5, 2));
    insert(f, 3, 0, 60, 3, TOKENS(1, 2, 3, 4, 5, 3));
    insert(f, 4, 0, 10, 9, TOKENS(1, 2));
    insert(f, 5, 0, 80, 9, TOKENS(1, 2, 3, 4, 5, 6, 7));
    assert_int_equal(ckv_index_find(f->index, TOKENS(1, 2, 3, 4, 5, 6, 9), out, 8), 5);
    assert_int_equal(out[0].id, 5);
    assert_int_equal(out[0].prefix, 6);
    assert_int_equal(out[0].length, 7);
    assert_int_equal(out[0].bytes, 80);
    assert_int_equal(out[1].id, 3);
    assert_int_equal(out[1].prefix, 5);
    assert_int_equal(out[2].id, 2);
    assert_int_equal(out[3].id, 1);
    assert_int_equal(out[4].id, 4);
    assert_int_equal(out[4].prefix, 2);
    assert_int_equal(ckv_index_find(f->index, TOKENS(1, 2, 3, 4, 5, 6, 9), out, 2), 2);
    assert_int_equal(out[0].id, 5);
    assert_int_equal(out[1].id, 3);
}

static void at_one_prefix_at_most_three(void **state)
{
    struct fixture *f = *state;
    struct ckv_index_match out[8];
    for (uint32_t i = 0; i < 6; i++)
        insert(f, i + 1, 0, 100 - i, 1, (uint32_t[]){1, 2, 100 + i}, 3);
    insert(f, 9, 0, 1, 1, TOKENS(1));
    assert_int_equal(ckv_index_find(f->index, TOKENS(1, 2, 3), out, 8), 4);
    assert_int_equal(out[0].id, 6);
    assert_int_equal(out[1].id, 5);
    assert_int_equal(out[2].id, 4);
    assert_int_equal(out[3].id, 9);
    assert_int_equal(ckv_index_find(f->index, TOKENS(1, 2, 3), out, 0), 0);
}

static void touch_makes_an_entry_the_newest(void **state)
{
    struct fixture *f = *state;
    struct ckv_index_entry entry;
    insert(f, 1, 0, 20, 1, TOKENS(1, 2, 8));
    insert(f, 2, 0, 20, 2, TOKENS(1, 2, 9));
    assert_int_equal(best(f, TOKENS(1, 2, 3)).id, 2);
    assert_true(ckv_index_touch(f->index, 1, 3));
    assert_int_equal(best(f, TOKENS(1, 2, 3)).id, 1);
    assert_int_equal(best(f, TOKENS(1, 2, 3)).recency, 3);
    assert_true(ckv_index_get(f->index, 1, &entry));
    assert_int_equal(entry.recency, 3);
    assert_int_equal(entry.token_count, 3);
    assert_null(entry.tokens);
    assert_false(ckv_index_get(f->index, 7, &entry));
}

static void removed_entries_are_gone(void **state)
{
    struct fixture *f = *state;
    insert(f, 1, 0, 20, 1, TOKENS(1, 2, 3));
    insert(f, 2, 0, 20, 1, TOKENS(1, 2));
    assert_int_equal(ckv_index_longest(f->index), 3);
    assert_true(ckv_index_remove(f->index, 1));
    assert_false(ckv_index_remove(f->index, 1));
    assert_int_equal(ckv_index_count(f->index), 1);
    assert_int_equal(ckv_index_longest(f->index), 2);
    assert_int_equal(best(f, TOKENS(1, 2, 3, 4)).id, 2);
}

static void insert_refuses_what_breaks_the_rules(void **state)
{
    struct fixture *f = *state;
    struct ckv_error error;
    uint32_t tokens[2] = {1, 2};
    struct ckv_index_entry entry = {1, 0, 0, 0, tokens, 0};
    assert_int_equal(ckv_index_insert(f->index, &entry, &error), CKV_INVALID);
    entry.token_count = 2;
    entry.floor = 3;
    assert_int_equal(ckv_index_insert(f->index, &entry, &error), CKV_INVALID);
    entry.floor = 2;
    assert_int_equal(ckv_index_insert(f->index, &entry, &error), CKV_OK);
    assert_int_equal(ckv_index_insert(f->index, &entry, &error), CKV_EXISTS);
    assert_int_equal(ckv_index_count(f->index), 1);
    tokens[0] = 9; /* the index has its own copy */
    assert_int_equal(best(f, TOKENS(1, 2, 3)).prefix, 2);
}

struct ids {
    uint64_t items[16];
    size_t count;
};

static void take_id(void *ctx, uint64_t id)
{
    struct ids *ids = ctx;
    ids->items[ids->count++] = id;
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static struct ids covered(struct fixture *f, uint64_t floor, const uint32_t *tokens,
                          size_t count)
{
    struct ids ids = {{0}, 0};
    size_t reported = ckv_index_covered(f->index, tokens, count, floor, take_id, &ids);
    assert_int_equal(reported, ids.count);
    qsort(ids.items, ids.count, sizeof(uint64_t), compare_ids);
    return ids;
}

static void s44_a_longer_entry_covers_what_it_can_replace(void **state)
{
    struct fixture *f = *state;
    struct ids ids;
    insert(f, 1, 0, 0, 1, TOKENS(1, 2));
    insert(f, 2, 4, 0, 1, TOKENS(1, 2, 3, 4));
    insert(f, 3, 0, 0, 1, TOKENS(1, 9));
    insert(f, 4, 5, 0, 1, TOKENS(1, 2, 3, 4, 5));
    insert(f, 5, 0, 0, 1, TOKENS(1, 2, 3, 4, 5, 6));
    /* cut anywhere: covers every prefix and the same tokens */
    ids = covered(f, 0, TOKENS(1, 2, 3, 4, 5));
    assert_int_equal(ids.count, 3);
    assert_int_equal(ids.items[0], 1);
    assert_int_equal(ids.items[1], 2);
    assert_int_equal(ids.items[2], 4);
    /* cut down to 4: keeps those that can serve less */
    ids = covered(f, 4, TOKENS(1, 2, 3, 4, 5));
    assert_int_equal(ids.count, 2);
    assert_int_equal(ids.items[0], 2);
    assert_int_equal(ids.items[1], 4);
    /* m34: untrimmable replaces identical tokens whatever they are */
    ids = covered(f, 2, TOKENS(1, 2));
    assert_int_equal(ids.count, 1);
    assert_int_equal(ids.items[0], 1);
}

static void m32_untrimmable_longer_entry_covers_no_trimmable_one(void **state)
{
    struct fixture *f = *state;
    insert(f, 1, 0, 0, 1, TOKENS(1, 2, 3, 4));
    assert_int_equal(covered(f, 6, TOKENS(1, 2, 3, 4, 5, 6)).count, 0);
}

static void covers_asks_for_exactly_this_prefix(void **state)
{
    struct fixture *f = *state;
    uint64_t id = 0;
    insert(f, 1, 3, 0, 1, TOKENS(1, 2, 3, 4));
    assert_true(ckv_index_covers(f->index, TOKENS(1, 2, 3, 4), &id));
    assert_int_equal(id, 1);
    assert_true(ckv_index_covers(f->index, TOKENS(1, 2, 3), NULL));
    assert_false(ckv_index_covers(f->index, TOKENS(1, 2), NULL));
    assert_false(ckv_index_covers(f->index, TOKENS(1, 2, 3, 4, 5), NULL));
    assert_false(ckv_index_covers(f->index, TOKENS(1, 2, 9), NULL));
}

static void count_visit(void *ctx, const struct ckv_index_entry *entry)
{
    uint64_t *sum = ctx;
    *sum += entry->id * 100 + entry->token_count;
}

static void visit_shows_every_entry_once(void **state)
{
    struct fixture *f = *state;
    uint64_t sum = 0;
    insert(f, 1, 0, 0, 1, TOKENS(1, 2, 3, 4));
    insert(f, 2, 0, 0, 1, TOKENS(7));
    ckv_index_visit(f->index, count_visit, &sum);
    assert_int_equal(sum, 104 + 201);
}

static void s61_find_allocates_nothing(void **state)
{
    struct fixture *f = *state;
    struct ckv_index_match out[8];
    size_t calls;
    insert(f, 1, 0, 0, 1, TOKENS(1, 2, 3, 4));
    calls = f->alloc.call_count;
    assert_int_equal(ckv_index_find(f->index, TOKENS(1, 2, 9), out, 8), 1);
    assert_int_equal(ckv_index_find(f->index, TOKENS(8, 2, 9), out, 8), 0);
    assert_true(ckv_index_covers(f->index, TOKENS(1, 2), NULL));
    assert_int_equal(f->alloc.call_count, calls);
}

static void failed_insert_changes_nothing(void **state)
{
    struct fixture *f = *state;
    uint32_t tokens[3] = {1, 2, 0};
    struct ckv_error error;
    for (uint32_t i = 0; i < 40; i++) {
        struct ckv_index_entry entry = {i + 1, 0, 0, 0, tokens, 3};
        enum ckv_status status = CKV_NOMEM;
        tokens[2] = i;
        for (size_t n = 1; status == CKV_NOMEM; n++) {
            assert_int_equal(ckv_index_count(f->index), i);
            test_alloc_reset(&f->alloc);
            f->alloc.fail_at = n;
            status = ckv_index_insert(f->index, &entry, &error);
        }
        f->alloc.fail_at = 0;
        assert_int_equal(status, CKV_OK);
    }
    assert_int_equal(ckv_index_count(f->index), 40);
}

/* --- random entries against the definition, written down once more --- */

#define MODEL_ENTRIES 60

struct model_entry {
    uint64_t id, floor, bytes, recency;
    uint32_t tokens[8];
    size_t count;
};

static size_t shared(const struct model_entry *e, const uint32_t *tokens, size_t count)
{
    size_t n = 0;
    while (n < e->count && n < count && e->tokens[n] == tokens[n])
        n++;
    return n;
}

/* floor <= p <= length, p <= common, p <= prompt - 1, as large as possible. */
static uint64_t model_usable(const struct model_entry *e, const uint32_t *prompt,
                             size_t length)
{
    for (uint64_t p = length - 1; p > 0; p--) {
        if (p <= e->count && p <= shared(e, prompt, length) && p >= e->floor)
            return p;
    }
    return 0;
}

static void check_order(const struct ckv_index_match *out, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        assert_true(out[i - 1].prefix >= out[i].prefix);
        if (out[i - 1].prefix > out[i].prefix)
            continue;
        assert_true(out[i - 1].bytes <= out[i].bytes);
        if (out[i - 1].bytes == out[i].bytes)
            assert_true(out[i - 1].recency >= out[i].recency);
        if (i >= 3)
            assert_true(out[i - 3].prefix > out[i].prefix);
    }
}

/* Every usable entry is in the list, or three at its prefix are that are no worse. */
static void check_complete(const struct model_entry *entries, size_t entry_count,
                           const uint32_t *prompt, size_t length,
                           const struct ckv_index_match *out, size_t count)
{
    for (size_t e = 0; e < entry_count; e++) {
        uint64_t prefix = model_usable(&entries[e], prompt, length);
        size_t better = 0;
        bool there = false;
        for (size_t i = 0; i < count; i++) {
            there = there || out[i].id == entries[e].id;
            better += out[i].prefix == prefix && (out[i].bytes < entries[e].bytes ||
                                                  (out[i].bytes == entries[e].bytes &&
                                                   out[i].recency >= entries[e].recency));
        }
        assert_true(prefix == 0 ? !there : there || better >= 3);
    }
}

static void random_entries_agree_with_the_definition(void **state)
{
    struct fixture *f = *state;
    static struct model_entry entries[MODEL_ENTRIES];
    struct ckv_index_match out[MODEL_ENTRIES];
    struct test_random random;
    test_random_init_printed(&random, 20260101);
    for (uint64_t i = 0; i < MODEL_ENTRIES; i++) {
        struct model_entry *e = &entries[i];
        e->id = i + 1;
        e->count = 1 + test_random_below(&random, 8);
        for (size_t t = 0; t < e->count; t++)
            e->tokens[t] = (uint32_t)test_random_below(&random, 2);
        e->floor =
            test_random_below(&random, 2) ? 0 : test_random_below(&random, e->count + 1);
        e->bytes = test_random_below(&random, 5);
        e->recency = test_random_below(&random, 5);
        insert(f, e->id, e->floor, e->bytes, e->recency, e->tokens, e->count);
    }
    for (int round = 0; round < 500; round++) {
        uint32_t prompt[10];
        size_t length = 1 + test_random_below(&random, 10);
        size_t count;
        for (size_t t = 0; t < length; t++)
            prompt[t] = (uint32_t)test_random_below(&random, 2);
        count = ckv_index_find(f->index, prompt, length, out, MODEL_ENTRIES);
        check_order(out, count);
        check_complete(entries, MODEL_ENTRIES, prompt, length, out, count);
        for (size_t cut = 1; cut <= count; cut++) {
            struct ckv_index_match few[MODEL_ENTRIES];
            assert_int_equal(ckv_index_find(f->index, prompt, length, few, cut), cut);
            assert_memory_equal(few, out, cut * sizeof *few);
        }
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(empty_index_finds_nothing),
        TEST(m28_longest_common_prefix_wins),
        TEST(s60_one_prompt_token_always_stays),
        TEST(s1_untrimmable_entry_serves_only_its_exact_end),
        TEST(s12_lookup_falls_back_to_the_longest_usable),
        TEST(a_floor_between_serves_down_to_it),
        TEST(candidates_come_by_prefix_then_bytes_then_newest),
        TEST(at_one_prefix_at_most_three),
        TEST(touch_makes_an_entry_the_newest),
        TEST(removed_entries_are_gone),
        TEST(insert_refuses_what_breaks_the_rules),
        TEST(s44_a_longer_entry_covers_what_it_can_replace),
        TEST(m32_untrimmable_longer_entry_covers_no_trimmable_one),
        TEST(covers_asks_for_exactly_this_prefix),
        TEST(visit_shows_every_entry_once),
        TEST(s61_find_allocates_nothing),
        TEST(failed_insert_changes_nothing),
        TEST(random_entries_agree_with_the_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

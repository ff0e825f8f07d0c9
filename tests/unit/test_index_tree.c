/* The prefix tree under the index: the same answers as the plain model after any history
 * (S12, S44, S60, S61), its invariants, its memory, its shape in extreme cases. */
#include "lib/counting_alloc.h"
#include "lib/index_history.h"
#include "lib/random.h"
#include "lib/unit.h"
#include "store/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    struct test_alloc alloc;
    struct ckv_index *index;
    size_t empty_bytes;
    size_t armed_bytes; /* live before a change that may fail */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    test_alloc_init(&f->alloc);
    assert_int_equal(ckv_index_create(&f->alloc.alloc, &f->index, NULL), CKV_OK);
    f->empty_bytes = f->alloc.live_bytes;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    bool clean;
    ckv_index_destroy(f->index);
    clean = test_alloc_clean(&f->alloc);
    test_alloc_deinit(&f->alloc);
    free(f);
    return clean ? 0 : -1;
}

static struct ckvi_tree_facts check(const struct fixture *f)
{
    struct ckvi_tree_facts facts;
    assert_true(ckvi_tree_check(f->index, &facts));
    return facts;
}

static void insert(struct fixture *f, uint64_t id, uint64_t floor, const uint32_t *tokens,
                   size_t count)
{
    struct ckv_index_entry entry = {id, floor, count, id, tokens, count};
    struct ckv_error error;
    assert_ok(ckv_index_insert(f->index, &entry, &error), error);
}

/* --- histories --- */

struct kind_of_history {
    uint32_t alphabet;
    size_t length_max;
    size_t count_max;
    size_t decision_bytes;
};

static void run_history(struct fixture *f, const struct kind_of_history *kind,
                        struct test_random *random, struct index_history *history)
{
    uint8_t *data = malloc(kind->decision_bytes);
    const char *difference = NULL;
    assert_non_null(data);
    test_random_fill(random, data, kind->decision_bytes);
    history->index = f->index;
    history->data = data;
    history->size = kind->decision_bytes;
    history->alphabet = kind->alphabet;
    history->length_max = kind->length_max;
    history->count_max = kind->count_max;
    while (index_history_goes_on(history) && !difference) {
        struct ckvi_tree_facts facts;
        difference = index_history_step(history);
        facts = check(f);
        if (!history->arm) {
            assert_int_equal(facts.joints, 0);
            assert_int_equal(facts.slack, 0);
            assert_int_equal(facts.tokens, index_model_distinct(&history->model));
        }
    }
    if (!difference)
        difference = index_history_empty(history);
    if (difference)
        fail_msg("alphabet %u: %s", (unsigned)kind->alphabet, difference);
    assert_int_equal(check(f).nodes, 0);
    index_history_deinit(history);
    free(data);
}

static const struct kind_of_history kinds[] = {
    {1, 20, 30, 20000},  {2, 6, 100, 40000},   {2, 12, 40, 40000},
    {3, 64, 200, 60000}, {200, 5, 200, 60000}, {100000, 3, 400, 40000},
    {3, 10, 10, 40000},
};

static void any_history_gives_the_answers_of_the_model(void **state)
{
    struct fixture *f = *state;
    struct test_random random;
    test_random_init_printed(&random, 4711);
    for (size_t i = 0; i < TEST_COUNT_OF(kinds); i++) {
        struct index_history history = {0};
        run_history(f, &kinds[i], &random, &history);
    }
}

/* Allocation `attempt` fails. What came before it must have left nothing behind. */
static void arm(void *ctx, size_t attempt)
{
    struct fixture *f = ctx;
    if (attempt > 1)
        assert_int_equal(f->alloc.live_bytes, f->armed_bytes);
    f->armed_bytes = f->alloc.live_bytes;
    test_alloc_reset(&f->alloc);
    f->alloc.fail_at = attempt;
}

static void failing_memory_changes_no_answer(void **state)
{
    struct fixture *f = *state;
    struct test_random random;
    test_random_init_printed(&random, 815);
    for (size_t i = 0; i < TEST_COUNT_OF(kinds); i++) {
        struct index_history history = {.arm = arm, .arm_ctx = f};
        run_history(f, &kinds[i], &random, &history);
    }
}

static void create_without_memory_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    enum ckv_status status = CKV_NOMEM;
    struct ckv_index *index = NULL;
    struct ckv_error error;
    size_t n = 1;
    for (; status == CKV_NOMEM; n++) {
        size_t live = f->alloc.live_bytes;
        test_alloc_reset(&f->alloc);
        f->alloc.fail_at = n;
        status = ckv_index_create(&f->alloc.alloc, &index, &error);
        if (status == CKV_NOMEM) {
            assert_null(index);
            assert_int_equal(f->alloc.live_bytes, live);
        }
    }
    assert_status(status, CKV_OK);
    assert_true(n > 2);
    ckv_index_destroy(index);
}

/* --- shape --- */

static void tokens_that_entries_share_are_stored_once(void **state)
{
    struct fixture *f = *state;
    uint32_t tokens[1000];
    struct ckvi_tree_facts facts;
    for (uint32_t i = 0; i < 1000; i++)
        tokens[i] = i % 7;
    insert(f, 1, 0, tokens, 1000);
    insert(f, 2, 0, tokens, 400);
    insert(f, 3, 0, tokens, 1000);
    tokens[900] = 8;
    insert(f, 4, 0, tokens, 950);
    facts = check(f);
    assert_int_equal(facts.tokens, 1050);
    assert_int_equal(facts.nodes, 4); /* to 400, to 900, and two ends */
    assert_true(ckv_index_remove(f->index, 1));
    assert_int_equal(check(f).tokens, 1050); /* 3 has them too */
    assert_true(ckv_index_remove(f->index, 3));
    facts = check(f);
    assert_int_equal(facts.tokens, 950);
    assert_int_equal(facts.nodes, 2);
    assert_int_equal(facts.slack, 0);
    assert_true(ckv_index_remove(f->index, 2));
    facts = check(f);
    assert_int_equal(facts.tokens, 950);
    assert_int_equal(facts.nodes, 1);
    assert_true(ckv_index_remove(f->index, 4));
    assert_int_equal(f->alloc.live_bytes, f->empty_bytes);
}

/* Turn after turn supersedes the one before: the conversation stays one edge. */
static void a_growing_conversation_stays_one_node(void **state)
{
    struct fixture *f = *state;
    uint32_t tokens[2000];
    for (uint32_t i = 0; i < 2000; i++)
        tokens[i] = i * i;
    for (size_t count = 100; count <= 2000; count += 100) {
        struct ckvi_tree_facts facts;
        insert(f, count, 0, tokens, count);
        if (count > 100)
            assert_true(ckv_index_remove(f->index, count - 100));
        facts = check(f);
        assert_int_equal(facts.nodes, 1);
        assert_int_equal(facts.tokens, count);
        assert_int_equal(facts.slack, 0);
    }
    assert_int_equal(ckv_index_tokens(f->index, 2000, tokens, 1), 2000);
}

#define DEEP 3000

static void a_path_may_have_a_node_for_every_token(void **state)
{
    struct fixture *f = *state;
    uint32_t *tokens = calloc(DEEP + 1, sizeof *tokens);
    struct ckv_index_match out[4];
    struct ckvi_tree_facts facts;
    assert_non_null(tokens);
    for (size_t count = 1; count <= DEEP; count++)
        insert(f, count, count % 2 ? count : 0, tokens, count);
    facts = check(f);
    assert_int_equal(facts.nodes, DEEP);
    assert_int_equal(facts.tokens, DEEP);
    /* all the way down, and all the way up from there */
    assert_int_equal(ckv_index_find(f->index, tokens, DEEP + 1, out, 4), 4);
    assert_int_equal(out[0].prefix, DEEP);
    assert_int_equal(out[3].prefix, DEEP - 3);
    assert_int_equal(ckv_index_longest(f->index), DEEP);
    for (size_t count = 2; count <= DEEP; count += 2)
        assert_true(ckv_index_remove(f->index, count));
    facts = check(f);
    assert_int_equal(facts.nodes, DEEP / 2);
    assert_int_equal(facts.tokens, DEEP - 1);
    free(tokens);
}

#define WIDE 4000

static void a_node_may_have_children_for_all_tokens(void **state)
{
    struct fixture *f = *state;
    struct ckv_index_match out[8];
    uint32_t tokens[] = {5, 6, 0, 7};
    struct ckvi_tree_facts facts;
    for (uint32_t i = 0; i < WIDE; i++) {
        struct ckv_index_entry entry = {i + 1, 0, WIDE - i, 1, tokens, 4};
        tokens[2] = i * 2654435761u;
        assert_status(ckv_index_insert(f->index, &entry, NULL), CKV_OK);
    }
    facts = check(f);
    assert_int_equal(facts.nodes, WIDE + 1);
    assert_int_equal(facts.tokens, 2 + 2 * WIDE);
    /* its own first, then the three with the fewest bytes of all others */
    tokens[2] = 17 * 2654435761u;
    assert_int_equal(ckv_index_find(f->index, tokens, 4, out, 8), 4);
    assert_int_equal(out[0].id, 18);
    assert_int_equal(out[0].prefix, 3);
    assert_int_equal(out[1].id, WIDE);
    assert_int_equal(out[1].prefix, 2);
    assert_int_equal(out[2].id, WIDE - 1);
    assert_int_equal(out[3].id, WIDE - 2);
    /* the one that is asked for is not among its own neighbours */
    tokens[2] = (WIDE - 1) * 2654435761u;
    assert_int_equal(ckv_index_find(f->index, tokens, 4, out, 8), 4);
    assert_int_equal(out[0].id, WIDE);
    assert_int_equal(out[1].id, WIDE - 1);
    for (uint64_t id = 1; id <= WIDE; id++)
        assert_true(ckv_index_remove(f->index, id));
    assert_int_equal(check(f).nodes, 0);
}

static void a_floor_inside_a_shared_edge_is_found(void **state)
{
    struct fixture *f = *state;
    uint32_t tokens[100] = {0};
    uint32_t prompt[100] = {0};
    struct ckv_index_match out[8];
    /* three ways on behind 80 shared tokens, to be cut to 50, 60 and 70 */
    for (uint32_t i = 0; i < 3; i++) {
        tokens[80] = i;
        insert(f, i + 1, 50 + 10 * i, tokens, 90 + i);
    }
    prompt[65] = 9;
    assert_int_equal(ckv_index_find(f->index, prompt, 100, out, 8), 2);
    assert_int_equal(out[0].id, 1);
    assert_int_equal(out[1].id, 2);
    assert_int_equal(out[1].prefix, 65);
    assert_true(ckv_index_covers(f->index, prompt, 50, NULL));
    assert_false(ckv_index_covers(f->index, prompt, 49, NULL));
}

static void cost_never_orders_bytes_the_wrong_way(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t bytes = UINT64_C(1) << bit;
        assert_true(ckvi_cost_of(bytes - 1) < ckvi_cost_of(bytes));
        assert_true(ckvi_cost_of(bytes) <= ckvi_cost_of(bytes + 1));
    }
    assert_true(ckvi_cost_of(UINT64_MAX) < UINT32_MAX);
    assert_int_equal(ckvi_cost_of(12345), 12345);
}

/* All different, in no order; so close together that some cost the same. */
static uint64_t bytes_of(uint32_t i)
{
    return (UINT64_C(1) << 40) + i * 7919u % WIDE * 1000;
}

/* Only the three that are cheapest to read are wanted of those that can be cut. */
static void among_many_floors_the_cheapest_are_found(void **state)
{
    struct fixture *f = *state;
    struct ckv_index_match out[8];
    uint32_t tokens[] = {1, 2, 3, 0, 5, 6};
    for (uint32_t i = 0; i < WIDE; i++) {
        uint64_t bytes = bytes_of(i);
        struct ckv_index_entry entry = {i + 1, 1 + i % 6, bytes, 1, tokens, 6};
        tokens[3] = i;
        assert_status(ckv_index_insert(f->index, &entry, NULL), CKV_OK);
    }
    tokens[3] = WIDE;
    assert_int_equal(ckv_index_find(f->index, tokens, 6, out, 8), 3);
    for (size_t i = 0; i < 3; i++) {
        size_t cheaper = 0;
        for (uint32_t k = 0; k < WIDE; k++) {
            uint64_t bytes = bytes_of(k);
            cheaper += k % 6 < 3 && bytes < out[i].bytes;
        }
        assert_int_equal(out[i].prefix, 3);
        assert_int_equal(cheaper, i);
    }
}

/* Nothing but the cost tells the nodes above that something better is below. */
static void a_cheaper_one_deep_down_is_found(void **state)
{
    struct fixture *f = *state;
    const struct ckv_index_entry entries[] = {
        {1, 0, 10, 1, (const uint32_t[]){1, 10}, 2},
        {2, 0, 10, 1, (const uint32_t[]){1, 11}, 2},
        {3, 0, 10, 1, (const uint32_t[]){1, 12}, 2},
        {4, 0, 99, 1, (const uint32_t[]){1, 2, 8}, 3},
        {5, 1, 99, 1, (const uint32_t[]){1, 2, 3, 4, 5, 6}, 6},
        {6, 1, 5, 1, (const uint32_t[]){1, 2, 3, 4, 9}, 5},
    };
    struct ckv_index_match out[8];
    for (size_t i = 0; i < TEST_COUNT_OF(entries); i++)
        assert_status(ckv_index_insert(f->index, &entries[i], NULL), CKV_OK);
    assert_int_equal(ckv_index_find(f->index, (const uint32_t[]){1, 50, 0}, 3, out, 8),
                     3);
    assert_int_equal(out[0].id, 6);
    assert_int_equal(out[1].id, 1);
}

static void more_tokens_than_can_be_indexed_are_refused(void **state)
{
    struct fixture *f = *state;
    uint32_t token = 1;
    struct ckv_error error;
    struct ckv_index_entry entry = {1, 0, 0, 0, &token, UINT32_MAX};
    assert_status(ckv_index_insert(f->index, &entry, &error), CKV_INVALID);
    assert_int_equal(ckv_index_count(f->index), 0);
}

/* --- memory --- */

/* At most 4.5 bytes for each distinct token and 300 for each entry, and what an empty
 * index takes. `tokens_times_2` is that without fractions. */
static void check_memory(const struct fixture *f, uint64_t token_halves)
{
    struct ckvi_tree_facts facts = check(f);
    uint64_t bound =
        f->empty_bytes + facts.tokens * token_halves / 2 + 300 * facts.entries;
    if (f->alloc.live_bytes > bound)
        fail_msg("%zu bytes for %zu entries with %llu tokens", f->alloc.live_bytes,
                 facts.entries, (unsigned long long)facts.tokens);
}

#define MANY 3000

/* A third of the entries continue another one from some place in it. */
static void memory_is_bounded(void **state)
{
    struct fixture *f = *state;
    static uint32_t bases[16][512];
    struct test_random random;
    test_random_init(&random, 3);
    test_random_fill(&random, bases, sizeof bases);
    for (uint64_t id = 1; id <= MANY; id++) {
        uint32_t tokens[512];
        size_t count = 32 + test_random_below(&random, 512 - 32);
        test_random_fill(&random, tokens, sizeof tokens);
        if (id % 3 == 0)
            memcpy(tokens, bases[test_random_below(&random, 16)],
                   test_random_below(&random, count) * sizeof *tokens);
        insert(f, id, id % 5 ? 0 : count, tokens, count);
        if (id % 500 == 0)
            check_memory(f, 9);
    }
    for (uint64_t id = 2; id <= MANY; id += 2)
        assert_true(ckv_index_remove(f->index, id));
    assert_int_equal(check(f).slack, 0);
    /* the table of ids stays as wide as it was */
    for (uint64_t id = 1; id <= MANY; id += 2)
        assert_true(ckv_index_remove(f->index, id));
    assert_true(f->alloc.live_bytes <= f->empty_bytes + 16 * MANY);
}

/* Nothing but splits and single tokens: two nodes for each entry. */
static void memory_is_bounded_for_the_shortest_edges(void **state)
{
    struct fixture *f = *state;
    uint64_t id = 0;
    uint32_t tokens[12];
    for (uint32_t i = 0; i < 1u << 12; i++) {
        for (size_t t = 0; t < 12; t++)
            tokens[t] = i >> t & 1;
        insert(f, ++id, 0, tokens, 12);
        if ((id & (id - 1)) == 0)
            check_memory(f, 8);
    }
    assert_int_equal(check(f).nodes, (1u << 13) - 2);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_history_gives_the_answers_of_the_model),
        TEST(failing_memory_changes_no_answer),
        TEST(create_without_memory_leaves_nothing),
        TEST(tokens_that_entries_share_are_stored_once),
        TEST(a_growing_conversation_stays_one_node),
        TEST(a_path_may_have_a_node_for_every_token),
        TEST(a_node_may_have_children_for_all_tokens),
        TEST(a_floor_inside_a_shared_edge_is_found),
        TEST(cost_never_orders_bytes_the_wrong_way),
        TEST(among_many_floors_the_cheapest_are_found),
        TEST(a_cheaper_one_deep_down_is_found),
        TEST(more_tokens_than_can_be_indexed_are_refused),
        TEST(memory_is_bounded),
        TEST(memory_is_bounded_for_the_shortest_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

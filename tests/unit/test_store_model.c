/*
 * Random operations on two stores of one directory against a plain array that follows the
 * rules of spec I and the design word by word. The seed is printed.
 */
#include "lib/random.h"
#include "lib/store_world.h"
#include "lib/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX 512
#define LENGTH_MAX 7
#define ROUNDS 600

static const char *const spaces[] = {"", "a", "b"};

struct model_entry {
    size_t space;
    uint32_t tokens[LENGTH_MAX];
    size_t count;
    bool trimmable;
};

struct model {
    struct model_entry entries[ENTRIES_MAX];
    size_t count;
};

static size_t common(const struct model_entry *e, const uint32_t *tokens, size_t count)
{
    size_t n = 0;
    while (n < e->count && n < count && e->tokens[n] == tokens[n])
        n++;
    return n;
}

static void drop(struct model *model, size_t i)
{
    model->entries[i] = model->entries[--model->count];
}

static void model_put(struct model *model, const struct model_entry *e)
{
    for (size_t i = 0; i < model->count; i++) {
        const struct model_entry *old = &model->entries[i];
        if (old->space == e->space && old->count == e->count &&
            common(old, e->tokens, e->count) == e->count)
            return; /* durable already */
    }
    /* What can be cut anywhere stands in for its prefixes; what cannot, for none. */
    for (size_t i = model->count; e->trimmable && i-- > 0;) {
        const struct model_entry *old = &model->entries[i];
        if (old->space == e->space && common(old, e->tokens, e->count) == old->count)
            drop(model, i);
    }
    model->entries[model->count++] = *e;
}

static uint64_t model_find(const struct model *model, size_t space,
                           const uint32_t *prompt, size_t length)
{
    uint64_t best = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct model_entry *e = &model->entries[i];
        size_t p = common(e, prompt, length);
        if (e->space != space)
            continue;
        if (p > length - 1)
            p = length - 1;
        if (p < e->count && !e->trimmable)
            continue;
        if (p > best)
            best = p;
    }
    return best;
}

static bool model_covers(const struct model *model, size_t space, const uint32_t *tokens,
                         size_t count)
{
    for (size_t i = 0; i < model->count; i++) {
        const struct model_entry *e = &model->entries[i];
        if (e->space == space && common(e, tokens, count) == count &&
            (e->count == count || e->trimmable))
            return true;
    }
    return false;
}

static void draw(struct test_random *random, uint32_t *tokens, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tokens[i] = (uint32_t)test_random_below(random, 2);
}

static void do_put(struct test_world *world, struct ckv_store *store, struct model *model,
                   struct test_random *random)
{
    struct model_entry e = {.space = test_random_below(random, 3),
                            .count = 1 + test_random_below(random, LENGTH_MAX),
                            .trimmable = test_random_below(random, 2)};
    draw(random, e.tokens, e.count);
    test_put(world, store, spaces[e.space], e.trimmable ? CKV_CACHE_KV : CKV_CACHE_SSM,
             e.tokens, e.count);
    model_put(model, &e);
}

static void do_lookup(struct test_world *world, struct ckv_store *store,
                      const struct model *model, struct test_random *random)
{
    uint32_t prompt[LENGTH_MAX + 1];
    size_t length = 1 + test_random_below(random, LENGTH_MAX + 1);
    size_t space = test_random_below(random, 3);
    uint64_t expected;
    draw(random, prompt, length);
    expected = model_find(model, space, prompt, length);
    assert_int_equal(test_find(store, spaces[space], prompt, length, NULL, NULL),
                     expected);
    assert_int_equal(test_restore(world, store, spaces[space], prompt, length), expected);
    assert_int_equal(ckv_store_covers(store, spaces[space], prompt, length),
                     model_covers(model, space, prompt, length));
}

/* Removes what serves a random prompt: found by its length and prefix in the model. */
static void do_remove(struct test_world *world, struct ckv_store *store,
                      struct model *model, struct test_random *random)
{
    const struct model_entry *e;
    uint32_t prompt[LENGTH_MAX + 1];
    struct ckv_candidate found[32];
    size_t i;
    size_t count;
    if (model->count == 0)
        return;
    i = test_random_below(random, model->count);
    e = &model->entries[i];
    memcpy(prompt, e->tokens, e->count * sizeof *prompt);
    prompt[e->count] = 99;
    assert_ok(ckv_store_find(store, spaces[e->space], prompt, e->count + 1, found, 32,
                             &count, &world->error),
              world->error);
    for (size_t c = 0; c < count; c++) {
        if (found[c].prefix != e->count || found[c].token_count != e->count)
            continue;
        assert_ok(ckv_store_remove(store, found[c].id, &world->error), world->error);
        drop(model, i);
        return;
    }
    /* Three cheaper ones at the same prefix hide it: then it stays. */
    assert_true(count >= 3);
}

static void random_operations_agree_with_the_model(void **state)
{
    struct test_world world;
    struct test_random random;
    struct ckv_store *stores[2];
    struct model *model = calloc(1, sizeof *model);
    (void)state;
    test_random_init_printed(&random, 42);
    test_world_init(&world);
    stores[0] = test_world_open(&world);
    stores[1] = test_world_open(&world);
    for (int round = 0; round < ROUNDS; round++) {
        size_t which = test_random_below(&random, 2);
        size_t what = test_random_below(&random, 20);
        assert_ok(ckv_store_refresh(stores[which], &world.error), world.error);
        assert_int_equal(test_stats(stores[which]).entries, model->count);
        if (what < 8)
            do_put(&world, stores[which], model, &random);
        else if (what < 16)
            do_lookup(&world, stores[which], model, &random);
        else if (what < 18)
            do_remove(&world, stores[which], model, &random);
        else if (what < 19)
            test_clock_advance(&world.clock,
                               (int64_t)test_random_below(&random, 5) * TEST_NS_PER_S);
        else {
            ckv_store_close(stores[which]);
            stores[which] = test_world_open(&world);
        }
    }
    assert_int_equal(test_stats(stores[0]).set_aside + test_stats(stores[1]).set_aside,
                     0);
    ckv_store_close(stores[0]);
    ckv_store_close(stores[1]);
    assert_int_equal(test_world_deinit(&world), 0);
    free(model);
}

static void hundreds_of_namespaces_and_entries(void **state)
{
    struct test_world world;
    struct ckv_store *store;
    char ns[32];
    (void)state;
    test_world_init(&world);
    store = test_world_open(&world);
    for (uint32_t i = 0; i < 200; i++) {
        const uint32_t tokens[2] = {i, i};
        snprintf(ns, sizeof ns, "user-%u", i % 100);
        test_put(&world, store, ns, CKV_CACHE_STATE, tokens, 2);
    }
    for (int reopened = 0; reopened < 2; reopened++) {
        assert_int_equal(test_stats(store).entries, 200);
        for (uint32_t i = 0; i < 200; i++) {
            const uint32_t prompt[3] = {i, i, 1};
            snprintf(ns, sizeof ns, "user-%u", i % 100);
            assert_int_equal(test_find(store, ns, prompt, 3, NULL, NULL), 2);
            snprintf(ns, sizeof ns, "user-%u", (i + 1) % 100);
            assert_int_equal(test_find(store, ns, prompt, 3, NULL, NULL), 0);
        }
        ckv_store_close(store);
        store = test_world_open(&world);
    }
    ckv_store_close(store);
    assert_int_equal(test_world_deinit(&world), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_agree_with_the_model),
        cmocka_unit_test(hundreds_of_namespaces_and_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The prompt cache under many threads, and the memory it takes while nothing can be
 * written. */
#include "lib/random.h"
#include "lib/tier_world.h"
#include "lib/unit.h"

#include <pthread.h>
#include <stdlib.h>

#define KV CKV_CACHE_KV
#define SSM CKV_CACHE_SSM

static int setup(void **state)
{
    struct test_tier *t = calloc(1, sizeof *t);
    test_tier_init(t);
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    int result = test_tier_deinit(*state);
    free(*state);
    return result;
}

#define PAYLOAD ((size_t)256 << 10)

static void memory_while_nothing_is_written_is_both_caps_and_one_entry(void **state)
{
    struct test_tier *t = *state;
    struct test_alloc payload;
    test_alloc_init(&payload);
    t->engine.payload = &payload.alloc;
    t->ram.cap_bytes = 4 * PAYLOAD;
    t->spill.cap_bytes = 3 * PAYLOAD;
    ckv_activity_begin(t->activity);
    test_tier_start(t);
    test_tier_start_cache(t);
    for (uint32_t i = 0; i < 40; i++)
        test_tier_put(t, "", KV, PAYLOAD, (const uint32_t[]){i, 100}, 2);
    assert_true(payload.peak_bytes <= 8 * PAYLOAD);
    assert_int_equal(payload.live_bytes, 7 * PAYLOAD);
    assert_int_equal(test_tier_cache_stats(t).evictions, 36);
    assert_int_equal(test_tier_stats(t).dropped_count, 33);
    ckv_activity_end(t->activity);
    test_tier_drain(t);
    assert_int_equal(test_tier_stats(t).stored_count, 3);
    ckv_prompt_cache_clear(t->cache);
    assert_true(test_alloc_clean(&payload));
    test_alloc_deinit(&payload);
    t->engine.payload = NULL;
}

enum { PUTTERS = 3, TURNS = 80, TOKENS = 6 };

struct actor {
    struct test_tier *tier;
    struct test_random random;
    pthread_t thread;
};

/* One of few conversations, cut anywhere. */
static size_t draw_tokens(struct test_random *random, uint32_t tokens[TOKENS])
{
    tokens[0] = (uint32_t)test_random_below(random, 4);
    for (size_t i = 1; i < TOKENS; i++)
        tokens[i] = (uint32_t)i;
    return 2 + (size_t)test_random_below(random, TOKENS - 1);
}

static void act(struct test_tier *t, struct test_random *random)
{
    uint32_t tokens[TOKENS];
    size_t count = draw_tokens(random, tokens);
    const char *ns = test_random_below(random, 2) ? "a" : "b";
    switch (test_random_below(random, 12)) {
    case 0:
        (void)ckv_prompt_cache_demote_idle(t->cache, 0);
        break;
    case 1:
        assert_status(ckv_prompt_cache_invalidate(t->cache, ns, NULL), CKV_OK);
        break;
    case 2:
        ckv_held_unref(ckv_prompt_cache_find_exact(t->cache, ns, tokens, count));
        break;
    case 3:
        (void)ckv_prompt_cache_peek(t->cache, ns, tokens, count);
        break;
    default:
        test_tier_put(t, ns, test_random_below(random, 2) ? KV : SSM, 30, tokens, count);
        break;
    }
}

static void *run_actor(void *ctx)
{
    struct actor *actor = ctx;
    for (size_t i = 0; i < TURNS; i++)
        act(actor->tier, &actor->random);
    return NULL;
}

static void threads_put_take_demote_and_invalidate(void **state)
{
    struct test_tier *t = *state;
    struct actor actors[PUTTERS];
    struct test_random random;
    test_random_init(&random, 99);
    t->ram.cap_bytes = 100;
    t->spill.cap_bytes = 100;
    t->spill.patience_ns = 1;
    t->engine.restored_bytes = 30;
    test_tier_start(t);
    test_tier_start_cache(t);
    for (size_t i = 0; i < PUTTERS; i++) {
        actors[i].tier = t;
        test_random_init(&actors[i].random, i + 1);
        assert_int_equal(pthread_create(&actors[i].thread, NULL, run_actor, &actors[i]),
                         0);
    }
    /* Only this thread restores: the engine of the tests has one place for it. */
    for (size_t i = 0; i < TURNS; i++) {
        uint32_t tokens[TOKENS];
        size_t count = draw_tokens(&random, tokens);
        ckv_activity_begin(t->activity);
        assert_true(test_tier_take(t, i % 2 ? "a" : "b", tokens, count, NULL) < count);
        ckv_activity_end(t->activity);
    }
    for (size_t i = 0; i < PUTTERS; i++)
        assert_int_equal(pthread_join(actors[i].thread, NULL), 0);
    assert_true(test_tier_cache_stats(t).bytes <= 100);
    assert_status(ckv_spill_queue_stop(t->queue, CKV_STOP_DRAIN, TEST_NEVER), CKV_OK);
    assert_int_equal(test_tier_stats(t).failed_count, 0);
    ckv_prompt_cache_clear(t->cache);
    assert_int_equal(t->engine.live, 0);
    assert_int_equal(test_tier_cache_stats(t).bytes, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(memory_while_nothing_is_written_is_both_caps_and_one_entry),
        TEST(threads_put_take_demote_and_invalidate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

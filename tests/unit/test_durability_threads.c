/* Durability with its thread, flushes that overlap, and all tiers at once under many
 * threads. */
#include "lib/random.h"
#include "lib/tier_world.h"
#include "lib/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define T TEST_TOKENS
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

/* All tiers, with the thread and the system's clock, and no time to lose. */
static void start_fast(struct test_tier *t)
{
    t->spill.clock = NULL;
    t->spill.patience_ns = 1;
    t->ram.clock = NULL;
    t->durable.clock = NULL;
    t->durable.debounce_ns = 1;
    t->durable.retry_ns = 1;
    t->durable.patience_ns = 1;
    test_tier_start(t);
    test_tier_start_cache(t);
    assert_ok(ckv_durability_start(t->cache, t->queue, t->store, &t->durable,
                                   &t->durability, &t->error),
              t->error);
}

static void the_thread_writes_what_was_put(void **state)
{
    struct test_tier *t = *state;
    start_fast(t);
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    while (ckv_durability_pending(t->durability) > 0)
        (void)sched_yield();
    assert_true(ckv_store_covers(t->store, "", T(1, 2, 3)));
}

static void the_thread_ends_whatever_it_waits_for(void **state)
{
    struct test_tier *t = *state;
    test_tier_start(t);
    test_tier_start_cache(t);
    t->durable.debounce_ns = TEST_LONG_NS;
    t->durable.patience_ns = TEST_LONG_NS;
    t->durable.clock = NULL;
    assert_ok(ckv_durability_start(t->cache, t->queue, t->store, &t->durable,
                                   &t->durability, &t->error),
              t->error);
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    ckv_durability_stop(t->durability);
    assert_int_equal(ckv_durability_pending(t->durability), 1);
}

struct flusher {
    struct test_tier *tier;
    int64_t deadline_ns;
    enum ckv_status status;
    struct ckv_flush_evidence evidence;
    pthread_t thread;
};

static void *flush_on_thread(void *ctx)
{
    struct flusher *flusher = ctx;
    flusher->status = ckv_durability_flush(
        flusher->tier->durability, flusher->deadline_ns, &flusher->evidence, NULL);
    return NULL;
}

static void start_flusher(struct flusher *flusher, struct test_tier *t,
                          int64_t deadline_ns)
{
    flusher->tier = t;
    flusher->deadline_ns = deadline_ns;
    assert_int_equal(pthread_create(&flusher->thread, NULL, flush_on_thread, flusher), 0);
}

static void join_flusher(struct flusher *flusher)
{
    assert_int_equal(pthread_join(flusher->thread, NULL), 0);
}

/* A coordinator whose timers never fire by themselves. */
static void start_slow(struct test_tier *t)
{
    t->durable.debounce_ns = TEST_LONG_NS;
    t->durable.patience_ns = TEST_LONG_NS;
    test_tier_start(t);
    test_tier_start_cache(t);
    assert_ok(ckv_durability_start(t->cache, t->queue, t->store, &t->durable,
                                   &t->durability, &t->error),
              t->error);
}

static void m71_flushes_that_overlap_share_one(void **state)
{
    struct test_tier *t = *state;
    struct ckv_flush_evidence evidence;
    struct flusher flushers[2];
    start_slow(t);
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    test_tier_hold(t, TEST_CALL_SYNC_FILE);
    start_flusher(&flushers[0], t, TEST_NEVER);
    test_tier_await_held(t);
    start_flusher(&flushers[1], t, TEST_NEVER);
    assert_status(ckv_durability_flush(t->durability, 0, &evidence, &t->error),
                  CKV_AGAIN);
    assert_non_null(strstr(t->error.text, "another flush"));
    assert_false(evidence.durable);
    assert_int_equal(evidence.pending_snapshots, 1);
    assert_int_equal(evidence.pending_spills, 1);
    test_tier_release(t);
    for (size_t i = 0; i < 2; i++) {
        join_flusher(&flushers[i]);
        assert_status(flushers[i].status, CKV_OK);
        assert_true(flushers[i].evidence.durable);
    }
    assert_int_equal(flushers[0].evidence.flushed_snapshots, 1);
    assert_int_equal(test_stats(t->store).puts, 1);
}

static void s52_a_drop_during_a_flush_is_in_its_evidence(void **state)
{
    struct test_tier *t = *state;
    struct flusher flusher;
    t->ram.cap_bytes = 100;
    t->spill.cap_bytes = 60;
    start_slow(t);
    test_tier_put(t, "", KV, 60, T(1, 2, 3));
    test_tier_hold(t, TEST_CALL_SYNC_FILE);
    start_flusher(&flusher, t, TEST_NEVER);
    test_tier_await_held(t);
    /* Evicted: the first is in flight already; then two that push each other out. */
    test_tier_put(t, "", KV, 60, T(4, 5, 6));
    test_tier_put(t, "", KV, 60, T(7, 8, 9));
    test_tier_put(t, "", KV, 60, T(10, 11));
    assert_int_equal(test_tier_stats(t).dropped_count, 2);
    test_tier_release(t);
    join_flusher(&flusher);
    assert_status(flusher.status, CKV_OK);
    assert_false(flusher.evidence.durable);
    assert_int_equal(flusher.evidence.dropped_spills, 2);
    assert_true(flusher.evidence.missing_snapshots > 0);
}

static void s52_who_has_more_time_goes_on_when_the_shared_flush_gives_up(void **state)
{
    struct test_tier *t = *state;
    struct flusher hasty;
    struct flusher patient;
    t->spill.clock = NULL;
    t->durable.clock = NULL;
    start_slow(t);
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    test_tier_hold(t, TEST_CALL_SYNC_FILE);
    start_flusher(&hasty, t,
                  ckv_clock_system()->monotonic_ns(NULL) + 20 * TEST_NS_PER_MS);
    test_tier_await_held(t);
    start_flusher(&patient, t, TEST_NEVER);
    join_flusher(&hasty);
    assert_status(hasty.status, CKV_AGAIN);
    assert_false(hasty.evidence.durable);
    test_tier_release(t);
    join_flusher(&patient);
    assert_status(patient.status, CKV_OK);
    assert_true(patient.evidence.durable);
}

static void a_record_whose_place_in_the_queue_was_taken_is_durable(void **state)
{
    struct test_tier *t = *state;
    struct flusher flusher;
    start_slow(t);
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    ckv_activity_begin(t->activity);
    start_flusher(&flusher, t, TEST_NEVER);
    while (test_tier_stats(t).pending_count == 0)
        (void)sched_yield();
    test_tier_add(t, "", KV, 10, T(1, 2, 3, 4));
    assert_int_equal(test_tier_stats(t).covered_count, 1);
    ckv_activity_end(t->activity);
    join_flusher(&flusher);
    assert_status(flusher.status, CKV_OK);
    assert_true(flusher.evidence.durable);
    assert_int_equal(flusher.evidence.flushed_snapshots, 1);
    assert_int_equal(test_stats(t->store).puts, 1);
}

/* --- everything at once --- */

enum { PUTTERS = 3, TURNS = 60, CONVERSATIONS = 4, TOKENS = 8 };

struct putter {
    struct test_tier *tier;
    struct test_random random;
    uint32_t number;
    pthread_t thread;
};

static void *converse(void *ctx)
{
    struct putter *putter = ctx;
    struct test_tier *t = putter->tier;
    for (size_t i = 0; i < TURNS; i++) {
        uint32_t tokens[TOKENS];
        size_t count = 1 + (size_t)test_random_below(&putter->random, TOKENS);
        tokens[0] = putter->number * CONVERSATIONS +
                    (uint32_t)test_random_below(&putter->random, CONVERSATIONS);
        for (uint32_t k = 1; k < count; k++)
            tokens[k] = k;
        ckv_activity_begin(t->activity);
        test_tier_put(t, "a", tokens[0] % 2 ? KV : SSM, 30, tokens, count);
        ckv_activity_end(t->activity);
        if (test_random_below(&putter->random, 16) == 0)
            (void)ckv_prompt_cache_demote_idle(t->cache, 0);
        if (test_random_below(&putter->random, 16) == 0)
            assert_status(ckv_prompt_cache_invalidate(t->cache, "b", NULL), CKV_OK);
        if (test_random_below(&putter->random, 8) == 0)
            test_tier_put(t, "b", KV, 30, tokens, count);
    }
    return NULL;
}

static void all_that_was_put_is_durable_in_the_end(void **state)
{
    struct test_tier *t = *state;
    struct putter putters[PUTTERS];
    struct ckv_flush_evidence evidence;
    t->ram.cap_bytes = 300;
    start_fast(t);
    for (uint32_t i = 0; i < PUTTERS; i++) {
        putters[i].tier = t;
        putters[i].number = i;
        test_random_init(&putters[i].random, i + 1);
        assert_int_equal(pthread_create(&putters[i].thread, NULL, converse, &putters[i]),
                         0);
    }
    for (size_t i = 0; i < 5; i++)
        assert_ok(ckv_durability_flush(t->durability, TEST_NEVER, &evidence, &t->error),
                  t->error);
    for (size_t i = 0; i < PUTTERS; i++)
        assert_int_equal(pthread_join(putters[i].thread, NULL), 0);
    assert_ok(ckv_durability_flush(t->durability, TEST_NEVER, &evidence, &t->error),
              t->error);
    assert_true(evidence.durable);
    assert_int_equal(ckv_durability_pending(t->durability), 0);
    assert_int_equal(test_tier_stats(t).failed_count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_thread_writes_what_was_put),
        TEST(the_thread_ends_whatever_it_waits_for),
        TEST(m71_flushes_that_overlap_share_one),
        TEST(s52_a_drop_during_a_flush_is_in_its_evidence),
        TEST(s52_who_has_more_time_goes_on_when_the_shared_flush_gives_up),
        TEST(a_record_whose_place_in_the_queue_was_taken_is_durable),
        TEST(all_that_was_put_is_durable_in_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

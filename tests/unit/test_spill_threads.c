/* The spill queue between threads: the gate (M35, M36, S54), the end, S28 in flight,
 * memory, outcomes exactly once. Threads meet in latches; no test depends on time. */
#include "lib/random.h"
#include "lib/tier_world.h"
#include "lib/unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define T TEST_TOKENS
#define KV CKV_CACHE_KV
#define BASE TEST_FINGERPRINT "/base"

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

static void assert_outcome(struct test_tier *t, size_t number, uint32_t first,
                           enum ckv_spill_outcome outcome)
{
    struct test_outcome item = test_outcomes_get(&t->outcomes, number);
    assert_int_equal(item.first, first);
    assert_int_equal(item.outcome, outcome);
}

/* --- the gate --- */

static void m35_nothing_is_on_disk_while_the_gate_is_closed(void **state)
{
    struct test_tier *t = *state;
    ckv_activity_begin(t->activity);
    test_tier_start(t);
    test_faulty_io_reset(&t->world.faulty);
    test_tier_add(t, "", KV, 10, T(1, 2));
    assert_status(ckv_spill_queue_drain(t->queue, 0), CKV_AGAIN);
    assert_int_equal(t->world.faulty.counts[TEST_CALL_ANY], 0);
    assert_false(test_world_has_dir(&t->world, BASE));
    ckv_activity_end(t->activity);
    test_tier_drain(t);
    assert_outcome(t, 0, 1, CKV_SPILL_STORED);
    assert_int_equal(test_tier_stats(t).paced_chunks, 0);
}

/* How many steps it takes to store an entry with 2 tensors of one chunk each. */
static uint64_t count_steps(struct test_tier *t)
{
    struct test_entry *made = test_entry_with_tokens(KV, T(90, 91));
    struct ckv_put *put;
    uint64_t steps = 0;
    assert_ok(
        ckv_put_begin(t->store, "", &made->entry, &made->source, NULL, &put, &t->error),
        t->error);
    for (; ckv_put_next(put) != CKV_STEP_DONE; steps++)
        assert_ok(ckv_put_step(put, &t->error), t->error);
    assert_ok(ckv_put_commit(put, NULL, &t->error), t->error);
    test_entry_destroy(made);
    return steps;
}

static void m35_the_gate_is_asked_once_before_every_step(void **state)
{
    struct test_tier *t = *state;
    uint64_t steps = count_steps(t);
    ckv_activity_begin(t->activity);
    t->spill.patience_ns = 1;
    test_tier_start(t);
    test_tier_add(t, "", KV, 10, T(1, 2));
    test_tier_drain(t);
    assert_int_equal(test_tier_stats(t).paced_chunks, steps);
    ckv_activity_end(t->activity);
}

static void s54_progress_is_made_while_the_engine_never_rests(void **state)
{
    struct test_tier *t = *state;
    ckv_activity_begin(t->activity);
    t->spill.patience_ns = 1;
    test_tier_start(t);
    for (uint32_t i = 1; i <= 5; i++)
        test_tier_add(t, "", KV, 10, (const uint32_t[]){i, i + 100}, 2);
    test_tier_drain(t);
    assert_int_equal(test_tier_stats(t).stored_count, 5);
    assert_true(ckv_activity_is_busy(t->activity));
    ckv_activity_end(t->activity);
}

static void a_gate_that_closes_in_the_middle_holds_the_next_step(void **state)
{
    struct test_tier *t = *state;
    test_tier_start(t);
    test_tier_hold(t, TEST_CALL_WRITE);
    test_tier_add(t, "", KV, 10, T(1, 2));
    test_tier_await_held(t);
    ckv_activity_begin(t->activity);
    test_tier_release(t);
    assert_status(ckv_spill_queue_drain(t->queue, 0), CKV_AGAIN);
    assert_int_equal(test_find(t->store, "", T(1, 2, 3), NULL, NULL), 0);
    assert_int_equal(test_tier_find(t, "", T(1, 2, 3)), 2);
    ckv_activity_end(t->activity);
    test_tier_drain(t);
    assert_int_equal(test_find(t->store, "", T(1, 2, 3), NULL, NULL), 2);
}

static void without_an_activity_nothing_waits(void **state)
{
    struct test_tier *t = *state;
    ckv_activity_begin(t->activity);
    t->spill.activity = NULL;
    test_tier_start(t);
    test_tier_add(t, "", KV, 10, T(1, 2));
    test_tier_drain(t);
    assert_outcome(t, 0, 1, CKV_SPILL_STORED);
    ckv_activity_end(t->activity);
}

/* --- the end --- */

static void stop_drain_writes_what_waits_though_the_engine_is_busy(void **state)
{
    struct test_tier *t = *state;
    ckv_activity_begin(t->activity);
    test_tier_start(t);
    test_tier_add(t, "", KV, 10, T(1));
    test_tier_add(t, "", KV, 10, T(2));
    assert_status(ckv_spill_queue_stop(t->queue, CKV_STOP_DRAIN, TEST_NEVER), CKV_OK);
    assert_int_equal(test_tier_stats(t).stored_count, 2);
    assert_int_equal(t->engine.live, 0);
    ckv_activity_end(t->activity);
}

static void stop_discard_forgets_what_waits(void **state)
{
    struct test_tier *t = *state;
    ckv_activity_begin(t->activity);
    test_tier_start(t);
    test_tier_add(t, "", KV, 10, T(1));
    test_tier_add(t, "", KV, 10, T(2));
    assert_status(ckv_spill_queue_stop(t->queue, CKV_STOP_DISCARD, TEST_NEVER), CKV_OK);
    assert_outcome(t, 0, 1, CKV_SPILL_DISCARDED);
    assert_outcome(t, 1, 2, CKV_SPILL_DISCARDED);
    assert_int_equal(test_tier_stats(t).discarded_count, 2);
    assert_int_equal(t->engine.live, 0);
    ckv_activity_end(t->activity);
}

static void stop_aborts_the_one_in_flight_between_two_steps(void **state)
{
    struct test_tier *t = *state;
    test_tier_start(t);
    test_tier_hold(t, TEST_CALL_WRITE);
    test_tier_add(t, "", KV, 10, T(1));
    test_tier_add(t, "", KV, 10, T(2));
    test_tier_await_held(t);
    assert_status(ckv_spill_queue_stop(t->queue, CKV_STOP_DISCARD, 0), CKV_AGAIN);
    assert_outcome(t, 0, 2, CKV_SPILL_DISCARDED);
    test_tier_release(t);
    assert_status(ckv_spill_queue_stop(t->queue, CKV_STOP_DISCARD, TEST_NEVER), CKV_OK);
    assert_outcome(t, 1, 1, CKV_SPILL_DISCARDED);
    assert_int_equal(test_world_count(&t->world, BASE, ""), 0);
}

static void stop_drain_returns_at_its_deadline_while_a_sync_hangs(void **state)
{
    struct test_tier *t = *state;
    t->spill.clock = NULL;
    test_tier_start(t);
    test_tier_hold(t, TEST_CALL_SYNC_FILE);
    test_tier_add(t, "", KV, 10, T(1));
    test_tier_add(t, "", KV, 10, T(2));
    test_tier_await_held(t);
    assert_status(
        ckv_spill_queue_stop(t->queue, CKV_STOP_DRAIN,
                             ckv_clock_system()->monotonic_ns(NULL) + TEST_NS_PER_MS),
        CKV_AGAIN);
    assert_outcome(t, 0, 2, CKV_SPILL_DISCARDED);
    test_tier_release(t);
    ckv_spill_queue_destroy(t->queue);
    t->queue = NULL;
    assert_outcome(t, 1, 1, CKV_SPILL_DISCARDED);
    assert_int_equal(test_world_count(&t->world, BASE, ""), 0);
}

static void after_stop_nothing_is_taken(void **state)
{
    struct test_tier *t = *state;
    struct ckv_held *held = test_held(&t->engine, KV, 10, T(1, 2));
    test_tier_start(t);
    assert_status(ckv_spill_queue_stop(t->queue, CKV_STOP_DRAIN, 0), CKV_OK);
    assert_status(ckv_spill_queue_add(t->queue, "", held, &t->error), CKV_CANCELLED);
    assert_int_equal(test_tier_find(t, "", T(1, 2, 3)), 0);
    assert_status(ckv_spill_queue_drain(t->queue, 0), CKV_OK);
    assert_status(ckv_spill_queue_stop(t->queue, CKV_STOP_DISCARD, 0), CKV_OK);
    assert_int_equal(test_outcomes_count(&t->outcomes), 0);
    ckv_held_unref(held);
}

static void drain_returns_at_its_deadline_while_a_sync_hangs(void **state)
{
    struct test_tier *t = *state;
    test_tier_start(t);
    test_tier_hold(t, TEST_CALL_SYNC_FILE);
    test_tier_add(t, "", KV, 10, T(1));
    test_tier_await_held(t);
    assert_status(ckv_spill_queue_drain(t->queue, 0), CKV_AGAIN);
    assert_int_equal(test_outcomes_count(&t->outcomes), 0);
    test_tier_release(t);
    test_tier_drain(t);
    assert_int_equal(test_outcomes_count(&t->outcomes), 1);
}

/* --- invalidation in flight --- */

struct invalidator {
    struct test_tier *tier;
    const char *ns;
};

static void *invalidate_on_thread(void *ctx)
{
    struct invalidator *invalidator = ctx;
    ckv_spill_queue_invalidate(invalidator->tier->queue, invalidator->ns);
    return NULL;
}

/* Invalidates while the worker is held in a call, which goes on only when the queue knows
 * of it. */
static void invalidate_in_flight(struct test_tier *t, enum test_call call)
{
    struct invalidator invalidator = {t, ""};
    pthread_t thread;
    test_tier_hold(t, call);
    test_tier_add(t, "", KV, 10, T(1, 2));
    test_tier_await_held(t);
    assert_int_equal(test_tier_find(t, "", T(1, 2, 3)), 2);
    assert_int_equal(pthread_create(&thread, NULL, invalidate_on_thread, &invalidator),
                     0);
    while (test_tier_find(t, "", T(1, 2, 3)) > 0)
        (void)sched_yield();
    test_tier_release(t);
    assert_int_equal(pthread_join(thread, NULL), 0);
    test_tier_drain(t);
}

static void s28_invalidate_aborts_the_one_in_flight(void **state)
{
    struct test_tier *t = *state;
    test_tier_start(t);
    invalidate_in_flight(t, TEST_CALL_SYNC_FILE);
    assert_outcome(t, 0, 1, CKV_SPILL_INVALIDATED);
    assert_int_equal(test_stats(t->store).entries, 0);
    assert_int_equal(test_world_count(&t->world, BASE, ""), 0);
}

static void s28_an_entry_that_became_durable_meanwhile_goes_too(void **state)
{
    struct test_tier *t = *state;
    /* The folder is there and durable, so the only folder sync left is the last step. */
    test_put(&t->world, t->store, "", KV, T(7, 8));
    test_tier_start(t);
    invalidate_in_flight(t, TEST_CALL_SYNC_DIR);
    assert_outcome(t, 0, 1, CKV_SPILL_INVALIDATED);
    assert_int_equal(test_stats(t->store).entries, 1);
    assert_int_equal(test_world_count(&t->world, BASE, ".mlxkv"), 1);
}

static void another_namespace_in_flight_goes_on(void **state)
{
    struct test_tier *t = *state;
    test_tier_start(t);
    test_tier_hold(t, TEST_CALL_SYNC_FILE);
    test_tier_add(t, "a", KV, 10, T(1, 2));
    test_tier_await_held(t);
    ckv_spill_queue_invalidate(t->queue, "b");
    test_tier_release(t);
    test_tier_drain(t);
    assert_outcome(t, 0, 1, CKV_SPILL_STORED);
}

/* --- memory and threads --- */

#define PAYLOAD ((size_t)256 << 10)

static void memory_under_a_starved_gate_is_the_cap_and_one_entry(void **state)
{
    struct test_tier *t = *state;
    struct test_alloc payload;
    test_alloc_init(&payload);
    t->engine.payload = &payload.alloc;
    t->spill.cap_bytes = 4 * PAYLOAD;
    ckv_activity_begin(t->activity);
    test_tier_start(t);
    for (uint32_t i = 0; i < 40; i++)
        test_tier_add(t, "", KV, PAYLOAD, (const uint32_t[]){i}, 1);
    assert_true(payload.peak_bytes <= 5 * PAYLOAD);
    assert_int_equal(payload.live_bytes, 4 * PAYLOAD);
    assert_int_equal(test_tier_stats(t).dropped_count, 36);
    ckv_activity_end(t->activity);
    test_tier_drain(t);
    assert_int_equal(test_tier_stats(t).stored_count, 4);
    assert_true(test_alloc_clean(&payload));
    test_alloc_deinit(&payload);
    t->engine.payload = NULL;
}

enum { PRODUCERS = 3, ADDS = 60 };

struct producer {
    struct test_tier *tier;
    struct test_random random;
    pthread_t thread;
};

static void *produce(void *ctx)
{
    struct producer *producer = ctx;
    struct test_tier *t = producer->tier;
    for (size_t i = 0; i < ADDS; i++) {
        uint32_t tokens[8];
        size_t count = 1 + (size_t)test_random_below(&producer->random, 8);
        const char *ns = test_random_below(&producer->random, 2) ? "a" : "b";
        tokens[0] = (uint32_t)test_random_below(&producer->random, 5);
        for (size_t k = 1; k < count; k++)
            tokens[k] = (uint32_t)k;
        test_tier_add(t, ns, KV, 10, tokens, count);
        (void)test_tier_find(t, ns, tokens, count);
        if (test_random_below(&producer->random, 20) == 0)
            ckv_spill_queue_invalidate(t->queue, ns);
    }
    return NULL;
}

static void every_item_has_one_outcome_whatever_threads_do(void **state)
{
    struct test_tier *t = *state;
    struct producer producers[PRODUCERS];
    struct ckv_spill_stats stats;
    t->spill.patience_ns = 1;
    t->spill.cap_bytes = 200;
    test_tier_start(t);
    for (size_t i = 0; i < PRODUCERS; i++) {
        producers[i].tier = t;
        test_random_init(&producers[i].random, i + 1);
        assert_int_equal(
            pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
    }
    for (size_t i = 0; i < ADDS; i++) {
        ckv_activity_begin(t->activity);
        (void)test_tier_stats(t);
        (void)sched_yield();
        ckv_activity_end(t->activity);
    }
    for (size_t i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_join(producers[i].thread, NULL), 0);
    assert_status(ckv_spill_queue_stop(t->queue, CKV_STOP_DRAIN, TEST_NEVER), CKV_OK);
    assert_int_equal(test_outcomes_count(&t->outcomes), PRODUCERS * ADDS);
    stats = test_tier_stats(t);
    assert_int_equal(stats.stored_count + stats.covered_count + stats.dropped_count +
                         stats.failed_count + stats.invalidated_count +
                         stats.discarded_count,
                     PRODUCERS * ADDS);
    assert_int_equal(stats.failed_count, 0);
    assert_int_equal(stats.pending_count, 0);
    assert_int_equal(stats.pending_bytes, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(m35_nothing_is_on_disk_while_the_gate_is_closed),
        TEST(m35_the_gate_is_asked_once_before_every_step),
        TEST(s54_progress_is_made_while_the_engine_never_rests),
        TEST(a_gate_that_closes_in_the_middle_holds_the_next_step),
        TEST(without_an_activity_nothing_waits),
        TEST(stop_drain_writes_what_waits_though_the_engine_is_busy),
        TEST(stop_discard_forgets_what_waits),
        TEST(stop_aborts_the_one_in_flight_between_two_steps),
        TEST(stop_drain_returns_at_its_deadline_while_a_sync_hangs),
        TEST(after_stop_nothing_is_taken),
        TEST(drain_returns_at_its_deadline_while_a_sync_hangs),
        TEST(s28_invalidate_aborts_the_one_in_flight),
        TEST(s28_an_entry_that_became_durable_meanwhile_goes_too),
        TEST(another_namespace_in_flight_goes_on),
        TEST(memory_under_a_starved_gate_is_the_cap_and_one_entry),
        TEST(every_item_has_one_outcome_whatever_threads_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

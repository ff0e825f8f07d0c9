/* The spill queue: spec H and M38-M41 as the design has them, order, cap, coalescing,
 * outcomes. What has to do with the gate, the end and threads is in
 * test_spill_threads.c. */
#include "lib/tier_world.h"
#include "lib/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* Starts with an engine that is busy, so that everything waits. */
static struct test_tier *start_busy(void **state, uint64_t cap_bytes)
{
    struct test_tier *t = *state;
    t->spill.cap_bytes = cap_bytes;
    ckv_activity_begin(t->activity);
    test_tier_start(t);
    return t;
}

static void rest(struct test_tier *t)
{
    ckv_activity_end(t->activity);
    test_tier_drain(t);
}

static void assert_outcome(struct test_tier *t, size_t number, uint32_t first,
                           enum ckv_spill_outcome outcome)
{
    struct test_outcome item = test_outcomes_get(&t->outcomes, number);
    assert_int_equal(item.first, first);
    assert_int_equal(item.outcome, outcome);
}

static void m38_three_items_are_stored_in_order(void **state)
{
    struct test_tier *t = start_busy(state, CKV_DEFAULT);
    struct ckv_spill_stats stats;
    test_tier_add(t, "", KV, 10, T(1, 11));
    test_tier_add(t, "", KV, 20, T(2, 12));
    test_tier_add(t, "", KV, 30, T(3, 13));
    stats = test_tier_stats(t);
    assert_int_equal(stats.pending_count, 3);
    assert_int_equal(stats.pending_bytes, 60);
    assert_int_equal(t->engine.released, 0);
    rest(t);
    assert_int_equal(test_outcomes_count(&t->outcomes), 3);
    assert_outcome(t, 0, 1, CKV_SPILL_STORED);
    assert_outcome(t, 1, 2, CKV_SPILL_STORED);
    assert_outcome(t, 2, 3, CKV_SPILL_STORED);
    assert_int_equal(t->engine.released, 3);
    stats = test_tier_stats(t);
    assert_int_equal(stats.pending_count, 0);
    assert_int_equal(stats.pending_bytes, 0);
    assert_int_equal(stats.stored_count, 3);
    assert_int_equal(test_restore(&t->world, t->store, "", T(2, 12, 1)), 2);
}

static void m39_the_oldest_waiting_is_dropped_not_the_one_in_flight(void **state)
{
    struct test_tier *t = *state;
    t->spill.cap_bytes = 100;
    test_tier_start(t);
    test_tier_hold(t, TEST_CALL_WRITE);
    test_tier_add(t, "", KV, 60, T(1));
    test_tier_await_held(t);
    test_tier_add(t, "", KV, 60, T(2));
    assert_int_equal(test_tier_stats(t).dropped_count, 0);
    test_tier_add(t, "", KV, 60, T(3));
    assert_int_equal(test_tier_stats(t).dropped_count, 1);
    assert_int_equal(test_tier_stats(t).pending_bytes, 120);
    assert_outcome(t, 0, 2, CKV_SPILL_DROPPED);
    assert_int_equal(t->engine.released, 1);
    assert_int_equal(test_log_count(&t->world.log, "queue.dropped"), 1);
    test_tier_release(t);
    test_tier_drain(t);
    assert_int_equal(test_outcomes_count(&t->outcomes), 3);
    assert_outcome(t, 1, 1, CKV_SPILL_STORED);
    assert_outcome(t, 2, 3, CKV_SPILL_STORED);
    assert_int_equal(t->engine.released, 3);
}

static void m40_an_item_beyond_the_cap_is_stored(void **state)
{
    struct test_tier *t = start_busy(state, 10);
    test_tier_add(t, "", KV, 50, T(1));
    rest(t);
    assert_int_equal(test_tier_stats(t).dropped_count, 0);
    assert_outcome(t, 0, 1, CKV_SPILL_STORED);
}

static void m41_a_failing_store_does_not_stop_the_queue(void **state)
{
    struct test_tier *t = start_busy(state, CKV_DEFAULT);
    struct test_fault fault = {.call = TEST_CALL_WRITE, .nth = 1, .os_errno = EIO};
    test_tier_add(t, "", KV, 50, T(1));
    test_tier_add(t, "", KV, 50, T(2));
    test_faulty_io_fail(&t->world.faulty, &fault);
    rest(t);
    assert_outcome(t, 0, 1, CKV_SPILL_FAILED);
    assert_outcome(t, 1, 2, CKV_SPILL_STORED);
    assert_int_equal(test_tier_stats(t).failed_count, 1);
    assert_int_equal(t->engine.released, 2);
    assert_int_equal(test_world_count(&t->world, BASE, ""), 1);
}

static void an_item_that_the_store_refuses_fails(void **state)
{
    struct test_tier *t = *state;
    ckv_store_close(t->store);
    t->world.options.cap_bytes = 64;
    t->store = test_world_open(&t->world);
    test_tier_start(t);
    test_tier_add(t, "", KV, 50, T(1));
    test_tier_drain(t);
    assert_outcome(t, 0, 1, CKV_SPILL_FAILED);
    assert_int_equal(test_stats(t->store).refused_full, 1);
}

static void with_cap_0_only_the_newest_waits(void **state)
{
    struct test_tier *t = start_busy(state, 0);
    test_tier_add(t, "", KV, 60, T(1));
    assert_int_equal(test_tier_stats(t).dropped_count, 0);
    test_tier_add(t, "", KV, 60, T(2));
    assert_outcome(t, 0, 1, CKV_SPILL_DROPPED);
    rest(t);
    assert_outcome(t, 1, 2, CKV_SPILL_STORED);
}

static void a_head_that_has_not_started_is_droppable(void **state)
{
    struct test_tier *t = start_busy(state, 100);
    test_tier_add(t, "", KV, 60, T(1));
    test_tier_add(t, "", KV, 60, T(2));
    assert_outcome(t, 0, 1, CKV_SPILL_DROPPED);
    assert_false(test_world_has_dir(&t->world, BASE));
    rest(t);
    assert_outcome(t, 1, 2, CKV_SPILL_STORED);
}

static void shared_buffers_count_once(void **state)
{
    struct test_tier *t = start_busy(state, 100);
    struct ckv_held *first = test_held(&t->engine, KV, 60, T(1));
    struct ckv_held *second = test_held_sharing(&t->engine, KV, first, T(2));
    assert_ok(ckv_spill_queue_add(t->queue, "", first, &t->error), t->error);
    assert_ok(ckv_spill_queue_add(t->queue, "", second, &t->error), t->error);
    assert_int_equal(test_tier_stats(t).pending_bytes, 60);
    assert_int_equal(test_tier_stats(t).dropped_count, 0);
    ckv_held_unref(first);
    ckv_held_unref(second);
    rest(t);
    assert_int_equal(test_tier_stats(t).stored_count, 2);
    assert_int_equal(test_tier_stats(t).pending_bytes, 0);
}

static void a_newer_version_takes_the_place_of_a_waiting_one(void **state)
{
    struct test_tier *t = start_busy(state, CKV_DEFAULT);
    test_tier_add(t, "", KV, 10, T(1, 2));
    test_tier_add(t, "", KV, 10, T(7));
    test_tier_add(t, "", KV, 10, T(1, 2, 3));
    assert_int_equal(test_outcomes_count(&t->outcomes), 1);
    assert_outcome(t, 0, 1, CKV_SPILL_COVERED);
    assert_int_equal(test_tier_stats(t).pending_count, 2);
    rest(t);
    assert_outcome(t, 1, 1, CKV_SPILL_STORED);
    assert_outcome(t, 2, 7, CKV_SPILL_STORED);
    assert_int_equal(test_stats(t->store).puts, 2);
    assert_int_equal(test_restore(&t->world, t->store, "", T(1, 2, 3, 4)), 3);
}

static void the_cap_drops_by_age_not_by_place(void **state)
{
    struct test_tier *t = start_busy(state, 100);
    test_tier_add(t, "", KV, 40, T(1, 2));
    test_tier_add(t, "", KV, 40, T(7));
    test_tier_add(t, "", KV, 40, T(1, 2, 3));
    assert_outcome(t, 0, 1, CKV_SPILL_COVERED);
    test_tier_add(t, "", KV, 40, T(8));
    assert_outcome(t, 1, 7, CKV_SPILL_DROPPED);
    rest(t);
    assert_outcome(t, 2, 1, CKV_SPILL_STORED);
    assert_outcome(t, 3, 8, CKV_SPILL_STORED);
}

static void versions_that_are_not_covered_stay(void **state)
{
    struct test_tier *t = start_busy(state, CKV_DEFAULT);
    test_tier_add(t, "", KV, 10, T(1, 2));
    test_tier_add(t, "", CKV_CACHE_SSM, 10, T(1, 2, 3));
    test_tier_add(t, "x", KV, 10, T(1, 2, 3));
    test_tier_add(t, "", KV, 10, T(1, 9, 3));
    assert_int_equal(test_tier_stats(t).pending_count, 4);
    test_tier_add(t, "", CKV_CACHE_SSM, 10, T(1, 2));
    assert_int_equal(test_tier_stats(t).pending_count, 4);
    rest(t);
    assert_int_equal(test_tier_stats(t).stored_count, 4);
    assert_int_equal(test_tier_stats(t).covered_count, 1);
}

static void without_coalescing_every_version_is_written(void **state)
{
    struct test_tier *t = *state;
    t->spill.coalesce = false;
    start_busy(state, CKV_DEFAULT);
    test_tier_add(t, "", KV, 10, T(1, 2));
    test_tier_add(t, "", KV, 10, T(1, 2, 3));
    rest(t);
    assert_int_equal(test_tier_stats(t).stored_count, 2);
    assert_int_equal(test_stats(t->store).superseded, 1);
}

static void s46_what_is_durable_is_not_written_again(void **state)
{
    struct test_tier *t = *state;
    test_tier_start(t);
    test_tier_add(t, "", KV, 10, T(1, 2, 3));
    test_tier_drain(t);
    test_faulty_io_reset(&t->world.faulty);
    test_tier_add(t, "", KV, 10, T(1, 2, 3));
    test_tier_add(t, "", KV, 10, T(1, 2));
    test_tier_drain(t);
    assert_int_equal(t->world.faulty.written_bytes, 0);
    assert_outcome(t, 1, 1, CKV_SPILL_COVERED);
    assert_outcome(t, 2, 1, CKV_SPILL_COVERED);
    assert_int_equal(test_tier_stats(t).covered_count, 2);
    assert_int_equal(test_stats(t->store).puts, 1);
}

static void what_another_process_stored_is_not_written_again(void **state)
{
    struct test_tier *t = *state;
    struct ckv_store *other = test_world_open(&t->world);
    test_tier_start(t);
    test_put(&t->world, other, "", KV, T(1, 2, 3));
    test_tier_add(t, "", KV, 10, T(1, 2, 3));
    test_tier_drain(t);
    assert_outcome(t, 0, 1, CKV_SPILL_COVERED);
    ckv_store_close(other);
}

static void a_durable_entry_whose_file_is_gone_is_written_again(void **state)
{
    struct test_tier *t = *state;
    test_tier_start(t);
    test_tier_add(t, "", KV, 10, T(1, 2, 3));
    test_tier_drain(t);
    test_world_remove(&t->world, BASE, test_world_only(&t->world, BASE, ".mlxkv"));
    test_tier_add(t, "", KV, 10, T(1, 2, 3));
    test_tier_drain(t);
    assert_outcome(t, 1, 1, CKV_SPILL_STORED);
}

static void what_waits_is_served(void **state)
{
    struct test_tier *t = start_busy(state, CKV_DEFAULT);
    test_tier_add(t, "", KV, 10, T(1, 2, 3));
    test_tier_add(t, "", KV, 10, T(1, 2, 9, 10));
    test_tier_add(t, "x", KV, 10, T(1, 2, 3, 4));
    assert_int_equal(test_tier_find(t, "", T(1, 2, 3, 4)), 3);
    assert_int_equal(test_tier_find(t, NULL, T(1, 2, 9, 10, 11)), 4);
    assert_int_equal(test_tier_find(t, "x", T(1, 2, 3, 4, 5)), 4);
    assert_int_equal(test_tier_find(t, "y", T(1, 2, 3, 4, 5)), 0);
    assert_int_equal(test_tier_find(t, "", T(5)), 0);
    assert_int_equal(test_tier_find(t, "", NULL, 0), 0);
    rest(t);
    assert_int_equal(test_tier_find(t, "", T(1, 2, 3, 4)), 0);
}

static void s60_one_token_is_left_to_evaluate(void **state)
{
    struct test_tier *t = start_busy(state, CKV_DEFAULT);
    test_tier_add(t, "", KV, 10, T(1, 2, 3));
    assert_int_equal(test_tier_find(t, "", T(1, 2, 3)), 2);
    test_tier_add(t, "", CKV_CACHE_SSM, 10, T(5, 6, 7));
    assert_int_equal(test_tier_find(t, "", T(5, 6, 7)), 0);
    assert_int_equal(test_tier_find(t, "", T(5, 6, 7, 8)), 3);
}

static void what_is_in_flight_is_served(void **state)
{
    struct test_tier *t = *state;
    test_tier_start(t);
    test_tier_hold(t, TEST_CALL_SYNC_FILE);
    test_tier_add(t, "", KV, 10, T(1, 2, 3));
    test_tier_await_held(t);
    assert_int_equal(test_tier_find(t, "", T(1, 2, 3, 4)), 3);
    assert_int_equal(test_find(t->store, "", T(1, 2, 3, 4), NULL, NULL), 0);
    test_tier_release(t);
    test_tier_drain(t);
    assert_int_equal(test_find(t->store, "", T(1, 2, 3, 4), NULL, NULL), 3);
}

static void s28_invalidate_kills_what_waits(void **state)
{
    struct test_tier *t = start_busy(state, CKV_DEFAULT);
    test_tier_add(t, "a", KV, 10, T(1));
    test_tier_add(t, "b", KV, 10, T(2));
    test_tier_add(t, "a", KV, 10, T(3));
    ckv_spill_queue_invalidate(t->queue, "a");
    assert_outcome(t, 0, 1, CKV_SPILL_INVALIDATED);
    assert_outcome(t, 1, 3, CKV_SPILL_INVALIDATED);
    assert_int_equal(test_tier_find(t, "a", T(1, 2)), 0);
    assert_int_equal(t->engine.released, 2);
    rest(t);
    assert_outcome(t, 2, 2, CKV_SPILL_STORED);
    assert_int_equal(test_tier_stats(t).invalidated_count, 2);
    assert_int_equal(test_stats(t->store).entries, 1);
}

static void out_of_memory_refuses_an_item(void **state)
{
    struct test_tier *t = start_busy(state, CKV_DEFAULT);
    struct ckv_held *held = test_held(&t->engine, KV, 10, T(1, 2));
    enum ckv_status status = CKV_NOMEM;
    for (size_t n = 1; status != CKV_OK; n++) {
        assert_true(n < 50);
        test_alloc_reset(&t->world.alloc);
        t->world.alloc.fail_at = n;
        status = ckv_spill_queue_add(t->queue, "ns", held, &t->error);
        if (status != CKV_OK)
            assert_status(status, CKV_NOMEM);
        assert_int_equal(test_tier_stats(t).pending_count, status == CKV_OK);
    }
    test_alloc_reset(&t->world.alloc);
    ckv_held_unref(held);
    rest(t);
    assert_int_equal(test_tier_stats(t).stored_count, 1);
}

static void bad_arguments_are_refused(void **state)
{
    struct test_tier *t = *state;
    struct ckv_spill_queue *queue;
    struct ckv_spill_options options = t->spill;
    assert_status(ckv_spill_queue_start(NULL, NULL, &queue, &t->error), CKV_INVALID);
    assert_status(ckv_spill_queue_start(t->store, NULL, NULL, &t->error), CKV_INVALID);
    options.size = 0;
    assert_status(ckv_spill_queue_start(t->store, &options, &queue, &t->error),
                  CKV_INVALID);
    assert_null(queue);
    options = t->spill;
    options.patience_ns = -1;
    assert_status(ckv_spill_queue_start(t->store, &options, &queue, &t->error),
                  CKV_INVALID);
    assert_non_null(strstr(t->error.text, "patience_ns"));
    assert_status(ckv_spill_queue_add(NULL, "", NULL, &t->error), CKV_INVALID);
    assert_status(ckv_spill_queue_drain(NULL, 0), CKV_OK);
    assert_status(ckv_spill_queue_stop(NULL, CKV_STOP_DRAIN, 0), CKV_OK);
    ckv_spill_queue_destroy(NULL);
    ckv_spill_queue_invalidate(NULL, "");
}

static void starting_may_run_out_of_memory(void **state)
{
    struct test_tier *t = *state;
    enum ckv_status status = CKV_NOMEM;
    for (size_t n = 1; status != CKV_OK; n++) {
        assert_true(n < 50);
        test_alloc_reset(&t->world.alloc);
        t->world.alloc.fail_at = n;
        status = ckv_spill_queue_start(t->store, &t->spill, &t->queue, &t->error);
        assert_true((status == CKV_OK) == (t->queue != NULL));
    }
    test_alloc_reset(&t->world.alloc);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(m38_three_items_are_stored_in_order),
        TEST(m39_the_oldest_waiting_is_dropped_not_the_one_in_flight),
        TEST(m40_an_item_beyond_the_cap_is_stored),
        TEST(m41_a_failing_store_does_not_stop_the_queue),
        TEST(an_item_that_the_store_refuses_fails),
        TEST(with_cap_0_only_the_newest_waits),
        TEST(a_head_that_has_not_started_is_droppable),
        TEST(shared_buffers_count_once),
        TEST(a_newer_version_takes_the_place_of_a_waiting_one),
        TEST(the_cap_drops_by_age_not_by_place),
        TEST(versions_that_are_not_covered_stay),
        TEST(without_coalescing_every_version_is_written),
        TEST(s46_what_is_durable_is_not_written_again),
        TEST(what_another_process_stored_is_not_written_again),
        TEST(a_durable_entry_whose_file_is_gone_is_written_again),
        TEST(what_waits_is_served),
        TEST(s60_one_token_is_left_to_evaluate),
        TEST(what_is_in_flight_is_served),
        TEST(s28_invalidate_kills_what_waits),
        TEST(out_of_memory_refuses_an_item),
        TEST(bad_arguments_are_refused),
        TEST(starting_may_run_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

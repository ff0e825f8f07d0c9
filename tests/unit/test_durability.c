/* The durability coordinator: spec M71-M75, debounce, retry, growth, what flush proves
 * (S52). The clock is the test's; what has to do with threads is in
 * test_durability_threads.c. */
#include "lib/tier_world.h"
#include "lib/unit.h"

#include "tier/durability.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define T TEST_TOKENS
#define KV CKV_CACHE_KV
#define SSM CKV_CACHE_SSM
#define BASE TEST_FINGERPRINT "/base"
#define S TEST_NS_PER_S

/* All tiers; durability without its thread. */
static void start(struct test_tier *t)
{
    test_tier_start(t);
    test_tier_start_cache(t);
    assert_ok(ckvi_durability_create(t->cache, t->queue, t->store, &t->durable,
                                     &t->durability, &t->error),
              t->error);
}

static int setup(void **state)
{
    struct test_tier *t = calloc(1, sizeof *t);
    test_tier_init(t);
    start(t);
    *state = t;
    return 0;
}

static int setup_bare(void **state)
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

/* Time passes, timers fire, and what they start comes to its end. */
static size_t pass(struct test_tier *t, int64_t duration_ns)
{
    size_t made;
    test_clock_advance(&t->world.clock, duration_ns);
    made = ckvi_durability_run_due(t->durability);
    test_tier_drain(t);
    return made;
}

static struct ckv_flush_evidence flush(struct test_tier *t)
{
    struct ckv_flush_evidence evidence;
    assert_ok(ckv_durability_flush(t->durability, TEST_NEVER, &evidence, &t->error),
              t->error);
    return evidence;
}

static void fail_next(struct test_tier *t, enum test_call call)
{
    struct test_fault fault = {.call = call, .nth = 1, .os_errno = EIO};
    test_faulty_io_fail(&t->world.faulty, &fault);
}

/* --- timers --- */

static void what_was_put_is_written_after_the_debounce(void **state)
{
    struct test_tier *t = *state;
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    assert_int_equal(ckv_durability_pending(t->durability), 1);
    assert_int_equal(pass(t, S - 1), 0);
    assert_int_equal(pass(t, 1), 1);
    assert_int_equal(ckv_durability_pending(t->durability), 0);
    assert_true(ckv_store_covers(t->store, "", T(1, 2, 3)));
    assert_int_equal(test_tier_cache_stats(t).entries, 1);
    assert_true(ckvi_durability_next_due(t->durability) == TEST_NEVER);
}

static void a_put_of_the_same_tokens_arms_the_timer_again(void **state)
{
    struct test_tier *t = *state;
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    assert_int_equal(pass(t, S - 1), 0);
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    assert_int_equal(ckv_durability_pending(t->durability), 1);
    assert_int_equal(pass(t, S - 1), 0);
    assert_int_equal(pass(t, 1), 1);
    assert_int_equal(test_stats(t->store).puts, 1);
}

static void a_superseded_version_hands_its_record_over(void **state)
{
    struct test_tier *t = *state;
    test_tier_put(t, "", KV, 10, T(1, 2));
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    assert_int_equal(ckv_durability_pending(t->durability), 1);
    assert_int_equal(pass(t, S), 1);
    assert_int_equal(ckv_durability_pending(t->durability), 0);
    assert_int_equal(test_stats(t->store).puts, 1);
    assert_true(ckv_store_covers(t->store, "", T(1, 2)));
}

static void versions_that_follow_fast_put_the_write_off_only_so_long(void **state)
{
    struct test_tier *t = *state;
    uint32_t tokens[30];
    size_t made = 0;
    for (uint32_t i = 0; i < 30; i++)
        tokens[i] = i + 1;
    for (size_t n = 1; n <= 20 && made == 0; n++) {
        test_tier_put(t, "", KV, 10, tokens, n);
        made = pass(t, S / 2);
        assert_int_equal(made, n == 20);
    }
    assert_true(ckv_store_covers(t->store, "", tokens, 20));
    assert_int_equal(test_stats(t->store).puts, 1);
}

static void s46_short_entries_have_no_record(void **state)
{
    struct test_tier *t = *state;
    uint32_t tokens[256];
    for (uint32_t i = 0; i < 256; i++)
        tokens[i] = i + 1;
    t->durable.min_tokens = CKV_DEFAULT;
    start(t);
    test_tier_put(t, "", SSM, 10, tokens, 255);
    assert_int_equal(ckv_durability_pending(t->durability), 0);
    assert_true(flush(t).durable);
    test_tier_put(t, "", SSM, 10, tokens, 256);
    assert_int_equal(ckv_durability_pending(t->durability), 1);
    assert_int_equal(pass(t, S), 1);
    assert_int_equal(test_stats(t->store).entries, 1);
}

static void s46_a_little_growth_waits_for_flush(void **state)
{
    struct test_tier *t = *state;
    uint32_t tokens[600];
    for (uint32_t i = 0; i < 600; i++)
        tokens[i] = i + 1;
    t->durable.min_growth_tokens = CKV_DEFAULT;
    start(t);
    test_tier_put(t, "", KV, 10, tokens, 300);
    assert_int_equal(pass(t, S), 1);
    assert_int_equal(test_stats(t->store).puts, 1);
    test_tier_put(t, "", KV, 10, tokens, 555);
    assert_int_equal(pass(t, S), 1);
    assert_int_equal(test_stats(t->store).puts, 1);
    assert_int_equal(ckv_durability_pending(t->durability), 1);
    test_tier_put(t, "", KV, 10, tokens, 556);
    assert_int_equal(pass(t, S), 1);
    assert_int_equal(test_stats(t->store).puts, 2);
    test_tier_put(t, "", KV, 10, tokens, 557);
    assert_int_equal(pass(t, S), 1);
    assert_int_equal(test_stats(t->store).puts, 2);
    assert_true(flush(t).durable);
    assert_int_equal(test_stats(t->store).puts, 3);
    assert_true(ckv_store_covers(t->store, "", tokens, 557));
}

static void s46_growth_is_5_percent_of_what_is_durable(void **state)
{
    struct test_tier *t = *state;
    const size_t long_count = 10000;
    uint32_t *tokens = malloc((long_count + 600) * sizeof *tokens);
    for (uint32_t i = 0; i < long_count + 600; i++)
        tokens[i] = i + 1;
    t->durable.min_growth_tokens = CKV_DEFAULT;
    start(t);
    test_tier_put(t, "", KV, 10, tokens, long_count);
    assert_int_equal(pass(t, S), 1);
    test_tier_put(t, "", KV, 10, tokens, long_count + 499);
    assert_int_equal(pass(t, S), 1);
    assert_int_equal(test_stats(t->store).puts, 1);
    test_tier_put(t, "", KV, 10, tokens, long_count + 500);
    assert_int_equal(pass(t, S), 1);
    assert_int_equal(test_stats(t->store).puts, 2);
    free(tokens);
}

static void what_is_durable_already_is_not_written_again(void **state)
{
    struct test_tier *t = *state;
    (void)test_put(&t->world, t->store, "", KV, T(1, 2, 3));
    test_faulty_io_reset(&t->world.faulty);
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    assert_int_equal(pass(t, S), 1);
    assert_int_equal(ckv_durability_pending(t->durability), 0);
    assert_int_equal(t->world.faulty.written_bytes, 0);
    assert_int_equal(test_outcomes_count(&t->outcomes), 0);
}

static void a_failure_is_tried_again_later_each_time(void **state)
{
    struct test_tier *t = *state;
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    fail_next(t, TEST_CALL_WRITE);
    assert_int_equal(pass(t, S), 1);
    assert_int_equal(ckv_durability_pending(t->durability), 1);
    assert_int_equal(pass(t, 5 * S - 1), 0);
    fail_next(t, TEST_CALL_WRITE);
    assert_int_equal(pass(t, 1), 1);
    assert_int_equal(pass(t, 10 * S - 1), 0);
    fail_next(t, TEST_CALL_WRITE);
    assert_int_equal(pass(t, 1), 1);
    assert_int_equal(pass(t, 20 * S - 1), 0);
    assert_int_equal(pass(t, 1), 1);
    assert_int_equal(ckv_durability_pending(t->durability), 0);
    assert_int_equal(test_tier_stats(t).failed_count, 3);
    assert_int_equal(test_tier_stats(t).stored_count, 1);
}

static void retries_are_never_further_apart_than_64_times(void **state)
{
    struct test_tier *t = *state;
    struct test_fault fault = {
        .call = TEST_CALL_WRITE, .nth = 1, .os_errno = EIO, .from_then_on = true};
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    test_faulty_io_fail(&t->world.faulty, &fault);
    assert_int_equal(pass(t, S), 1);
    for (int64_t wait = 5; wait <= 320; wait *= 2)
        assert_int_equal(pass(t, wait * S), 1);
    assert_int_equal(pass(t, 320 * S - 1), 0);
    assert_int_equal(pass(t, 1), 1);
}

static void m71_a_busy_engine_puts_it_off(void **state)
{
    struct test_tier *t = *state;
    ckv_activity_begin(t->activity);
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    assert_int_equal(pass(t, S), 1);
    assert_int_equal(ckv_durability_pending(t->durability), 1);
    assert_int_equal(test_tier_stats(t).pending_count, 0);
    assert_int_equal(test_stats(t->store).puts, 0);
    ckv_activity_end(t->activity);
    assert_int_equal(pass(t, 5 * S - 1), 0);
    assert_int_equal(pass(t, 1), 1);
    assert_int_equal(ckv_durability_pending(t->durability), 0);
}

static void s54_a_busy_engine_does_not_put_it_off_for_ever(void **state)
{
    struct test_tier *t = *state;
    t->spill.patience_ns = 1;
    start(t);
    ckv_activity_begin(t->activity);
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    assert_int_equal(pass(t, S), 1);
    assert_int_equal(pass(t, 5 * S), 1);
    assert_int_equal(test_stats(t->store).puts, 0);
    assert_int_equal(pass(t, 4 * S), 1);
    assert_int_equal(test_stats(t->store).puts, 1);
    assert_int_equal(ckv_durability_pending(t->durability), 0);
    ckv_activity_end(t->activity);
}

static void schedule_makes_a_record(void **state)
{
    struct test_tier *t = *state;
    ckv_durability_schedule(t->durability, NULL, T(1, 2));
    ckv_durability_schedule(t->durability, "", T(1, 2));
    assert_int_equal(ckv_durability_pending(t->durability), 1);
    ckv_durability_schedule(t->durability, "x", T(1, 2));
    ckv_durability_schedule(t->durability, "", NULL, 0);
    ckv_durability_schedule(NULL, "", T(1, 2));
    assert_int_equal(ckv_durability_pending(t->durability), 2);
}

/* --- flush --- */

static void m71_flush_writes_what_waits(void **state)
{
    struct test_tier *t = *state;
    struct ckv_flush_evidence evidence;
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    evidence = flush(t);
    assert_true(evidence.durable);
    assert_int_equal(evidence.flushed_snapshots, 1);
    assert_int_equal(evidence.pending_snapshots, 0);
    assert_int_equal(evidence.pending_spills, 0);
    assert_int_equal(evidence.pending_spill_bytes, 0);
    assert_int_equal(evidence.durable_entries, 1);
    assert_int_equal(evidence.longest_durable_prefix_tokens, 3);
    assert_int_equal(evidence.elapsed_ns, 0);
    evidence = flush(t);
    assert_true(evidence.durable);
    assert_int_equal(evidence.flushed_snapshots, 0);
}

static void m72_equal_lengths_are_different_records(void **state)
{
    struct test_tier *t = *state;
    struct ckv_flush_evidence evidence;
    test_tier_put(t, "", KV, 10, T(1, 2));
    test_tier_put(t, "", KV, 10, T(3, 4));
    test_tier_put(t, "x", KV, 10, T(1, 2));
    assert_int_equal(ckv_durability_pending(t->durability), 3);
    evidence = flush(t);
    assert_true(evidence.durable);
    assert_int_equal(evidence.flushed_snapshots, 3);
    assert_int_equal(test_outcomes_get(&t->outcomes, 0).first, 1);
    assert_int_equal(test_outcomes_get(&t->outcomes, 1).first, 3);
    assert_string_equal(test_outcomes_get(&t->outcomes, 2).ns, "x");
}

static void m73_a_failing_store_is_not_durable_and_the_next_flush_is(void **state)
{
    struct test_tier *t = *state;
    struct ckv_flush_evidence evidence;
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    fail_next(t, TEST_CALL_SYNC_FILE);
    evidence = flush(t);
    assert_false(evidence.durable);
    assert_int_equal(evidence.pending_snapshots, 1);
    assert_int_equal(evidence.failed_spills, 1);
    assert_int_equal(evidence.flushed_snapshots, 0);
    assert_int_equal(evidence.missing_snapshots, 0);
    evidence = flush(t);
    assert_true(evidence.durable);
    assert_int_equal(evidence.failed_spills, 0);
    assert_int_equal(evidence.flushed_snapshots, 1);
}

static void a_folder_that_cannot_be_synced_is_not_durable(void **state)
{
    struct test_tier *t = *state;
    struct ckv_flush_evidence evidence;
    (void)test_put(&t->world, t->store, "", KV, T(7, 8));
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    fail_next(t, TEST_CALL_SYNC_DIR);
    evidence = flush(t);
    assert_false(evidence.durable);
    assert_int_equal(evidence.failed_spills, 1);
    assert_int_equal(evidence.durable_entries, 1);
}

static void m74_what_vanished_from_memory_is_missing(void **state)
{
    struct test_tier *t = *state;
    struct ckv_flush_evidence evidence;
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    ckv_prompt_cache_clear(t->cache);
    evidence = flush(t);
    assert_false(evidence.durable);
    assert_int_equal(evidence.missing_snapshots, 1);
    assert_int_equal(evidence.pending_snapshots, 1);
    evidence = flush(t);
    assert_false(evidence.durable);
    assert_int_equal(evidence.missing_snapshots, 1);
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    assert_true(flush(t).durable);
}

static void m75_what_vanished_but_is_covered_on_disk_is_durable(void **state)
{
    struct test_tier *t = *state;
    struct ckv_flush_evidence evidence;
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    ckv_prompt_cache_clear(t->cache);
    (void)test_put(&t->world, t->store, "", KV, T(1, 2, 3, 4));
    evidence = flush(t);
    assert_true(evidence.durable);
    assert_int_equal(evidence.missing_snapshots, 0);
    assert_int_equal(evidence.pending_snapshots, 0);
}

static void what_was_evicted_is_durable_through_the_queue(void **state)
{
    struct test_tier *t = *state;
    struct ckv_flush_evidence evidence;
    t->ram.cap_bytes = 100;
    start(t);
    ckv_activity_begin(t->activity);
    test_tier_put(t, "", KV, 60, T(1, 2, 3));
    test_tier_put(t, "", KV, 60, T(7, 8));
    assert_int_equal(test_tier_stats(t).pending_count, 1);
    ckv_activity_end(t->activity);
    evidence = flush(t);
    assert_true(evidence.durable);
    assert_int_equal(evidence.flushed_snapshots, 2);
    assert_int_equal(test_stats(t->store).puts, 2);
}

static void a_record_of_what_was_evicted_and_stored_goes_by_itself(void **state)
{
    struct test_tier *t = *state;
    t->durable.min_growth_tokens = 1000;
    t->ram.cap_bytes = 100;
    start(t);
    test_tier_put(t, "", KV, 60, T(1, 2, 3));
    assert_int_equal(pass(t, S), 1);
    assert_int_equal(test_stats(t->store).puts, 0);
    test_tier_put(t, "", KV, 60, T(7, 8));
    test_tier_drain(t);
    assert_int_equal(test_stats(t->store).puts, 1);
    assert_int_equal(ckv_durability_pending(t->durability), 2);
    assert_int_equal(pass(t, 400 * S), 2);
    assert_int_equal(ckv_durability_pending(t->durability), 1);
}

static void one_record_never_pushes_out_another(void **state)
{
    struct test_tier *t = *state;
    struct ckv_flush_evidence evidence;
    t->spill.cap_bytes = 0;
    start(t);
    test_tier_put(t, "", SSM, 10, T(1, 2));
    test_tier_put(t, "", SSM, 1000, T(1, 2, 3));
    test_tier_put(t, "", KV, 10, T(7, 8));
    evidence = flush(t);
    assert_true(evidence.durable);
    assert_int_equal(evidence.flushed_snapshots, 3);
    assert_int_equal(evidence.dropped_spills, 0);
    assert_int_equal(test_stats(t->store).entries, 3);
}

static void s52_flush_returns_at_its_deadline_while_a_sync_hangs(void **state)
{
    struct test_tier *t = *state;
    struct ckv_flush_evidence evidence;
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    test_tier_put(t, "", KV, 20, T(7, 8, 9));
    test_tier_hold(t, TEST_CALL_SYNC_FILE);
    test_clock_advance(&t->world.clock, S);
    assert_int_equal(ckvi_durability_run_due(t->durability), 2);
    test_tier_await_held(t);
    assert_status(ckv_durability_flush(t->durability, 0, &evidence, &t->error),
                  CKV_AGAIN);
    assert_non_null(strstr(t->error.text, "deadline"));
    assert_false(evidence.durable);
    assert_int_equal(evidence.pending_snapshots, 2);
    assert_int_equal(evidence.pending_spills, 2);
    assert_int_equal(evidence.pending_spill_bytes, 30);
    assert_int_equal(evidence.durable_entries, 0);
    test_tier_release(t);
    evidence = flush(t);
    assert_true(evidence.durable);
    assert_int_equal(evidence.durable_entries, 2);
}

static void s52_a_deadline_in_the_past_still_tells_the_truth(void **state)
{
    struct test_tier *t = *state;
    struct ckv_flush_evidence evidence;
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    assert_status(ckv_durability_flush(t->durability, 0, &evidence, &t->error),
                  CKV_AGAIN);
    assert_false(evidence.durable);
    assert_int_equal(evidence.pending_snapshots, 1);
    assert_int_equal(evidence.flushed_snapshots, 0);
    assert_int_equal(pass(t, S), 1);
    assert_int_equal(ckv_durability_pending(t->durability), 0);
}

/* --- what ends records --- */

static void s28_an_invalidated_namespace_has_no_records(void **state)
{
    struct test_tier *t = *state;
    struct ckv_flush_evidence evidence;
    test_tier_put(t, "a", KV, 10, T(1, 2, 3));
    test_tier_put(t, "b", KV, 10, T(1, 2, 3));
    assert_ok(ckv_prompt_cache_invalidate(t->cache, "a", &t->error), t->error);
    assert_int_equal(ckv_durability_pending(t->durability), 1);
    evidence = flush(t);
    assert_true(evidence.durable);
    assert_int_equal(evidence.durable_entries, 1);
    assert_true(ckv_store_covers(t->store, "b", T(1, 2, 3)));
}

static void s28_an_invalidated_record_that_is_queued_is_not_written(void **state)
{
    struct test_tier *t = *state;
    test_tier_put(t, "a", KV, 10, T(1, 2, 3));
    test_clock_advance(&t->world.clock, S);
    test_tier_hold(t, TEST_CALL_SYNC_FILE);
    test_tier_add(t, "b", KV, 10, T(7, 8));
    test_tier_await_held(t);
    assert_int_equal(ckvi_durability_run_due(t->durability), 1);
    assert_int_equal(test_tier_stats(t).pending_count, 2);
    assert_ok(ckv_prompt_cache_invalidate(t->cache, "a", &t->error), t->error);
    test_tier_release(t);
    test_tier_drain(t);
    assert_int_equal(ckv_durability_pending(t->durability), 0);
    assert_false(ckv_store_covers(t->store, "a", T(1, 2, 3)));
    assert_true(flush(t).durable);
}

static void a_record_that_no_memory_is_for_is_missing_once(void **state)
{
    struct test_tier *t = *state;
    struct ckv_flush_evidence evidence;
    for (size_t n = 1; n <= 3; n++) {
        test_alloc_reset(&t->world.alloc);
        t->world.alloc.fail_at = n;
        ckv_durability_schedule(t->durability, "", T(1, 2, 3));
        assert_int_equal(ckv_durability_pending(t->durability), 0);
    }
    test_alloc_reset(&t->world.alloc);
    assert_int_equal(test_log_count(&t->world.log, "durability.lost"), 0);
    assert_int_equal(ckvi_durability_run_due(t->durability), 0);
    assert_int_equal(test_log_count(&t->world.log, "durability.lost"), 1);
    assert_true(test_log_contains(&t->world.log, "durability.lost", "3 records"));
    evidence = flush(t);
    assert_false(evidence.durable);
    assert_int_equal(evidence.missing_snapshots, 3);
    assert_int_equal(evidence.pending_snapshots, 0);
    assert_true(flush(t).durable);
}

static void records_are_bounded_and_the_oldest_is_given_up(void **state)
{
    struct test_tier *t = *state;
    struct ckv_flush_evidence evidence;
    t->durable.record_cap_bytes = 20;
    start(t);
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    test_tier_put(t, "", KV, 10, T(4, 5, 6));
    assert_int_equal(ckv_durability_pending(t->durability), 1);
    test_tier_put(t, "", KV, 10, T(1, 2, 3, 4, 5, 6, 7, 8));
    assert_int_equal(ckv_durability_pending(t->durability), 1);
    evidence = flush(t);
    assert_false(evidence.durable);
    assert_int_equal(evidence.missing_snapshots, 2);
    assert_int_equal(evidence.flushed_snapshots, 1);
    assert_true(ckv_store_covers(t->store, "", T(1, 2, 3, 4, 5, 6, 7, 8)));
}

static void after_stop_nothing_is_noted_and_flush_still_works(void **state)
{
    struct test_tier *t = *state;
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    ckv_durability_stop(t->durability);
    ckv_durability_stop(t->durability);
    test_tier_put(t, "", KV, 10, T(7, 8, 9));
    ckv_durability_schedule(t->durability, "", T(5, 6));
    assert_int_equal(ckv_durability_pending(t->durability), 1);
    assert_true(flush(t).durable);
    assert_int_equal(test_stats(t->store).entries, 1);
}

static void destroying_leaves_an_attempt_that_is_queued_to_the_queue(void **state)
{
    struct test_tier *t = *state;
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    test_tier_put(t, "", KV, 10, T(7, 8));
    test_clock_advance(&t->world.clock, S);
    test_tier_hold(t, TEST_CALL_SYNC_FILE);
    assert_int_equal(ckvi_durability_run_due(t->durability), 2);
    test_tier_await_held(t);
    ckv_durability_destroy(t->durability);
    t->durability = NULL;
    test_tier_release(t);
    test_tier_drain(t);
    assert_int_equal(test_stats(t->store).entries, 2);
}

static void bad_arguments_are_refused(void **state)
{
    struct test_tier *t = *state;
    struct ckv_durability_options options = t->durable;
    struct ckv_flush_evidence evidence;
    struct ckv_durability *durability;
    enum ckv_status status = CKV_NOMEM;
    test_tier_start(t);
    test_tier_start_cache(t);
    assert_status(
        ckv_durability_start(NULL, t->queue, t->store, NULL, &durability, &t->error),
        CKV_INVALID);
    assert_status(
        ckv_durability_start(t->cache, NULL, t->store, NULL, &durability, &t->error),
        CKV_INVALID);
    options.retry_ns = -1;
    assert_status(ckv_durability_start(t->cache, t->queue, t->store, &options,
                                       &durability, &t->error),
                  CKV_INVALID);
    assert_null(durability);
    assert_status(ckv_durability_flush(NULL, 0, &evidence, &t->error), CKV_INVALID);
    assert_int_equal(ckv_durability_pending(NULL), 0);
    ckv_durability_stop(NULL);
    ckv_durability_destroy(NULL);
    for (size_t n = 1; status != CKV_OK; n++) {
        assert_true(n < 50);
        test_alloc_reset(&t->world.alloc);
        t->world.alloc.fail_at = n;
        status = ckv_durability_start(t->cache, t->queue, t->store, &t->durable,
                                      &t->durability, &t->error);
    }
    test_alloc_reset(&t->world.alloc);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define BARE(name) cmocka_unit_test_setup_teardown(name, setup_bare, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_put_is_written_after_the_debounce),
        TEST(a_put_of_the_same_tokens_arms_the_timer_again),
        TEST(a_superseded_version_hands_its_record_over),
        TEST(versions_that_follow_fast_put_the_write_off_only_so_long),
        BARE(s46_short_entries_have_no_record),
        BARE(s46_a_little_growth_waits_for_flush),
        BARE(s46_growth_is_5_percent_of_what_is_durable),
        TEST(what_is_durable_already_is_not_written_again),
        TEST(a_failure_is_tried_again_later_each_time),
        TEST(retries_are_never_further_apart_than_64_times),
        TEST(m71_a_busy_engine_puts_it_off),
        BARE(s54_a_busy_engine_does_not_put_it_off_for_ever),
        TEST(schedule_makes_a_record),
        TEST(m71_flush_writes_what_waits),
        TEST(m72_equal_lengths_are_different_records),
        TEST(m73_a_failing_store_is_not_durable_and_the_next_flush_is),
        TEST(a_folder_that_cannot_be_synced_is_not_durable),
        TEST(m74_what_vanished_from_memory_is_missing),
        TEST(m75_what_vanished_but_is_covered_on_disk_is_durable),
        BARE(what_was_evicted_is_durable_through_the_queue),
        BARE(a_record_of_what_was_evicted_and_stored_goes_by_itself),
        BARE(one_record_never_pushes_out_another),
        TEST(s52_flush_returns_at_its_deadline_while_a_sync_hangs),
        TEST(s52_a_deadline_in_the_past_still_tells_the_truth),
        TEST(s28_an_invalidated_namespace_has_no_records),
        TEST(s28_an_invalidated_record_that_is_queued_is_not_written),
        TEST(a_record_that_no_memory_is_for_is_missing_once),
        BARE(records_are_bounded_and_the_oldest_is_given_up),
        TEST(after_stop_nothing_is_noted_and_flush_still_works),
        TEST(destroying_leaves_an_attempt_that_is_queued_to_the_queue),
        BARE(bad_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

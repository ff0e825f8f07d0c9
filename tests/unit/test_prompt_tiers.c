/* The prompt cache over queue and store: spec M54-M58, which tier serves, what a failing
 * store does, invalidation, how entries go down and come up. */
#include "lib/tier_world.h"
#include "lib/unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define T TEST_TOKENS
#define KV CKV_CACHE_KV
#define SSM CKV_CACHE_SSM
#define BASE TEST_FINGERPRINT "/base"

/* A cache over queue and store. */
static int setup(void **state)
{
    struct test_tier *t = calloc(1, sizeof *t);
    test_tier_init(t);
    test_tier_start(t);
    test_tier_start_cache(t);
    *state = t;
    return 0;
}

/* Nothing started. */
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

static void store(struct test_tier *t, const char *ns, enum ckv_cache_kind kind,
                  const uint32_t *tokens, size_t count)
{
    (void)test_put(&t->world, t->store, ns, kind, tokens, count);
}

/* --- which tier --- */

static void m54_the_store_wins_when_it_is_strictly_longer(void **state)
{
    struct test_tier *t = *state;
    struct ckv_taken taken;
    store(t, "", KV, T(1, 2, 3, 4));
    test_tier_put(t, "", KV, 10, T(1, 2));
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4, 5), &taken), 4);
    assert_int_equal(taken.tier, CKV_TIER_STORE);
    assert_int_equal(taken.read_bytes, 2 * 2 * 4 * 8 * 2);
    assert_true(t->engine.equal);
    assert_int_equal(test_tier_cache_stats(t).hits[CKV_TIER_STORE], 1);
    assert_int_equal(test_tier_cache_stats(t).tokens[CKV_TIER_STORE], 4);
    assert_int_equal(test_tier_cache_stats(t).hits[CKV_TIER_RAM], 0);
    /* It is in memory now, and serves from there. */
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4, 5), &taken), 4);
    assert_int_equal(taken.tier, CKV_TIER_RAM);
    assert_int_equal(t->engine.prepared, 1);
}

static void m54_the_donor_in_memory_stays(void **state)
{
    struct test_tier *t = *state;
    store(t, "", SSM, T(1, 2, 3, 4));
    test_tier_put(t, "", SSM, 10, T(1, 2));
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4, 5), NULL), 4);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 9), NULL), 2);
}

static void m55_memory_wins_a_tie(void **state)
{
    struct test_tier *t = *state;
    struct ckv_taken taken;
    store(t, "", KV, T(1, 2, 3, 4));
    test_tier_put(t, "", KV, 10, T(1, 2, 3, 4));
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4, 5), &taken), 4);
    assert_int_equal(taken.tier, CKV_TIER_RAM);
    assert_int_equal(t->engine.prepared, 0);
}

static void m56_what_the_engine_refuses_leaves_memory_to_serve(void **state)
{
    struct test_tier *t = *state;
    struct ckv_taken taken;
    store(t, "", KV, T(1, 2, 3, 4));
    test_tier_put(t, "", KV, 10, T(1, 2));
    t->engine.prepare_status = CKV_REFUSED;
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4, 5), &taken), 2);
    assert_int_equal(taken.tier, CKV_TIER_RAM);
    assert_int_equal(t->engine.prepared, 1);
    assert_int_equal(test_stats(t->store).entries, 1);
}

static void m57_the_store_serves_a_diverging_prompt(void **state)
{
    struct test_tier *t = *state;
    struct ckv_taken taken;
    store(t, "", KV, T(1, 2, 3, 4, 5, 6));
    assert_ok(ckv_prompt_cache_take(t->cache, "", T(1, 2, 3, 4, 9), &taken, &t->error),
              t->error);
    assert_int_equal(taken.prefix, 4);
    assert_int_equal(ckv_held_entry(taken.held)->token_count, 6);
    ckv_held_unref(taken.held);
}

static void m58_a_failing_restore_leaves_memory_to_serve(void **state)
{
    struct test_tier *t = *state;
    struct test_fault fault = {
        .call = TEST_CALL_READ, .nth = 1, .os_errno = EIO, .from_then_on = true};
    struct ckv_taken taken;
    store(t, "", KV, T(1, 2, 3, 4));
    test_tier_put(t, "", KV, 10, T(1, 2));
    test_faulty_io_fail(&t->world.faulty, &fault);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4, 5), &taken), 2);
    assert_int_equal(taken.tier, CKV_TIER_RAM);
    test_faulty_io_reset(&t->world.faulty);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4, 5), NULL), 4);
}

static void s64_all_tiers_are_compared(void **state)
{
    struct test_tier *t = *state;
    uint32_t *tokens = malloc(30001 * sizeof *tokens);
    struct ckv_taken taken;
    for (uint32_t i = 0; i < 30001; i++)
        tokens[i] = i;
    store(t, "", KV, tokens, 30000);
    test_tier_put(t, "", KV, 10, tokens, 1000);
    ckv_activity_begin(t->activity);
    test_tier_add(t, "", KV, 10, tokens, 2000);
    assert_int_equal(test_tier_take(t, "", tokens, 1500, &taken), 1499);
    assert_int_equal(taken.tier, CKV_TIER_QUEUE);
    assert_int_equal(test_tier_take(t, "", tokens, 30001, &taken), 30000);
    assert_int_equal(taken.tier, CKV_TIER_STORE);
    ckv_activity_end(t->activity);
    test_tier_drain(t);
    free(tokens);
}

static void a_queued_entry_is_served_and_comes_up(void **state)
{
    struct test_tier *t = *state;
    struct ckv_taken taken;
    ckv_activity_begin(t->activity);
    test_tier_add(t, "", KV, 10, T(1, 2, 3));
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), &taken), 3);
    assert_int_equal(taken.tier, CKV_TIER_QUEUE);
    assert_int_equal(taken.read_bytes, 0);
    assert_int_equal(t->engine.made, 1);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), &taken), 3);
    assert_int_equal(taken.tier, CKV_TIER_RAM);
    ckv_activity_end(t->activity);
    test_tier_drain(t);
}

static void a_restored_entry_larger_than_the_cap_is_served_but_not_kept(void **state)
{
    struct test_tier *t = *state;
    t->ram.cap_bytes = 100;
    test_tier_start_cache(t);
    store(t, "", KV, T(1, 2, 3));
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 3);
    assert_int_equal(test_tier_cache_stats(t).entries, 0);
}

static void a_restored_entry_evicts_like_any_other(void **state)
{
    struct test_tier *t = *state;
    t->ram.cap_bytes = 100;
    t->engine.restored_bytes = 60;
    test_tier_start(t);
    test_tier_start_cache(t);
    store(t, "", KV, T(1, 2, 3));
    test_tier_put(t, "", KV, 60, T(7, 8));
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 3);
    assert_int_equal(test_tier_cache_stats(t).entries, 1);
    assert_int_equal(test_tier_cache_stats(t).bytes, 60);
    test_tier_drain(t);
    assert_int_equal(test_find(t->store, "", T(7, 8, 9), NULL, NULL), 2);
}

/* --- failures below --- */

static void s32_a_file_that_vanished_leads_to_the_next_best(void **state)
{
    struct test_tier *t = *state;
    struct ckv_taken taken;
    store(t, "", SSM, T(1, 2, 3, 4));
    test_world_remove(&t->world, BASE, test_world_only(&t->world, BASE, ".mlxkv"));
    store(t, "", SSM, T(1, 2, 3));
    test_tier_put(t, "", SSM, 10, T(1, 2));
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4, 5), &taken), 3);
    assert_int_equal(taken.tier, CKV_TIER_STORE);
}

static void s32_the_next_best_of_the_store_may_be_worse_than_memory(void **state)
{
    struct test_tier *t = *state;
    struct ckv_taken taken;
    store(t, "", SSM, T(1, 2, 3, 4, 5));
    test_world_remove(&t->world, BASE, test_world_only(&t->world, BASE, ".mlxkv"));
    store(t, "", SSM, T(1, 2));
    test_tier_put(t, "", SSM, 10, T(1, 2, 3));
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4, 5, 6), &taken), 3);
    assert_int_equal(taken.tier, CKV_TIER_RAM);
    assert_int_equal(t->engine.prepared, 0);
}

static void s33_a_damaged_file_is_a_miss_and_set_aside(void **state)
{
    struct test_tier *t = *state;
    store(t, "", KV, T(1, 2, 3));
    test_world_flip(&t->world, BASE, test_world_only(&t->world, BASE, ".mlxkv"), 16400);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 0);
    assert_non_null(strstr(t->error.text, "hash"));
    assert_int_equal(t->engine.dropped, 1);
    assert_int_equal(test_stats(t->store).set_aside, 1);
    assert_int_equal(test_tier_cache_stats(t).hits[CKV_TIER_NONE], 1);
    assert_int_equal(test_tier_cache_stats(t).entries, 0);
}

static void an_engine_that_cannot_finish_is_a_miss(void **state)
{
    struct test_tier *t = *state;
    store(t, "", KV, T(1, 2, 3));
    t->engine.finish_status = CKV_ENGINE;
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 0);
    t->engine.finish_status = CKV_OK;
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 3);
}

static enum ckv_status finish_with(struct test_engine *engine, struct ckv_held *held,
                                   struct ckv_held **out)
{
    (void)engine;
    *out = held;
    return CKV_OK;
}

static enum ckv_status finish_with_nothing(void *ctx, const struct ckv_entry *entry,
                                           uint64_t prefix, struct ckv_held **out,
                                           struct ckv_error *error)
{
    (void)entry;
    (void)prefix;
    (void)error;
    return finish_with(ctx, NULL, out);
}

static enum ckv_status finish_with_another(void *ctx, const struct ckv_entry *entry,
                                           uint64_t prefix, struct ckv_held **out,
                                           struct ckv_error *error)
{
    (void)entry;
    (void)prefix;
    (void)error;
    return finish_with(ctx, test_held(ctx, KV, 10, T(1, 2)), out);
}

static void an_engine_that_gives_something_else_is_a_miss(void **state)
{
    struct test_tier *t = *state;
    store(t, "", KV, T(1, 2, 3));
    t->ram.restorer.finish = finish_with_nothing;
    test_tier_start_cache(t);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 0);
    ckv_prompt_cache_destroy(t->cache);
    t->ram.restorer.finish = finish_with_another;
    test_tier_start_cache(t);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 0);
    assert_int_equal(t->engine.live, 0);
    assert_int_equal(test_stats(t->store).entries, 1);
}

static void s61_a_miss_allocates_nothing_and_reads_nothing(void **state)
{
    struct test_tier *t = *state;
    store(t, "", KV, T(1, 2, 3));
    test_tier_put(t, "", KV, 10, T(1, 2));
    test_alloc_reset(&t->world.alloc);
    test_faulty_io_reset(&t->world.faulty);
    assert_int_equal(test_tier_take(t, "", T(7, 8, 9), NULL), 0);
    assert_int_equal(test_tier_take(t, "other", T(1, 2, 3, 4), NULL), 0);
    assert_int_equal(t->world.alloc.call_count, 0);
    assert_int_equal(t->world.faulty.counts[TEST_CALL_ANY], 0);
}

static void pass_the_limit(void *ctx)
{
    struct test_tier *t = ctx;
    test_clock_advance(&t->world.clock, 2 * TEST_NS_PER_S);
}

static void s62_a_restore_that_takes_too_long_is_given_up(void **state)
{
    struct test_tier *t = *state;
    t->ram.restore_timeout_ns = TEST_NS_PER_S;
    test_tier_start_cache(t);
    store(t, "", KV, T(1, 2, 3));
    t->engine.on_prepare = pass_the_limit;
    t->engine.on_prepare_ctx = t;
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 0);
    assert_non_null(strstr(t->error.text, "longer"));
    assert_int_equal(t->engine.dropped, 1);
    assert_int_equal(t->engine.finished, 0);
    assert_int_equal(test_stats(t->store).entries, 1);
    t->engine.on_prepare = NULL;
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 3);
}

struct judge {
    bool answer;
    uint64_t tokens;
    uint64_t bytes;
};

static bool judge_worth(void *ctx, uint64_t tokens, uint64_t bytes)
{
    struct judge *judge = ((struct test_engine *)ctx)->on_prepare_ctx;
    judge->tokens = tokens;
    judge->bytes = bytes;
    return judge->answer;
}

static void s63_a_restore_that_is_not_worth_it_is_skipped_and_counted(void **state)
{
    struct test_tier *t = *state;
    struct judge judge = {false, 0, 0};
    struct ckv_taken taken;
    t->ram.restorer.worth = judge_worth;
    t->engine.on_prepare_ctx = &judge;
    test_tier_start_cache(t);
    store(t, "", KV, T(1, 2, 3, 4));
    test_tier_put(t, "", KV, 10, T(1));
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4, 5), &taken), 1);
    assert_int_equal(taken.tier, CKV_TIER_RAM);
    assert_int_equal(judge.tokens, 3);
    assert_int_equal(judge.bytes, 2 * 2 * 4 * 8 * 2);
    assert_int_equal(test_tier_cache_stats(t).skipped_restores, 1);
    judge.answer = true;
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4, 5), &taken), 4);
    assert_int_equal(test_tier_cache_stats(t).skipped_restores, 1);
}

static void out_of_memory_while_restoring_is_a_miss_at_worst(void **state)
{
    struct test_tier *t = *state;
    bool complete = false;
    store(t, "", KV, T(1, 2, 3));
    for (size_t n = 1; !complete; n++) {
        uint64_t prefix;
        assert_true(n < 300);
        test_alloc_reset(&t->world.alloc);
        t->world.alloc.fail_at = n;
        prefix = test_tier_take(t, "", T(1, 2, 3, 4), NULL);
        assert_true(prefix == 0 || prefix == 3);
        complete = t->world.alloc.failed_count == 0;
        assert_int_equal(test_stats(t->store).entries, 1);
        ckv_prompt_cache_clear(t->cache);
    }
    test_alloc_reset(&t->world.alloc);
    assert_true(test_tier_cache_stats(t).keep_failures > 0);
}

/* --- the way down --- */

static void s31_others_see_an_entry_only_when_it_is_complete(void **state)
{
    struct test_tier *t = *state;
    struct ckv_store *other = test_world_open(&t->world);
    test_tier_hold(t, TEST_CALL_WRITE);
    test_tier_add(t, "", KV, 10, T(1, 2, 3));
    test_tier_await_held(t);
    assert_int_equal(test_find(t->store, "", T(1, 2, 3, 4), NULL, NULL), 0);
    assert_ok(ckv_store_refresh(other, &t->error), t->error);
    assert_int_equal(test_find(other, "", T(1, 2, 3, 4), NULL, NULL), 0);
    test_tier_release(t);
    test_tier_drain(t);
    test_clock_advance(&t->world.clock, 10 * TEST_NS_PER_S);
    assert_ok(ckv_store_refresh(other, &t->error), t->error);
    assert_int_equal(test_restore(&t->world, other, "", T(1, 2, 3, 4)), 3);
    ckv_store_close(other);
}

static void an_entry_that_is_durable_is_not_spilled_again(void **state)
{
    struct test_tier *t = *state;
    t->ram.cap_bytes = 100;
    ckv_activity_begin(t->activity);
    test_tier_start(t);
    test_tier_start_cache(t);
    store(t, "", KV, T(1, 2, 3));
    test_tier_put(t, "", KV, 60, T(1, 2, 3));
    test_tier_put(t, "", KV, 60, T(7, 8, 9));
    assert_int_equal(test_tier_cache_stats(t).evictions, 1);
    assert_int_equal(test_tier_cache_stats(t).spills, 0);
    assert_int_equal(test_tier_cache_stats(t).spill_failures, 0);
    assert_int_equal(test_tier_stats(t).pending_count, 0);
    test_clock_advance(&t->world.clock, TEST_NS_PER_S);
    store(t, "", KV, T(7, 8, 9));
    assert_int_equal(ckv_prompt_cache_demote_idle(t->cache, 1), 1);
    assert_int_equal(test_tier_cache_stats(t).spills, 0);
    ckv_activity_end(t->activity);
}

static void s46_short_entries_are_not_spilled(void **state)
{
    struct test_tier *t = *state;
    uint32_t tokens[256];
    for (uint32_t i = 0; i < 256; i++)
        tokens[i] = i + 100;
    t->ram.min_tokens = CKV_DEFAULT;
    t->ram.cap_bytes = 100;
    test_tier_start(t);
    test_tier_start_cache(t);
    test_tier_put(t, "", SSM, 60, tokens, 255);
    test_tier_put(t, "", SSM, 60, tokens, 256);
    test_tier_put(t, "", KV, 60, T(1));
    test_tier_drain(t);
    assert_int_equal(test_tier_cache_stats(t).evictions, 2);
    assert_int_equal(test_tier_cache_stats(t).spills, 1);
    assert_int_equal(test_tier_cache_stats(t).spill_failures, 0);
    assert_int_equal(test_stats(t->store).longest_prefix_tokens, 256);
    assert_int_equal(test_stats(t->store).entries, 1);
}

struct putter {
    struct test_tier *tier;
    pthread_t thread;
    size_t demoted;
};

static void *put_on_thread(void *ctx)
{
    struct putter *putter = ctx;
    test_tier_put(putter->tier, "", KV, 60, T(7, 8, 9));
    return NULL;
}

/* Puts on another thread, which is held while it asks the disk about the entry that it
 * evicts. */
static void start_putter(struct putter *putter, struct test_tier *t)
{
    t->ram.cap_bytes = 100;
    ckv_activity_begin(t->activity);
    test_tier_start_cache(t);
    store(t, "", KV, T(1, 2, 3));
    test_tier_put(t, "", KV, 60, T(1, 2, 3));
    test_world_remove(&t->world, BASE, test_world_only(&t->world, BASE, ".mlxkv"));
    test_tier_hold(t, TEST_CALL_STAT_NAME);
    putter->tier = t;
    assert_int_equal(pthread_create(&putter->thread, NULL, put_on_thread, putter), 0);
    test_tier_await_held(t);
}

static void finish_putter(struct putter *putter)
{
    test_tier_release(putter->tier);
    assert_int_equal(pthread_join(putter->thread, NULL), 0);
    ckv_activity_end(putter->tier->activity);
    test_tier_drain(putter->tier);
}

static void an_entry_on_its_way_down_is_never_missed(void **state)
{
    struct test_tier *t = *state;
    struct putter putter;
    struct ckv_taken taken;
    ckv_prompt_cache_destroy(t->cache);
    start_putter(&putter, t);
    assert_int_equal(test_tier_cache_stats(t).bytes, 60);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), &taken), 3);
    assert_int_equal(taken.tier, CKV_TIER_RAM);
    finish_putter(&putter);
    assert_int_equal(test_tier_cache_stats(t).entries, 1);
    assert_int_equal(test_tier_cache_stats(t).spills, 1);
    assert_int_equal(test_find(t->store, "", T(1, 2, 3, 4), NULL, NULL), 3);
}

static void s28_an_entry_invalidated_on_its_way_down_is_not_spilled(void **state)
{
    struct test_tier *t = *state;
    struct putter putter;
    ckv_prompt_cache_destroy(t->cache);
    start_putter(&putter, t);
    ckv_prompt_cache_clear(t->cache);
    assert_int_equal(ckv_prompt_cache_peek(t->cache, "", T(1, 2, 3, 4)), 0);
    finish_putter(&putter);
    assert_int_equal(test_tier_cache_stats(t).spills, 0);
    assert_int_equal(test_tier_cache_stats(t).entries, 0);
    assert_int_equal(test_stats(t->store).puts, 1);
    assert_int_equal(t->engine.live, 0);
}

static void *demote_on_thread(void *ctx)
{
    struct putter *putter = ctx;
    putter->demoted = ckv_prompt_cache_demote_idle(putter->tier->cache, 0);
    return NULL;
}

static void m60_a_take_during_its_demotion_keeps_an_entry(void **state)
{
    struct test_tier *t = *state;
    struct putter putter = {.tier = t, .demoted = 9};
    store(t, "", KV, T(1, 2, 3));
    test_tier_put(t, "", KV, 60, T(1, 2, 3));
    test_tier_hold(t, TEST_CALL_STAT_NAME);
    assert_int_equal(pthread_create(&putter.thread, NULL, demote_on_thread, &putter), 0);
    test_tier_await_held(t);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 3);
    test_tier_release(t);
    assert_int_equal(pthread_join(putter.thread, NULL), 0);
    assert_int_equal(putter.demoted, 0);
    assert_int_equal(test_tier_cache_stats(t).demotions, 0);
    assert_int_equal(test_tier_cache_stats(t).bytes, 60);
    assert_int_equal(ckv_prompt_cache_demote_idle(t->cache, 0), 1);
}

static void an_eviction_during_its_demotion_needs_no_second_way_out(void **state)
{
    struct test_tier *t = *state;
    struct putter putter = {.tier = t, .demoted = 9};
    t->ram.cap_bytes = 100;
    test_tier_start(t);
    test_tier_start_cache(t);
    store(t, "", KV, T(1, 2, 3));
    test_tier_put(t, "", KV, 60, T(1, 2, 3));
    test_tier_hold(t, TEST_CALL_STAT_NAME);
    assert_int_equal(pthread_create(&putter.thread, NULL, demote_on_thread, &putter), 0);
    test_tier_await_held(t);
    test_tier_put(t, "", KV, 60, T(7, 8, 9));
    assert_int_equal(test_tier_cache_stats(t).bytes, 60);
    assert_int_equal(test_tier_cache_stats(t).evictions, 1);
    test_tier_release(t);
    assert_int_equal(pthread_join(putter.thread, NULL), 0);
    assert_int_equal(putter.demoted, 1);
    assert_int_equal(test_tier_cache_stats(t).demotions, 0);
    assert_int_equal(test_tier_cache_stats(t).entries, 1);
    assert_int_equal(t->engine.live, 1);
}

/* --- invalidation --- */

static void s28_s55_invalidate_ends_a_namespace_in_all_tiers(void **state)
{
    struct test_tier *t = *state;
    store(t, "a", KV, T(1, 2, 3));
    store(t, "b", KV, T(1, 2, 3));
    test_tier_put(t, "a", KV, 10, T(4, 5, 6));
    test_tier_put(t, "b", KV, 10, T(4, 5, 6));
    ckv_activity_begin(t->activity);
    test_tier_add(t, "a", KV, 10, T(7, 8, 9));
    test_tier_add(t, "b", KV, 10, T(7, 8, 9));
    assert_ok(ckv_prompt_cache_invalidate(t->cache, "a", &t->error), t->error);
    assert_int_equal(test_tier_take(t, "a", T(1, 2, 3, 4), NULL), 0);
    assert_int_equal(test_tier_take(t, "a", T(4, 5, 6, 7), NULL), 0);
    assert_int_equal(test_tier_take(t, "a", T(7, 8, 9, 1), NULL), 0);
    assert_int_equal(test_tier_take(t, "b", T(1, 2, 3, 4), NULL), 3);
    assert_int_equal(test_tier_take(t, "b", T(4, 5, 6, 7), NULL), 3);
    assert_int_equal(test_tier_take(t, "b", T(7, 8, 9, 1), NULL), 3);
    ckv_activity_end(t->activity);
    test_tier_drain(t);
    test_tier_reopen(t);
    assert_int_equal(test_tier_take(t, "a", T(7, 8, 9, 1), NULL), 0);
    assert_int_equal(test_tier_take(t, "b", T(7, 8, 9, 1), NULL), 3);
}

static void invalidate_now(void *ctx)
{
    struct test_tier *t = ctx;
    t->engine.on_prepare = NULL;
    assert_ok(ckv_prompt_cache_invalidate(t->cache, "", &t->error), t->error);
}

static void s28_an_entry_invalidated_while_it_is_restored_is_not_kept(void **state)
{
    struct test_tier *t = *state;
    store(t, "", KV, T(1, 2, 3));
    t->engine.on_prepare = invalidate_now;
    t->engine.on_prepare_ctx = t;
    /* The take began before it. */
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 3);
    assert_int_equal(test_tier_cache_stats(t).entries, 0);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 0);
}

static void a_failing_store_is_reported_by_invalidate(void **state)
{
    struct test_tier *t = *state;
    struct test_fault fault = {.call = TEST_CALL_REMOVE, .nth = 1, .os_errno = EACCES};
    store(t, "", KV, T(1, 2, 3));
    test_tier_put(t, "", KV, 10, T(4, 5, 6));
    test_faulty_io_fail(&t->world.faulty, &fault);
    assert_status(ckv_prompt_cache_invalidate(t->cache, NULL, &t->error), CKV_DENIED);
    assert_int_equal(test_tier_cache_stats(t).entries, 0);
}

/* --- recency on the disk --- */

static void a_hit_in_memory_touches_the_file_once_a_minute(void **state)
{
    struct test_tier *t = *state;
    int64_t first;
    int64_t second;
    store(t, "", KV, T(1, 2, 3));
    first = test_world_stat(&t->world, BASE, test_world_only(&t->world, BASE, ".mlxkv"))
                .mtime_ns;
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    test_clock_advance(&t->world.clock, 59 * TEST_NS_PER_S);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 3);
    second = test_world_stat(&t->world, BASE, test_world_only(&t->world, BASE, ".mlxkv"))
                 .mtime_ns;
    assert_true(second == first);
    test_clock_advance(&t->world.clock, TEST_NS_PER_S);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 3);
    second = test_world_stat(&t->world, BASE, test_world_only(&t->world, BASE, ".mlxkv"))
                 .mtime_ns;
    assert_true(second == first + 60 * TEST_NS_PER_S);
    test_faulty_io_reset(&t->world.faulty);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 3);
    assert_int_equal(t->world.faulty.counts[TEST_CALL_ANY], 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define BARE(name) cmocka_unit_test_setup_teardown(name, setup_bare, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(m54_the_store_wins_when_it_is_strictly_longer),
        TEST(m54_the_donor_in_memory_stays),
        TEST(m55_memory_wins_a_tie),
        TEST(m56_what_the_engine_refuses_leaves_memory_to_serve),
        TEST(m57_the_store_serves_a_diverging_prompt),
        TEST(m58_a_failing_restore_leaves_memory_to_serve),
        TEST(s64_all_tiers_are_compared),
        TEST(a_queued_entry_is_served_and_comes_up),
        BARE(a_restored_entry_larger_than_the_cap_is_served_but_not_kept),
        BARE(a_restored_entry_evicts_like_any_other),
        TEST(s32_a_file_that_vanished_leads_to_the_next_best),
        TEST(s32_the_next_best_of_the_store_may_be_worse_than_memory),
        TEST(s33_a_damaged_file_is_a_miss_and_set_aside),
        TEST(an_engine_that_cannot_finish_is_a_miss),
        BARE(an_engine_that_gives_something_else_is_a_miss),
        TEST(s61_a_miss_allocates_nothing_and_reads_nothing),
        BARE(s62_a_restore_that_takes_too_long_is_given_up),
        BARE(s63_a_restore_that_is_not_worth_it_is_skipped_and_counted),
        TEST(out_of_memory_while_restoring_is_a_miss_at_worst),
        TEST(s31_others_see_an_entry_only_when_it_is_complete),
        BARE(an_entry_that_is_durable_is_not_spilled_again),
        BARE(s46_short_entries_are_not_spilled),
        TEST(an_entry_on_its_way_down_is_never_missed),
        TEST(m60_a_take_during_its_demotion_keeps_an_entry),
        BARE(an_eviction_during_its_demotion_needs_no_second_way_out),
        TEST(s28_an_entry_invalidated_on_its_way_down_is_not_spilled),
        TEST(s28_s55_invalidate_ends_a_namespace_in_all_tiers),
        TEST(s28_an_entry_invalidated_while_it_is_restored_is_not_kept),
        TEST(a_failing_store_is_reported_by_invalidate),
        TEST(a_hit_in_memory_touches_the_file_once_a_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

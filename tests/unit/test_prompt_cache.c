/* The prompt cache in memory: spec M42-M53 and M59-M67 as the design has them. What has
 * to do with the tiers below is in test_prompt_tiers.c. */
#include "lib/tier_world.h"
#include "lib/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define T TEST_TOKENS
#define KV CKV_CACHE_KV
#define SSM CKV_CACHE_SSM

/* Memory only. */
static int setup(void **state)
{
    struct test_tier *t = calloc(1, sizeof *t);
    test_tier_init(t);
    t->ram.store = NULL;
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

/* A cache of 100 bytes over a queue whose gate is closed. */
static struct test_tier *start_small(void **state)
{
    struct test_tier *t = *state;
    ckv_activity_begin(t->activity);
    t->ram.cap_bytes = 100;
    test_tier_start(t);
    test_tier_start_cache(t);
    return t;
}

static void rest(struct test_tier *t)
{
    ckv_activity_end(t->activity);
    test_tier_drain(t);
}

static void m42_longer_entries_supersede_their_prefixes(void **state)
{
    struct test_tier *t = *state;
    struct ckv_prompt_cache_stats stats;
    test_tier_put(t, "", KV, 10, T(1, 2));
    test_tier_put(t, "", KV, 10, T(1, 2, 3, 4));
    test_tier_put(t, "", KV, 10, T(9, 9, 9));
    assert_int_equal(test_tier_cache_stats(t).entries, 2);
    assert_int_equal(t->engine.released, 1);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4, 5, 6), NULL), 4);
    assert_int_equal(test_tier_cache_stats(t).entries, 2);
    assert_int_equal(test_tier_take(t, "", T(7, 8), NULL), 0);
    stats = test_tier_cache_stats(t);
    assert_int_equal(stats.hits[CKV_TIER_RAM], 1);
    assert_int_equal(stats.hits[CKV_TIER_NONE], 1);
    assert_int_equal(stats.tokens[CKV_TIER_RAM], 4);
    assert_int_equal(stats.tokens[CKV_TIER_NONE], 0);
    assert_int_equal(stats.superseded, 1);
    assert_int_equal(stats.bytes, 20);
}

static void m43_a_diverging_prompt_reuses_what_it_shares(void **state)
{
    struct test_tier *t = *state;
    struct ckv_taken taken;
    test_tier_put(t, "", KV, 10, T(1, 2, 3, 4, 5));
    assert_ok(ckv_prompt_cache_take(t->cache, "", T(1, 2, 3, 9), &taken, &t->error),
              t->error);
    assert_int_equal(taken.prefix, 3);
    assert_int_equal(taken.tier, CKV_TIER_RAM);
    assert_int_equal(taken.read_bytes, 0);
    assert_int_equal(ckv_held_entry(taken.held)->token_count, 5);
    ckv_held_unref(taken.held);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4, 5, 6), NULL), 5);
}

static void m44_s60_the_exact_tokens_leave_one_to_evaluate(void **state)
{
    struct test_tier *t = *state;
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3), NULL), 2);
    test_tier_put(t, "", SSM, 10, T(5, 6, 7));
    assert_int_equal(test_tier_take(t, "", T(5, 6, 7), NULL), 0);
    assert_int_equal(test_tier_take(t, "", T(1), NULL), 0);
    assert_int_equal(test_tier_take(t, "", NULL, 0, NULL), 0);
}

static void m45_an_untrimmable_entry_serves_its_exact_prefix_only(void **state)
{
    struct test_tier *t = *state;
    test_tier_put(t, "", SSM, 10, T(1, 2, 3));
    assert_int_equal(test_tier_take(t, "", T(1, 2, 9, 9), NULL), 0);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 9), NULL), 3);
}

static void m46_the_cap_evicts_the_oldest(void **state)
{
    struct test_tier *t = start_small(state);
    test_tier_put(t, "", KV, 40, T(1, 11));
    test_tier_put(t, "", KV, 40, T(2, 12));
    test_tier_put(t, "", KV, 40, T(3, 13));
    assert_int_equal(ckv_prompt_cache_peek(t->cache, "", T(1, 11, 5)), 0);
    assert_int_equal(ckv_prompt_cache_peek(t->cache, "", T(2, 12, 5)), 2);
    assert_int_equal(ckv_prompt_cache_peek(t->cache, "", T(3, 13, 5)), 2);
    assert_int_equal(test_tier_cache_stats(t).evictions, 1);
    assert_int_equal(test_tier_cache_stats(t).bytes, 80);
    rest(t);
}

static void m47_a_take_makes_its_donor_the_newest(void **state)
{
    struct test_tier *t = start_small(state);
    test_tier_put(t, "", KV, 30, T(1, 11));
    test_tier_put(t, "", KV, 30, T(2, 12));
    test_tier_put(t, "", KV, 30, T(3, 13));
    assert_int_equal(test_tier_take(t, "", T(1, 11, 5), NULL), 2);
    test_tier_put(t, "", KV, 30, T(1, 11, 5));
    assert_int_equal(test_tier_cache_stats(t).evictions, 0);
    test_tier_put(t, "", KV, 30, T(4, 14));
    assert_int_equal(ckv_prompt_cache_peek(t->cache, "", T(2, 12, 5)), 0);
    assert_int_equal(ckv_prompt_cache_peek(t->cache, "", T(3, 13, 5)), 2);
    assert_int_equal(ckv_prompt_cache_peek(t->cache, "", T(1, 11, 5, 6)), 3);
    rest(t);
}

static void m48_an_untrimmable_longer_entry_keeps_the_ancestor(void **state)
{
    struct test_tier *t = *state;
    test_tier_put(t, "", KV, 10, T(1, 2));
    test_tier_put(t, "", SSM, 10, T(1, 2, 3));
    assert_int_equal(test_tier_cache_stats(t).entries, 2);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 9), NULL), 2);
    test_tier_put(t, "", KV, 10, T(1, 2, 3, 4));
    assert_int_equal(test_tier_cache_stats(t).entries, 1);
}

static void m49_other_namespaces_are_not_superseded(void **state)
{
    struct test_tier *t = *state;
    test_tier_put(t, "a", KV, 10, T(1, 2));
    test_tier_put(t, "b", KV, 10, T(1, 2, 3));
    assert_int_equal(test_tier_take(t, "a", T(1, 2, 3, 4), NULL), 2);
    assert_int_equal(test_tier_take(t, "b", T(1, 2, 3, 4), NULL), 3);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 0);
}

static void m50_s45_an_entry_above_the_cap_is_refused(void **state)
{
    struct test_tier *t = *state;
    struct ckv_held *held;
    ckv_prompt_cache_destroy(t->cache);
    t->ram.cap_bytes = 100;
    test_tier_start_cache(t);
    test_tier_put(t, "", KV, 40, T(1, 2));
    held = test_held(&t->engine, KV, 101, T(1, 2, 3));
    assert_status(ckv_prompt_cache_put(t->cache, "", held, &t->error), CKV_FULL);
    assert_non_null(strstr(t->error.text, "101"));
    ckv_held_unref(held);
    assert_int_equal(test_tier_cache_stats(t).entries, 1);
    assert_int_equal(t->engine.live, 1);
}

static void m50_s45_an_entry_above_the_cap_is_spilled(void **state)
{
    struct test_tier *t = start_small(state);
    test_tier_put(t, "", KV, 101, T(1, 2, 3));
    assert_int_equal(test_tier_cache_stats(t).entries, 0);
    assert_int_equal(test_tier_cache_stats(t).spills, 1);
    rest(t);
    assert_int_equal(test_stats(t->store).entries, 1);
}

static void m51_clear_drops_all_and_spills_nothing(void **state)
{
    struct test_tier *t = start_small(state);
    test_tier_put(t, "", KV, 10, T(1, 2));
    test_tier_put(t, "b", KV, 10, T(1, 2));
    ckv_prompt_cache_clear(t->cache);
    assert_int_equal(test_tier_cache_stats(t).entries, 0);
    assert_int_equal(test_tier_cache_stats(t).bytes, 0);
    assert_int_equal(t->engine.live, 0);
    rest(t);
    assert_int_equal(test_stats(t->store).entries, 0);
}

static void m52_one_donor_serves_many(void **state)
{
    struct test_tier *t = *state;
    struct ckv_taken taken[3];
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    for (size_t i = 0; i < 3; i++)
        assert_ok(
            ckv_prompt_cache_take(t->cache, "", T(1, 2, 3, 4), &taken[i], &t->error),
            t->error);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(taken[i].prefix, 3);
        ckv_held_unref(taken[i].held);
    }
    assert_int_equal(t->engine.released, 0);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 3);
}

static void m53_s35_an_entry_lives_as_long_as_anybody_uses_it(void **state)
{
    struct test_tier *t = *state;
    struct ckv_taken taken;
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    assert_ok(ckv_prompt_cache_take(t->cache, "", T(1, 2, 3, 4), &taken, &t->error),
              t->error);
    test_tier_put(t, "", KV, 10, T(1, 2, 3, 4));
    assert_int_equal(t->engine.released, 0);
    ckv_prompt_cache_clear(t->cache);
    assert_int_equal(t->engine.released, 1);
    assert_int_equal(ckv_held_entry(taken.held)->tokens[2], 3);
    ckv_held_unref(taken.held);
    assert_int_equal(t->engine.released, 2);
}

static void m59_m66_demotion_spills_what_is_idle(void **state)
{
    struct test_tier *t = *state;
    struct ckv_taken taken;
    test_tier_start(t);
    test_tier_start_cache(t);
    test_tier_put(t, "", KV, 0, T(1, 2, 3));
    test_tier_put(t, "", KV, 0, T(7, 8, 9));
    assert_int_equal(ckv_prompt_cache_demote_idle(t->cache, TEST_NS_PER_S), 0);
    test_clock_advance(&t->world.clock, TEST_NS_PER_S);
    assert_int_equal(ckv_prompt_cache_demote_idle(t->cache, TEST_NS_PER_S), 2);
    test_tier_drain(t);
    assert_int_equal(t->engine.live, 0);
    assert_int_equal(test_tier_cache_stats(t).entries, 0);
    assert_int_equal(test_tier_cache_stats(t).demotions, 2);
    assert_int_equal(test_tier_cache_stats(t).evictions, 0);
    assert_int_equal(test_stats(t->store).entries, 2);
    assert_int_equal(test_tier_take(t, "", T(7, 8, 9, 10), &taken), 3);
    assert_int_equal(taken.tier, CKV_TIER_STORE);
    assert_true(t->engine.equal);
}

static void m60_a_recent_take_prevents_demotion(void **state)
{
    struct test_tier *t = *state;
    test_tier_start(t);
    test_tier_start_cache(t);
    test_tier_put(t, "", KV, 0, T(1, 2, 3));
    test_tier_put(t, "", KV, 0, T(7, 8, 9));
    test_clock_advance(&t->world.clock, TEST_NS_PER_S);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 3);
    assert_int_equal(ckv_prompt_cache_demote_idle(t->cache, 1), 1);
    assert_int_equal(ckv_prompt_cache_peek(t->cache, "", T(1, 2, 3, 4)), 3);
    assert_int_equal(ckv_prompt_cache_peek(t->cache, "", T(7, 8, 9, 4)), 0);
    test_tier_drain(t);
}

static void m61_without_a_queue_demotion_keeps_everything(void **state)
{
    struct test_tier *t = *state;
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    test_clock_advance(&t->world.clock, TEST_NS_PER_S);
    assert_int_equal(ckv_prompt_cache_demote_idle(t->cache, 1), 0);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4), NULL), 3);
    assert_int_equal(ckv_prompt_cache_demote_idle(NULL, 1), 0);
}

static void demotion_keeps_what_the_queue_does_not_take(void **state)
{
    struct test_tier *t = *state;
    t->ram.min_tokens = 3;
    test_tier_start(t);
    test_tier_start_cache(t);
    test_tier_put(t, "", KV, 10, T(1, 2));
    test_tier_put(t, "", KV, 10, T(7, 8, 9));
    test_clock_advance(&t->world.clock, TEST_NS_PER_S);
    assert_status(ckv_spill_queue_stop(t->queue, CKV_STOP_DRAIN, 0), CKV_OK);
    assert_int_equal(ckv_prompt_cache_demote_idle(t->cache, 1), 0);
    assert_int_equal(test_tier_cache_stats(t).entries, 2);
    assert_int_equal(test_tier_cache_stats(t).bytes, 20);
    assert_int_equal(test_tier_cache_stats(t).demotions, 0);
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    assert_int_equal(test_tier_cache_stats(t).entries, 2);
}

static void m62_a_long_untrimmable_prefix_serves_one_more_token(void **state)
{
    struct test_tier *t = *state;
    struct ckv_taken taken;
    uint32_t tokens[600];
    for (uint32_t i = 0; i < 600; i++)
        tokens[i] = i;
    test_tier_put(t, "", SSM, 10, tokens, 599);
    assert_ok(ckv_prompt_cache_take(t->cache, "", tokens, 600, &taken, &t->error),
              t->error);
    assert_int_equal(taken.prefix, 599);
    assert_int_equal(ckv_held_entry(taken.held)->token_count, 599);
    ckv_held_unref(taken.held);
}

static void m63_the_same_tokens_replace_even_when_untrimmable(void **state)
{
    struct test_tier *t = *state;
    test_tier_put(t, "", SSM, 10, T(1, 2, 3));
    test_tier_put(t, "", SSM, 10, T(1, 2, 3));
    assert_int_equal(test_tier_cache_stats(t).entries, 1);
    assert_int_equal(t->engine.released, 1);
}

struct put_record {
    struct test_tier *tier;
    size_t count;
    size_t token_count;
    uint32_t last;
    char ns[8];
    uint64_t peeked;
};

static void note_put(void *ctx, const char *ns, const uint32_t *tokens,
                     size_t token_count)
{
    struct put_record *record = ctx;
    record->count++;
    record->token_count = token_count;
    record->last = tokens[token_count - 1];
    (void)snprintf(record->ns, sizeof record->ns, "%s", ns);
    /* No lock is held. */
    record->peeked = ckv_prompt_cache_peek(record->tier->cache, ns, tokens, token_count);
}

static void m64_the_hook_is_told_of_every_put(void **state)
{
    struct test_tier *t = *state;
    struct put_record record = {.tier = t};
    t->ram.on_put = note_put;
    t->ram.on_put_ctx = &record;
    t->ram.cap_bytes = 100;
    test_tier_start(t);
    test_tier_start_cache(t);
    test_tier_put(t, "a", KV, 10, T(1, 2, 3));
    assert_int_equal(record.count, 1);
    assert_int_equal(record.token_count, 3);
    assert_int_equal(record.last, 3);
    assert_int_equal(record.peeked, 2);
    assert_string_equal(record.ns, "a");
    test_tier_put(t, "a", KV, 101, T(4, 5));
    assert_int_equal(record.count, 1);
    test_tier_drain(t);
}

static void m65_an_evicted_entry_is_spilled_once(void **state)
{
    struct test_tier *t = start_small(state);
    struct test_outcome outcome;
    test_tier_put(t, "a", KV, 60, T(1, 2, 3));
    test_tier_put(t, "b", KV, 60, T(1, 2));
    assert_int_equal(test_tier_cache_stats(t).spills, 1);
    assert_int_equal(test_tier_stats(t).pending_count, 1);
    assert_int_equal(t->engine.live, 2);
    rest(t);
    assert_int_equal(t->engine.live, 1);
    assert_int_equal(test_outcomes_count(&t->outcomes), 1);
    outcome = test_outcomes_get(&t->outcomes, 0);
    assert_string_equal(outcome.ns, "a");
    assert_int_equal(outcome.token_count, 3);
    assert_int_equal(outcome.outcome, CKV_SPILL_STORED);
}

static void m67_a_queue_that_takes_nothing_does_not_stop_eviction(void **state)
{
    struct test_tier *t = start_small(state);
    assert_status(ckv_spill_queue_stop(t->queue, CKV_STOP_DISCARD, 0), CKV_OK);
    test_tier_put(t, "", KV, 60, T(1, 2, 3));
    test_tier_put(t, "", KV, 60, T(7, 8));
    assert_int_equal(test_tier_cache_stats(t).entries, 1);
    assert_int_equal(test_tier_cache_stats(t).evictions, 1);
    assert_int_equal(test_tier_cache_stats(t).spills, 0);
    assert_int_equal(test_tier_cache_stats(t).spill_failures, 1);
    assert_int_equal(test_log_count(&t->world.log, "cache.lost"), 1);
    assert_int_equal(t->engine.live, 1);
    ckv_activity_end(t->activity);
}

static void shared_buffers_count_once(void **state)
{
    struct test_tier *t = *state;
    struct ckv_held *first = test_held(&t->engine, SSM, 60, T(1, 2));
    struct ckv_held *second = test_held_sharing(&t->engine, SSM, first, T(1, 2, 3));
    assert_ok(ckv_prompt_cache_put(t->cache, "", first, &t->error), t->error);
    assert_ok(ckv_prompt_cache_put(t->cache, "", second, &t->error), t->error);
    assert_int_equal(test_tier_cache_stats(t).entries, 2);
    assert_int_equal(test_tier_cache_stats(t).bytes, 60);
    ckv_held_unref(first);
    ckv_held_unref(second);
    test_tier_put(t, "", KV, 30, T(7, 8));
    assert_int_equal(test_tier_cache_stats(t).bytes, 90);
    test_tier_put(t, "", SSM, 5, T(1, 2));
    assert_int_equal(test_tier_cache_stats(t).bytes, 95);
    test_tier_put(t, "", KV, 7, T(1, 2, 3));
    assert_int_equal(test_tier_cache_stats(t).bytes, 37);
}

static void s44_nested_snapshots_of_a_conversation_do_not_pile_up(void **state)
{
    struct test_tier *t = *state;
    uint32_t tokens[50];
    for (uint32_t i = 0; i < 50; i++) {
        tokens[i] = i + 1;
        test_tier_put(t, "", KV, 10, tokens, i + 1);
    }
    assert_int_equal(test_tier_cache_stats(t).entries, 1);
    assert_int_equal(test_tier_cache_stats(t).bytes, 10);
    assert_int_equal(t->engine.live, 1);
}

static void s7_a_boundary_is_kept_beside_a_reply_that_cannot_be_cut(void **state)
{
    struct test_tier *t = *state;
    test_tier_put(t, "", SSM, 10, T(1, 2, 3));
    test_tier_put(t, "", SSM, 10, T(1, 2, 3, 4, 5));
    /* Once more the same prompt: 1 2 3 and its last token. */
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 9), NULL), 3);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4, 5, 6), NULL), 5);
}

static void s12_the_longest_usable_entry_serves_not_the_longest_match(void **state)
{
    struct test_tier *t = *state;
    test_tier_put(t, "", KV, 10, T(1, 2));
    test_tier_put(t, "", SSM, 10, T(1, 2, 3));
    test_tier_put(t, "", SSM, 10, T(1, 2, 3, 4, 5, 6));
    assert_int_equal(test_tier_take(t, "", T(1, 2, 3, 4, 5, 9), NULL), 3);
    assert_int_equal(test_tier_take(t, "", T(1, 2, 9), NULL), 2);
}

static void peek_changes_nothing(void **state)
{
    struct test_tier *t = start_small(state);
    struct ckv_prompt_cache_stats stats;
    test_tier_put(t, "", KV, 40, T(1, 11));
    test_tier_put(t, "", KV, 40, T(2, 12));
    assert_int_equal(ckv_prompt_cache_peek(t->cache, "", T(1, 11, 5)), 2);
    assert_int_equal(ckv_prompt_cache_peek(t->cache, NULL, T(1, 11)), 1);
    assert_int_equal(ckv_prompt_cache_peek(t->cache, "", NULL, 0), 0);
    stats = test_tier_cache_stats(t);
    assert_int_equal(stats.hits[CKV_TIER_RAM] + stats.hits[CKV_TIER_NONE], 0);
    test_tier_put(t, "", KV, 40, T(3, 13));
    assert_int_equal(ckv_prompt_cache_peek(t->cache, "", T(1, 11, 5)), 0);
    rest(t);
}

static void find_exact_finds_these_tokens_only(void **state)
{
    struct test_tier *t = *state;
    struct ckv_held *held;
    test_tier_put(t, "", KV, 10, T(1, 2, 3));
    assert_null(ckv_prompt_cache_find_exact(t->cache, "", T(1, 2)));
    assert_null(ckv_prompt_cache_find_exact(t->cache, "", T(1, 2, 3, 4)));
    assert_null(ckv_prompt_cache_find_exact(t->cache, "b", T(1, 2, 3)));
    held = ckv_prompt_cache_find_exact(t->cache, "", T(1, 2, 3));
    assert_non_null(held);
    assert_int_equal(ckv_held_entry(held)->token_count, 3);
    ckv_held_unref(held);
}

static void out_of_memory_changes_nothing(void **state)
{
    struct test_tier *t = *state;
    struct test_held *object = test_held_make(&t->engine, KV, 10, T(1, 2, 3));
    enum ckv_status status = CKV_NOMEM;
    struct ckv_held *held;
    object->buffer_count = 3;
    assert_ok(test_held_wrap(object, &held, &t->error), t->error);
    test_tier_put(t, "a", KV, 10, T(1, 2));
    for (size_t n = 1; status != CKV_OK; n++) {
        assert_true(n < 100);
        assert_int_equal(test_tier_cache_stats(t).entries, 1);
        assert_int_equal(test_tier_cache_stats(t).bytes, 10);
        assert_int_equal(ckv_prompt_cache_peek(t->cache, "a", T(1, 2, 3)), 2);
        assert_int_equal(ckv_prompt_cache_peek(t->cache, "b", T(1, 2, 3)), 0);
        test_alloc_reset(&t->world.alloc);
        t->world.alloc.fail_at = n;
        status = ckv_prompt_cache_put(t->cache, "b", held, &t->error);
        if (status != CKV_OK)
            assert_status(status, CKV_NOMEM);
    }
    test_alloc_reset(&t->world.alloc);
    assert_int_equal(test_tier_cache_stats(t).entries, 2);
    assert_int_equal(test_tier_cache_stats(t).bytes, 50);
    ckv_held_unref(held);
}

static void bad_arguments_are_refused(void **state)
{
    struct test_tier *t = *state;
    struct ckv_prompt_cache_options options = t->ram;
    struct ckv_prompt_cache *cache;
    struct ckv_taken taken;
    enum ckv_status status = CKV_NOMEM;
    options.restorer.finish = NULL;
    assert_status(ckv_prompt_cache_create(&options, &cache, &t->error), CKV_INVALID);
    assert_null(cache);
    options = t->ram;
    options.restore_timeout_ns = -1;
    assert_status(ckv_prompt_cache_create(&options, &cache, &t->error), CKV_INVALID);
    options.size = 0;
    assert_status(ckv_prompt_cache_create(&options, &cache, &t->error), CKV_INVALID);
    assert_status(ckv_prompt_cache_create(NULL, NULL, &t->error), CKV_INVALID);
    assert_status(ckv_prompt_cache_put(NULL, "", NULL, &t->error), CKV_INVALID);
    assert_status(ckv_prompt_cache_take(NULL, "", NULL, 0, &taken, &t->error),
                  CKV_INVALID);
    assert_status(ckv_prompt_cache_invalidate(NULL, "", &t->error), CKV_INVALID);
    ckv_prompt_cache_clear(NULL);
    ckv_prompt_cache_destroy(NULL);
    for (size_t n = 1; status != CKV_OK; n++) {
        assert_true(n < 50);
        test_alloc_reset(&t->world.alloc);
        t->world.alloc.fail_at = n;
        status = ckv_prompt_cache_create(&t->ram, &t->cache, &t->error);
    }
    test_alloc_reset(&t->world.alloc);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define BARE(name) cmocka_unit_test_setup_teardown(name, setup_bare, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(m42_longer_entries_supersede_their_prefixes),
        TEST(m43_a_diverging_prompt_reuses_what_it_shares),
        TEST(m44_s60_the_exact_tokens_leave_one_to_evaluate),
        TEST(m45_an_untrimmable_entry_serves_its_exact_prefix_only),
        BARE(m46_the_cap_evicts_the_oldest),
        BARE(m47_a_take_makes_its_donor_the_newest),
        TEST(m48_an_untrimmable_longer_entry_keeps_the_ancestor),
        TEST(m49_other_namespaces_are_not_superseded),
        TEST(m50_s45_an_entry_above_the_cap_is_refused),
        BARE(m50_s45_an_entry_above_the_cap_is_spilled),
        BARE(m51_clear_drops_all_and_spills_nothing),
        TEST(m52_one_donor_serves_many),
        TEST(m53_s35_an_entry_lives_as_long_as_anybody_uses_it),
        BARE(m59_m66_demotion_spills_what_is_idle),
        BARE(m60_a_recent_take_prevents_demotion),
        TEST(m61_without_a_queue_demotion_keeps_everything),
        BARE(demotion_keeps_what_the_queue_does_not_take),
        TEST(m62_a_long_untrimmable_prefix_serves_one_more_token),
        TEST(m63_the_same_tokens_replace_even_when_untrimmable),
        BARE(m64_the_hook_is_told_of_every_put),
        BARE(m65_an_evicted_entry_is_spilled_once),
        BARE(m67_a_queue_that_takes_nothing_does_not_stop_eviction),
        TEST(shared_buffers_count_once),
        TEST(s44_nested_snapshots_of_a_conversation_do_not_pile_up),
        TEST(s7_a_boundary_is_kept_beside_a_reply_that_cannot_be_cut),
        TEST(s12_the_longest_usable_entry_serves_not_the_longest_match),
        BARE(peek_changes_nothing),
        TEST(find_exact_finds_these_tokens_only),
        TEST(out_of_memory_changes_nothing),
        BARE(bad_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

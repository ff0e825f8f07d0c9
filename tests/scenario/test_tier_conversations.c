/*
 * Conversations through all tiers: turns, restart, a kill, steady load. The engine of the
 * tests keeps nothing between turns, so what a turn reuses comes from the tiers alone.
 */
#include "lib/tier_world.h"
#include "lib/unit.h"

#include "tier/durability.h"
#include <errno.h>
#include <stdlib.h>

#define KV CKV_CACHE_KV
#define SSM CKV_CACHE_SSM
#define S TEST_NS_PER_S

enum { CONVERSATIONS = 20, TURNS = 4, TURN_TOKENS = 16, TOKENS_MAX = 128 };

/* Tokens 0.. of a conversation; the first one tells it from others. */
struct conversation {
    uint32_t tokens[TOKENS_MAX];
    size_t count; /* evaluated so far: prompts and replies */
};

struct fixture {
    struct test_tier tier;
    struct conversation talks[CONVERSATIONS];
};

static void start_durability(struct test_tier *t)
{
    assert_ok(ckvi_durability_create(t->cache, t->queue, t->store, &t->durable,
                                     &t->durability, &t->error),
              t->error);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    test_tier_init(&f->tier);
    for (uint32_t i = 0; i < CONVERSATIONS; i++)
        for (uint32_t k = 0; k < TOKENS_MAX; k++)
            f->talks[i].tokens[k] = k == 0 ? 1000 + i : k;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int result = test_tier_deinit(&f->tier);
    free(f);
    return result;
}

static void start(struct fixture *f)
{
    test_tier_start(&f->tier);
    test_tier_start_cache(&f->tier);
    start_durability(&f->tier);
}

/* A new process: nothing is left but the disk. */
static void restart(struct fixture *f)
{
    test_tier_reopen(&f->tier);
    start_durability(&f->tier);
}

/* The next turn of a conversation: looks, "evaluates" and puts. Returns what was reused.
 */
static uint64_t take_turn(struct fixture *f, struct conversation *talk,
                          enum ckv_cache_kind kind)
{
    size_t prompt_count = talk->count + TURN_TOKENS / 2;
    uint64_t prefix = test_tier_take(&f->tier, "", talk->tokens, prompt_count, NULL);
    talk->count += TURN_TOKENS;
    assert_true(talk->count <= TOKENS_MAX);
    test_tier_put(&f->tier, "", kind, 100, talk->tokens, talk->count);
    return prefix;
}

static void pass(struct fixture *f, int64_t duration_ns)
{
    test_clock_advance(&f->tier.world.clock, duration_ns);
    (void)ckvi_durability_run_due(f->tier.durability);
    test_tier_drain(&f->tier);
}

static struct ckv_flush_evidence flush(struct fixture *f)
{
    struct ckv_flush_evidence evidence;
    assert_ok(
        ckv_durability_flush(f->tier.durability, TEST_NEVER, &evidence, &f->tier.error),
        f->tier.error);
    return evidence;
}

/* All conversations take their turns, one after the other; each reuses all of its past.
 */
static void take_turns(struct fixture *f, size_t turns, enum ckv_cache_kind kind)
{
    for (size_t n = 0; n < turns; n++)
        for (size_t i = 0; i < CONVERSATIONS; i++) {
            size_t before = f->talks[i].count;
            assert_int_equal(take_turn(f, &f->talks[i], kind), before);
        }
}

static void s50_s53_after_a_flush_every_next_turn_reuses_all_of_its_past(void **state)
{
    struct fixture *f = *state;
    struct ckv_flush_evidence evidence;
    start(f);
    take_turns(f, TURNS, KV);
    evidence = flush(f);
    assert_true(evidence.durable);
    assert_int_equal(evidence.durable_entries, CONVERSATIONS);
    assert_int_equal(evidence.longest_durable_prefix_tokens, TURNS * TURN_TOKENS);
    restart(f);
    take_turns(f, 1, KV);
    assert_int_equal(test_tier_cache_stats(&f->tier).hits[CKV_TIER_STORE], CONVERSATIONS);
    assert_true(f->tier.engine.equal);
}

static void s50_the_same_when_memory_holds_only_a_few(void **state)
{
    struct fixture *f = *state;
    f->tier.ram.cap_bytes = 350;
    f->tier.engine.restored_bytes = 100;
    start(f);
    take_turns(f, TURNS, KV);
    assert_true(flush(f).durable);
    restart(f);
    take_turns(f, TURNS - 1, KV);
}

static void s53_a_kill_costs_at_most_what_was_not_durable(void **state)
{
    struct fixture *f = *state;
    size_t durable[CONVERSATIONS];
    start(f);
    take_turns(f, 2, KV);
    pass(f, S);
    for (size_t i = 0; i < CONVERSATIONS; i++)
        durable[i] = f->talks[i].count;
    take_turns(f, 1, KV);
    /* Half of the new turns get through; then the process ends without a word. */
    test_tier_hold(&f->tier, TEST_CALL_SYNC_FILE);
    test_clock_advance(&f->tier.world.clock, S);
    assert_int_equal(ckvi_durability_run_due(f->tier.durability), CONVERSATIONS);
    test_tier_await_held(&f->tier);
    assert_status(ckv_spill_queue_stop(f->tier.queue, CKV_STOP_DISCARD, 0), CKV_AGAIN);
    test_tier_release(&f->tier);
    restart(f);
    for (size_t i = 0; i < CONVERSATIONS; i++) {
        struct conversation *talk = &f->talks[i];
        uint64_t prefix =
            test_tier_take(&f->tier, "", talk->tokens, talk->count + 1, NULL);
        assert_true(prefix >= durable[i]);
    }
    assert_int_equal(test_stats(f->tier.store).entries, CONVERSATIONS);
    assert_int_equal(test_stats(f->tier.store).set_aside, 0);
}

static void s46_no_entry_is_written_twice(void **state)
{
    struct fixture *f = *state;
    size_t stored = 0;
    uint64_t tensor_bytes = 0;
    uint64_t headers = UINT64_C(16384) * CONVERSATIONS * TURNS;
    f->tier.ram.cap_bytes = 350;
    f->tier.engine.restored_bytes = 100;
    start(f);
    for (size_t n = 0; n < TURNS; n++) {
        take_turns(f, 1, KV);
        pass(f, S);
        assert_true(flush(f).durable);
        (void)ckv_prompt_cache_demote_idle(f->tier.cache, 0);
        test_tier_drain(&f->tier);
        for (size_t i = 0; i < CONVERSATIONS; i++)
            tensor_bytes += f->talks[i].count * 2 * 2 * 8 * 2;
        stored += CONVERSATIONS;
    }
    assert_int_equal(test_stats(f->tier.store).puts, stored);
    /* Each version once, with its header and the gaps between tensors. */
    assert_true(test_stats(f->tier.store).written_bytes <= tensor_bytes + 2 * headers);
    assert_true(f->tier.world.faulty.written_bytes <= tensor_bytes + 2 * headers);
}

static void s46_versions_that_follow_fast_are_written_once(void **state)
{
    struct fixture *f = *state;
    start(f);
    take_turns(f, TURNS, KV);
    pass(f, S);
    assert_int_equal(test_stats(f->tier.store).puts, CONVERSATIONS);
    assert_int_equal(test_tier_stats(&f->tier).covered_count, 0);
    assert_int_equal(ckv_durability_pending(f->tier.durability), 0);
}

static void s7_a_prompt_asked_again_after_a_restart_hits_its_boundary(void **state)
{
    struct fixture *f = *state;
    struct conversation *talk = &f->talks[0];
    start(f);
    /* The boundary at the prompt's end without its last token, then prompt and reply. */
    test_tier_put(&f->tier, "", SSM, 10, talk->tokens, 9);
    test_tier_put(&f->tier, "", SSM, 10, talk->tokens, 20);
    assert_int_equal(test_tier_take(&f->tier, "", talk->tokens, 10, NULL), 9);
    assert_true(flush(f).durable);
    restart(f);
    assert_int_equal(test_tier_take(&f->tier, "", talk->tokens, 10, NULL), 9);
    assert_int_equal(test_tier_take(&f->tier, "", talk->tokens, 30, NULL), 20);
    assert_int_equal(test_stats(f->tier.store).entries, 2);
}

static void s10_a_restore_says_how_many_tokens_can_be_reused(void **state)
{
    struct fixture *f = *state;
    struct conversation *talk = &f->talks[0];
    struct ckv_taken taken;
    start(f);
    test_tier_put(&f->tier, "", SSM, 10, talk->tokens, 20);
    assert_true(flush(f).durable);
    restart(f);
    assert_int_equal(test_tier_take(&f->tier, "", talk->tokens, 20, &taken), 0);
    assert_int_equal(taken.tier, CKV_TIER_NONE);
    assert_int_equal(f->tier.engine.prepared, 0);
    assert_int_equal(test_tier_take(&f->tier, "", talk->tokens, 21, &taken), 20);
    assert_int_equal(taken.tier, CKV_TIER_STORE);
}

static void s12_the_longest_state_that_can_be_used_wins_after_a_restart(void **state)
{
    struct fixture *f = *state;
    struct conversation *talk = &f->talks[0];
    start(f);
    test_tier_put(&f->tier, "", SSM, 10, talk->tokens, 8);
    test_tier_put(&f->tier, "", SSM, 10, talk->tokens, 40);
    assert_true(flush(f).durable);
    restart(f);
    assert_int_equal(test_tier_take(&f->tier, "", talk->tokens, 39, NULL), 8);
}

static void s40_an_entry_above_the_cap_of_the_store_costs_no_writing(void **state)
{
    struct fixture *f = *state;
    struct conversation *talk = &f->talks[0];
    struct ckv_flush_evidence evidence;
    ckv_store_close(f->tier.store);
    f->tier.world.options.cap_bytes = 16384;
    f->tier.store = test_world_open(&f->tier.world);
    f->tier.ram.store = f->tier.store;
    start(f);
    test_faulty_io_reset(&f->tier.world.faulty);
    test_tier_put(&f->tier, "", KV, 10, talk->tokens, 20);
    evidence = flush(f);
    assert_false(evidence.durable);
    assert_int_equal(evidence.failed_spills, 1);
    assert_int_equal(f->tier.world.faulty.written_bytes, 0);
    assert_int_equal(test_stats(f->tier.store).refused_full, 1);
    assert_true(test_log_contains(&f->tier.world.log, "store.put_failed", "cap"));
    /* It serves all the same. */
    assert_int_equal(test_tier_take(&f->tier, "", talk->tokens, 30, NULL), 20);
}

static void s54_turns_become_durable_though_the_engine_never_rests(void **state)
{
    struct fixture *f = *state;
    f->tier.spill.patience_ns = 1;
    start(f);
    ckv_activity_begin(f->tier.activity);
    for (size_t n = 0; n < TURNS; n++) {
        take_turns(f, 1, KV);
        pass(f, 4 * S);
    }
    assert_true(test_stats(f->tier.store).puts >= CONVERSATIONS);
    assert_true(test_tier_stats(&f->tier).paced_chunks > 0);
    ckv_activity_end(f->tier.activity);
    assert_true(flush(f).durable);
}

static void s33_a_disk_that_fails_costs_hits_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    struct test_fault fault = {
        .call = TEST_CALL_ANY, .nth = 1, .os_errno = EIO, .from_then_on = true};
    struct ckv_flush_evidence evidence;
    start(f);
    take_turns(f, 1, KV);
    assert_true(flush(f).durable);
    ckv_prompt_cache_clear(f->tier.cache);
    test_faulty_io_fail(&f->tier.world.faulty, &fault);
    for (size_t i = 0; i < CONVERSATIONS; i++)
        assert_int_equal(take_turn(f, &f->talks[i], KV), 0);
    take_turns(f, 1, KV);
    evidence = flush(f);
    assert_false(evidence.durable);
    assert_int_equal(evidence.pending_snapshots, CONVERSATIONS);
    assert_int_equal(evidence.failed_spills, CONVERSATIONS);
    test_faulty_io_reset(&f->tier.world.faulty);
    assert_true(flush(f).durable);
    restart(f);
    take_turns(f, 1, KV);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(s50_s53_after_a_flush_every_next_turn_reuses_all_of_its_past),
        TEST(s50_the_same_when_memory_holds_only_a_few),
        TEST(s53_a_kill_costs_at_most_what_was_not_durable),
        TEST(s46_no_entry_is_written_twice),
        TEST(s46_versions_that_follow_fast_are_written_once),
        TEST(s7_a_prompt_asked_again_after_a_restart_hits_its_boundary),
        TEST(s10_a_restore_says_how_many_tokens_can_be_reused),
        TEST(s12_the_longest_state_that_can_be_used_wins_after_a_restart),
        TEST(s40_an_entry_above_the_cap_of_the_store_costs_no_writing),
        TEST(s54_turns_become_durable_though_the_engine_never_rests),
        TEST(s33_a_disk_that_fails_costs_hits_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

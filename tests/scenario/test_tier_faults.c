/*
 * Every call to the disk and every allocation fails once, in a short life of all tiers:
 * put, flush, restart, take. Whatever fails, flush tells the truth: what it calls durable
 * is there in the next process, byte for byte; nothing is served that is not right, and
 * nothing is left behind.
 */
#include "lib/tier_world.h"
#include "lib/unit.h"

#include "tier/durability.h"
#include <errno.h>
#include <stdlib.h>

#define T TEST_TOKENS
#define KV CKV_CACHE_KV
#define SSM CKV_CACHE_SSM

/* One life, with something broken in it. */
struct life {
    struct test_tier tier;
    bool kept[3]; /* the puts that said OK */
    bool durable; /* what flush said */
    size_t fired; /* faults that hit */
};

static void try_put(struct life *life, size_t number, enum ckv_cache_kind kind,
                    const uint32_t *tokens, size_t count)
{
    struct test_tier *t = &life->tier;
    struct test_held *object = test_held_make(&t->engine, kind, 60, tokens, count);
    struct ckv_held *held;
    if (test_held_wrap(object, &held, &t->error) != CKV_OK) {
        test_held_discard(object);
        return;
    }
    life->kept[number] = ckv_prompt_cache_put(t->cache, "", held, &t->error) == CKV_OK;
    ckv_held_unref(held);
}

static void begin_life(struct life *life)
{
    struct test_tier *t = &life->tier;
    *life = (struct life){0};
    test_tier_init(t);
    t->ram.cap_bytes = 100; /* each put evicts the one before */
    test_tier_start(t);
    test_tier_start_cache(t);
    assert_ok(ckvi_durability_create(t->cache, t->queue, t->store, &t->durable,
                                     &t->durability, &t->error),
              t->error);
}

static void live(struct life *life)
{
    struct test_tier *t = &life->tier;
    struct ckv_flush_evidence evidence;
    try_put(life, 0, KV, T(1, 2, 3));
    try_put(life, 1, SSM, T(4, 5));
    try_put(life, 2, KV, T(7, 8, 9, 10));
    assert_ok(ckv_durability_flush(t->durability, TEST_NEVER, &evidence, &t->error),
              t->error);
    life->durable = evidence.durable;
}

/* What a take in the next process gives: all of the entry or nothing, and the right
 * bytes.
 */
static void check_entry(struct life *life, size_t number, const uint32_t *prompt,
                        size_t length)
{
    struct test_tier *t = &life->tier;
    uint64_t prefix = test_tier_take(t, "", prompt, length, NULL);
    assert_true(prefix == 0 || prefix == length - 1);
    if (prefix > 0)
        assert_true(t->engine.equal);
    if (life->durable && life->kept[number])
        assert_int_equal(prefix, length - 1);
}

static void end_life(struct life *life)
{
    test_tier_reopen(&life->tier);
    check_entry(life, 0, T(1, 2, 3, 9));
    check_entry(life, 1, T(4, 5, 6));
    check_entry(life, 2, T(7, 8, 9, 10, 11));
    assert_int_equal(test_tier_deinit(&life->tier), 0);
}

static size_t live_with_fault(const struct test_fault *fault)
{
    struct life life;
    begin_life(&life);
    test_faulty_io_reset(&life.tier.world.faulty);
    test_faulty_io_fail(&life.tier.world.faulty, fault);
    live(&life);
    test_tier_drain(&life.tier);
    life.fired = life.tier.world.faulty.fired;
    test_faulty_io_reset(&life.tier.world.faulty);
    if (life.fired == 0) {
        assert_true(life.durable);
        assert_true(life.kept[0] && life.kept[1] && life.kept[2]);
    }
    end_life(&life);
    return life.fired;
}

static void sweep_calls(int os_errno, bool from_then_on, bool after)
{
    struct test_fault fault = {.call = TEST_CALL_ANY,
                               .nth = 1,
                               .os_errno = os_errno,
                               .from_then_on = from_then_on,
                               .after = after};
    while (live_with_fault(&fault) > 0) {
        fault.nth++;
        assert_true(fault.nth < 1000);
    }
    assert_true(fault.nth > 20);
}

static void s33_s52_each_call_fails_once(void **state)
{
    (void)state;
    sweep_calls(EIO, false, false);
}

static void s33_s52_from_each_call_on_the_disk_is_gone(void **state)
{
    (void)state;
    sweep_calls(EIO, true, false);
}

static void s33_s52_each_call_finds_the_disk_full(void **state)
{
    (void)state;
    sweep_calls(ENOSPC, false, false);
}

static void s52_the_answer_of_each_call_is_lost(void **state)
{
    (void)state;
    sweep_calls(EIO, false, true);
}

static void s34_each_allocation_fails_once(void **state)
{
    size_t fired = 1;
    (void)state;
    for (size_t n = 1; fired > 0; n++) {
        struct life life;
        assert_true(n < 2000);
        begin_life(&life);
        test_alloc_reset(&life.tier.world.alloc);
        life.tier.world.alloc.fail_at = n;
        live(&life);
        test_tier_drain(&life.tier);
        fired = life.tier.world.alloc.failed_count;
        test_alloc_reset(&life.tier.world.alloc);
        assert_true(fired > 0 || life.durable);
        end_life(&life);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s33_s52_each_call_fails_once),
        cmocka_unit_test(s33_s52_from_each_call_on_the_disk_is_gone),
        cmocka_unit_test(s33_s52_each_call_finds_the_disk_full),
        cmocka_unit_test(s52_the_answer_of_each_call_is_lost),
        cmocka_unit_test(s34_each_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Every io call and every allocation of every store function fails once, and then from
 * there on: older entries stay intact, nothing is left behind, nothing wrong is served
 * (S30, S31, S34). */
#include "lib/store_world.h"
#include "lib/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define T TEST_TOKENS
#define FP TEST_FINGERPRINT
#define BASE FP "/base"
#define UUID "01234567-89ab-4def-8123-456789abcdef"
#define CALLS_MAX 400

static const int errnos[] = {EIO, ENOSPC, EMFILE, EACCES};

struct fixture {
    struct test_world world;
    struct ckv_store *store;
};

/* A store with T(1, 2) and T(7, 8), a dead temporary and a foreign file. */
static void begin(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    test_world_init(&f->world);
    f->world.identity.description = "{}";
    f->store = test_world_open(&f->world);
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2));
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(7, 8));
    test_world_write(&f->world, BASE, "notes", "x", 1);
}

static void end(struct fixture *f)
{
    ckv_store_close(f->store);
    assert_int_equal(test_world_deinit(&f->world), 0);
}

static void reopen(struct fixture *f)
{
    test_faulty_io_reset(&f->world.faulty);
    test_alloc_reset(&f->world.alloc);
    ckv_store_close(f->store);
    f->store = test_world_open(&f->world);
}

/* No temporary, no .bad, nothing that was ours to leave alone is gone. */
static void expect_tidy(struct fixture *f)
{
    assert_int_equal(test_world_count(&f->world, BASE, ".part"), 0);
    assert_int_equal(test_world_count(&f->world, FP, ".part"), 0);
    assert_int_equal(test_world_count(&f->world, BASE, ".bad"), 0);
    assert_int_equal(test_world_count(&f->world, BASE, "notes"), 1);
}

static void expect_old_entries(struct fixture *f)
{
    assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 9)), 2);
    assert_int_equal(test_restore(&f->world, f->store, "", T(7, 8, 9)), 2);
}

/* One way in which things fail. */
struct plan {
    size_t nth;
    int os_errno;
    bool from_then_on;
    bool after;
};

static void arm(struct fixture *f, const struct plan *plan)
{
    test_faulty_io_reset(&f->world.faulty);
    test_faulty_io_fail(&f->world.faulty,
                        &(struct test_fault){.call = TEST_CALL_ANY,
                                             .nth = plan->nth,
                                             .os_errno = plan->os_errno,
                                             .from_then_on = plan->from_then_on,
                                             .after = plan->after});
}

/* Returns how many faults fired. */
typedef size_t (*act_fn)(struct fixture *f, const struct plan *plan);

/* Runs act with the first call failing, then the second, ... until none fails. */
static void sweep_io(act_fn act, bool from_then_on, bool after)
{
    for (size_t e = 0; e < TEST_COUNT_OF(errnos); e++) {
        struct plan plan = {0, errnos[e], from_then_on, after};
        size_t fired = 1;
        while (fired > 0) {
            struct fixture f;
            plan.nth++;
            assert_true(plan.nth < CALLS_MAX);
            begin(&f);
            fired = act(&f, &plan);
            reopen(&f);
            if (!plan.from_then_on && !plan.after)
                expect_tidy(&f);
            end(&f);
        }
        assert_true(plan.nth > 5);
    }
}

static size_t put_longer(struct fixture *f, const struct plan *plan)
{
    struct ckv_stored stored;
    struct ckv_error why;
    enum ckv_status status;
    size_t fired;
    arm(f, plan);
    status = test_try_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4), &stored);
    fired = f->world.faulty.fired;
    why = f->world.error;
    if (!plan->from_then_on && !plan->after)
        expect_tidy(f);
    test_faulty_io_reset(&f->world.faulty);
    expect_old_entries(f);
    assert_int_equal(test_stats(f->store).set_aside, 0);
    if (status == CKV_OK) {
        assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3, 4, 9)), 4);
        assert_int_equal(test_stats(f->store).put_failures, 0);
        assert_true(stored.written_bytes > 0);
    } else {
        assert_true(fired > 0);
        assert_true(why.text[0] != '\0');
        assert_int_equal(why.status, status);
        assert_int_equal(test_stats(f->store).put_failures, 1);
        assert_int_equal(test_stats(f->store).puts, 2);
        assert_int_equal(test_log_count(&f->world.log, "store.put_failed"), 1);
        assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3, 4, 9)), 2);
    }
    reopen(f);
    expect_old_entries(f);
    if (status == CKV_OK)
        assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3, 4, 9)), 4);
    return fired;
}

static void each_call_of_a_put_fails_once(void **state)
{
    (void)state;
    sweep_io(put_longer, false, false);
}

static void all_calls_of_a_put_fail_from_one_on(void **state)
{
    (void)state;
    sweep_io(put_longer, true, false);
}

static size_t put_lost_answer(struct fixture *f, const struct plan *plan)
{
    enum ckv_status status;
    size_t fired;
    arm(f, plan);
    status = test_try_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4), NULL);
    fired = f->world.faulty.fired;
    test_faulty_io_reset(&f->world.faulty);
    /* Whatever was answered: what is served is right, and the old prefixes are served. */
    expect_old_entries(f);
    if (status == CKV_OK)
        assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3, 4, 9)), 4);
    reopen(f);
    expect_old_entries(f);
    assert_int_equal(test_world_count(&f->world, BASE, ".part"), 0);
    return fired;
}

static void each_call_of_a_put_is_done_but_reported_as_failed(void **state)
{
    (void)state;
    sweep_io(put_lost_answer, false, true);
}

static size_t restore_old(struct fixture *f, const struct plan *plan)
{
    struct test_target target;
    struct ckv_restored restored;
    enum ckv_status status;
    size_t fired;
    test_target_init(&target);
    arm(f, plan);
    status = ckv_store_restore(f->store, "", T(1, 2, 9), &target.target, &restored,
                               &f->world.error);
    fired = f->world.faulty.fired;
    assert_true(status == CKV_OK || status == CKV_NOTFOUND);
    if (status == CKV_OK)
        assert_true(target.equal);
    else
        assert_true(fired > 0 && f->world.error.text[0] != '\0');
    assert_int_equal(target.accepted, status == CKV_OK);
    assert_int_equal(target.prepared, target.accepted + target.dropped);
    test_target_deinit(&target);
    test_faulty_io_reset(&f->world.faulty);
    assert_int_equal(test_stats(f->store).set_aside, 0);
    assert_int_equal(test_stats(f->store).entries, 2);
    expect_old_entries(f);
    return fired;
}

static void each_call_of_a_restore_fails_once(void **state)
{
    (void)state;
    sweep_io(restore_old, false, false);
}

static void all_calls_of_a_restore_fail_from_one_on(void **state)
{
    (void)state;
    sweep_io(restore_old, true, false);
}

/* Closes, leaves a dead temporary and an expired .bad, and opens under faults. */
static size_t open_again(struct fixture *f, const struct plan *plan)
{
    enum ckv_status status;
    size_t fired;
    ckv_store_close(f->store);
    f->store = NULL;
    test_world_write(&f->world, BASE, "." UUID ".part", "x", 1);
    arm(f, plan);
    status = test_world_try_open(&f->world, &f->store);
    fired = f->world.faulty.fired;
    if (status != CKV_OK) {
        assert_null(f->store);
        assert_true(fired > 0);
        assert_true(f->world.error.text[0] != '\0');
        assert_int_equal(f->world.error.status, status);
    } else {
        assert_int_equal(test_stats(f->store).set_aside, 0);
        assert_int_equal(test_stats(f->store).evicted, 0);
        test_faulty_io_reset(&f->world.faulty);
        /* What was not seen under faults is a miss, never wrong. */
        (void)test_restore(&f->world, f->store, "", T(1, 2, 9));
    }
    reopen(f);
    expect_old_entries(f);
    assert_int_equal(test_stats(f->store).entries, 2);
    return fired;
}

static void each_call_of_open_fails_once(void **state)
{
    (void)state;
    sweep_io(open_again, false, false);
}

static void all_calls_of_open_fail_from_one_on(void **state)
{
    (void)state;
    sweep_io(open_again, true, false);
}

/* Another store adds and removes; this one refreshes under faults. */
static size_t refresh_under_faults(struct fixture *f, const struct plan *plan)
{
    struct ckv_store *other = test_world_open(&f->world);
    enum ckv_status status;
    size_t fired;
    test_put(&f->world, other, "new", CKV_CACHE_KV, T(5, 6));
    test_put(&f->world, other, "", CKV_CACHE_KV, T(3, 4));
    ckv_store_close(other);
    arm(f, plan);
    status = ckv_store_refresh(f->store, &f->world.error);
    fired = f->world.faulty.fired;
    assert_true(status == CKV_OK || fired > 0);
    test_faulty_io_reset(&f->world.faulty);
    expect_old_entries(f);
    assert_int_equal(test_stats(f->store).set_aside, 0);
    reopen(f);
    assert_int_equal(test_stats(f->store).entries, 4);
    return fired;
}

static void each_call_of_a_refresh_fails_once(void **state)
{
    (void)state;
    sweep_io(refresh_under_faults, false, false);
}

/* Cap for two entries of kind state: the put has to evict T(7) for T(9). */
static size_t evict_under_faults(struct fixture *f, const struct plan *plan)
{
    enum ckv_status status;
    size_t fired;
    ckv_store_close(f->store);
    test_world_remove(&f->world, BASE, "notes");
    f->world.options.cap_bytes = 0;
    ckv_store_close(test_world_open(&f->world));
    f->world.options.cap_bytes = 2 * 20480 + 4096; /* identity.json */
    f->store = test_world_open(&f->world);
    test_put(&f->world, f->store, "", CKV_CACHE_STATE, T(7));
    test_put(&f->world, f->store, "", CKV_CACHE_STATE, T(8));
    arm(f, plan);
    status = test_try_put(&f->world, f->store, "", CKV_CACHE_STATE, T(9), NULL);
    fired = f->world.faulty.fired;
    test_faulty_io_reset(&f->world.faulty);
    assert_true(test_world_used(&f->world) <= f->world.options.cap_bytes);
    /* The most recently used one may go only when the older one could not. */
    if (test_restore(&f->world, f->store, "", T(8, 0)) == 0)
        assert_int_equal(test_restore(&f->world, f->store, "", T(7, 0)), 1);
    if (status == CKV_OK)
        assert_int_equal(test_restore(&f->world, f->store, "", T(9, 0)), 1);
    test_world_write(&f->world, BASE, "notes", "", 0);
    expect_tidy(f);
    return fired;
}

static void each_call_of_an_evicting_put_fails_once(void **state)
{
    (void)state;
    sweep_io(evict_under_faults, false, false);
}

/* --- memory --- */

typedef enum ckv_status (*try_fn)(struct fixture *f);

static void sweep_memory(try_fn try, size_t least)
{
    size_t nth = 0;
    size_t failed = 1;
    while (failed > 0) {
        struct fixture f;
        enum ckv_status status;
        nth++;
        begin(&f);
        test_alloc_reset(&f.world.alloc);
        f.world.alloc.fail_at = nth;
        status = try(&f);
        failed = f.world.alloc.failed_count;
        assert_true(status == CKV_OK || failed > 0);
        test_alloc_reset(&f.world.alloc);
        if (f.store)
            assert_int_equal(test_stats(f.store).set_aside, 0);
        reopen(&f);
        expect_tidy(&f);
        expect_old_entries(&f);
        end(&f);
    }
    assert_true(nth > least);
}

static enum ckv_status try_put(struct fixture *f)
{
    enum ckv_status status =
        test_try_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4), NULL);
    size_t failed = f->world.alloc.failed_count;
    assert_true(status == CKV_OK || status == CKV_NOMEM);
    test_alloc_reset(&f->world.alloc);
    expect_tidy(f);
    expect_old_entries(f);
    f->world.alloc.failed_count = failed;
    return status;
}

static enum ckv_status try_restore(struct fixture *f)
{
    struct test_target target;
    enum ckv_status status;
    size_t failed;
    test_target_init(&target);
    status = ckv_store_restore(f->store, "", T(1, 2, 9), &target.target, NULL,
                               &f->world.error);
    failed = f->world.alloc.failed_count;
    assert_true(status == CKV_OK || status == CKV_NOTFOUND);
    assert_int_equal(target.prepared, target.accepted + target.dropped);
    test_target_deinit(&target);
    test_alloc_reset(&f->world.alloc);
    expect_old_entries(f);
    f->world.alloc.failed_count = failed;
    return status;
}

static enum ckv_status try_open(struct fixture *f)
{
    enum ckv_status status;
    ckv_store_close(f->store);
    f->store = NULL;
    status = test_world_try_open(&f->world, &f->store);
    assert_true(status == CKV_OK || status == CKV_NOMEM);
    return status;
}

static enum ckv_status try_refresh(struct fixture *f)
{
    struct ckv_store *other;
    size_t fail_at = f->world.alloc.fail_at;
    enum ckv_status status;
    f->world.alloc.fail_at = 0;
    other = test_world_open(&f->world);
    test_put(&f->world, other, "new", CKV_CACHE_KV, T(5, 6));
    ckv_store_close(other);
    test_alloc_reset(&f->world.alloc);
    f->world.alloc.fail_at = fail_at;
    status = ckv_store_refresh(f->store, &f->world.error);
    assert_true(status == CKV_OK || status == CKV_NOMEM);
    return status;
}

static void each_allocation_of_a_put_fails(void **state)
{
    (void)state;
    sweep_memory(try_put, 10);
}

static void each_allocation_of_a_restore_fails(void **state)
{
    (void)state;
    sweep_memory(try_restore, 3);
}

static void each_allocation_of_open_fails(void **state)
{
    (void)state;
    sweep_memory(try_open, 10);
}

static void each_allocation_of_a_refresh_fails(void **state)
{
    (void)state;
    sweep_memory(try_refresh, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_of_a_put_fails_once),
        cmocka_unit_test(all_calls_of_a_put_fail_from_one_on),
        cmocka_unit_test(each_call_of_a_put_is_done_but_reported_as_failed),
        cmocka_unit_test(each_call_of_a_restore_fails_once),
        cmocka_unit_test(all_calls_of_a_restore_fail_from_one_on),
        cmocka_unit_test(each_call_of_open_fails_once),
        cmocka_unit_test(all_calls_of_open_fail_from_one_on),
        cmocka_unit_test(each_call_of_a_refresh_fails_once),
        cmocka_unit_test(each_call_of_an_evicting_put_fails_once),
        cmocka_unit_test(each_allocation_of_a_put_fails),
        cmocka_unit_test(each_allocation_of_a_restore_fails),
        cmocka_unit_test(each_allocation_of_open_fails),
        cmocka_unit_test(each_allocation_of_a_refresh_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The activity gate: spec M76-M78, and who waits for it. */
#include "lib/latch.h"
#include "lib/unit.h"

#include <coldkv/activity.h>
#include <pthread.h>

#define NEVER INT64_MAX

static int setup(void **state)
{
    struct ckv_activity *activity;
    struct ckv_error error;
    assert_ok(ckv_activity_create(NULL, &activity, &error), error);
    *state = activity;
    return 0;
}

static int teardown(void **state)
{
    ckv_activity_destroy(*state);
    return 0;
}

/* One thread that waits for rest. */
struct waiter {
    struct ckv_activity *activity;
    struct test_latch started;
    uint64_t wakes;
    enum ckv_status status;
    pthread_t thread;
};

static void *wait_on_thread(void *ctx)
{
    struct waiter *waiter = ctx;
    test_latch_pass(&waiter->started);
    waiter->status = ckv_activity_wait_idle(waiter->activity, waiter->wakes, NEVER);
    return NULL;
}

static void start_waiter(struct waiter *waiter, struct ckv_activity *activity)
{
    waiter->activity = activity;
    waiter->wakes = ckv_activity_wakes(activity);
    test_latch_init(&waiter->started, true);
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_on_thread, waiter), 0);
    test_latch_await(&waiter->started, 1);
}

static enum ckv_status join_waiter(struct waiter *waiter)
{
    assert_int_equal(pthread_join(waiter->thread, NULL), 0);
    test_latch_deinit(&waiter->started);
    return waiter->status;
}

static void m76_idle_waits_for_nothing(void **state)
{
    struct ckv_activity *activity = *state;
    assert_false(ckv_activity_is_busy(activity));
    assert_status(ckv_activity_wait_idle(activity, 0, 0), CKV_OK);
    assert_status(ckv_activity_wait_idle(activity, 0, NEVER), CKV_OK);
}

static void m77_work_makes_others_wait(void **state)
{
    struct ckv_activity *activity = *state;
    struct waiter waiter;
    ckv_activity_begin(activity);
    assert_true(ckv_activity_is_busy(activity));
    assert_status(ckv_activity_wait_idle(activity, 0, 0), CKV_AGAIN);
    assert_status(ckv_activity_wait_idle(activity, 0, 1), CKV_AGAIN);
    start_waiter(&waiter, activity);
    ckv_activity_end(activity);
    assert_status(join_waiter(&waiter), CKV_OK);
}

static void m78_busy_stays_true_across_a_handover(void **state)
{
    struct ckv_activity *activity = *state;
    struct waiter waiter;
    ckv_activity_begin(activity);
    ckv_activity_begin(activity);
    start_waiter(&waiter, activity);
    ckv_activity_end(activity);
    assert_true(ckv_activity_is_busy(activity));
    ckv_activity_begin(activity);
    ckv_activity_end(activity);
    assert_true(ckv_activity_is_busy(activity));
    ckv_activity_end(activity);
    assert_false(ckv_activity_is_busy(activity));
    assert_status(join_waiter(&waiter), CKV_OK);
}

static void a_wake_ends_a_wait(void **state)
{
    struct ckv_activity *activity = *state;
    struct waiter waiter;
    ckv_activity_begin(activity);
    start_waiter(&waiter, activity);
    ckv_activity_wake(activity);
    assert_status(join_waiter(&waiter), CKV_CANCELLED);
    assert_true(ckv_activity_is_busy(activity));
    ckv_activity_end(activity);
}

static void a_wake_before_the_wait_is_not_lost(void **state)
{
    struct ckv_activity *activity = *state;
    uint64_t wakes = ckv_activity_wakes(activity);
    ckv_activity_begin(activity);
    ckv_activity_wake(activity);
    assert_status(ckv_activity_wait_idle(activity, wakes, NEVER), CKV_CANCELLED);
    assert_status(ckv_activity_wait_idle(activity, ckv_activity_wakes(activity), 0),
                  CKV_AGAIN);
    ckv_activity_end(activity);
}

static void all_waiters_are_told(void **state)
{
    struct ckv_activity *activity = *state;
    struct waiter waiters[3];
    ckv_activity_begin(activity);
    for (size_t i = 0; i < TEST_COUNT_OF(waiters); i++)
        start_waiter(&waiters[i], activity);
    ckv_activity_end(activity);
    for (size_t i = 0; i < TEST_COUNT_OF(waiters); i++)
        assert_status(join_waiter(&waiters[i]), CKV_OK);
}

static void ending_nothing_is_fine(void **state)
{
    struct ckv_error error;
    (void)state;
    ckv_activity_destroy(NULL);
    assert_status(ckv_activity_create(NULL, NULL, &error), CKV_INVALID);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(m76_idle_waits_for_nothing),
        TEST(m77_work_makes_others_wait),
        TEST(m78_busy_stays_true_across_a_handover),
        TEST(a_wake_ends_a_wait),
        TEST(a_wake_before_the_wait_is_not_lost),
        TEST(all_waiters_are_told),
        TEST(ending_nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

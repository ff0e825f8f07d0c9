/* The system's clocks and the fake one. */
#include "base/clock.h"
#include "lib/fake_clock.h"
#include "lib/unit.h"

#include <time.h>

static void the_system_clock_counts_from_1970_and_forwards(void **state)
{
    const struct ckv_clock *clock = ckv_clock_system();
    int64_t before = (int64_t)time(NULL);
    int64_t now = clock->realtime_ns(clock->ctx);
    int64_t after = (int64_t)time(NULL);
    int64_t a = clock->monotonic_ns(clock->ctx);
    int64_t b = clock->monotonic_ns(clock->ctx);
    (void)state;
    /* time() may lag the precise clock by its tick. */
    assert_true(now / TEST_NS_PER_S >= before);
    assert_true(now / TEST_NS_PER_S <= after + 1);
    assert_true(b >= a);
    clock->sleep_ns(clock->ctx, 0);
    clock->sleep_ns(clock->ctx, -5);
}

static void null_means_the_system_clock(void **state)
{
    struct test_clock fake;
    (void)state;
    test_clock_init(&fake);
    assert_ptr_equal(ckvi_clock_or_system(NULL), ckv_clock_system());
    assert_ptr_equal(ckvi_clock_or_system(&fake.clock), &fake.clock);
    test_clock_deinit(&fake);
}

static void count_sleep(void *ctx, int64_t duration_ns)
{
    *(int64_t *)ctx += duration_ns;
}

static void only_the_test_moves_the_fake_clock(void **state)
{
    struct test_clock fake;
    const struct ckv_clock *clock = &fake.clock;
    int64_t seen = 0;
    int64_t start;
    int64_t mono;
    (void)state;
    test_clock_init(&fake);
    start = clock->realtime_ns(clock->ctx);
    mono = clock->monotonic_ns(clock->ctx);
    assert_true(start == TEST_CLOCK_START_NS);
    assert_true(clock->realtime_ns(clock->ctx) == start);
    test_clock_advance(&fake, 5);
    assert_true(clock->realtime_ns(clock->ctx) == start + 5);
    assert_true(clock->monotonic_ns(clock->ctx) == mono + 5);
    test_clock_set_realtime(&fake, 100);
    assert_true(clock->realtime_ns(clock->ctx) == 100);
    assert_true(clock->monotonic_ns(clock->ctx) == mono + 5);
    fake.on_sleep = count_sleep;
    fake.on_sleep_ctx = &seen;
    clock->sleep_ns(clock->ctx, 7);
    assert_true(seen == 7);
    assert_true(fake.slept_ns == 7);
    assert_int_equal(fake.sleep_count, 1);
    assert_true(clock->monotonic_ns(clock->ctx) == mono + 12);
    assert_true(clock->realtime_ns(clock->ctx) == 107);
    test_clock_deinit(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_system_clock_counts_from_1970_and_forwards),
        cmocka_unit_test(null_means_the_system_clock),
        cmocka_unit_test(only_the_test_moves_the_fake_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

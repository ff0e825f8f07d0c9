/* How benchmarks measure, on a clock that moves only when work is done. */
#include "measure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TINY 1e-9
#define LOG_SIZE 256

static int64_t now;
static char order[LOG_SIZE]; /* one letter per run */
static size_t order_length;

static int64_t read_clock(void *ctx)
{
    (void)ctx;
    return now;
}

static const struct bench_clock fake = {read_clock, NULL};

struct fake_work {
    char letter;
    int64_t cost_ns;
    int64_t slower_ns; /* each run costs so much more than the one before */
    int64_t cold_ns;   /* and so much more after another one's run */
};

static void run(void *ctx)
{
    struct fake_work *work = ctx;
    now += work->cost_ns;
    if (order_length > 0 && order[order_length - 1] != work->letter)
        now += work->cold_ns;
    work->cost_ns += work->slower_ns;
    if (order_length + 1 < LOG_SIZE)
        order[order_length++] = work->letter;
}

static int set_up(void **state)
{
    (void)state;
    now = 1000;
    order_length = 0;
    memset(order, 0, sizeof order);
    return 0;
}

static struct bench_rates measure(struct fake_work *a, struct fake_work *b,
                                  unsigned pairs, unsigned min_ms)
{
    const struct bench_options options = {.pairs = pairs, .min_ms = min_ms};
    const struct bench_work work = {run, a, 10.0};
    const struct bench_work limit = {run, b, 10.0};
    return bench_measure(&work, &limit, &fake, &options);
}

static void pairs_are_interleaved_and_swapped(void **state)
{
    struct fake_work a = {'a', 10, 0, 0}, b = {'b', 5, 0, 0};
    (void)state;
    (void)measure(&a, &b, 4, 0);
    /* Both are tried out; then each round has a pair and an A/A pair, and each
     * measurement a run in front that is not counted. */
    assert_string_equal(order, "ab"
                               "aabbaaaa"
                               "bbaaaaaa"
                               "aabbaaaa"
                               "bbaaaaaa");
}

/* The run in front is the slow one here, and does not count. */
static void the_first_run_of_a_measurement_is_not_counted(void **state)
{
    struct fake_work a = {'a', 10, 0, 1000}, b = {'b', 10, 0, 5000};
    (void)state;
    struct bench_rates rates = measure(&a, &b, 2, 0);
    assert_float_equal(rates.ratio.median, 1.0, TINY);
    assert_float_equal(rates.itself.median, 1.0, TINY);
}

static void rates_and_ratio_are_exact(void **state)
{
    struct fake_work a = {'a', 20, 0, 0}, b = {'b', 5, 0, 0};
    (void)state;
    struct bench_rates rates = measure(&a, &b, 9, 0);
    assert_float_equal(rates.work, 10.0 / 20e-9, 1);
    assert_float_equal(rates.limit, 10.0 / 5e-9, 1);
    assert_float_equal(rates.ratio.low, 0.25, TINY);
    assert_float_equal(rates.ratio.median, 0.25, TINY);
    assert_float_equal(rates.ratio.high, 0.25, TINY);
    assert_float_equal(rates.itself.median, 1.0, TINY);
}

/* A machine that slows down all the time makes the later one of a pair the slower one.
 * Because the order is swapped, the medians of even counts stay close to 1. */
static void drift_cancels_out(void **state)
{
    struct fake_work a = {'a', 1000, 10, 0};
    (void)state;
    struct bench_rates rates = measure(&a, &a, 8, 0);
    assert_true(rates.ratio.low < 1.0 && rates.ratio.high > 1.0);
    assert_float_equal(rates.ratio.median, 1.0, 0.001);
    assert_true(rates.itself.low < 1.0 && rates.itself.high > 1.0);
    assert_float_equal(rates.itself.median, 1.0, 0.001);
}

static void runs_are_repeated_until_they_take_long_enough(void **state)
{
    struct fake_work a = {'a', 300000, 0, 0}, b = {'b', 2000000, 0, 0};
    (void)state;
    (void)measure(&a, &b, 1, 1);
    /* 0.3 ms: 1, 2, then 4 runs reach 1 ms; 2 ms: one run does. */
    assert_string_equal(order, "aaaaaaa"
                               "b"
                               "aaaaabb"
                               "aaaaaaaaaa");
}

static void work_that_the_clock_does_not_see_is_not_divided_by_zero(void **state)
{
    struct fake_work a = {'a', 0, 0, 0}, b = {'b', 4, 0, 0};
    (void)state;
    struct bench_rates rates = measure(&a, &b, 3, 0);
    assert_float_equal(rates.ratio.median, 4.0, TINY);
}

static void the_thread_clock_never_goes_back(void **state)
{
    int64_t first = bench_clock_thread.now_ns(bench_clock_thread.ctx);
    (void)state;
    assert_true(first >= 0);
    assert_true(bench_clock_thread.now_ns(bench_clock_thread.ctx) >= first);
}

static void the_list_is_complete_and_searchable(void **state)
{
    size_t count = 0;
    const struct bench_suite *suites = bench_suites(&count);
    (void)state;
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(bench_find(suites[i].name), &suites[i]);
    assert_non_null(bench_find("codec"));
    assert_null(bench_find("code"));
    assert_null(bench_find(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(pairs_are_interleaved_and_swapped, set_up),
        cmocka_unit_test_setup(the_first_run_of_a_measurement_is_not_counted, set_up),
        cmocka_unit_test_setup(rates_and_ratio_are_exact, set_up),
        cmocka_unit_test_setup(drift_cancels_out, set_up),
        cmocka_unit_test_setup(runs_are_repeated_until_they_take_long_enough, set_up),
        cmocka_unit_test_setup(work_that_the_clock_does_not_see_is_not_divided_by_zero,
                               set_up),
        cmocka_unit_test(the_thread_clock_never_goes_back),
        cmocka_unit_test(the_list_is_complete_and_searchable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The statistics of the benchmarks, against values worked out by hand. */
#include "stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TINY 1e-12

static void check(double *values, size_t count, double low, double median, double high)
{
    struct bench_quartiles q = bench_quartiles_of(values, count);
    assert_float_equal(q.low, low, TINY);
    assert_float_equal(q.median, median, TINY);
    assert_float_equal(q.high, high, TINY);
}

static void one_value_is_all_three(void **state)
{
    double values[] = {7.5};
    (void)state;
    check(values, 1, 7.5, 7.5, 7.5);
}

static void two_values_are_interpolated(void **state)
{
    double values[] = {3.0, 1.0};
    (void)state;
    check(values, 2, 1.5, 2.0, 2.5);
}

static void an_odd_count_has_a_middle(void **state)
{
    double values[] = {5, 1, 4, 2, 3};
    (void)state;
    check(values, 5, 2, 3, 4);
}

static void an_even_count_has_its_median_in_between(void **state)
{
    double values[] = {4, 1, 3, 2};
    (void)state;
    check(values, 4, 1.75, 2.5, 3.25);
}

static void nine_pairs_as_by_default(void **state)
{
    double values[] = {9, 2, 8, 1, 7, 3, 6, 4, 5};
    (void)state;
    check(values, 9, 3, 5, 7);
}

static void values_end_up_sorted(void **state)
{
    double values[] = {2, -1, 0.5, 0.25};
    const double sorted[] = {-1, 0.25, 0.5, 2};
    (void)state;
    (void)bench_quartiles_of(values, 4);
    for (size_t i = 0; i < 4; i++)
        assert_float_equal(values[i], sorted[i], 0);
}

static void one_outlier_moves_nothing(void **state)
{
    double values[] = {1, 1, 1, 1, 1e9};
    (void)state;
    check(values, 5, 1, 1, 1);
}

static void quantiles_reach_both_ends(void **state)
{
    const double sorted[] = {10, 20, 40, 80};
    (void)state;
    assert_float_equal(bench_quantile(sorted, 4, 0.0), 10, TINY);
    assert_float_equal(bench_quantile(sorted, 4, 1.0), 80, TINY);
    assert_float_equal(bench_quantile(sorted, 4, 0.5), 30, TINY);
    assert_float_equal(bench_quantile(sorted, 4, 0.9), 68, TINY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_value_is_all_three),
        cmocka_unit_test(two_values_are_interpolated),
        cmocka_unit_test(an_odd_count_has_a_middle),
        cmocka_unit_test(an_even_count_has_its_median_in_between),
        cmocka_unit_test(nine_pairs_as_by_default),
        cmocka_unit_test(values_end_up_sorted),
        cmocka_unit_test(one_outlier_moves_nothing),
        cmocka_unit_test(quantiles_reach_both_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The statistics of measurements: pure functions. */
#ifndef COLDKV_BENCH_STATS_H
#define COLDKV_BENCH_STATS_H

#include <stddef.h>

/* The middle of a set of numbers, and the middles of its lower and upper halves. */
struct bench_quartiles {
    double low;
    double median;
    double high;
};

/**
 * The value below which the share `q` (0 to 1) of `sorted` lies, interpolated linearly
 * between neighbours: q = 0 is the smallest, q = 1 the largest. count > 0; ascending.
 */
double bench_quantile(const double *sorted, size_t count, double q);

/* Sorts `values` (count > 0, no NaN) and gives their quartiles. */
struct bench_quartiles bench_quartiles_of(double *values, size_t count);

#endif

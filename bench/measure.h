/* How something is measured against something else. */
#ifndef COLDKV_BENCH_MEASURE_H
#define COLDKV_BENCH_MEASURE_H

#include "bench.h"

#include <stdint.h>

/* Something that can be done again and again, and how much it gets done. */
struct bench_work {
    void (*run)(void *ctx);
    void *ctx;
    double amount; /* per run; amount per second is the rate */
};

struct bench_clock {
    int64_t (*now_ns)(void *ctx);
    void *ctx;
};

/* Time that this thread computed: what others do on the machine is left out, but for
 * what they take of caches and memory. */
extern const struct bench_clock bench_clock_thread;

struct bench_rates {
    double work;  /* amount per second, median */
    double limit; /* the same of the limit */
    struct bench_quartiles ratio;
    struct bench_quartiles itself;
};

/**
 * Measures `work` and `limit` in turn, options->pairs times, and beside each pair the
 * work twice. Each measurement follows a run that is not counted. Whichever of a pair
 * comes first in one round comes last in the next, so that a machine that gets slower or
 * warmer favours neither.
 */
struct bench_rates bench_measure(const struct bench_work *work,
                                 const struct bench_work *limit,
                                 const struct bench_clock *clock,
                                 const struct bench_options *options);

#endif

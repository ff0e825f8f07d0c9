/*
 * `coldkv bench`: how fast the library is, beside the limit of the machine measured in
 * the same run. This library measures; the command prints.
 */
#ifndef COLDKV_BENCH_BENCH_H
#define COLDKV_BENCH_BENCH_H

#include "stats.h"

#include <coldkv/status.h>
#include <stdbool.h>
#include <stddef.h>

#define BENCH_PAIRS_MAX 999u
#define BENCH_MIN_MS_MAX 60000u
#define BENCH_CASE_SIZE 48

struct bench_options {
    unsigned pairs;  /* how often a case and its limit are measured, 1 to PAIRS_MAX */
    unsigned min_ms; /* how long one measurement takes at least; 0 = a single run */
    bool all;        /* every combination instead of a representative set */
};

void bench_options_init(struct bench_options *options);

/* What came out for one case. */
struct bench_result {
    const char *bench;
    char name[BENCH_CASE_SIZE]; /* of the case */
    const char *unit;
    const char *limit_name;
    double value; /* median */
    double limit; /* median of the limit, measured between the case's own runs */
    /* Case to limit, pair by pair: 1 = as fast as the limit. */
    struct bench_quartiles ratio;
    /* The case to itself in the same way: how far from 1 chance alone leads. */
    struct bench_quartiles itself;
    double goal;  /* in `unit`; 0 = none was set */
    bool at_most; /* the goal is a ceiling: less is better */
    size_t pairs;
};

typedef void (*bench_result_fn)(void *ctx, const struct bench_result *result);

struct bench_suite {
    const char *name;
    const char *summary; /* one line */
    const char
        *explanation; /* what is measured and how to read it; ends with a newline */
    /* Gives each result as soon as it is there. A wrong result of what is measured is
     * CORRUPT: how fast it comes is of no interest then. */
    enum ckv_status (*run)(const struct bench_options *options, bench_result_fn fn,
                           void *fn_ctx, struct ckv_error *error);
};

/* All of them. Static storage. */
const struct bench_suite *bench_suites(size_t *count);
/* NULL when there is none of this name. */
const struct bench_suite *bench_find(const char *name);

#endif

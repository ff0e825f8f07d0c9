/*
 * Owns `bench index`: how long a search takes, and what the index takes of memory, as the
 * number of entries grows. Every answer is checked while it is measured.
 */
#include "index.h"

#include "index_set.h"
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char bench_index_explanation[] =
    "A search in the prefix index: a prompt of 32,000 tokens among N entries of 256 to\n"
    "4,096 tokens and N / 100 of 32,000; a third of all begin like others. A third of "
    "the\n"
    "prompts is an entry from its beginning to its end, a third leaves one somewhere, a\n"
    "third shares no more than a beginning. Microseconds of processor time, median and\n"
    "99.9th percentile of single searches, so less is better; the limit is memcmp of "
    "two\n"
    "prompts, in the processor's caches. Goals with 100,000 entries: 100 us and 1,000 "
    "us.\n"
    "`memory` is what the index has allocated, as a share of 4.5 bytes for each "
    "distinct\n"
    "token and 300 for each entry; its limit is the tokens alone, at 4 bytes each. "
    "Takes\n"
    "1 GB of memory.\n";

#define GOAL_ENTRIES 100000u
#define GOAL_MEDIAN_US 100.0
#define GOAL_TAIL_US 1000.0
#define TAIL 0.999
/* Searches with each prompt in one round. */
#define PASSES 6u

/* Of the rounds so far. */
struct figures {
    double values[BENCH_PAIRS_MAX];
    double limits[BENCH_PAIRS_MAX];
    double ratios[BENCH_PAIRS_MAX];
    double itself[BENCH_PAIRS_MAX];
};

struct index_run {
    const struct bench_options *options;
    bench_result_fn fn;
    void *fn_ctx;
    struct ckv_error *error;
    struct index_set set;
    size_t short_count;
    size_t sample_count; /* in one round */
    double *samples[2];  /* the case, and the case again */
    double *limits;
    struct figures median;
    struct figures tail;
    bool wrong;
};

static double elapsed_us(int64_t begin_ns)
{
    return (double)(bench_clock_thread.now_ns(bench_clock_thread.ctx) - begin_ns) / 1e3;
}

static void search(struct index_run *run, double *samples)
{
    for (size_t i = 0; i < run->sample_count; i++) {
        int64_t begin = bench_clock_thread.now_ns(bench_clock_thread.ctx);
        bool right = index_set_find(&run->set, i % INDEX_SET_PROMPTS);
        samples[i] = elapsed_us(begin);
        run->wrong = run->wrong || !right;
    }
}

/* Prompts that differ in the last token, if at all. */
static void compare(struct index_run *run, double *samples)
{
    static uint32_t copy[INDEX_SET_LONG];
    const uint32_t *prompt = run->set.prompts[0].tokens;
    memcpy(copy, prompt, sizeof copy);
    copy[INDEX_SET_LONG - 1]++;
    for (size_t i = 0; i < run->sample_count; i++) {
        int64_t begin = bench_clock_thread.now_ns(bench_clock_thread.ctx);
        bool differ = memcmp(copy, prompt, sizeof copy) != 0;
        samples[i] = elapsed_us(begin);
        run->wrong = run->wrong || !differ;
    }
}

/* Sorts them. A coarse clock may have seen nothing. */
static double quantile(double *samples, size_t count, double q)
{
    double value;
    (void)bench_quartiles_of(samples, count);
    value = bench_quantile(samples, count, q);
    return value > 0 ? value : 1e-3;
}

static void note(struct index_run *run, struct figures *figures, size_t round, double q)
{
    double value = quantile(run->samples[0], run->sample_count, q);
    double again = quantile(run->samples[1], run->sample_count, q);
    double limit = quantile(run->limits, run->sample_count, 0.5);
    figures->values[round] = value;
    figures->limits[round] = limit;
    figures->ratios[round] = limit / value;
    figures->itself[round] = again / value;
}

static void measure(struct index_run *run)
{
    for (size_t round = 0; round < run->options->pairs; round++) {
        search(run, run->samples[round % 2]);
        compare(run, run->limits);
        search(run, run->samples[1 - round % 2]);
        note(run, &run->median, round, 0.5);
        note(run, &run->tail, round, TAIL);
    }
}

static void report_find(struct index_run *run, struct figures *figures, const char *what,
                        double goal)
{
    size_t pairs = run->options->pairs;
    struct bench_result result = {
        .bench = "index",
        .unit = "us",
        .limit_name = "memcmp",
        .value = bench_quartiles_of(figures->values, pairs).median,
        .limit = bench_quartiles_of(figures->limits, pairs).median,
        .ratio = bench_quartiles_of(figures->ratios, pairs),
        .itself = bench_quartiles_of(figures->itself, pairs),
        .goal = run->short_count == GOAL_ENTRIES ? goal : 0,
        .at_most = true,
        .pairs = pairs};
    snprintf(result.name, sizeof result.name, "find %s, %zu entries", what,
             run->set.entry_count);
    run->fn(run->fn_ctx, &result);
}

static void report_memory(struct index_run *run)
{
    double tokens = (double)run->set.distinct_tokens;
    double budget = 4.5 * tokens + 300.0 * (double)run->set.entry_count;
    double ratio = 4.0 * tokens / (double)run->set.live_bytes;
    struct bench_result result = {.bench = "index",
                                  .unit = "budget",
                                  .limit_name = "tokens",
                                  .value = (double)run->set.live_bytes / budget,
                                  .limit = 4.0 * tokens / budget,
                                  .ratio = {ratio, ratio, ratio},
                                  .itself = {1, 1, 1},
                                  .goal = 1,
                                  .at_most = true,
                                  .pairs = 1};
    snprintf(result.name, sizeof result.name, "memory, %zu entries",
             run->set.entry_count);
    run->fn(run->fn_ctx, &result);
}

static enum ckv_status run_size(struct index_run *run, size_t short_count)
{
    enum ckv_status status = index_set_init(&run->set, short_count, run->error);
    if (status != CKV_OK)
        return status;
    run->short_count = short_count;
    search(run, run->samples[0]); /* not counted */
    measure(run);
    if (run->wrong) {
        status = ckv_error_set(run->error, CKV_CORRUPT,
                               "bench index: %zu entries: not the longest prefix",
                               run->set.entry_count);
    } else {
        report_find(run, &run->median, "p50", GOAL_MEDIAN_US);
        report_find(run, &run->tail, "p99.9", GOAL_TAIL_US);
        report_memory(run);
    }
    index_set_deinit(&run->set);
    return status;
}

enum ckv_status bench_index_run(const struct bench_options *options, bench_result_fn fn,
                                void *fn_ctx, struct ckv_error *error)
{
    static const size_t sizes[] = {1000, 10000, GOAL_ENTRIES};
    enum ckv_status status = CKV_OK;
    struct index_run *run = calloc(1, sizeof *run);
    double *samples = NULL;
    size_t passes = options->min_ms == 0 ? 1 : PASSES;
    size_t count = passes * INDEX_SET_PROMPTS;
    if (run != NULL)
        samples = malloc(3 * count * sizeof *samples);
    if (samples == NULL) {
        free(run);
        return ckv_error_set(error, CKV_NOMEM, "bench: no memory for samples");
    }
    run->options = options;
    run->fn = fn;
    run->fn_ctx = fn_ctx;
    run->error = error;
    run->sample_count = count;
    run->samples[0] = samples;
    run->samples[1] = samples + count;
    run->limits = samples + 2 * count;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && status == CKV_OK; i++)
        status = run_size(run, sizes[i]);
    free(samples);
    free(run);
    return status;
}

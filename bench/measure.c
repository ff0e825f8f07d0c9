/*
 * Owns the order of measurements. Invariant: in every round both sides of a pair are
 * measured right beside each other, so that their ratio holds although the machine
 * changes its speed between rounds.
 */
#include "measure.h"

#include <time.h>

#define RUNS_MAX (UINT64_C(1) << 40)

static int64_t thread_now_ns(void *ctx)
{
    struct timespec now = {0};
    (void)ctx;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

const struct bench_clock bench_clock_thread = {thread_now_ns, NULL};

/* Work with the number of runs that takes long enough to be measured. */
struct sample {
    const struct bench_work *work;
    const struct bench_clock *clock;
    uint64_t runs;
};

static int64_t elapsed_ns(const struct sample *sample)
{
    int64_t begin = sample->clock->now_ns(sample->clock->ctx);
    for (uint64_t i = 0; i < sample->runs; i++)
        sample->work->run(sample->work->ctx);
    int64_t elapsed = sample->clock->now_ns(sample->clock->ctx) - begin;
    return elapsed > 0 ? elapsed : 1; /* a coarse clock saw nothing */
}

/* One run is not counted: whatever came before it, the measurement then starts with the
 * caches that the work itself leaves. */
static double rate(const struct sample *sample)
{
    sample->work->run(sample->work->ctx);
    return sample->work->amount * (double)sample->runs * 1e9 / (double)elapsed_ns(sample);
}

/* The runs before the first measurement also warm caches and page tables. */
static struct sample calibrate(const struct bench_work *work,
                               const struct bench_clock *clock, unsigned min_ms)
{
    struct sample sample = {work, clock, 1};
    int64_t wanted = (int64_t)min_ms * 1000000;
    while (elapsed_ns(&sample) < wanted && sample.runs < RUNS_MAX)
        sample.runs *= 2;
    return sample;
}

struct bench_rates bench_measure(const struct bench_work *work,
                                 const struct bench_work *limit,
                                 const struct bench_clock *clock,
                                 const struct bench_options *options)
{
    double works[BENCH_PAIRS_MAX], limits[BENCH_PAIRS_MAX];
    double ratios[BENCH_PAIRS_MAX], itself[BENCH_PAIRS_MAX];
    struct sample a = calibrate(work, clock, options->min_ms);
    struct sample b = calibrate(limit, clock, options->min_ms);
    size_t pairs = options->pairs;
    for (size_t i = 0; i < pairs; i++) {
        const struct sample *order[] = {&a, &b};
        size_t swapped = i % 2;
        double rates[2], own[2];
        for (size_t k = 0; k < 2; k++)
            rates[k ^ swapped] = rate(order[k ^ swapped]);
        for (size_t k = 0; k < 2; k++)
            own[k ^ swapped] = rate(&a);
        works[i] = rates[0];
        limits[i] = rates[1];
        ratios[i] = rates[0] / rates[1];
        itself[i] = own[0] / own[1];
    }
    return (struct bench_rates){.work = bench_quartiles_of(works, pairs).median,
                                .limit = bench_quartiles_of(limits, pairs).median,
                                .ratio = bench_quartiles_of(ratios, pairs),
                                .itself = bench_quartiles_of(itself, pairs)};
}

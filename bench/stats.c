/*
 * Owns the statistics. Medians and quartiles, no means: on a machine that does other
 * things too, a few measurements are always far off, and only ever to one side.
 */
#include "stats.h"

#include <stdlib.h>

double bench_quantile(const double *sorted, size_t count, double q)
{
    double place = q * (double)(count - 1);
    size_t below = (size_t)place;
    if (below + 1 >= count)
        return sorted[count - 1];
    double share = place - (double)below;
    return sorted[below] + share * (sorted[below + 1] - sorted[below]);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

struct bench_quartiles bench_quartiles_of(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return (struct bench_quartiles){.low = bench_quantile(values, count, 0.25),
                                    .median = bench_quantile(values, count, 0.5),
                                    .high = bench_quantile(values, count, 0.75)};
}

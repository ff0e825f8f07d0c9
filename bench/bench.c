/* Owns the list of benchmarks. To add one is to add a row here. */
#include "bench.h"

#include "codec.h"
#include "index.h"

#include <string.h>

static const struct bench_suite suites[] = {
    {"codec", "affine quantization, TurboQuant and the hash, on one core",
     bench_codec_explanation, bench_codec_run},
    {"index", "searches in the prefix index and its memory, as entries grow",
     bench_index_explanation, bench_index_run},
};

#define SUITE_COUNT (sizeof suites / sizeof suites[0])

void bench_options_init(struct bench_options *options)
{
    *options = (struct bench_options){.pairs = 9, .min_ms = 10};
}

const struct bench_suite *bench_suites(size_t *count)
{
    *count = SUITE_COUNT;
    return suites;
}

const struct bench_suite *bench_find(const char *name)
{
    for (size_t i = 0; i < SUITE_COUNT; i++) {
        if (strcmp(suites[i].name, name) == 0)
            return &suites[i];
    }
    return NULL;
}

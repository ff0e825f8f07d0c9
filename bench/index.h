/* `coldkv bench index`. */
#ifndef COLDKV_BENCH_INDEX_H
#define COLDKV_BENCH_INDEX_H

#include "bench.h"

extern const char bench_index_explanation[];

enum ckv_status bench_index_run(const struct bench_options *options, bench_result_fn fn,
                                void *fn_ctx, struct ckv_error *error);

#endif

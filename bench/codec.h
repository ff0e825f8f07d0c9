/* `coldkv bench codec`. */
#ifndef COLDKV_BENCH_CODEC_H
#define COLDKV_BENCH_CODEC_H

#include "bench.h"

extern const char bench_codec_explanation[];

enum ckv_status bench_codec_run(const struct bench_options *options, bench_result_fn fn,
                                void *fn_ctx, struct ckv_error *error);

#endif

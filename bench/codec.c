/*
 * Owns the choice of cases of `bench codec`. Every case is run with the plain code first
 * and then with the fastest: how fast wrong bytes come is of no interest.
 */
#include "codec.h"

#include "codec_jobs.h"
#include "measure.h"

#include <stdio.h>
#include <string.h>

const char bench_codec_explanation[] =
    "GB/s (10^9 bytes) per core, in processor time, so that other programs disturb "
    "little.\n"
    "Counted are the bytes of the float side: input of an encoder, output of a decoder, "
    "4 "
    "MiB\n"
    "per run. The limit is memcpy of as many bytes, measured in turn with each case.\n"
    "`plain` is the portable code, `avx2` and the like the fastest that this processor "
    "has;\n"
    "both are checked to give the same bytes before they are measured.\n"
    "Goals, for 4 and 8 bits on a processor with AVX2: affine encode 2 GB/s of f32 "
    "input,\n"
    "decode 4 GB/s of output.\n"
    "Without --all: affine at group 64 (4 and 8 bits as f32 and bf16, also plain; the "
    "other\n"
    "widths as bf16), TurboQuant k8v3 and k4v2 at head dim 128, the hash of the files.\n";

#define GOAL_ENCODE 2.0
#define GOAL_DECODE 4.0
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct codec_run {
    struct codec_memory memory;
    const struct bench_options *options;
    bench_result_fn fn;
    void *fn_ctx;
    const char *fastest; /* "plain" when there is nothing faster */
    struct ckv_error *error;
};

static const char *type_name(enum ckv_dtype dtype)
{
    if (dtype == CKV_DTYPE_FLOAT32)
        return "f32";
    return dtype == CKV_DTYPE_FLOAT16 ? "f16" : "bf16";
}

/* Measures the job in the code that is switched on and hands the result out. */
static enum ckv_status measure(struct codec_run *run, struct codec_job *job,
                               const char *name, double goal)
{
    struct codec_job copy = {.memory = &run->memory, .code = codec_copy};
    struct bench_work work = {codec_job_run, job, (double)CODEC_CHUNK_BYTES / 1e9};
    struct bench_work limit = {codec_job_run, &copy, (double)CODEC_CHUNK_BYTES / 1e9};
    struct bench_rates rates =
        bench_measure(&work, &limit, &bench_clock_thread, run->options);
    if (job->status != CKV_OK)
        return ckv_error_set(run->error, job->status, "bench codec: %s: failed", name);
    struct bench_result result = {.bench = "codec",
                                  .unit = "GB/s",
                                  .limit_name = "memcpy",
                                  .value = rates.work,
                                  .limit = rates.limit,
                                  .ratio = rates.ratio,
                                  .itself = rates.itself,
                                  .goal = goal,
                                  .pairs = run->options->pairs};
    snprintf(result.name, sizeof result.name, "%s", name);
    run->fn(run->fn_ctx, &result);
    return CKV_OK;
}

/* What the job leaves behind with plain or fastest code. */
static uint64_t digest_of(struct codec_run *run, struct codec_job *job, bool fastest)
{
    ckv_simd_enable(fastest);
    codec_job_run(job);
    return codec_memory_digest(&run->memory);
}

/* One case: the fastest code, and the plain code beside it when it is wanted. `prepare`
 * (or NULL) makes what the job reads. */
static enum ckv_status run_case(struct codec_run *run, struct codec_job *job,
                                enum ckv_status (*prepare)(const struct codec_job *),
                                const char *name, double goal, bool also_plain)
{
    char full[BENCH_CASE_SIZE];
    bool has_vectors = strcmp(run->fastest, "plain") != 0;
    enum ckv_status status = prepare == NULL ? CKV_OK : prepare(job);
    if (status != CKV_OK)
        return ckv_error_set(run->error, status, "bench codec: %s: failed", name);
    uint64_t expected = digest_of(run, job, false);
    if (digest_of(run, job, true) != expected)
        return ckv_error_set(run->error, CKV_CORRUPT,
                             "bench codec: %s: plain and %s code give different bytes",
                             name, run->fastest);
    snprintf(full, sizeof full, "%s %s", name, run->fastest);
    status = measure(run, job, full, has_vectors ? goal : 0);
    if (status != CKV_OK || !has_vectors || !also_plain)
        return status;
    ckv_simd_enable(false);
    snprintf(full, sizeof full, "%s plain", name);
    status = measure(run, job, full, 0);
    ckv_simd_enable(true);
    return status;
}

static enum ckv_status run_affine(struct codec_run *run, struct ckv_affine affine,
                                  enum ckv_dtype dtype)
{
    bool all = run->options->all;
    bool aimed_at = affine.bits == 4 || affine.bits == 8;
    char name[BENCH_CASE_SIZE];
    if (!all && (affine.group_size != 64 || dtype == CKV_DTYPE_FLOAT16 ||
                 (!aimed_at && dtype != CKV_DTYPE_BFLOAT16)))
        return CKV_OK;
    struct codec_job job = {.memory = &run->memory,
                            .code = codec_affine_encode,
                            .affine = affine,
                            .dtype = dtype};
    snprintf(name, sizeof name, "affine encode b%u g%u %s", (unsigned)affine.bits,
             (unsigned)affine.group_size, type_name(dtype));
    enum ckv_status status = run_case(
        run, &job, NULL, name, aimed_at && dtype == CKV_DTYPE_FLOAT32 ? GOAL_ENCODE : 0,
        all || aimed_at);
    if (status != CKV_OK)
        return status;
    job.code = codec_affine_decode;
    snprintf(name, sizeof name, "affine decode b%u g%u %s", (unsigned)affine.bits,
             (unsigned)affine.group_size, type_name(dtype));
    return run_case(run, &job, codec_affine_encode, name, aimed_at ? GOAL_DECODE : 0,
                    all || aimed_at);
}

static enum ckv_status run_affines(struct codec_run *run)
{
    static const uint32_t widths[] = {2, 3, 4, 5, 6, 8};
    static const uint32_t group_sizes[] = {32, 64, 128};
    static const enum ckv_dtype dtypes[] = {CKV_DTYPE_FLOAT32, CKV_DTYPE_FLOAT16,
                                            CKV_DTYPE_BFLOAT16};
    enum ckv_status status = CKV_OK;
    for (size_t w = 0; w < COUNT(widths); w++) {
        for (size_t i = 0; i < COUNT(group_sizes) * COUNT(dtypes); i++) {
            struct ckv_affine affine = {widths[w], group_sizes[i / COUNT(dtypes)]};
            if (status == CKV_OK)
                status = run_affine(run, affine, dtypes[i % COUNT(dtypes)]);
        }
    }
    return status;
}

static enum ckv_status run_turboquant(struct codec_run *run, struct ckv_turboquant codec,
                                      bool values)
{
    struct codec_job job = {.memory = &run->memory,
                            .code = values ? codec_values_encode : codec_keys_encode,
                            .turboquant = codec,
                            .dtype = CKV_DTYPE_BFLOAT16};
    unsigned bits = values ? codec.v_bits : codec.k_bits;
    char name[BENCH_CASE_SIZE];
    snprintf(name, sizeof name, "turboquant encode %c%u d%u bf16", values ? 'v' : 'k',
             bits, (unsigned)codec.head_dim);
    enum ckv_status status = run_case(run, &job, NULL, name, 0, run->options->all);
    if (status != CKV_OK)
        return status;
    job.code = values ? codec_values_decode : codec_keys_decode;
    snprintf(name, sizeof name, "turboquant decode %c%u d%u bf16", values ? 'v' : 'k',
             bits, (unsigned)codec.head_dim);
    return run_case(run, &job, values ? codec_values_encode : codec_keys_encode, name, 0,
                    run->options->all);
}

static enum ckv_status run_turboquants(struct codec_run *run)
{
    static const uint32_t key_bits[] = {2, 4, 5, 8};
    static const uint32_t value_bits[] = {2, 3, 4, 5, 8};
    static const uint32_t dims[] = {64, 128, 256, 512};
    bool all = run->options->all;
    enum ckv_status status = CKV_OK;
    for (size_t d = 0; d < COUNT(dims) && status == CKV_OK; d++) {
        struct ckv_turboquant codec = {8, 3, dims[d]};
        if (!all && dims[d] != CODEC_DIM)
            continue;
        for (size_t i = 0; i < COUNT(key_bits) && status == CKV_OK; i++) {
            codec.k_bits = key_bits[i];
            if (all || key_bits[i] == 4 || key_bits[i] == 8)
                status = run_turboquant(run, codec, false);
        }
        for (size_t i = 0; i < COUNT(value_bits) && status == CKV_OK; i++) {
            codec.v_bits = value_bits[i];
            if (all || value_bits[i] == 2 || value_bits[i] == 3)
                status = run_turboquant(run, codec, true);
        }
    }
    return status;
}

static enum ckv_status run_hashes(struct codec_run *run)
{
    struct codec_job job = {.memory = &run->memory, .code = codec_hash_whole};
    enum ckv_status status = measure(run, &job, "wyhash 4 MiB at once", 0);
    if (status != CKV_OK)
        return status;
    uint64_t expected = run->memory.hash;
    job.code = codec_hash_pieces;
    status = measure(run, &job, "wyhash in pieces of 256 KiB", 0);
    if (status == CKV_OK && run->memory.hash != expected)
        status = ckv_error_set(run->error, CKV_CORRUPT,
                               "bench codec: the hash depends on how it is cut");
    return status;
}

enum ckv_status bench_codec_run(const struct bench_options *options, bench_result_fn fn,
                                void *fn_ctx, struct ckv_error *error)
{
    struct codec_run run = {
        .options = options, .fn = fn, .fn_ctx = fn_ctx, .error = error};
    struct codec_job copy = {.memory = &run.memory, .code = codec_copy};
    ckv_simd_enable(true);
    run.fastest = ckv_simd_name();
    enum ckv_status status = codec_memory_init(&run.memory, error);
    if (status == CKV_OK)
        status = measure(&run, &copy, "memcpy", 0);
    if (status == CKV_OK)
        status = run_hashes(&run);
    if (status == CKV_OK)
        status = run_affines(&run);
    if (status == CKV_OK)
        status = run_turboquants(&run);
    codec_memory_deinit(&run.memory);
    return status;
}

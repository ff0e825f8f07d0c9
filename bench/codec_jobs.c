/*
 * Owns the memory that codecs are measured on and what is done with it. Invariant: a job
 * reads only the input or what its own encoder wrote, so that plain and vector code find
 * the same bytes.
 */
#include "codec_jobs.h"

#include <coldkv/float.h>
#include <coldkv/hash.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 8u
#define F32_COUNT (CODEC_CHUNK_BYTES / sizeof(float))
#define HALF_COUNT (CODEC_CHUNK_BYTES / sizeof(uint16_t))

/* The next number in -1 to 1, from a generator that is the same everywhere. */
static float next_uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(*state >> 32) / 2147483648.0f;
}

/* Bell-shaped, as keys and values are, with an outlier now and then. */
static void fill(float *out, size_t count)
{
    uint64_t state = 1;
    for (size_t i = 0; i < count; i++) {
        float sum = 0.0f;
        for (int k = 0; k < 4; k++)
            sum += next_uniform(&state);
        out[i] = i % 997 == 0 ? sum * 16.0f : sum;
    }
}

/* The halves hold the numbers twice, because they have room for as many again. */
static enum ckv_status fill_halves(struct codec_memory *memory, struct ckv_error *error)
{
    enum ckv_status status = CKV_OK;
    for (size_t i = 0; i < HALF_COUNT / F32_COUNT && status == CKV_OK; i++) {
        uint16_t *f16 = (uint16_t *)memory->f16 + i * F32_COUNT;
        uint16_t *bf16 = (uint16_t *)memory->bf16 + i * F32_COUNT;
        status = ckv_from_f32(CKV_DTYPE_FLOAT16, memory->f32, F32_COUNT, f16, error);
        if (status == CKV_OK)
            status =
                ckv_from_f32(CKV_DTYPE_BFLOAT16, memory->f32, F32_COUNT, bf16, error);
    }
    return status;
}

enum ckv_status codec_memory_init(struct codec_memory *memory, struct ckv_error *error)
{
    void **parts[PARTS] = {&memory->f32,    &memory->f16,     &memory->bf16,
                           &memory->copied, &memory->decoded, &memory->packed,
                           &memory->scales, &memory->biases};
    memset(memory, 0, sizeof *memory);
    memory->block = aligned_alloc(4096, PARTS * CODEC_CHUNK_BYTES);
    if (memory->block == NULL)
        return ckv_error_set(error, CKV_NOMEM, "bench: no %zu bytes of memory",
                             PARTS * CODEC_CHUNK_BYTES);
    memset(memory->block, 0, PARTS * CODEC_CHUNK_BYTES);
    for (size_t i = 0; i < PARTS; i++)
        *parts[i] = memory->block + i * CODEC_CHUNK_BYTES;
    fill(memory->f32, F32_COUNT);
    return fill_halves(memory, error);
}

void codec_memory_deinit(struct codec_memory *memory)
{
    free(memory->block);
    memset(memory, 0, sizeof *memory);
}

uint64_t codec_memory_digest(const struct codec_memory *memory)
{
    uint64_t hash = ckv_wyhash(memory->decoded, CODEC_CHUNK_BYTES, memory->hash);
    hash = ckv_wyhash(memory->packed, CODEC_CHUNK_BYTES, hash);
    hash = ckv_wyhash(memory->scales, CODEC_CHUNK_BYTES, hash);
    return ckv_wyhash(memory->biases, CODEC_CHUNK_BYTES, hash);
}

static const void *input(const struct codec_job *job)
{
    if (job->dtype == CKV_DTYPE_FLOAT32)
        return job->memory->f32;
    return job->dtype == CKV_DTYPE_FLOAT16 ? job->memory->f16 : job->memory->bf16;
}

static size_t rows(const struct codec_job *job, size_t dim)
{
    return CODEC_CHUNK_BYTES / ckv_dtype_size(job->dtype) / dim;
}

enum ckv_status codec_affine_encode(const struct codec_job *job)
{
    const struct codec_memory *memory = job->memory;
    return ckv_affine_encode(job->affine, job->dtype, input(job), rows(job, CODEC_DIM),
                             CODEC_DIM, memory->packed, memory->scales, memory->biases,
                             NULL);
}

enum ckv_status codec_affine_decode(const struct codec_job *job)
{
    const struct codec_memory *memory = job->memory;
    return ckv_affine_decode(job->affine, job->dtype, memory->packed, memory->scales,
                             memory->biases, rows(job, CODEC_DIM), CODEC_DIM,
                             memory->decoded, NULL);
}

enum ckv_status codec_keys_encode(const struct codec_job *job)
{
    const struct codec_memory *memory = job->memory;
    return ckv_turboquant_encode_keys(job->turboquant, job->dtype, input(job),
                                      rows(job, job->turboquant.head_dim), memory->packed,
                                      memory->scales, memory->biases, NULL);
}

enum ckv_status codec_keys_decode(const struct codec_job *job)
{
    const struct codec_memory *memory = job->memory;
    return ckv_turboquant_decode_keys(job->turboquant, memory->packed, memory->scales,
                                      memory->biases, rows(job, job->turboquant.head_dim),
                                      memory->decoded, NULL);
}

enum ckv_status codec_values_encode(const struct codec_job *job)
{
    const struct codec_memory *memory = job->memory;
    return ckv_turboquant_encode_values(job->turboquant, job->dtype, input(job),
                                        rows(job, job->turboquant.head_dim),
                                        memory->packed, memory->scales, NULL);
}

enum ckv_status codec_values_decode(const struct codec_job *job)
{
    const struct codec_memory *memory = job->memory;
    return ckv_turboquant_decode_values(job->turboquant, memory->packed, memory->scales,
                                        rows(job, job->turboquant.head_dim),
                                        memory->decoded, NULL);
}

enum ckv_status codec_hash_whole(const struct codec_job *job)
{
    job->memory->hash = ckv_wyhash(job->memory->f32, CODEC_CHUNK_BYTES, 0);
    return CKV_OK;
}

enum ckv_status codec_hash_pieces(const struct codec_job *job)
{
    const unsigned char *bytes = job->memory->f32;
    struct ckv_wyhash_state state;
    ckv_wyhash_init(&state, 0);
    for (size_t at = 0; at < CODEC_CHUNK_BYTES; at += CODEC_PIECE_BYTES)
        ckv_wyhash_update(&state, bytes + at, CODEC_PIECE_BYTES);
    job->memory->hash = ckv_wyhash_digest(&state);
    return CKV_OK;
}

enum ckv_status codec_copy(const struct codec_job *job)
{
    memcpy(job->memory->copied, job->memory->f32, CODEC_CHUNK_BYTES);
    return CKV_OK;
}

void codec_job_run(void *ctx)
{
    struct codec_job *job = ctx;
    enum ckv_status status = job->code(job);
    if (job->status == CKV_OK)
        job->status = status;
}

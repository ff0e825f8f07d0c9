/* One piece of work for each codec: the same rows coded again and again. */
#ifndef COLDKV_BENCH_CODEC_JOBS_H
#define COLDKV_BENCH_CODEC_JOBS_H

#include <coldkv/affine.h>
#include <coldkv/dtype.h>
#include <coldkv/status.h>
#include <coldkv/turboquant.h>
#include <stdint.h>

/* Bytes of the float side in one run: what a transfer of caches handles at a time. */
#define CODEC_CHUNK_BYTES ((size_t)4 << 20)
/* Head dim of the rows given to the affine codec. */
#define CODEC_DIM ((size_t)128)
/* What the file layer hashes at a time. */
#define CODEC_PIECE_BYTES ((size_t)256 << 10)

struct codec_memory {
    unsigned char *block; /* one allocation, of which the others are parts */
    void *f32;            /* a chunk of numbers as each type */
    void *f16;
    void *bf16;
    void *copied; /* of memcpy */
    void *decoded;
    void *packed;
    void *scales;
    void *biases; /* or zero points */
    uint64_t hash;
};

/* Fills the input with numbers like those of keys and values. deinit of zeroed memory
 * does nothing. */
enum ckv_status codec_memory_init(struct codec_memory *memory,
                                  struct ckv_error *error) CKV_WARN_UNUSED;
void codec_memory_deinit(struct codec_memory *memory);

/* Hash of everything that a job may have written. */
uint64_t codec_memory_digest(const struct codec_memory *memory);

struct codec_job {
    struct codec_memory *memory;
    enum ckv_status (*code)(const struct codec_job *job); /* once over the chunk */
    struct ckv_affine affine;
    struct ckv_turboquant turboquant;
    enum ckv_dtype dtype; /* of the float side */
    enum ckv_status status;
};

enum ckv_status codec_affine_encode(const struct codec_job *job);
enum ckv_status codec_affine_decode(const struct codec_job *job);
enum ckv_status codec_keys_encode(const struct codec_job *job);
enum ckv_status codec_keys_decode(const struct codec_job *job);
enum ckv_status codec_values_encode(const struct codec_job *job);
enum ckv_status codec_values_decode(const struct codec_job *job);
enum ckv_status codec_hash_whole(const struct codec_job *job);
enum ckv_status codec_hash_pieces(const struct codec_job *job);
enum ckv_status codec_copy(const struct codec_job *job);

/* For a measurement: runs the job (a struct codec_job) and keeps its first failure. */
void codec_job_run(void *job);

#endif

/* The bytes of tensors, sampled. */
#ifndef COLDKV_BRIDGE_LLAMA_WEIGHTS_H
#define COLDKV_BRIDGE_LLAMA_WEIGHTS_H

#include <coldkv/alloc.h>
#include <coldkv/sha256.h>
#include <coldkv/status.h>
#include <stdbool.h>
#include <stdint.h>

#define CKVI_LLAMA_SAMPLE_BYTES 4096u
#define CKVI_LLAMA_SAMPLES 64u

/* A stretch of an open file. */
struct ckvi_llama_range {
    int fd;
    uint64_t offset;
    uint64_t bytes;
};

/* Where sample `index` of a range of `bytes` begins: evenly spaced, the first at 0, the
 * last ends with the range. bytes > CKVI_LLAMA_SAMPLES * CKVI_LLAMA_SAMPLE_BYTES. */
uint64_t ckvi_llama_sample_offset(uint64_t bytes, uint32_t index);

/* SHA-256 of the samples in order, or of everything when `full` or the range is small.
 * The range lies within the file. */
enum ckv_status ckvi_llama_range_digest(const struct ckvi_llama_range *range, bool full,
                                        const struct ckv_alloc *alloc,
                                        char text[CKV_SHA256_TEXT_SIZE],
                                        struct ckv_error *error);

#endif

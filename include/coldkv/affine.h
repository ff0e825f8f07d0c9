/*
 * Affine quantization of rows, as MLX's GPU kernel computes it and mlx-bun stores it:
 * groups of consecutive elements share a scale and a bias, x = code * scale + bias.
 * docs/caches.md states the rule; the results are bit for bit the same on every machine
 * and in every build (no fused multiply-add), in the default floating-point environment:
 * rounding to nearest, denormals kept.
 *
 * What is not a finite number has a defined result too:
 * - A NaN takes no part in a group's minimum and maximum and gets the highest code. It
 *   comes back as the end of the group's range that this code stands for.
 * - A group with an infinity in it, or with nothing but NaNs, stores a NaN as its scale,
 *   and all of it decodes to NaN. A group wider than float32 can express (hi - lo
 *   overflows) stores an infinite scale and is lost as well.
 * - A constant group beyond about 3e31 has scale -0 and decodes to the constant.
 * - Every NaN that is stored or decoded is the positive quiet one without payload.
 */
#ifndef COLDKV_AFFINE_H
#define COLDKV_AFFINE_H

#include <coldkv/dtype.h>
#include <coldkv/export.h>
#include <coldkv/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** bits 2, 3, 4, 5, 6 or 8; group_size 32, 64 or 128. */
struct ckv_affine {
    uint32_t bits;
    uint32_t group_size;
};

/** OK when the parameters are allowed and rows of `dim` elements can be cut into groups;
 *  INVALID says which is not. */
CKV_API enum ckv_status ckv_affine_check(struct ckv_affine affine, size_t dim,
                                         struct ckv_error *error) CKV_WARN_UNUSED;
/** 32-bit words of one packed row: dim * bits / 32. */
CKV_API size_t ckv_affine_packed_words(struct ckv_affine affine, size_t dim);
/** Scales (and as many biases) of one row: dim / group_size. */
CKV_API size_t ckv_affine_groups(struct ckv_affine affine, size_t dim);

/**
 * Quantizes `rows` rows of `dim` elements of type `dtype` (float16, bfloat16, float32).
 * packed: rows * packed_words words, each row one little-endian bit stream; scales and
 * biases: rows * groups elements of `dtype`. Arrays are contiguous and do not overlap.
 * Thread safe. INVALID for parameters that ckv_affine_check refuses or another type.
 */
CKV_API enum ckv_status ckv_affine_encode(struct ckv_affine affine, enum ckv_dtype dtype,
                                          const void *in, size_t rows, size_t dim,
                                          uint32_t *packed, void *scales, void *biases,
                                          struct ckv_error *error) CKV_WARN_UNUSED;

/** The way back: f32 multiply, f32 add, one rounding to `dtype`. */
CKV_API enum ckv_status ckv_affine_decode(struct ckv_affine affine, enum ckv_dtype dtype,
                                          const uint32_t *packed, const void *scales,
                                          const void *biases, size_t rows, size_t dim,
                                          void *out,
                                          struct ckv_error *error) CKV_WARN_UNUSED;

/** Chooses the plain code for all later calls in this process (for tests and benchmarks),
 *  or the fastest one again. Both give the same bytes. */
CKV_API void ckv_simd_enable(bool enable);
/** "avx2" or "plain": what is in use now. Static storage. */
CKV_API const char *ckv_simd_name(void);

#ifdef __cplusplus
}
#endif

#endif

/*
 * The TurboQuant codec: keys quantized per block of 32 with scale and zero point, values
 * rotated (signs, Walsh-Hadamard) and quantized to Lloyd-Max centroids. Stored bytes are
 * mlx-bun's, bit for bit. docs/caches.md states the rule.
 *
 * Kept for compatibility: a constant non-zero block of keys has scale 0, its zero point
 * overflows float16, and it decodes to NaN.
 *
 * Other results that are defined, not useful: a NaN among keys takes no part in minimum
 * and maximum and gets the lowest index; an infinity makes its block of keys decode to
 * NaN. A NaN or infinity among values spoils its row, because the rotation spreads it:
 * index 0 and a scale that is NaN or infinite throughout. Every NaN that is stored or
 * decoded is the positive quiet one without payload.
 */
#ifndef COLDKV_TURBOQUANT_H
#define COLDKV_TURBOQUANT_H

#include <coldkv/dtype.h>
#include <coldkv/export.h>
#include <coldkv/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CKV_TURBOQUANT_BLOCK 32u

/** k_bits 2, 4, 5 or 8; v_bits 2, 3, 4, 5 or 8; head_dim 64, 128, 256 or 512. */
struct ckv_turboquant {
    uint32_t k_bits;
    uint32_t v_bits;
    uint32_t head_dim;
};

/** INVALID says which parameter is not allowed. */
CKV_API enum ckv_status ckv_turboquant_check(struct ckv_turboquant codec,
                                             struct ckv_error *error) CKV_WARN_UNUSED;
/** Bytes of one packed row of keys or values: head_dim * bits / 8. */
CKV_API size_t ckv_turboquant_key_bytes(struct ckv_turboquant codec);
CKV_API size_t ckv_turboquant_value_bytes(struct ckv_turboquant codec);
/** Scales of one row: head_dim / 32. */
CKV_API size_t ckv_turboquant_blocks(struct ckv_turboquant codec);

/**
 * Encodes `rows` rows of head_dim elements of type `dtype` (float16, bfloat16, float32).
 * indices: rows * key_bytes; scales and zeros: rows * blocks float16. Rows are
 * independent: cutting the input differently never changes a byte. Thread safe.
 */
CKV_API enum ckv_status ckv_turboquant_encode_keys(
    struct ckv_turboquant codec, enum ckv_dtype dtype, const void *in, size_t rows,
    void *indices, uint16_t *scales, uint16_t *zeros,
    struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API enum ckv_status ckv_turboquant_encode_values(
    struct ckv_turboquant codec, enum ckv_dtype dtype, const void *in, size_t rows,
    uint8_t *packed, uint16_t *scales, struct ckv_error *error) CKV_WARN_UNUSED;

/** Decode to bfloat16: rows * head_dim elements. */
CKV_API enum ckv_status ckv_turboquant_decode_keys(
    struct ckv_turboquant codec, const void *indices, const uint16_t *scales,
    const uint16_t *zeros, size_t rows, uint16_t *out,
    struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API enum ckv_status ckv_turboquant_decode_values(
    struct ckv_turboquant codec, const uint8_t *packed, const uint16_t *scales,
    size_t rows, uint16_t *out, struct ckv_error *error) CKV_WARN_UNUSED;

/**
 * Deferred decode: stops before the rotation back, so that an attention kernel may rotate
 * its output once instead of every value. Another rounding than the eager decode, the
 * same stored bytes. ckv_turboquant_unrotate applies the rotation back to rows of
 * bfloat16.
 */
CKV_API enum ckv_status ckv_turboquant_decode_values_deferred(
    struct ckv_turboquant codec, const uint8_t *packed, const uint16_t *scales,
    size_t rows, uint16_t *out, struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API enum ckv_status ckv_turboquant_unrotate(struct ckv_turboquant codec,
                                                const uint16_t *in, size_t rows,
                                                uint16_t *out,
                                                struct ckv_error *error) CKV_WARN_UNUSED;

#ifdef __cplusplus
}
#endif

#endif

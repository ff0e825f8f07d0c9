/*
 * Owns the TurboQuant codec, row by row through buffers on the stack.
 *
 * Invariant: a row depends on nothing but itself and the parameters. Arithmetic is
 * float32 in the order that docs/caches.md states. Only parameters and the element type
 * can be refused; a NaN or infinity makes its block of keys or its row of values decode
 * to defined bytes, a NaN always to the same one.
 */
#include <coldkv/turboquant.h>

#include "tensor/bitpack.h"
#include "tensor/exact.h"
#include "tensor/float.h"
#include "tensor/hadamard.h"
#include "tensor/turboquant_tables.h"
#include <math.h>
#include <stdbool.h>

#define BLOCK CKV_TURBOQUANT_BLOCK
#define DIM_MAX CKVI_TURBOQUANT_DIM_MAX
#define BLOCKS_MAX (DIM_MAX / BLOCK)
#define LANES 8u
/* Keeps a division by a zero scale finite; the stored scale is without it. */
#define EPSILON 1e-8f
/* Adding and taking away 1.5 * 2^23 rounds to nearest even below 2^22. */
#define ROUNDER 0x1.8p23f

static bool codec_bits_valid(uint32_t bits)
{
    return bits == 2 || bits == 4 || bits == 5 || bits == 8;
}

enum ckv_status ckv_turboquant_check(struct ckv_turboquant codec, struct ckv_error *error)
{
    if (!codec_bits_valid(codec.k_bits))
        return ckv_error_set(error, CKV_INVALID,
                             "turboquant key bits %u: expected 2, 4, 5 or 8",
                             codec.k_bits);
    if (codec.v_bits != 3 && !codec_bits_valid(codec.v_bits))
        return ckv_error_set(error, CKV_INVALID,
                             "turboquant value bits %u: expected 2, 3, 4, 5 or 8",
                             codec.v_bits);
    if (codec.head_dim != 64 && codec.head_dim != 128 && codec.head_dim != 256 &&
        codec.head_dim != 512)
        return ckv_error_set(error, CKV_INVALID,
                             "turboquant head dim %u: expected 64, 128, 256 or 512",
                             codec.head_dim);
    return CKV_OK;
}

size_t ckv_turboquant_key_bytes(struct ckv_turboquant codec)
{
    return (size_t)codec.head_dim / 8 * codec.k_bits;
}

size_t ckv_turboquant_value_bytes(struct ckv_turboquant codec)
{
    return (size_t)codec.head_dim / 8 * codec.v_bits;
}

size_t ckv_turboquant_blocks(struct ckv_turboquant codec)
{
    return codec.head_dim / BLOCK;
}

static enum ckv_status check(struct ckv_turboquant codec, enum ckv_dtype dtype,
                             struct ckv_error *error)
{
    enum ckv_status status = ckv_turboquant_check(codec, error);
    return status == CKV_OK ? ckvi_float_check(dtype, error) : status;
}

static void store_f16(const float *in, size_t count, uint16_t *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = ckvi_narrow_f16(ckvi_float_one_nan(in[i]));
}

/* `x` is overwritten on the way. */
static void store_bf16(float *x, size_t count, uint16_t *out)
{
    for (size_t i = 0; i < count; i++)
        x[i] = ckvi_float_one_nan(x[i]);
    ckvi_float_narrow(CKV_DTYPE_BFLOAT16, x, count, out);
}

/* NaNs lose every comparison; a block of nothing else keeps mn > mx. */
static void find_extremes(const float *x, float *mn_out, float *mx_out)
{
    float mn[LANES], mx[LANES];
    for (size_t k = 0; k < LANES; k++) {
        mn[k] = INFINITY;
        mx[k] = -INFINITY;
    }
    for (size_t i = 0; i < BLOCK; i += LANES) {
        for (size_t k = 0; k < LANES; k++) {
            mn[k] = x[i + k] < mn[k] ? x[i + k] : mn[k];
            mx[k] = x[i + k] > mx[k] ? x[i + k] : mx[k];
        }
    }
    for (size_t k = 1; k < LANES; k++) {
        mn[0] = mn[k] < mn[0] ? mn[k] : mn[0];
        mx[0] = mx[k] > mx[0] ? mx[k] : mx[0];
    }
    *mn_out = mn[0];
    *mx_out = mx[0];
}

/* Indices are signed at 8 bits and unsigned below; a NaN becomes the lowest. */
static void encode_key_block(uint32_t bits, const float *x, uint8_t *codes, float *scale,
                             float *zero)
{
    float mn, mx, divisor;
    float low = bits == 8 ? -127.0f : 0.0f;
    float high = bits == 8 ? 127.0f : (float)(int32_t)((1u << bits) - 1u);

    find_extremes(x, &mn, &mx);
    *scale = (mx - mn) / (high - low);
    divisor = *scale + EPSILON;
    *zero = bits == 8 ? rintf((mx + mn) / (2.0f * divisor)) : rintf(mn / divisor);
    for (size_t i = 0; i < BLOCK; i++) {
        float steps = x[i] / divisor - *zero;
        /* The limits are whole numbers, so clamping may come before rounding. */
        steps = steps > low ? steps : low;
        steps = steps < high ? steps : high;
        codes[i] = (uint8_t)(int32_t)((steps + ROUNDER) - ROUNDER);
    }
}

enum ckv_status ckv_turboquant_encode_keys(struct ckv_turboquant codec,
                                           enum ckv_dtype dtype, const void *in,
                                           size_t rows, void *indices, uint16_t *scales,
                                           uint16_t *zeros, struct ckv_error *error)
{
    const uint8_t *from = in;
    uint8_t *to = indices, codes[DIM_MAX];
    float x[DIM_MAX], scale[BLOCKS_MAX], zero[BLOCKS_MAX];
    size_t dim = codec.head_dim, blocks = ckv_turboquant_blocks(codec);

    enum ckv_status status = check(codec, dtype, error);
    if (status != CKV_OK)
        return status;
    for (size_t row = 0; row < rows; row++) {
        ckvi_float_widen(dtype, from, dim, x);
        for (size_t b = 0; b < blocks; b++)
            encode_key_block(codec.k_bits, x + b * BLOCK, codes + b * BLOCK, &scale[b],
                             &zero[b]);
        ckvi_bitpack_encode(codec.k_bits, codes, dim, to);
        store_f16(scale, blocks, scales + row * blocks);
        store_f16(zero, blocks, zeros + row * blocks);
        from += dim * ckv_dtype_size(dtype);
        to += ckv_turboquant_key_bytes(codec);
    }
    return CKV_OK;
}

static void decode_key_block(uint32_t bits, const uint8_t *codes, uint16_t scale,
                             uint16_t zero, float *x)
{
    float factor = ckvi_widen_f16(scale), offset = ckvi_widen_f16(zero);
    int32_t wrap = bits == 8 ? 128 : 256;
    for (size_t i = 0; i < BLOCK; i++) {
        int32_t index = codes[i] < wrap ? codes[i] : codes[i] - 256;
        x[i] = ((float)index + offset) * factor;
    }
}

enum ckv_status ckv_turboquant_decode_keys(struct ckv_turboquant codec,
                                           const void *indices, const uint16_t *scales,
                                           const uint16_t *zeros, size_t rows,
                                           uint16_t *out, struct ckv_error *error)
{
    const uint8_t *from = indices;
    uint8_t codes[DIM_MAX];
    float x[DIM_MAX];
    size_t dim = codec.head_dim, blocks = ckv_turboquant_blocks(codec);

    enum ckv_status status = ckv_turboquant_check(codec, error);
    if (status != CKV_OK)
        return status;
    for (size_t row = 0; row < rows; row++, scales += blocks, zeros += blocks) {
        ckvi_bitpack_decode(codec.k_bits, from, dim, codes);
        for (size_t b = 0; b < blocks; b++)
            decode_key_block(codec.k_bits, codes + b * BLOCK, scales[b], zeros[b],
                             x + b * BLOCK);
        store_bf16(x, dim, out + row * dim);
        from += ckv_turboquant_key_bytes(codec);
    }
    return CKV_OK;
}

static void multiply(float *restrict x, const float *restrict factors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] *= factors[i];
}

/* The sum runs from left to right: its order is part of the format. */
static float root_mean_square(const float *x)
{
    float sum = 0.0f;
    for (size_t i = 0; i < BLOCK; i++)
        sum += x[i] * x[i];
    return sqrtf(sum * (1.0f / (float)BLOCK));
}

/* Few boundaries: all of them are counted, which vectorises. A NaN is above none. */
static void count_boundaries(const float *n, const float *boundaries, size_t count,
                             uint8_t *codes)
{
    int32_t below[BLOCK] = {0};
    for (size_t b = 0; b < count; b++)
        for (size_t i = 0; i < BLOCK; i++)
            below[i] += n[i] > boundaries[b];
    for (size_t i = 0; i < BLOCK; i++)
        codes[i] = (uint8_t)below[i];
}

/*
 * The same number by halving, for the 255 boundaries of 8 bits. The comparison multiplies
 * instead of choosing, so that no unpredictable branch comes of it, and a step is made
 * for the whole block, so that the searches overlap.
 */
static void search_boundaries(const float *n, const float *boundaries, uint8_t *codes)
{
    uint32_t below[BLOCK] = {0};
    for (uint32_t step = 128; step > 0; step /= 2)
        for (size_t i = 0; i < BLOCK; i++)
            below[i] += (uint32_t)(n[i] > boundaries[below[i] + step - 1]) * step;
    for (size_t i = 0; i < BLOCK; i++)
        codes[i] = (uint8_t)below[i];
}

static void encode_value_block(uint32_t bits, const float *y, const float *boundaries,
                               uint8_t *codes, float *scale)
{
    float n[BLOCK], divisor;
    *scale = root_mean_square(y);
    divisor = *scale + EPSILON;
    for (size_t i = 0; i < BLOCK; i++)
        n[i] = y[i] / divisor;
    if (bits == 8)
        search_boundaries(n, boundaries, codes);
    else
        count_boundaries(n, boundaries, ((size_t)1 << bits) - 1, codes);
}

enum ckv_status ckv_turboquant_encode_values(struct ckv_turboquant codec,
                                             enum ckv_dtype dtype, const void *in,
                                             size_t rows, uint8_t *packed,
                                             uint16_t *scales, struct ckv_error *error)
{
    const uint8_t *from = in;
    uint8_t codes[DIM_MAX];
    float signs[DIM_MAX], boundaries[CKVI_TURBOQUANT_CODES_MAX];
    float y[DIM_MAX], scale[BLOCKS_MAX];
    size_t dim = codec.head_dim, blocks = ckv_turboquant_blocks(codec);

    enum ckv_status status = check(codec, dtype, error);
    if (status != CKV_OK)
        return status;
    ckvi_turboquant_signs(dim, signs);
    ckvi_turboquant_boundaries(codec.v_bits, boundaries);
    for (size_t row = 0; row < rows; row++) {
        ckvi_float_widen(dtype, from, dim, y);
        multiply(y, signs, dim);
        ckvi_hadamard(y, dim);
        for (size_t b = 0; b < blocks; b++)
            encode_value_block(codec.v_bits, y + b * BLOCK, boundaries, codes + b * BLOCK,
                               &scale[b]);
        ckvi_bitpack_encode(codec.v_bits, codes, dim, packed);
        store_f16(scale, blocks, scales + row * blocks);
        from += dim * ckv_dtype_size(dtype);
        packed += ckv_turboquant_value_bytes(codec);
    }
    return CKV_OK;
}

/* One row up to the rotation back. */
static void decode_rotated(struct ckv_turboquant codec, const float *centroids,
                           const uint8_t *packed, const uint16_t *scales, float *y)
{
    uint8_t codes[DIM_MAX];
    size_t blocks = ckv_turboquant_blocks(codec);
    ckvi_bitpack_decode(codec.v_bits, packed, codec.head_dim, codes);
    for (size_t b = 0; b < blocks; b++) {
        float scale = ckvi_widen_f16(scales[b]);
        for (size_t i = b * BLOCK; i < (b + 1) * BLOCK; i++)
            y[i] = centroids[codes[i]] * scale;
    }
}

enum ckv_status ckv_turboquant_decode_values(struct ckv_turboquant codec,
                                             const uint8_t *packed,
                                             const uint16_t *scales, size_t rows,
                                             uint16_t *out, struct ckv_error *error)
{
    float centroids[CKVI_TURBOQUANT_CODES_MAX], signs[DIM_MAX], y[DIM_MAX];
    size_t dim = codec.head_dim;

    enum ckv_status status = ckv_turboquant_check(codec, error);
    if (status != CKV_OK)
        return status;
    ckvi_turboquant_centroids(codec.v_bits, centroids);
    ckvi_turboquant_signs(dim, signs);
    for (size_t row = 0; row < rows; row++) {
        decode_rotated(codec, centroids, packed, scales, y);
        ckvi_hadamard(y, dim);
        multiply(y, signs, dim);
        store_bf16(y, dim, out + row * dim);
        packed += ckv_turboquant_value_bytes(codec);
        scales += ckv_turboquant_blocks(codec);
    }
    return CKV_OK;
}

enum ckv_status ckv_turboquant_decode_values_deferred(struct ckv_turboquant codec,
                                                      const uint8_t *packed,
                                                      const uint16_t *scales, size_t rows,
                                                      uint16_t *out,
                                                      struct ckv_error *error)
{
    float centroids[CKVI_TURBOQUANT_CODES_MAX], y[DIM_MAX];

    enum ckv_status status = ckv_turboquant_check(codec, error);
    if (status != CKV_OK)
        return status;
    ckvi_turboquant_centroids(codec.v_bits, centroids);
    for (size_t row = 0; row < rows; row++) {
        decode_rotated(codec, centroids, packed, scales, y);
        store_bf16(y, codec.head_dim, out + row * codec.head_dim);
        packed += ckv_turboquant_value_bytes(codec);
        scales += ckv_turboquant_blocks(codec);
    }
    return CKV_OK;
}

enum ckv_status ckv_turboquant_unrotate(struct ckv_turboquant codec, const uint16_t *in,
                                        size_t rows, uint16_t *out,
                                        struct ckv_error *error)
{
    float signs[DIM_MAX], y[DIM_MAX];
    size_t dim = codec.head_dim;

    enum ckv_status status = ckv_turboquant_check(codec, error);
    if (status != CKV_OK)
        return status;
    ckvi_turboquant_signs(dim, signs);
    for (size_t row = 0; row < rows; row++) {
        ckvi_float_widen(CKV_DTYPE_BFLOAT16, in + row * dim, dim, y);
        ckvi_hadamard(y, dim);
        multiply(y, signs, dim);
        store_bf16(y, dim, out + row * dim);
    }
    return CKV_OK;
}

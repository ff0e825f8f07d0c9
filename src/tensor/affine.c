/*
 * Owns affine quantization: the checks, the plain loops and the passage of a long array
 * through buffers that stay in the innermost cache.
 *
 * Invariant: a group takes a whole number of 32-bit words, so rows and groups follow each
 * other without gaps and the shape of the input does not matter beyond its group count.
 * Only parameters can be refused; every bit pattern of every input has a defined result.
 */
#include "tensor/affine.h"

#include "tensor/bitpack.h"
#include "tensor/float.h"
#include "tensor/simd.h"

/* Elements in flight: a multiple of every group size, 10 KiB of buffers. */
#define CHUNK 1024u
#define GROUP_MIN 32u
/* Independent minima and maxima, so that they become vector operations. */
#define LANES 8u

static void find_extremes(const float *in, size_t count, float *lo_out, float *hi_out)
{
    float lo[LANES], hi[LANES];
    for (size_t k = 0; k < LANES; k++) {
        lo[k] = INFINITY;
        hi[k] = 0.0f;
    }
    for (size_t i = 0; i < count; i += LANES) {
        for (size_t k = 0; k < LANES; k++) {
            /* In this form a NaN loses, as it does in the vector instructions. */
            lo[k] = in[i + k] < lo[k] ? in[i + k] : lo[k];
            hi[k] = in[i + k] > hi[k] ? in[i + k] : hi[k];
        }
    }
    for (size_t k = 1; k < LANES; k++) {
        lo[0] = lo[k] < lo[0] ? lo[k] : lo[0];
        hi[0] = hi[k] > hi[0] ? hi[k] : hi[0];
    }
    *lo_out = lo[0];
    *hi_out = hi[0];
}

void ckvi_affine_codes_plain(struct ckv_affine affine, const float *in, size_t groups,
                             uint8_t *codes, float *scales, float *biases)
{
    size_t count = affine.group_size;
    float levels = ckvi_affine_levels(affine);
    for (size_t g = 0; g < groups; g++, in += count, codes += count) {
        float lo, hi, scale, bias;
        find_extremes(in, count, &lo, &hi);
        ckvi_affine_fit(lo, hi, levels, &scale, &bias);
        scales[g] = scale;
        biases[g] = bias;
        for (size_t i = 0; i < count; i++) {
            float steps = (in[i] - bias) / scale;
            steps = steps < levels ? steps : levels;
            steps = steps > 0.0f ? steps : 0.0f;
            codes[i] = (uint8_t)(int32_t)(steps + CKVI_AFFINE_HALF);
        }
    }
}

void ckvi_affine_values_odd(const uint8_t *codes, float scale, float bias, size_t count,
                            float *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = ckvi_float_one_nan((float)codes[i] * scale + bias);
}

void ckvi_affine_values_plain(struct ckv_affine affine, const uint8_t *codes,
                              const float *scales, const float *biases, size_t groups,
                              float *out)
{
    size_t count = affine.group_size;
    for (size_t g = 0; g < groups; g++, codes += count, out += count)
        ckvi_affine_values_odd(codes, scales[g], biases[g], count, out);
}

enum ckv_status ckv_affine_check(struct ckv_affine affine, size_t dim,
                                 struct ckv_error *error)
{
    if (affine.bits < 2 || affine.bits > 8 || affine.bits == 7)
        return ckv_error_set(error, CKV_INVALID,
                             "affine bits %u: expected 2, 3, 4, 5, 6 or 8", affine.bits);
    if (affine.group_size != 32 && affine.group_size != 64 && affine.group_size != 128)
        return ckv_error_set(error, CKV_INVALID,
                             "affine group size %u: expected 32, 64 or 128",
                             affine.group_size);
    if (dim == 0 || dim % affine.group_size != 0)
        return ckv_error_set(error, CKV_INVALID,
                             "affine dim %zu: expected a multiple of the group size %u",
                             dim, affine.group_size);
    return CKV_OK;
}

size_t ckv_affine_packed_words(struct ckv_affine affine, size_t dim)
{
    return dim / 32 * affine.bits;
}

size_t ckv_affine_groups(struct ckv_affine affine, size_t dim)
{
    return dim / affine.group_size;
}

static enum ckv_status check(struct ckv_affine affine, enum ckv_dtype dtype, size_t dim,
                             struct ckv_error *error)
{
    enum ckv_status status = ckv_affine_check(affine, dim, error);
    return status == CKV_OK ? ckvi_float_check(dtype, error) : status;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

enum ckv_status ckv_affine_encode(struct ckv_affine affine, enum ckv_dtype dtype,
                                  const void *in, size_t rows, size_t dim,
                                  uint32_t *packed, void *scales, void *biases,
                                  struct ckv_error *error)
{
    const struct ckvi_simd *simd = ckvi_simd();
    const uint8_t *from = in;
    uint8_t *to = (uint8_t *)packed, *scale_to = scales, *bias_to = biases;
    float wide[CHUNK], scale[CHUNK / GROUP_MIN], bias[CHUNK / GROUP_MIN];
    uint8_t codes[CHUNK];
    size_t size = ckv_dtype_size(dtype);

    enum ckv_status status = check(affine, dtype, dim, error);
    if (status != CKV_OK)
        return status;
    for (size_t left = rows * dim, count; left > 0; left -= count) {
        const float *x = wide;
        count = smaller(left, CHUNK);
        size_t groups = count / affine.group_size;
        if (dtype == CKV_DTYPE_FLOAT32)
            x = (const float *)(const void *)from;
        else
            ckvi_float_widen(dtype, from, count, wide);
        simd->affine_codes(affine, x, groups, codes, scale, bias);
        ckvi_bitpack_encode(affine.bits, codes, count, to);
        ckvi_float_narrow(dtype, scale, groups, scale_to);
        ckvi_float_narrow(dtype, bias, groups, bias_to);
        from += count * size;
        to += count / 8 * affine.bits;
        scale_to += groups * size;
        bias_to += groups * size;
    }
    return CKV_OK;
}

enum ckv_status ckv_affine_decode(struct ckv_affine affine, enum ckv_dtype dtype,
                                  const uint32_t *packed, const void *scales,
                                  const void *biases, size_t rows, size_t dim, void *out,
                                  struct ckv_error *error)
{
    const struct ckvi_simd *simd = ckvi_simd();
    const uint8_t *from = (const uint8_t *)packed;
    const uint8_t *scale_from = scales, *bias_from = biases;
    uint8_t *to = out;
    float wide[CHUNK], scale[CHUNK / GROUP_MIN], bias[CHUNK / GROUP_MIN];
    uint8_t codes[CHUNK];
    size_t size = ckv_dtype_size(dtype);

    enum ckv_status status = check(affine, dtype, dim, error);
    if (status != CKV_OK)
        return status;
    for (size_t left = rows * dim, count; left > 0; left -= count) {
        count = smaller(left, CHUNK);
        size_t groups = count / affine.group_size;
        bool direct = dtype == CKV_DTYPE_FLOAT32;
        float *x = direct ? (float *)(void *)to : wide;
        ckvi_float_widen(dtype, scale_from, groups, scale);
        ckvi_float_widen(dtype, bias_from, groups, bias);
        ckvi_bitpack_decode(affine.bits, from, count, codes);
        simd->affine_values(affine, codes, scale, bias, groups, x);
        if (!direct)
            ckvi_float_narrow(dtype, wide, count, to);
        from += count / 8 * affine.bits;
        to += count * size;
        scale_from += groups * size;
        bias_from += groups * size;
    }
    return CKV_OK;
}

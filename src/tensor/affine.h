/*
 * The arithmetic that plain and vector versions of the affine codec share, so that they
 * cannot differ in it.
 */
#ifndef COLDKV_TENSOR_AFFINE_H
#define COLDKV_TENSOR_AFFINE_H

#include "tensor/exact.h"
#include <coldkv/affine.h>
#include <math.h>

/*
 * The largest float below one half. Truncating x + CKVI_AFFINE_HALF rounds a non-negative
 * x half up, exactly: with 0.5 itself, 0.49999997 would become 1.
 */
#define CKVI_AFFINE_HALF 0x1.fffffep-2f

/* Half away from zero, for any magnitude; infinities and NaN stay. */
static inline float ckvi_affine_round(float value)
{
    float magnitude = fabsf(value);
    if (!(magnitude < 0x1p23f))
        return value;
    return copysignf((float)(int32_t)(magnitude + CKVI_AFFINE_HALF), value);
}

/* Scale and bias of a group with minimum `lo` and maximum `hi` (at least 0), unrounded.
 */
static inline void ckvi_affine_fit(float lo, float hi, float levels, float *scale,
                                   float *bias)
{
    float step = (hi - lo) / levels;
    float edge = lo;
    step = step > 1e-7f ? step : 1e-7f;
    if (!(fabsf(lo) > fabsf(hi))) {
        edge = hi;
        step = -step;
    }
    float steps = ckvi_affine_round(edge / step);
    *bias = steps == 0.0f ? 0.0f : edge;
    *scale = steps == 0.0f ? step : ckvi_float_one_nan(edge / steps);
}

static inline float ckvi_affine_levels(struct ckv_affine affine)
{
    return (float)(int32_t)((1u << affine.bits) - 1u);
}

/* The plain versions of what simd.h describes. */
void ckvi_affine_codes_plain(struct ckv_affine affine, const float *in, size_t groups,
                             uint8_t *codes, float *scales, float *biases);
void ckvi_affine_values_plain(struct ckv_affine affine, const uint8_t *codes,
                              const float *scales, const float *biases, size_t groups,
                              float *out);
/* One group, also where scale or bias is not finite: every NaN comes out as one. */
void ckvi_affine_values_odd(const uint8_t *codes, float scale, float bias, size_t count,
                            float *out);

#endif

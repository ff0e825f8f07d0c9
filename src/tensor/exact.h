/*
 * What the numeric code demands of the compiler: stored bytes are the same on every
 * machine only when float arithmetic is IEEE-754 single precision, operation by
 * operation.
 */
#ifndef COLDKV_TENSOR_EXACT_H
#define COLDKV_TENSOR_EXACT_H

#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "coldkv cannot be built with -ffast-math: stored bytes would differ"
#endif
/* 16 is float arithmetic as well: only _Float16 is evaluated as such. */
#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16
#error "coldkv needs float arithmetic in float precision (32-bit x86: -mfpmath=sse)"
#endif

static inline uint32_t ckvi_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float ckvi_float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline bool ckvi_float_is_finite(float value)
{
    return (ckvi_float_bits(value) & 0x7f800000u) != 0x7f800000u;
}

/* Which NaN an operation yields depends on the processor and on operand order; one chosen
 * NaN (positive, quiet, no payload) does not. */
static inline float ckvi_float_one_nan(float value)
{
    return value == value ? value : ckvi_float_from_bits(0x7fc00000u);
}

#endif

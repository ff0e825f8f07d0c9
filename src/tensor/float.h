/*
 * Conversions of one element, inline for the loops of this layer; <coldkv/float.h> states
 * the rules. All cases are computed and one is chosen by mask: no branch to predict, and
 * compilers can vectorise loops over them.
 */
#ifndef COLDKV_TENSOR_FLOAT_H
#define COLDKV_TENSOR_FLOAT_H

#include "tensor/exact.h"
#include <coldkv/dtype.h>
#include <coldkv/status.h>
#include <stddef.h>

static inline uint32_t ckvi_float_choose(bool condition, uint32_t yes, uint32_t no)
{
    uint32_t mask = 0u - (uint32_t)condition;
    return (yes & mask) | (no & ~mask);
}

static inline float ckvi_widen_bf16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    return ckvi_float_from_bits((bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x400000u
                                                                   : bits);
}

static inline uint16_t ckvi_narrow_bf16(float value)
{
    uint32_t bits = ckvi_float_bits(value);
    uint32_t nearest = bits + 0x7fffu + ((bits >> 16) & 1u);
    uint32_t result = (bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x400000u : nearest;
    return (uint16_t)(result >> 16);
}

static inline float ckvi_widen_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t magnitude = half & 0x7fffu;
    uint32_t normal = (magnitude << 13) + (112u << 23);
    uint32_t special = (magnitude << 13) | 0x7f800000u;
    uint32_t quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
    uint32_t denormal = ckvi_float_bits((float)(int32_t)magnitude * 0x1p-24f);
    uint32_t bits = ckvi_float_choose(magnitude >= 0x7c00u, special | quiet, normal);
    bits = ckvi_float_choose(magnitude < 0x400u, denormal, bits);
    return ckvi_float_from_bits(sign | bits);
}

/*
 * Denormal results: adding 0.5 puts the sum where float32 steps by 2^-24, the step of
 * float16 denormals, so the addition itself rounds to nearest even.
 */
static inline uint16_t ckvi_narrow_f16(float value)
{
    uint32_t bits = ckvi_float_bits(value);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t normal =
        (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    uint32_t denormal =
        ckvi_float_bits(ckvi_float_from_bits(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
    uint32_t result = ckvi_float_choose(magnitude < 0x38800000u, denormal, normal);
    result = ckvi_float_choose(magnitude >= 0x477ff000u, 0x7c00u, result);
    result = ckvi_float_choose(magnitude > 0x7f800000u, nan, result);
    return (uint16_t)(sign | result);
}

/* Whether `dtype` is one that the codecs read: float16, bfloat16 or float32. INVALID
 * names the other. */
enum ckv_status ckvi_float_check(enum ckv_dtype dtype, struct ckv_error *error);
/* Conversion of arrays after that check. */
void ckvi_float_widen(enum ckv_dtype from, const void *in, size_t count, float *out);
void ckvi_float_narrow(enum ckv_dtype to, const float *in, size_t count, void *out);

/* The plain versions of what simd.h describes. */
void ckvi_widen_bf16_plain(const uint16_t *in, size_t count, float *out);
void ckvi_widen_f16_plain(const uint16_t *in, size_t count, float *out);
void ckvi_narrow_bf16_plain(const float *in, size_t count, uint16_t *out);
void ckvi_narrow_f16_plain(const float *in, size_t count, uint16_t *out);

#endif

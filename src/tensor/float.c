/*
 * Owns the conversions between float32 and the 16-bit float types.
 *
 * Invariant: plain and vector versions give the same bits for all 2^32 inputs, NaNs
 * included. Nothing here can fail except for a type that is none of the three.
 */
#include "tensor/float.h"

#include "tensor/simd.h"
#include <coldkv/float.h>

uint16_t ckv_bf16_from_f32(float value)
{
    return ckvi_narrow_bf16(value);
}

float ckv_f32_from_bf16(uint16_t bits)
{
    return ckvi_widen_bf16(bits);
}

uint16_t ckv_f16_from_f32(float value)
{
    return ckvi_narrow_f16(value);
}

float ckv_f32_from_f16(uint16_t bits)
{
    return ckvi_widen_f16(bits);
}

void ckvi_widen_bf16_plain(const uint16_t *in, size_t count, float *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = ckvi_widen_bf16(in[i]);
}

void ckvi_widen_f16_plain(const uint16_t *in, size_t count, float *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = ckvi_widen_f16(in[i]);
}

void ckvi_narrow_bf16_plain(const float *in, size_t count, uint16_t *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = ckvi_narrow_bf16(in[i]);
}

void ckvi_narrow_f16_plain(const float *in, size_t count, uint16_t *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = ckvi_narrow_f16(in[i]);
}

enum ckv_status ckvi_float_check(enum ckv_dtype dtype, struct ckv_error *error)
{
    if (dtype == CKV_DTYPE_FLOAT16 || dtype == CKV_DTYPE_BFLOAT16 ||
        dtype == CKV_DTYPE_FLOAT32)
        return CKV_OK;
    return ckv_error_set(error, CKV_INVALID,
                         "element type %s (%d): expected float16, bfloat16 or float32",
                         ckv_dtype_name(dtype), (int)dtype);
}

void ckvi_float_widen(enum ckv_dtype from, const void *in, size_t count, float *out)
{
    if (count == 0)
        return;
    if (from == CKV_DTYPE_BFLOAT16)
        ckvi_simd()->widen_bf16(in, count, out);
    else if (from == CKV_DTYPE_FLOAT16)
        ckvi_simd()->widen_f16(in, count, out);
    else
        memcpy(out, in, count * sizeof(*out));
}

void ckvi_float_narrow(enum ckv_dtype to, const float *in, size_t count, void *out)
{
    if (count == 0)
        return;
    if (to == CKV_DTYPE_BFLOAT16)
        ckvi_simd()->narrow_bf16(in, count, out);
    else if (to == CKV_DTYPE_FLOAT16)
        ckvi_simd()->narrow_f16(in, count, out);
    else
        memcpy(out, in, count * sizeof(*in));
}

enum ckv_status ckv_to_f32(enum ckv_dtype from, const void *in, size_t count, float *out,
                           struct ckv_error *error)
{
    enum ckv_status status = ckvi_float_check(from, error);
    if (status == CKV_OK)
        ckvi_float_widen(from, in, count, out);
    return status;
}

enum ckv_status ckv_from_f32(enum ckv_dtype to, const float *in, size_t count, void *out,
                             struct ckv_error *error)
{
    enum ckv_status status = ckvi_float_check(to, error);
    if (status == CKV_OK)
        ckvi_float_narrow(to, in, count, out);
    return status;
}

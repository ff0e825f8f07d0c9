/*
 * Conversions between float32 and the two 16-bit float types, element by element, bit for
 * bit the same on every machine: round to nearest, ties to even; denormals kept; overflow
 * becomes infinity; a NaN stays a NaN.
 */
#ifndef COLDKV_FLOAT_H
#define COLDKV_FLOAT_H

#include <coldkv/dtype.h>
#include <coldkv/export.h>
#include <coldkv/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One value. A NaN keeps sign and upper payload bits and is made quiet. */
CKV_API uint16_t ckv_bf16_from_f32(float value);
CKV_API float ckv_f32_from_bf16(uint16_t bits);
CKV_API uint16_t ckv_f16_from_f32(float value);
CKV_API float ckv_f32_from_f16(uint16_t bits);

/** `count` elements of type `from` (float16, bfloat16 or float32) to float32. INVALID for
 *  another type. The arrays do not overlap; neither needs more alignment than its type.
 */
CKV_API enum ckv_status ckv_to_f32(enum ckv_dtype from, const void *in, size_t count,
                                   float *out, struct ckv_error *error) CKV_WARN_UNUSED;
/** And back. */
CKV_API enum ckv_status ckv_from_f32(enum ckv_dtype to, const float *in, size_t count,
                                     void *out, struct ckv_error *error) CKV_WARN_UNUSED;

#ifdef __cplusplus
}
#endif

#endif

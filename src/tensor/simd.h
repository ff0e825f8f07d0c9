/*
 * The loops that exist in a plain and in a vector version behind one switch. All versions
 * of a loop give the same bytes for every input, so the choice is never visible in data.
 */
#ifndef COLDKV_TENSOR_SIMD_H
#define COLDKV_TENSOR_SIMD_H

#include <coldkv/affine.h>
#include <stddef.h>
#include <stdint.h>

#if (defined(__x86_64__) || defined(__i386__)) &&                                        \
    (defined(__GNUC__) || defined(__clang__))
#define CKVI_HAVE_AVX2 1
#endif

struct ckvi_simd {
    const char *name;
    void (*widen_bf16)(const uint16_t *in, size_t count, float *out);
    void (*widen_f16)(const uint16_t *in, size_t count, float *out);
    void (*narrow_bf16)(const float *in, size_t count, uint16_t *out);
    void (*narrow_f16)(const float *in, size_t count, uint16_t *out);
    /* Groups of affine.group_size elements: one byte per code, float32 parameters. */
    void (*affine_codes)(struct ckv_affine affine, const float *in, size_t groups,
                         uint8_t *codes, float *scales, float *biases);
    void (*affine_values)(struct ckv_affine affine, const uint8_t *codes,
                          const float *scales, const float *biases, size_t groups,
                          float *out);
};

/* What is in use now; static storage. Take it once per call, so that a switch in another
 * thread does not matter in the middle. */
const struct ckvi_simd *ckvi_simd(void);

#ifdef CKVI_HAVE_AVX2
/* Only for processors that ckvi_simd() found to have AVX2 and F16C. */
void ckvi_widen_bf16_avx2(const uint16_t *in, size_t count, float *out);
void ckvi_widen_f16_avx2(const uint16_t *in, size_t count, float *out);
void ckvi_narrow_bf16_avx2(const float *in, size_t count, uint16_t *out);
void ckvi_narrow_f16_avx2(const float *in, size_t count, uint16_t *out);
void ckvi_affine_codes_avx2(struct ckv_affine affine, const float *in, size_t groups,
                            uint8_t *codes, float *scales, float *biases);
void ckvi_affine_values_avx2(struct ckv_affine affine, const uint8_t *codes,
                             const float *scales, const float *biases, size_t groups,
                             float *out);
#endif

#endif

/*
 * Owns the loops of affine.c for x86 processors with AVX2.
 *
 * Invariant: the same operations in the same order as the plain loops, each rounded as
 * there: no fused multiply-add, true divisions. Where order is free (minimum, maximum)
 * it changes at most the sign of a zero, which no later step can see.
 */
#include "tensor/simd.h"

#ifdef CKVI_HAVE_AVX2

#include "tensor/affine.h"
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

struct codes {
    __m256 bias, scale, levels;
};

/* Eight codes as 32-bit integers. The operand order of min and max is what sends a NaN
 * to the highest code. */
AVX2 static inline __m256i code8(const float *in, struct codes to)
{
    __m256 steps = _mm256_div_ps(_mm256_sub_ps(_mm256_loadu_ps(in), to.bias), to.scale);
    steps = _mm256_min_ps(steps, to.levels);
    steps = _mm256_max_ps(steps, _mm256_setzero_ps());
    return _mm256_cvttps_epi32(_mm256_add_ps(steps, _mm256_set1_ps(CKVI_AFFINE_HALF)));
}

AVX2 static inline void code_group(const float *in, size_t count, struct codes to,
                                   uint8_t *out)
{
    /* Packing works within 128-bit halves and leaves fours of codes in this order. */
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (size_t i = 0; i < count; i += 32) {
        __m256i a = _mm256_packs_epi32(code8(in + i, to), code8(in + i + 8, to));
        __m256i b = _mm256_packs_epi32(code8(in + i + 16, to), code8(in + i + 24, to));
        __m256i bytes = _mm256_packus_epi16(a, b);
        bytes = _mm256_permutevar8x32_epi32(bytes, order);
        _mm256_storeu_si256((void *)(out + i), bytes);
    }
}

AVX2 static inline float least(__m256 values)
{
    __m128 v =
        _mm_min_ps(_mm256_castps256_ps128(values), _mm256_extractf128_ps(values, 1));
    v = _mm_min_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_min_ss(v, _mm_movehdup_ps(v)));
}

AVX2 static inline float greatest(__m256 values)
{
    __m128 v =
        _mm_max_ps(_mm256_castps256_ps128(values), _mm256_extractf128_ps(values, 1));
    v = _mm_max_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_max_ss(v, _mm_movehdup_ps(v)));
}

AVX2 void ckvi_affine_codes_avx2(struct ckv_affine affine, const float *in, size_t groups,
                                 uint8_t *codes, float *scales, float *biases)
{
    size_t count = affine.group_size;
    float levels = ckvi_affine_levels(affine);
    for (size_t g = 0; g < groups; g++, in += count, codes += count) {
        __m256 lo = _mm256_set1_ps(INFINITY), hi = _mm256_setzero_ps();
        for (size_t i = 0; i < count; i += 8) {
            __m256 value = _mm256_loadu_ps(in + i);
            lo = _mm256_min_ps(value, lo);
            hi = _mm256_max_ps(value, hi);
        }
        ckvi_affine_fit(least(lo), greatest(hi), levels, &scales[g], &biases[g]);
        struct codes to = {_mm256_set1_ps(biases[g]), _mm256_set1_ps(scales[g]),
                           _mm256_set1_ps(levels)};
        code_group(in, count, to, codes);
    }
}

AVX2 static inline void value_group(const uint8_t *codes, float scale, float bias,
                                    size_t count, float *out)
{
    const __m256 scales = _mm256_set1_ps(scale), biases = _mm256_set1_ps(bias);
    for (size_t i = 0; i < count; i += 8) {
        __m256i code = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(codes + i)));
        __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(code), scales);
        _mm256_storeu_ps(out + i, _mm256_add_ps(value, biases));
    }
}

AVX2 void ckvi_affine_values_avx2(struct ckv_affine affine, const uint8_t *codes,
                                  const float *scales, const float *biases, size_t groups,
                                  float *out)
{
    size_t count = affine.group_size;
    for (size_t g = 0; g < groups; g++, codes += count, out += count) {
        if (ckvi_float_is_finite(scales[g]) && ckvi_float_is_finite(biases[g]))
            value_group(codes, scales[g], biases[g], count, out);
        else
            ckvi_affine_values_odd(codes, scales[g], biases[g], count, out);
    }
}

#endif

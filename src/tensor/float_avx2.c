/*
 * Owns the conversions of float.c for x86 processors with AVX2 and F16C. Whole vectors
 * here, what is left over by the plain versions. Same bits, no failures.
 */
#include "tensor/simd.h"

#ifdef CKVI_HAVE_AVX2

#include "tensor/float.h"
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,f16c")))

AVX2 static inline __m256i load_halves(const uint16_t *in)
{
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)in));
}

/* All ones where the value is a NaN. */
AVX2 static inline __m256i find_nan(__m256 value)
{
    return _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
}

AVX2 void ckvi_widen_bf16_avx2(const uint16_t *in, size_t count, float *out)
{
    const __m256i quiet = _mm256_set1_epi32(0x400000);
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256i bits = _mm256_slli_epi32(load_halves(in + i), 16);
        __m256i nan = find_nan(_mm256_castsi256_ps(bits));
        bits = _mm256_or_si256(bits, _mm256_and_si256(nan, quiet));
        _mm256_storeu_ps(out + i, _mm256_castsi256_ps(bits));
    }
    ckvi_widen_bf16_plain(in + i, count - i, out + i);
}

AVX2 static inline __m256i round_bf16(const float *in)
{
    const __m256i quiet = _mm256_set1_epi32(0x400000);
    __m256 value = _mm256_loadu_ps(in);
    __m256i bits = _mm256_castps_si256(value);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i nearest = _mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff));
    nearest = _mm256_add_epi32(nearest, odd);
    __m256i kept = _mm256_or_si256(bits, quiet);
    return _mm256_srli_epi32(_mm256_blendv_epi8(nearest, kept, find_nan(value)), 16);
}

AVX2 void ckvi_narrow_bf16_avx2(const float *in, size_t count, uint16_t *out)
{
    size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        __m256i both = _mm256_packus_epi32(round_bf16(in + i), round_bf16(in + i + 8));
        both = _mm256_permute4x64_epi64(both, _MM_SHUFFLE(3, 1, 2, 0));
        _mm256_storeu_si256((void *)(out + i), both);
    }
    ckvi_narrow_bf16_plain(in + i, count - i, out + i);
}

AVX2 void ckvi_widen_f16_avx2(const uint16_t *in, size_t count, float *out)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m128i halves = _mm_loadu_si128((const void *)(in + i));
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(halves));
    }
    ckvi_widen_f16_plain(in + i, count - i, out + i);
}

AVX2 void ckvi_narrow_f16_avx2(const float *in, size_t count, uint16_t *out)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m128i halves =
            _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((void *)(out + i), halves);
    }
    ckvi_narrow_f16_plain(in + i, count - i, out + i);
}

#endif

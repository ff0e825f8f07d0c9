/* float32 to and from the 16-bit float types, over all bit patterns. */
#include "lib/random.h"
#include <coldkv/affine.h>
#include <coldkv/float.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#define HAVE_F16C 1
#endif

enum { PATTERNS = 65536, SAMPLES = 1 << 21 };

struct type {
    enum ckv_dtype dtype;
    unsigned mantissa_bits;
    int exponent_bias;
    uint16_t infinity;
    uint16_t quiet;
    uint16_t (*narrow)(float value);
    float (*widen)(uint16_t bits);
};

static const struct type types[] = {
    {CKV_DTYPE_BFLOAT16, 7, 127, 0x7f80, 0x0040, ckv_bf16_from_f32, ckv_f32_from_bf16},
    {CKV_DTYPE_FLOAT16, 10, 15, 0x7c00, 0x0200, ckv_f16_from_f32, ckv_f32_from_f16},
};

enum { TYPE_COUNT = sizeof(types) / sizeof(types[0]) };

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static bool is_nan(const struct type *type, uint32_t pattern)
{
    return (pattern & 0x7fff) > type->infinity;
}

/* The value of a finite pattern by its definition. */
static double value_of(const struct type *type, uint32_t pattern)
{
    unsigned exponent = (pattern & 0x7fff) >> type->mantissa_bits;
    unsigned mantissa = pattern & ((1u << type->mantissa_bits) - 1);
    double magnitude;
    if (exponent != 0)
        mantissa |= 1u << type->mantissa_bits;
    else
        exponent = 1;
    magnitude =
        ldexp(mantissa, (int)exponent - type->exponent_bias - (int)type->mantissa_bits);
    return (pattern & 0x8000) != 0 ? -magnitude : magnitude;
}

static void every_pattern_widens_to_its_value(void **state)
{
    (void)state;
    for (size_t t = 0; t < TYPE_COUNT; t++) {
        for (uint32_t p = 0; p < PATTERNS; p++) {
            float got = types[t].widen((uint16_t)p);
            assert_int_equal(bits_of(got) >> 31, p >> 15);
            if ((p & 0x7fff) < types[t].infinity)
                assert_true((double)got == value_of(&types[t], p));
            else if ((p & 0x7fff) == types[t].infinity)
                assert_true(isinf(got));
            else
                assert_true(isnan(got) && (bits_of(got) & 0x400000) != 0);
        }
    }
}

static void every_pattern_survives_the_way_there_and_back(void **state)
{
    (void)state;
    for (size_t t = 0; t < TYPE_COUNT; t++) {
        for (uint32_t p = 0; p < PATTERNS; p++) {
            uint32_t want = is_nan(&types[t], p) ? p | types[t].quiet : p;
            assert_int_equal(types[t].narrow(types[t].widen((uint16_t)p)), want);
        }
    }
}

/* Between each two neighbours: the middle goes to the even one, what is a float32 step
 * beside the middle to the nearer one. The neighbour of the largest is infinity. */
static void middles_round_to_even_and_their_neighbours_to_the_nearer(void **state)
{
    (void)state;
    for (size_t t = 0; t < TYPE_COUNT; t++) {
        for (uint32_t p = 0; p < types[t].infinity; p++) {
            double low = value_of(&types[t], p), high = value_of(&types[t], p + 1);
            float middle = (float)((low + high) / 2);
            uint32_t even = p + (p & 1);
            assert_true((double)middle == (low + high) / 2);
            assert_int_equal(types[t].narrow(middle), even);
            assert_int_equal(types[t].narrow(-middle), even | 0x8000);
            assert_int_equal(types[t].narrow(nextafterf(middle, 0.0f)), p);
            assert_int_equal(types[t].narrow(-nextafterf(middle, 0.0f)), p | 0x8000);
            assert_int_equal(types[t].narrow(nextafterf(middle, INFINITY)), p + 1);
        }
    }
}

static void what_is_too_large_becomes_infinity(void **state)
{
    (void)state;
    assert_int_equal(ckv_f16_from_f32(65504.0f), 0x7bff);
    assert_int_equal(ckv_f16_from_f32(65519.0f), 0x7bff);
    assert_int_equal(ckv_f16_from_f32(65520.0f), 0x7c00);
    assert_int_equal(ckv_f16_from_f32(-1e30f), 0xfc00);
    assert_int_equal(ckv_f16_from_f32(INFINITY), 0x7c00);
    assert_int_equal(ckv_bf16_from_f32(from_bits(0x7f7fffff)), 0x7f80);
    assert_int_equal(ckv_bf16_from_f32(from_bits(0x7f7f7fff)), 0x7f7f);
    assert_int_equal(ckv_bf16_from_f32(-INFINITY), 0xff80);
}

static void what_is_too_small_becomes_a_zero_with_its_sign(void **state)
{
    (void)state;
    assert_int_equal(ckv_f16_from_f32(0x1p-25f), 0x0000);
    assert_int_equal(ckv_f16_from_f32(-0x1p-25f), 0x8000);
    assert_int_equal(ckv_f16_from_f32(0x1.000002p-25f), 0x0001);
    assert_int_equal(ckv_f16_from_f32(from_bits(1)), 0x0000);
    assert_int_equal(ckv_bf16_from_f32(from_bits(0x80000001)), 0x8000);
    assert_int_equal(ckv_bf16_from_f32(from_bits(0x00008001)), 0x0001);
}

static void a_nan_keeps_sign_and_upper_payload_and_becomes_quiet(void **state)
{
    (void)state;
    assert_int_equal(ckv_bf16_from_f32(from_bits(0x7f800001)), 0x7fc0);
    assert_int_equal(ckv_bf16_from_f32(from_bits(0xff8fffff)), 0xffcf);
    assert_int_equal(ckv_bf16_from_f32(from_bits(0x7fffffff)), 0x7fff);
    assert_int_equal(ckv_f16_from_f32(from_bits(0x7f800001)), 0x7e00);
    assert_int_equal(ckv_f16_from_f32(from_bits(0xff8fffff)), 0xfe7f);
    assert_int_equal(ckv_f16_from_f32(from_bits(0x7fffffff)), 0x7fff);
    assert_int_equal(bits_of(ckv_f32_from_bf16(0xff81)), 0xffc10000);
    assert_int_equal(bits_of(ckv_f32_from_f16(0x7c01)), 0x7fc02000);
}

#ifdef HAVE_F16C
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) &&
           (c & bit_F16C) != 0;
}

__attribute__((target("avx,f16c"))) static uint16_t narrow_by_processor(float value)
{
    __m128i out = _mm_cvtps_ph(_mm_set1_ps(value), _MM_FROUND_TO_NEAREST_INT);
    return (uint16_t)_mm_extract_epi16(out, 0);
}

__attribute__((target("avx,f16c"))) static float widen_by_processor(uint16_t bits)
{
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_set1_epi16((short)bits)));
}

static void float16_agrees_with_the_processor(void **state)
{
    struct test_random random;
    (void)state;
    if (!has_f16c())
        skip();
    test_random_init(&random, 16);
    for (uint32_t p = 0; p < PATTERNS; p++)
        assert_int_equal(bits_of(ckv_f32_from_f16((uint16_t)p)),
                         bits_of(widen_by_processor((uint16_t)p)));
    for (size_t i = 0; i < SAMPLES; i++) {
        float value = from_bits((uint32_t)test_random_next(&random));
        /* Every other one in float16's own range. */
        if (i % 2 == 0)
            value = ldexpf(value, -(int)test_random_below(&random, 140));
        assert_int_equal(ckv_f16_from_f32(value), narrow_by_processor(value));
    }
}
#endif

static void bulk_equals_one_by_one(const struct type *type, size_t count, size_t shift)
{
    struct test_random random;
    float *wide = malloc((count + shift + 1) * sizeof(*wide));
    uint16_t *half = malloc((count + shift + 1) * sizeof(*half));
    uint16_t kept = 0xabcd;
    test_random_init(&random, count);
    test_random_fill(&random, wide, (count + shift + 1) * sizeof(*wide));
    half[shift + count] = kept;
    assert_int_equal(ckv_from_f32(type->dtype, wide + shift, count, half + shift, NULL),
                     CKV_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(half[shift + i], type->narrow(wide[shift + i]));
    assert_int_equal(half[shift + count], kept);

    test_random_fill(&random, half, (count + shift) * sizeof(*half));
    wide[shift + count] = 17.0f;
    assert_int_equal(ckv_to_f32(type->dtype, half + shift, count, wide + shift, NULL),
                     CKV_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(bits_of(wide[shift + i]), bits_of(type->widen(half[shift + i])));
    assert_true(wide[shift + count] == 17.0f);
    free(wide);
    free(half);
}

static void arrays_of_any_length_equal_single_values(void **state)
{
    (void)state;
    for (int simd = 0; simd < 2; simd++) {
        ckv_simd_enable(simd != 0);
        for (size_t t = 0; t < TYPE_COUNT; t++) {
            for (size_t count = 0; count < 70; count++)
                bulk_equals_one_by_one(&types[t], count, count % 5);
            bulk_equals_one_by_one(&types[t], 100000, 1);
        }
    }
}

static void all_patterns_as_an_array(void **state)
{
    uint16_t *half = malloc(PATTERNS * sizeof(*half));
    float *wide = malloc(PATTERNS * sizeof(*wide));
    (void)state;
    for (int round = 0; round < 2 * TYPE_COUNT; round++) {
        const struct type *type = &types[round / 2];
        ckv_simd_enable(round % 2 != 0);
        for (uint32_t p = 0; p < PATTERNS; p++)
            half[p] = (uint16_t)p;
        assert_int_equal(ckv_to_f32(type->dtype, half, PATTERNS, wide, NULL), CKV_OK);
        assert_int_equal(ckv_from_f32(type->dtype, wide, PATTERNS, half, NULL), CKV_OK);
        for (uint32_t p = 0; p < PATTERNS; p++) {
            assert_int_equal(bits_of(wide[p]), bits_of(type->widen((uint16_t)p)));
            assert_int_equal(half[p], is_nan(type, p) ? p | type->quiet : p);
        }
    }
    free(half);
    free(wide);
}

static void float32_is_copied(void **state)
{
    const uint32_t in[] = {0x3f800000, 0x7f800001, 0x80000000, 0x00000001};
    uint32_t out[4];
    (void)state;
    assert_int_equal(ckv_to_f32(CKV_DTYPE_FLOAT32, in, 4, (float *)out, NULL), CKV_OK);
    assert_memory_equal(in, out, sizeof(in));
    memset(out, 0, sizeof(out));
    assert_int_equal(ckv_from_f32(CKV_DTYPE_FLOAT32, (const float *)in, 4, out, NULL),
                     CKV_OK);
    assert_memory_equal(in, out, sizeof(in));
}

static void other_types_are_refused_by_name(void **state)
{
    float wide[1] = {1.0f};
    struct ckv_error error;
    (void)state;
    for (int dtype = 0; dtype <= CKV_DTYPE_COUNT; dtype++) {
        if (dtype == CKV_DTYPE_FLOAT16 || dtype == CKV_DTYPE_BFLOAT16 ||
            dtype == CKV_DTYPE_FLOAT32)
            continue;
        ckv_error_clear(&error);
        assert_int_equal(ckv_to_f32((enum ckv_dtype)dtype, wide, 1, wide, &error),
                         CKV_INVALID);
        assert_non_null(strstr(error.text, ckv_dtype_name((enum ckv_dtype)dtype)));
        assert_int_equal(ckv_from_f32((enum ckv_dtype)dtype, wide, 1, wide, NULL),
                         CKV_INVALID);
    }
}

static void the_switch_says_what_is_in_use(void **state)
{
    (void)state;
    ckv_simd_enable(false);
    assert_string_equal(ckv_simd_name(), "plain");
    ckv_simd_enable(true);
#ifdef HAVE_F16C
    assert_string_equal(ckv_simd_name(), has_f16c() ? "avx2" : "plain");
#else
    assert_string_equal(ckv_simd_name(), "plain");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_widens_to_its_value),
        cmocka_unit_test(every_pattern_survives_the_way_there_and_back),
        cmocka_unit_test(middles_round_to_even_and_their_neighbours_to_the_nearer),
        cmocka_unit_test(what_is_too_large_becomes_infinity),
        cmocka_unit_test(what_is_too_small_becomes_a_zero_with_its_sign),
        cmocka_unit_test(a_nan_keeps_sign_and_upper_payload_and_becomes_quiet),
#ifdef HAVE_F16C
        cmocka_unit_test(float16_agrees_with_the_processor),
#endif
        cmocka_unit_test(arrays_of_any_length_equal_single_values),
        cmocka_unit_test(all_patterns_as_an_array),
        cmocka_unit_test(float32_is_copied),
        cmocka_unit_test(other_types_are_refused_by_name),
        cmocka_unit_test(the_switch_says_what_is_in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

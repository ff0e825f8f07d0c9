/* The TurboQuant codec: constants from their rules, vectors, the rule in its slow form.
 */
#include "lib/hex.h"
#include "lib/random.h"
#include "tensor/turboquant_tables.h"
#include <coldkv/float.h>
#include <coldkv/turboquant.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DIM_MAX = 512, BLOCK = 32, BLOCKS_MAX = DIM_MAX / BLOCK };

static const uint32_t dims[] = {64, 128, 256, 512};
static const uint32_t key_widths[] = {2, 4, 5, 8};
static const uint32_t value_widths[] = {2, 3, 4, 5, 8};
static const enum ckv_dtype dtypes[] = {CKV_DTYPE_FLOAT32, CKV_DTYPE_FLOAT16,
                                        CKV_DTYPE_BFLOAT16};

struct coded_keys {
    uint8_t indices[DIM_MAX];
    uint16_t scales[BLOCKS_MAX], zeros[BLOCKS_MAX];
};

struct coded_values {
    uint8_t packed[DIM_MAX];
    uint16_t scales[BLOCKS_MAX];
};

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static struct ckv_turboquant codec_of(uint32_t k_bits, uint32_t v_bits, uint32_t dim)
{
    return (struct ckv_turboquant){k_bits, v_bits, dim};
}

static struct coded_keys encode_keys(struct ckv_turboquant codec, const float *x)
{
    struct coded_keys out;
    memset(&out, 0xa5, sizeof(out));
    assert_int_equal(ckv_turboquant_encode_keys(codec, CKV_DTYPE_FLOAT32, x, 1,
                                                out.indices, out.scales, out.zeros, NULL),
                     CKV_OK);
    return out;
}

static struct coded_values encode_values(struct ckv_turboquant codec, const float *x)
{
    struct coded_values out;
    memset(&out, 0xa5, sizeof(out));
    assert_int_equal(ckv_turboquant_encode_values(codec, CKV_DTYPE_FLOAT32, x, 1,
                                                  out.packed, out.scales, NULL),
                     CKV_OK);
    return out;
}

static void decode_keys(struct ckv_turboquant codec, const struct coded_keys *in,
                        uint16_t *out)
{
    assert_int_equal(ckv_turboquant_decode_keys(codec, in->indices, in->scales, in->zeros,
                                                1, out, NULL),
                     CKV_OK);
}

static void decode_values(struct ckv_turboquant codec, const struct coded_values *in,
                          uint16_t *out)
{
    assert_int_equal(
        ckv_turboquant_decode_values(codec, in->packed, in->scales, 1, out, NULL),
        CKV_OK);
}

static float uniform(struct test_random *random)
{
    return (float)test_random_below(random, 1 << 24) / (float)(1 << 24);
}

/* Normal enough: the sum of twelve uniform numbers has variance 1. */
static float normal(struct test_random *random)
{
    float sum = -6.0f;
    for (int i = 0; i < 12; i++)
        sum += uniform(random);
    return sum;
}

static void fill_normal(struct test_random *random, float *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] = normal(random);
}

static void sawtooth(float *x)
{
    for (int i = 0; i < 64; i++)
        x[i] = (float)((37 * i + 11) % 64 - 32) / 16.0f;
}

static void expect_keys(uint32_t bits, const char *indices, const char *scales,
                        const char *zeros)
{
    struct ckv_turboquant codec = codec_of(bits, 3, 64);
    uint8_t want[DIM_MAX];
    uint16_t words[2];
    float x[64];
    sawtooth(x);
    struct coded_keys got = encode_keys(codec, x);
    test_hex_bytes(indices, want, ckv_turboquant_key_bytes(codec));
    assert_memory_equal(got.indices, want, ckv_turboquant_key_bytes(codec));
    assert_int_equal(test_hex_words(scales, words, 2), 2);
    assert_memory_equal(got.scales, words, sizeof(words));
    assert_int_equal(test_hex_words(zeros, words, 2), 2);
    assert_memory_equal(got.zeros, words, sizeof(words));
}

static void the_vectors_of_keys(void **state)
{
    (void)state;
    expect_keys(8,
                "af49d87202912bbb55e57f0e9e38c862f1811baa44d46efe8d27b751e17b0a9a"
                "2dbe56e77f10a239cb62f4851dae46d76f009129ba52e37b0c9e35c75ef08119",
                "23af 23d0", "c600 0000");
    expect_keys(5,
                "05abfe443d9afd382cda0dcc82557f819abc7c1cf468e623b1693b200b56fc097a32f370"
                "58a41b90",
                "2fdf 3000", "cc00 cb80");
    expect_keys(4, "c3e5184a6d8fb2d407395c8ea1c3f6284b7d9fb2e5173a6c8fa1d4f6295b7e90",
                "3411 3422", "c800 c800");
    expect_keys(2, "dd66bbdd62b7d96eb7db6db69bed768b", "3d15 3d2b", "c000 c000");
}

static void the_vectors_of_values(void **state)
{
    static const char *const packed[] = {
        "ef19694d90254a39c5a844512eb44967",
        "373d2a2a3567ca28356c361a5a9eb251344d3481b96ae671",
        "dec98735a459d7623497553aa963961d74e2b3a953544766c82971aca4636d79",
        "3ccb0c213ba9ce057569e9bcb95445b31ee6a61ee9158eecac46a1f55263114f425ea6899e969d7"
        "4",
        "baad8aac8183725d66988d6f81b05378655d808e706c96618d985f747a8fae46"
        "668053ba609c8f97586c626d7f65787386a68d4d4a80a89165925e75ad798b7a",
    };
    static const uint16_t scales[] = {0x3c87, 0x3cb6};
    uint8_t want[64];
    float x[64];
    (void)state;
    sawtooth(x);
    for (size_t w = 0; w < 5; w++) {
        struct ckv_turboquant codec = codec_of(8, value_widths[w], 64);
        struct coded_values got = encode_values(codec, x);
        test_hex_bytes(packed[w], want, ckv_turboquant_value_bytes(codec));
        assert_memory_equal(got.packed, want, ckv_turboquant_value_bytes(codec));
        assert_memory_equal(got.scales, scales, sizeof(scales));
    }
}

static void the_vectors_of_decoding(void **state)
{
    static const uint16_t keys[] = {0xbfa7, 0x3f81, 0xbf31, 0x3fcf,
                                    0xbd76, 0xbfe1, 0x3f0e, 0xbf90};
    static const uint16_t values[] = {0xbfc7, 0x3f86, 0xbf52, 0x3fc1,
                                      0x3e6f, 0xbfc2, 0x3f78, 0xbfc5};
    struct ckv_turboquant codec = codec_of(8, 3, 64);
    float x[64];
    uint16_t out[64];
    (void)state;
    sawtooth(x);
    struct coded_keys k = encode_keys(codec, x);
    decode_keys(codec, &k, out);
    assert_memory_equal(out, keys, sizeof(keys));
    struct coded_values v = encode_values(codec, x);
    decode_values(codec, &v, out);
    assert_memory_equal(out, values, sizeof(values));
}

static void pack(uint32_t bits, const uint8_t *codes, size_t count, uint8_t *out)
{
    memset(out, 0, count * bits / 8);
    for (size_t at = 0; at < count * bits; at++)
        if ((codes[at / bits] >> at % bits & 1) != 0)
            out[at / 8] = (uint8_t)(out[at / 8] | 1u << at % 8);
}

/* Where a scale overflows float16, infinity times zero is the one NaN. */
static uint16_t to_bf16(float value)
{
    return isnan(value) ? 0x7fc0 : ckv_bf16_from_f32(value);
}

/* One row of keys as the documentation says it, one element after the other. */
static void reference_keys(struct ckv_turboquant codec, const float *x,
                           struct coded_keys *out, uint16_t *decoded)
{
    float high = codec.k_bits == 8 ? 127.0f : (float)((1 << codec.k_bits) - 1);
    float low = codec.k_bits == 8 ? -127.0f : 0.0f;
    uint8_t codes[DIM_MAX];
    for (size_t b = 0; b < codec.head_dim / BLOCK; b++) {
        const float *in = x + b * BLOCK;
        float mn = in[0], mx = in[0], scale, zero;
        for (size_t i = 1; i < BLOCK; i++) {
            mn = fminf(mn, in[i]);
            mx = fmaxf(mx, in[i]);
        }
        scale = (mx - mn) / (codec.k_bits == 8 ? 254.0f : high);
        zero = codec.k_bits == 8 ? rintf((mx + mn) / (2.0f * (scale + 1e-8f)))
                                 : rintf(mn / (scale + 1e-8f));
        out->scales[b] = ckv_f16_from_f32(scale);
        out->zeros[b] = ckv_f16_from_f32(zero);
        for (size_t i = 0; i < BLOCK; i++) {
            float index = rintf(in[i] / (scale + 1e-8f) - zero);
            index = fmaxf(fminf(index, high), low);
            codes[b * BLOCK + i] = (uint8_t)(int)index;
            /* Back from an integer: no negative zero. */
            index = (float)(int)index;
            decoded[b * BLOCK + i] = to_bf16((index + ckv_f32_from_f16(out->zeros[b])) *
                                             ckv_f32_from_f16(out->scales[b]));
        }
    }
    pack(codec.k_bits, codes, codec.head_dim, out->indices);
}

static void rotate_slowly(float *x, size_t count)
{
    float factor = (float)(1.0 / sqrt((double)count));
    for (size_t h = 1; h < count; h *= 2) {
        for (size_t j = 0; j < count; j++) {
            if ((j & h) != 0)
                continue;
            float a = x[j], b = x[j + h];
            x[j] = a + b;
            x[j + h] = a - b;
        }
    }
    for (size_t j = 0; j < count; j++)
        x[j] *= factor;
}

static void reference_values(struct ckv_turboquant codec, const float *x,
                             struct coded_values *out, uint16_t *decoded,
                             uint16_t *deferred)
{
    size_t dim = codec.head_dim, bound_count = ((size_t)1 << codec.v_bits) - 1;
    float signs[DIM_MAX], y[DIM_MAX], centroids[256], boundaries[256];
    uint8_t codes[DIM_MAX];
    ckvi_turboquant_signs(dim, signs);
    ckvi_turboquant_centroids(codec.v_bits, centroids);
    ckvi_turboquant_boundaries(codec.v_bits, boundaries);
    for (size_t i = 0; i < dim; i++)
        y[i] = x[i] * signs[i];
    rotate_slowly(y, dim);
    for (size_t b = 0; b < dim / BLOCK; b++) {
        float sum = 0.0f, scale;
        for (size_t i = b * BLOCK; i < (b + 1) * BLOCK; i++)
            sum += y[i] * y[i];
        scale = sqrtf(sum * (1.0f / 32.0f));
        out->scales[b] = ckv_f16_from_f32(scale);
        for (size_t i = b * BLOCK; i < (b + 1) * BLOCK; i++) {
            float n = y[i] / (scale + 1e-8f);
            size_t below = 0;
            while (below < bound_count && n > boundaries[below])
                below++;
            codes[i] = (uint8_t)below;
            y[i] = centroids[below] * ckv_f32_from_f16(out->scales[b]);
            deferred[i] = ckv_bf16_from_f32(y[i]);
        }
    }
    pack(codec.v_bits, codes, dim, out->packed);
    rotate_slowly(y, dim);
    for (size_t i = 0; i < dim; i++)
        decoded[i] = ckv_bf16_from_f32(y[i] * signs[i]);
}

static void check_keys(struct ckv_turboquant codec, const float *x)
{
    struct coded_keys want, got = encode_keys(codec, x);
    uint16_t decoded[DIM_MAX], out[DIM_MAX];
    size_t blocks = ckv_turboquant_blocks(codec);
    reference_keys(codec, x, &want, decoded);
    assert_memory_equal(got.indices, want.indices, ckv_turboquant_key_bytes(codec));
    assert_memory_equal(got.scales, want.scales, blocks * 2);
    assert_memory_equal(got.zeros, want.zeros, blocks * 2);
    decode_keys(codec, &got, out);
    assert_memory_equal(out, decoded, codec.head_dim * 2);
}

static void check_values(struct ckv_turboquant codec, const float *x)
{
    struct coded_values want, got = encode_values(codec, x);
    uint16_t decoded[DIM_MAX], deferred[DIM_MAX], out[DIM_MAX];
    reference_values(codec, x, &want, decoded, deferred);
    assert_memory_equal(got.packed, want.packed, ckv_turboquant_value_bytes(codec));
    assert_memory_equal(got.scales, want.scales, ckv_turboquant_blocks(codec) * 2);
    decode_values(codec, &got, out);
    assert_memory_equal(out, decoded, codec.head_dim * 2);
    assert_int_equal(ckv_turboquant_decode_values_deferred(codec, got.packed, got.scales,
                                                           1, out, NULL),
                     CKV_OK);
    assert_memory_equal(out, deferred, codec.head_dim * 2);
}

/* Rows of several kinds; no block is constant, that is another test. */
static void fill_row(struct test_random *random, int kind, float *x, size_t count)
{
    fill_normal(random, x, count);
    for (size_t i = 0; i < count; i++) {
        if (kind == 1)
            x[i] = test_random_below(random, 50) == 0 ? x[i] * 300.0f : x[i];
        if (kind == 2)
            x[i] *= 1e-9f;
        if (kind == 3)
            x[i] = fabsf(x[i]) + 100.0f;
        if (kind == 4)
            x[i] = from_bits((uint32_t)test_random_next(random) & 0x807fffff);
        if (kind == 5)
            x[i] = rintf(x[i] * 2.0f);
        if (kind == 6)
            x[i] *= 1e30f;
    }
    for (size_t b = 0; b < count; b += BLOCK)
        x[b] = x[b] == x[b + 1] ? x[b] + 1.0f : x[b];
}

static void every_input_follows_the_rule(void **state)
{
    struct test_random random;
    float x[DIM_MAX];
    (void)state;
    test_random_init(&random, 42);
    for (int round = 0; round < 280; round++) {
        uint32_t dim = dims[round % 4];
        fill_row(&random, round / 4 % 7, x, dim);
        for (size_t w = 0; w < 4; w++)
            check_keys(codec_of(key_widths[w], 3, dim), x);
        /* Squares of the largest overflow; what that gives is not part of the rule. */
        for (size_t w = 0; w < 5 && round / 4 % 7 != 6; w++)
            check_values(codec_of(8, value_widths[w], dim), x);
    }
}

static void half_types_are_coded_as_their_float32_values(void **state)
{
    struct test_random random;
    float x[DIM_MAX], exact[DIM_MAX];
    uint16_t half[DIM_MAX];
    (void)state;
    test_random_init(&random, 6);
    for (int round = 0; round < 16; round++) {
        struct ckv_turboquant codec =
            codec_of(key_widths[round % 4], value_widths[round % 5], dims[round / 4]);
        size_t blocks = ckv_turboquant_blocks(codec);
        enum ckv_dtype dtype = dtypes[1 + round % 2];
        struct coded_keys k, want_k;
        struct coded_values v, want_v;
        fill_normal(&random, x, codec.head_dim);
        assert_int_equal(ckv_from_f32(dtype, x, codec.head_dim, half, NULL), CKV_OK);
        assert_int_equal(ckv_to_f32(dtype, half, codec.head_dim, exact, NULL), CKV_OK);
        want_k = encode_keys(codec, exact);
        want_v = encode_values(codec, exact);
        assert_int_equal(ckv_turboquant_encode_keys(codec, dtype, half, 1, k.indices,
                                                    k.scales, k.zeros, NULL),
                         CKV_OK);
        assert_int_equal(
            ckv_turboquant_encode_values(codec, dtype, half, 1, v.packed, v.scales, NULL),
            CKV_OK);
        assert_memory_equal(k.indices, want_k.indices, ckv_turboquant_key_bytes(codec));
        assert_memory_equal(k.scales, want_k.scales, blocks * 2);
        assert_memory_equal(k.zeros, want_k.zeros, blocks * 2);
        assert_memory_equal(v.packed, want_v.packed, ckv_turboquant_value_bytes(codec));
        assert_memory_equal(v.scales, want_v.scales, blocks * 2);
    }
}

/* Kept for compatibility: no scale, a zero point beyond float16, and NaN comes back. */
static void a_constant_block_of_keys_decodes_to_nan(void **state)
{
    float x[64];
    uint16_t out[64];
    (void)state;
    for (size_t w = 0; w < 4; w++) {
        struct ckv_turboquant codec = codec_of(key_widths[w], 3, 64);
        for (int i = 0; i < 64; i++)
            x[i] = i < 32 ? 2.5f : -0.125f;
        struct coded_keys got = encode_keys(codec, x);
        assert_int_equal(got.scales[0], 0);
        assert_int_equal(got.zeros[0], 0x7c00);
        assert_int_equal(got.scales[1], 0);
        assert_int_equal(got.zeros[1], 0xfc00);
        decode_keys(codec, &got, out);
        for (int i = 0; i < 64; i++)
            assert_int_equal(out[i], 0x7fc0);
    }
}

static void zeros_are_coded_as_zeros(void **state)
{
    float x[DIM_MAX] = {0};
    uint16_t out[DIM_MAX];
    (void)state;
    for (size_t d = 0; d < 4; d++) {
        struct ckv_turboquant codec = codec_of(4, 3, dims[d]);
        struct coded_keys k = encode_keys(codec, x);
        struct coded_values v = encode_values(codec, x);
        for (size_t i = 0; i < ckv_turboquant_key_bytes(codec); i++)
            assert_int_equal(k.indices[i], 0);
        for (size_t b = 0; b < ckv_turboquant_blocks(codec); b++) {
            assert_int_equal(k.scales[b] | k.zeros[b] | v.scales[b], 0);
            /* Index 3 throughout: the boundary 0 is not below 0. */
            assert_memory_equal(v.packed + b * 12, "\xdb\xb6\x6d\xdb\xb6\x6d", 6);
        }
        decode_keys(codec, &k, out);
        for (size_t i = 0; i < dims[d]; i++)
            assert_int_equal(out[i] & 0x7fff, 0);
        decode_values(codec, &v, out);
        for (size_t i = 0; i < dims[d]; i++)
            assert_int_equal(out[i] & 0x7fff, 0);
    }
}

static void an_outlier_stays_within_half_a_step(void **state)
{
    struct ckv_turboquant codec = codec_of(8, 3, 64);
    struct test_random random;
    float x[64], step = (100.0f + 3.0f) / 254.0f;
    uint16_t out[64];
    (void)state;
    test_random_init(&random, 4);
    for (int i = 0; i < 64; i++)
        x[i] = 2.0f * uniform(&random) - 1.0f;
    x[3] = 100.0f;
    x[4] = -3.0f;
    struct coded_keys k = encode_keys(codec, x);
    decode_keys(codec, &k, out);
    /* Half a step of the index, half a step of the zero point, bfloat16's own error. */
    for (int i = 0; i < 32; i++)
        assert_true(fabsf(ckv_f32_from_bf16(out[i]) - x[i]) < 1.1f * step + 0.25f);
}

static void keys_that_are_not_finite_spoil_their_block_only(void **state)
{
    struct test_random random;
    float x[128];
    uint16_t out[128], clean[128];
    (void)state;
    test_random_init(&random, 9);
    fill_normal(&random, x, 128);
    for (size_t w = 0; w < 4; w++) {
        struct ckv_turboquant codec = codec_of(key_widths[w], 3, 128);
        float odd[128];
        struct coded_keys k = encode_keys(codec, x);
        decode_keys(codec, &k, clean);
        memcpy(odd, x, sizeof(odd));
        odd[33] = INFINITY;
        odd[70] = -INFINITY;
        odd[71] = NAN;
        for (int i = 96; i < 128; i++)
            odd[i] = from_bits(i % 2 == 0 ? 0xffc00001 : 0x7f800001);
        k = encode_keys(codec, odd);
        decode_keys(codec, &k, out);
        assert_memory_equal(out, clean, 32 * sizeof(*out));
        for (int i = 32; i < 128; i++)
            assert_int_equal(out[i], 0x7fc0);
        for (int b = 1; b < 4; b++)
            assert_true(k.scales[b] == 0x7c00 || k.scales[b] == 0xfc00);
    }
}

static void a_nan_among_keys_gets_the_lowest_index(void **state)
{
    struct test_random random;
    float x[64];
    uint16_t out[64], clean[64];
    (void)state;
    test_random_init(&random, 10);
    fill_normal(&random, x, 64);
    x[5] = -4.0f;
    x[6] = 4.0f;
    for (size_t w = 0; w < 4; w++) {
        struct ckv_turboquant codec = codec_of(key_widths[w], 3, 64);
        float odd[64];
        struct coded_keys k = encode_keys(codec, x);
        decode_keys(codec, &k, clean);
        memcpy(odd, x, sizeof(odd));
        odd[11] = NAN;
        k = encode_keys(codec, odd);
        decode_keys(codec, &k, out);
        assert_int_equal(out[11], clean[5]);
        out[11] = clean[11];
        assert_memory_equal(out, clean, sizeof(out));
    }
}

static void values_that_are_not_finite_spoil_their_row_only(void **state)
{
    struct ckv_turboquant codec = codec_of(8, 3, 64);
    struct test_random random;
    float x[3 * 64];
    uint8_t packed[3 * 24];
    uint16_t scales[6], out[3 * 64], alone[64];
    (void)state;
    test_random_init(&random, 11);
    fill_normal(&random, x, 192);
    x[64 + 7] = NAN;
    x[128 + 7] = INFINITY;
    assert_int_equal(ckv_turboquant_encode_values(codec, CKV_DTYPE_FLOAT32, x, 3, packed,
                                                  scales, NULL),
                     CKV_OK);
    assert_int_equal(ckv_turboquant_decode_values(codec, packed, scales, 3, out, NULL),
                     CKV_OK);
    struct coded_values first = encode_values(codec, x);
    decode_values(codec, &first, alone);
    assert_memory_equal(out, alone, sizeof(alone));
    for (size_t i = 24; i < 72; i++)
        assert_int_equal(packed[i], 0);
    assert_int_equal(scales[2], 0x7e00);
    assert_int_equal(scales[3], 0x7e00);
    assert_int_equal(scales[4], 0x7c00);
    for (size_t i = 64; i < 128; i++)
        assert_int_equal(out[i], 0x7fc0);
    for (size_t i = 128; i < 192; i++)
        assert_true(out[i] == 0x7fc0 || (out[i] & 0x7fff) == 0x7f80);
}

/* Foreign bytes are decoded as well, and a NaN is always the same one. */
static void any_stored_bytes_decode(void **state)
{
    struct test_random random;
    (void)state;
    test_random_init(&random, 12);
    for (int round = 0; round < 400; round++) {
        struct ckv_turboquant codec =
            codec_of(key_widths[round % 4], value_widths[round % 5], dims[round / 5 % 4]);
        struct coded_keys k;
        struct coded_values v;
        uint16_t out[3][DIM_MAX];
        test_random_fill(&random, &k, sizeof(k));
        test_random_fill(&random, &v, sizeof(v));
        decode_keys(codec, &k, out[0]);
        decode_values(codec, &v, out[1]);
        assert_int_equal(ckv_turboquant_decode_values_deferred(codec, v.packed, v.scales,
                                                               1, out[2], NULL),
                         CKV_OK);
        for (size_t i = 0; i < 3 * (size_t)codec.head_dim; i++) {
            uint16_t got = out[i / codec.head_dim][i % codec.head_dim];
            assert_true((got & 0x7fff) <= 0x7f80 || got == 0x7fc0);
        }
    }
}

static void three_bits_have_the_expected_error(void **state)
{
    enum { ROWS = 64 };
    struct test_random random;
    (void)state;
    test_random_init(&random, 14);
    for (size_t d = 0; d < 4; d++) {
        struct ckv_turboquant codec = codec_of(8, 3, dims[d]);
        double sum = 0;
        for (int row = 0; row < ROWS; row++) {
            float x[DIM_MAX];
            uint16_t out[DIM_MAX];
            fill_normal(&random, x, dims[d]);
            struct coded_values v = encode_values(codec, x);
            decode_values(codec, &v, out);
            for (size_t i = 0; i < dims[d]; i++)
                sum += pow((double)x[i] - (double)ckv_f32_from_bf16(out[i]), 2);
        }
        sum /= ROWS * (double)dims[d];
        assert_true(sum > 0.015 && sum < 0.045);
    }
}

static void deferred_decode_is_close_to_eager(void **state)
{
    struct test_random random;
    (void)state;
    test_random_init(&random, 15);
    for (int round = 0; round < 40; round++) {
        struct ckv_turboquant codec =
            codec_of(8, value_widths[round % 5], dims[round / 5 % 4]);
        float x[DIM_MAX];
        uint16_t eager[DIM_MAX], deferred[DIM_MAX];
        fill_normal(&random, x, codec.head_dim);
        struct coded_values v = encode_values(codec, x);
        decode_values(codec, &v, eager);
        assert_int_equal(ckv_turboquant_decode_values_deferred(codec, v.packed, v.scales,
                                                               1, deferred, NULL),
                         CKV_OK);
        assert_int_equal(ckv_turboquant_unrotate(codec, deferred, 1, deferred, NULL),
                         CKV_OK);
        for (size_t i = 0; i < codec.head_dim; i++)
            assert_true(fabsf(ckv_f32_from_bf16(eager[i]) -
                              ckv_f32_from_bf16(deferred[i])) < 0.05f);
    }
}

/* Small whole numbers: their sums are exact in bfloat16, so only the results round. */
static void unrotating_is_linear(void **state)
{
    struct test_random random;
    (void)state;
    test_random_init(&random, 17);
    for (size_t d = 0; d < 4; d++) {
        struct ckv_turboquant codec = codec_of(8, 3, dims[d]);
        uint16_t in[3][DIM_MAX], out[3][DIM_MAX];
        for (size_t i = 0; i < dims[d]; i++) {
            float a = (float)test_random_below(&random, 100) - 50.0f;
            float b = (float)test_random_below(&random, 100) - 50.0f;
            in[0][i] = ckv_bf16_from_f32(a);
            in[1][i] = ckv_bf16_from_f32(b);
            in[2][i] = ckv_bf16_from_f32(a + b);
        }
        for (size_t k = 0; k < 3; k++)
            assert_int_equal(ckv_turboquant_unrotate(codec, in[k], 1, out[k], NULL),
                             CKV_OK);
        for (size_t i = 0; i < dims[d]; i++) {
            float a = ckv_f32_from_bf16(out[0][i]), b = ckv_f32_from_bf16(out[1][i]);
            float bound = 0x1p-8f * (fabsf(a) + fabsf(b) + fabsf(a + b)) + 1e-5f;
            assert_true(fabsf(a + b - ckv_f32_from_bf16(out[2][i])) <= bound);
        }
    }
}

static void rows_may_be_cut_anywhere(void **state)
{
    static const size_t chunks[] = {3, 4, 2};
    const struct ckv_turboquant codec = {5, 3, 128};
    enum { ROWS = 9, KEY = 80, VALUE = 48, BLOCKS = 4 };
    static float x[ROWS * 128];
    uint8_t k[2][ROWS * KEY], v[2][ROWS * VALUE];
    uint16_t params[2][3][ROWS * BLOCKS];
    struct test_random random;
    (void)state;
    test_random_init(&random, 18);
    fill_normal(&random, x, ROWS * 128);
    for (size_t way = 0; way < 2; way++) {
        for (size_t at = 0, c = 0; at < ROWS; c++) {
            size_t rows = way == 0 ? ROWS : chunks[c];
            assert_int_equal(ckv_turboquant_encode_keys(
                                 codec, CKV_DTYPE_FLOAT32, x + at * 128, rows,
                                 k[way] + at * KEY, params[way][0] + at * BLOCKS,
                                 params[way][1] + at * BLOCKS, NULL),
                             CKV_OK);
            assert_int_equal(ckv_turboquant_encode_values(
                                 codec, CKV_DTYPE_FLOAT32, x + at * 128, rows,
                                 v[way] + at * VALUE, params[way][2] + at * BLOCKS, NULL),
                             CKV_OK);
            at += rows;
        }
    }
    assert_memory_equal(k[0], k[1], sizeof(k[0]));
    assert_memory_equal(v[0], v[1], sizeof(v[0]));
    assert_memory_equal(params[0], params[1], sizeof(params[0]));
}

static void sizes_are_those_of_the_format(void **state)
{
    struct ckv_turboquant codec = codec_of(8, 3, 128);
    (void)state;
    /* 200 bytes per token and head beside 512 of bfloat16. */
    assert_int_equal(ckv_turboquant_key_bytes(codec), 128);
    assert_int_equal(ckv_turboquant_value_bytes(codec), 48);
    assert_int_equal(ckv_turboquant_blocks(codec), 4);
    assert_int_equal(ckv_turboquant_key_bytes(codec_of(5, 3, 64)), 40);
    assert_int_equal(ckv_turboquant_value_bytes(codec_of(8, 5, 512)), 320);
}

static void parameters_that_are_not_allowed_are_named(void **state)
{
    static const struct {
        struct ckv_turboquant codec;
        const char *part;
    } wrong[] = {
        {{3, 3, 64}, "key bits 3"},      {{0, 3, 64}, "key bits 0"},
        {{9, 3, 64}, "key bits 9"},      {{8, 6, 64}, "value bits 6"},
        {{8, 1, 64}, "value bits 1"},    {{8, 3, 48}, "head dim 48"},
        {{8, 3, 0}, "head dim 0"},       {{8, 3, 96}, "head dim 96"},
        {{8, 3, 1024}, "head dim 1024"},
    };
    struct ckv_error error;
    struct coded_keys k = {{0}, {0}, {0}};
    uint16_t out[64] = {0};
    float x[64] = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(ckv_turboquant_check(wrong[i].codec, &error), CKV_INVALID);
        assert_non_null(strstr(error.text, wrong[i].part));
        assert_int_equal(ckv_turboquant_encode_keys(wrong[i].codec, CKV_DTYPE_FLOAT32, x,
                                                    1, k.indices, k.scales, k.zeros,
                                                    NULL),
                         CKV_INVALID);
        assert_int_equal(ckv_turboquant_encode_values(wrong[i].codec, CKV_DTYPE_FLOAT32,
                                                      x, 1, k.indices, k.scales, NULL),
                         CKV_INVALID);
        assert_int_equal(ckv_turboquant_decode_keys(wrong[i].codec, k.indices, k.scales,
                                                    k.zeros, 1, out, NULL),
                         CKV_INVALID);
        assert_int_equal(ckv_turboquant_decode_values(wrong[i].codec, k.indices, k.scales,
                                                      1, out, NULL),
                         CKV_INVALID);
        assert_int_equal(ckv_turboquant_unrotate(wrong[i].codec, out, 1, out, NULL),
                         CKV_INVALID);
    }
    assert_int_equal(ckv_turboquant_encode_keys(codec_of(8, 3, 64), CKV_DTYPE_FLOAT64, x,
                                                1, k.indices, k.scales, k.zeros, &error),
                     CKV_INVALID);
    assert_non_null(strstr(error.text, "float64"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_keys),
        cmocka_unit_test(the_vectors_of_values),
        cmocka_unit_test(the_vectors_of_decoding),
        cmocka_unit_test(every_input_follows_the_rule),
        cmocka_unit_test(half_types_are_coded_as_their_float32_values),
        cmocka_unit_test(a_constant_block_of_keys_decodes_to_nan),
        cmocka_unit_test(zeros_are_coded_as_zeros),
        cmocka_unit_test(an_outlier_stays_within_half_a_step),
        cmocka_unit_test(keys_that_are_not_finite_spoil_their_block_only),
        cmocka_unit_test(a_nan_among_keys_gets_the_lowest_index),
        cmocka_unit_test(values_that_are_not_finite_spoil_their_row_only),
        cmocka_unit_test(any_stored_bytes_decode),
        cmocka_unit_test(three_bits_have_the_expected_error),
        cmocka_unit_test(deferred_decode_is_close_to_eager),
        cmocka_unit_test(unrotating_is_linear),
        cmocka_unit_test(rows_may_be_cut_anywhere),
        cmocka_unit_test(sizes_are_those_of_the_format),
        cmocka_unit_test(parameters_that_are_not_allowed_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Affine quantization: the vectors, the rule in its slow form, and what is not finite. */
#include "lib/hex.h"
#include "lib/random.h"
#include "tensor/affine.h"
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

enum { DIM_MAX = 512, GROUPS_MAX = DIM_MAX / 32 };

static const uint32_t widths[] = {2, 3, 4, 5, 6, 8};
static const uint32_t group_sizes[] = {32, 64, 128};
static const enum ckv_dtype dtypes[] = {CKV_DTYPE_FLOAT32, CKV_DTYPE_FLOAT16,
                                        CKV_DTYPE_BFLOAT16};

/* One row, coded. Parameters are stored in the row's type; 16 bits of room suffice for
 * the half types, all 32 for float32. */
struct coded {
    uint32_t packed[DIM_MAX / 4];
    uint32_t scales[GROUPS_MAX];
    uint32_t biases[GROUPS_MAX];
};

struct row {
    struct ckv_affine affine;
    enum ckv_dtype dtype;
    size_t dim;
    uint32_t bytes[DIM_MAX]; /* elements of the type, from the start */
};

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

static struct row make_row(uint32_t bits, uint32_t group_size, enum ckv_dtype dtype,
                           const float *x, size_t dim)
{
    struct row row = {{bits, group_size}, dtype, dim, {0}};
    assert_int_equal(ckv_from_f32(dtype, x, dim, row.bytes, NULL), CKV_OK);
    return row;
}

static void encode(const struct row *row, bool simd, struct coded *out)
{
    memset(out, 0xa5, sizeof(*out));
    ckv_simd_enable(simd);
    assert_int_equal(ckv_affine_encode(row->affine, row->dtype, row->bytes, 1, row->dim,
                                       out->packed, out->scales, out->biases, NULL),
                     CKV_OK);
}

static void decode(const struct row *row, bool simd, const struct coded *in, void *out)
{
    ckv_simd_enable(simd);
    assert_int_equal(ckv_affine_decode(row->affine, row->dtype, in->packed, in->scales,
                                       in->biases, 1, row->dim, out, NULL),
                     CKV_OK);
}

static void decode_to_f32(const struct row *row, const struct coded *in, float *out)
{
    uint32_t bytes[DIM_MAX];
    decode(row, true, in, bytes);
    assert_int_equal(ckv_to_f32(row->dtype, bytes, row->dim, out, NULL), CKV_OK);
}

static void same_with_and_without_simd(const struct row *row)
{
    struct coded fast, plain;
    uint32_t fast_out[DIM_MAX] = {0}, plain_out[DIM_MAX] = {0};
    encode(row, true, &fast);
    encode(row, false, &plain);
    assert_memory_equal(&fast, &plain, sizeof(fast));
    decode(row, true, &fast, fast_out);
    decode(row, false, &fast, plain_out);
    assert_memory_equal(fast_out, plain_out, sizeof(fast_out));
}

/* Whether a row of bfloat16 or float16 is coded to these bytes, by all loops. */
static void expect(const struct row *row, const char *packed, const char *scales,
                   const char *biases)
{
    uint8_t want[sizeof(((struct coded *)0)->packed)];
    uint16_t words[GROUPS_MAX];
    struct coded got;
    size_t size = test_hex_size(packed);
    assert_int_equal(size, ckv_affine_packed_words(row->affine, row->dim) * 4);
    test_hex_bytes(packed, want, size);
    for (int simd = 0; simd < 2; simd++) {
        encode(row, simd != 0, &got);
        assert_memory_equal(got.packed, want, size);
        assert_int_equal(test_hex_words(scales, words, GROUPS_MAX),
                         ckv_affine_groups(row->affine, row->dim));
        assert_memory_equal(got.scales, words,
                            ckv_affine_groups(row->affine, row->dim) * 2);
        assert_int_equal(test_hex_words(biases, words, GROUPS_MAX),
                         ckv_affine_groups(row->affine, row->dim));
        assert_memory_equal(got.biases, words,
                            ckv_affine_groups(row->affine, row->dim) * 2);
    }
}

static void sawtooth(float *x)
{
    for (int i = 0; i < 64; i++)
        x[i] = (float)((37 * i + 11) % 64 - 32) / 16.0f;
}

static void the_vectors_of_every_width(void **state)
{
    static const struct {
        uint32_t bits, group_size;
        const char *packed, *scales, *biases;
    } vectors[] = {
        {2, 32, "dd72bbdc62b7dc2d9d78e3de7827deb9", "3f80 bf78", "c000 3ff8"},
        {3, 32, "f1ce54de19eb43e39da8bc33738a5d0ebfabe1e714bc9c7e", "3f00 bef8",
         "c000 3ff8"},
        {4, 32, "c3f5184a6d9fb2e407395c8ea1d3f628c5a3704e2bf9d6b4815f3c0ae7c5926f",
         "3e80 be78", "c000 3ff8"},
        {5, 32,
         "06af0e453d9afd486cda0ecc82557f829ecc7c1c0a97091c4f97c8cff4a902fa950d0d8ea74be46"
         "f",
         "3e00 bdf8", "c000 3ff8"},
        {6, 32,
         "8b6cf120a13a75f68f472be11c602a70b57f43dad0982f1a55ac9800874bed31fe59eda804c85bf"
         "2"
         "72065d3eb908f96b",
         "3d78 bd78", "c000 3ff8"},
        {8, 32,
         "2ec958f38211ac3bd665ff8e1db847e271009b2ac554ef7e0da836d160fb8a1953c22999006fdf4"
         "6"
         "b61d8cfc63d33aa91180ef57c62d9d0474e34aba2191ff67",
         "3c75 bc78", "c000 3ff8"},
        {4, 64, "c3f5184a6d9fb2e407395c8ea1d3f6284b7d9fc2e5173a6c8fb1d4f6295b7ea0",
         "3e80", "c000"},
        {8, 64,
         "2dc355ec7e10a739cf62f88a1cb345db6e009629bf51e87a0ca335cb5df48618af41d76aff9225b"
         "b"
         "4de476089e31c759f08214ab3dd366fc8e21b749df72049a",
         "3c7c", "c000"},
    };
    float x[64];
    (void)state;
    sawtooth(x);
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        struct row row =
            make_row(vectors[i].bits, vectors[i].group_size, CKV_DTYPE_BFLOAT16, x, 64);
        expect(&row, vectors[i].packed, vectors[i].scales, vectors[i].biases);
    }
}

static void the_vectors_of_one_sided_and_constant_groups(void **state)
{
    static const char zeros[] = "00000000000000000000000000000000";
    float x[32];
    struct row row;
    (void)state;
    for (int i = 0; i < 32; i++)
        x[i] = -1.0f - (float)i / 32.0f;
    row = make_row(4, 32, CKV_DTYPE_BFLOAT16, x, 32);
    expect(&row, "77776666555545443433232212110100", "3e06", "bffc");
    for (int i = 0; i < 32; i++)
        x[i] = 1.0f + (float)i / 32.0f;
    row = make_row(4, 32, CKV_DTYPE_BFLOAT16, x, 32);
    expect(&row, "efdecdbcabaa99887766554433221100", "bd86", "3ffc");
    for (int i = 0; i < 32; i++)
        x[i] = 0.5f;
    row = make_row(4, 32, CKV_DTYPE_BFLOAT16, x, 32);
    expect(&row, zeros, "b3d7", "3f00");
    for (int i = 0; i < 32; i++)
        x[i] = -0.5f;
    row = make_row(4, 32, CKV_DTYPE_BFLOAT16, x, 32);
    expect(&row, zeros, "3d09", "bf00");
    for (int i = 0; i < 32; i++)
        x[i] = i % 2 == 0 ? 0.0f : -0.0f;
    row = make_row(4, 32, CKV_DTYPE_BFLOAT16, x, 32);
    expect(&row, zeros, "b3d7", "0000");
    row = make_row(4, 32, CKV_DTYPE_FLOAT16, x, 32);
    expect(&row, zeros, "8002", "0000");
}

static void ties_go_away_from_zero(void **state)
{
    float x[32];
    struct row row;
    (void)state;
    for (int i = 0; i < 32; i++)
        x[i] = i % 2 == 0 ? -3.0f : 3.0f;
    x[5] = 1.5f;
    x[6] = -2.5f;
    row = make_row(2, 32, CKV_DTYPE_BFLOAT16, x, 32);
    expect(&row, "3337333333333333", "bfc0", "4040");
}

/* The rounding of both loops on its own: what a shift by one half gets wrong. */
static void rounding_is_exact(void **state)
{
    (void)state;
    for (int i = 0; i < 1 << 16; i++) {
        float tie = (float)i + 0.5f, near[3];
        near[0] = nextafterf(tie, 0.0f);
        near[1] = tie;
        near[2] = nextafterf(tie, INFINITY);
        for (int k = 0; k < 3; k++) {
            assert_true(ckvi_affine_round(near[k]) == roundf(near[k]));
            assert_true(ckvi_affine_round(-near[k]) == roundf(-near[k]));
            assert_true((float)(int)(near[k] + CKVI_AFFINE_HALF) == roundf(near[k]));
        }
    }
    assert_true(ckvi_affine_round(8388609.0f) == 8388609.0f);
    assert_true(ckvi_affine_round(4194303.5f) == 4194304.0f);
    assert_true(ckvi_affine_round(-1e30f) == -1e30f);
    assert_true(ckvi_affine_round(-INFINITY) == -INFINITY);
    assert_true(isnan(ckvi_affine_round(NAN)));
    assert_true(signbit(ckvi_affine_round(-0.25f)) != 0);
}

/* The rule, one step after the other, in the words of the documentation. */
static void reference(struct ckv_affine affine, const float *x, uint8_t *codes,
                      float *scale, float *bias)
{
    float lo = INFINITY, hi = 0.0f, levels = (float)((1 << affine.bits) - 1), s, edge, q0;
    for (size_t i = 0; i < affine.group_size; i++) {
        lo = fminf(lo, x[i]);
        hi = fmaxf(hi, x[i]);
    }
    s = fmaxf((hi - lo) / levels, 1e-7f);
    edge = fabsf(lo) > fabsf(hi) ? lo : hi;
    s = fabsf(lo) > fabsf(hi) ? s : -s;
    q0 = roundf(edge / s);
    *bias = 0.0f;
    if (q0 != 0.0f) {
        s = edge / q0;
        *bias = edge;
    }
    *scale = s;
    for (size_t i = 0; i < affine.group_size; i++)
        codes[i] = (uint8_t)fminf(roundf((x[i] - *bias) / s), levels);
}

static uint8_t code_at(const struct row *row, const struct coded *coded, size_t i)
{
    const uint8_t *bytes = (const uint8_t *)coded->packed;
    unsigned code = 0;
    for (uint32_t k = 0; k < row->affine.bits; k++) {
        size_t at = i * row->affine.bits + k;
        code |= (unsigned)(bytes[at / 8] >> at % 8 & 1) << k;
    }
    return (uint8_t)code;
}

static void check_against_reference(const struct row *row)
{
    uint32_t stored[2], decoded[DIM_MAX], want[DIM_MAX];
    size_t size = ckv_dtype_size(row->dtype), n = row->affine.group_size;
    float x[DIM_MAX], params[2], out[DIM_MAX];
    uint8_t codes[128];
    struct coded coded;

    encode(row, true, &coded);
    decode(row, true, &coded, decoded);
    assert_int_equal(ckv_to_f32(row->dtype, row->bytes, row->dim, x, NULL), CKV_OK);
    for (size_t g = 0; g < row->dim / n; g++) {
        reference(row->affine, x + g * n, codes, &params[0], &params[1]);
        assert_int_equal(ckv_from_f32(row->dtype, params, 2, stored, NULL), CKV_OK);
        assert_memory_equal(stored, (char *)coded.scales + g * size, size);
        assert_memory_equal((char *)stored + size, (char *)coded.biases + g * size, size);
        assert_int_equal(ckv_to_f32(row->dtype, stored, 2, params, NULL), CKV_OK);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(code_at(row, &coded, g * n + i), codes[i]);
            out[g * n + i] = (float)codes[i] * params[0] + params[1];
        }
    }
    assert_int_equal(ckv_from_f32(row->dtype, out, row->dim, want, NULL), CKV_OK);
    assert_memory_equal(decoded, want, row->dim * size);
}

typedef float draw_fn(struct test_random *random);

static float unit(struct test_random *random)
{
    return (float)test_random_below(random, 1 << 24) / (float)(1 << 23) - 1.0f;
}

static float draw_small(struct test_random *random)
{
    return unit(random);
}

static float draw_negative(struct test_random *random)
{
    return -0.25f - fabsf(unit(random));
}

static float draw_positive(struct test_random *random)
{
    return 3.0f + unit(random);
}

static float draw_denormal(struct test_random *random)
{
    return from_bits((uint32_t)test_random_next(random) & 0x807fffff);
}

static float draw_tiny(struct test_random *random)
{
    return unit(random) * 1e-6f;
}

static float draw_huge(struct test_random *random)
{
    return unit(random) * 1.5e38f;
}

static float draw_outlier(struct test_random *random)
{
    return test_random_below(random, 40) == 0 ? 1000.0f * unit(random) : unit(random);
}

static float draw_few(struct test_random *random)
{
    return (float)test_random_below(random, 5) * 0.5f - 1.0f;
}

static float draw_zero(struct test_random *random)
{
    return test_random_below(random, 2) == 0 ? 0.0f : -0.0f;
}

static float draw_constant(struct test_random *random)
{
    (void)random;
    return 1.7f;
}

static float draw_constant_negative(struct test_random *random)
{
    (void)random;
    return -1e-9f;
}

/* Any bits, made finite: all magnitudes in one group. */
static float draw_wild(struct test_random *random)
{
    return from_bits((uint32_t)test_random_next(random) & 0xbfffffff);
}

static draw_fn *const finite_draws[] = {
    draw_small, draw_negative, draw_positive, draw_denormal,
    draw_tiny,  draw_huge,     draw_outlier,  draw_few,
    draw_zero,  draw_constant, draw_wild,     draw_constant_negative,
};

/* Any bits at all, infinities and NaNs of all kinds among them. */
static float draw_anything(struct test_random *random)
{
    static const uint32_t special[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000,
                                       0x7f800001, 0xff812345, 0x00000001, 0x7f7fffff,
                                       0xff7fffff, 0x80000000};
    uint64_t pick = test_random_below(random, 60);
    return pick < 10 ? from_bits(special[pick]) : unit(random);
}

static float draw_bits(struct test_random *random)
{
    return from_bits((uint32_t)test_random_next(random));
}

static float draw_infinite(struct test_random *random)
{
    return test_random_below(random, 90) == 0 ? -INFINITY : unit(random);
}

static float draw_nan(struct test_random *random)
{
    return test_random_below(random, 9) == 0 ? unit(random) : NAN;
}

static draw_fn *const odd_draws[] = {draw_anything, draw_bits, draw_infinite, draw_nan};

/* Calls `check` with rows of every width, group size, type and one way to draw. */
static void for_every_row(draw_fn *draw, uint64_t seed, void (*check)(const struct row *))
{
    struct test_random random;
    float x[DIM_MAX];
    test_random_init(&random, seed);
    for (size_t w = 0; w < 6; w++) {
        for (size_t g = 0; g < 3; g++) {
            for (size_t t = 0; t < 3; t++) {
                for (size_t i = 0; i < DIM_MAX; i++)
                    x[i] = draw(&random);
                /* float16 overflows beyond this; that is another test. */
                for (size_t i = 0; dtypes[t] == CKV_DTYPE_FLOAT16 && i < DIM_MAX; i++)
                    x[i] = fabsf(x[i]) < 6e4f ? x[i] : (draw == draw_bits ? x[i] : 9.0f);
                struct row row =
                    make_row(widths[w], group_sizes[g], dtypes[t], x, DIM_MAX);
                check(&row);
            }
        }
    }
}

static void every_finite_input_follows_the_rule(void **state)
{
    (void)state;
    for (size_t d = 0; d < sizeof(finite_draws) / sizeof(finite_draws[0]); d++)
        for (uint64_t round = 0; round < 20; round++)
            for_every_row(finite_draws[d], 100 * d + round, check_against_reference);
}

static void vector_and_plain_loops_agree_on_everything(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < 20; round++) {
        for (size_t d = 0; d < sizeof(finite_draws) / sizeof(finite_draws[0]); d++)
            for_every_row(finite_draws[d], 7000 + 100 * d + round,
                          same_with_and_without_simd);
        for (size_t d = 0; d < sizeof(odd_draws) / sizeof(odd_draws[0]); d++)
            for_every_row(odd_draws[d], 9000 + 100 * d + round,
                          same_with_and_without_simd);
    }
}

static void any_stored_bytes_decode_to_the_same(void **state)
{
    struct test_random random;
    (void)state;
    test_random_init(&random, 77);
    for (int round = 0; round < 2000; round++) {
        struct row row = {{widths[round % 6], group_sizes[round / 6 % 3]},
                          dtypes[round / 18 % 3],
                          DIM_MAX,
                          {0}};
        uint32_t fast[DIM_MAX] = {0}, plain[DIM_MAX] = {0};
        struct coded coded;
        test_random_fill(&random, &coded, sizeof(coded));
        decode(&row, true, &coded, fast);
        decode(&row, false, &coded, plain);
        assert_memory_equal(fast, plain, sizeof(fast));
    }
}

static void a_nan_gets_the_highest_code_and_changes_nothing_else(void **state)
{
    float x[64], out[32], without[32];
    struct coded coded;
    (void)state;
    sawtooth(x);
    struct row row = make_row(4, 32, CKV_DTYPE_FLOAT32, x, 32);
    encode(&row, true, &coded);
    decode_to_f32(&row, &coded, without);
    x[7] = NAN;
    x[8] = from_bits(0xff800001);
    row = make_row(4, 32, CKV_DTYPE_FLOAT32, x, 32);
    for (int simd = 0; simd < 2; simd++) {
        encode(&row, simd != 0, &coded);
        assert_int_equal(code_at(&row, &coded, 7), 15);
        assert_int_equal(code_at(&row, &coded, 8), 15);
        decode_to_f32(&row, &coded, out);
        for (size_t i = 0; i < 32; i++)
            if (i != 7 && i != 8)
                assert_true(out[i] == without[i]);
        assert_true(out[7] == 1.75f);
    }
}

static void expect_all_nan(const float *x, enum ckv_dtype dtype)
{
    uint32_t decoded[32];
    float out[32];
    struct coded coded;
    struct row row = make_row(4, 32, dtype, x, 32);
    for (int simd = 0; simd < 2; simd++) {
        encode(&row, simd != 0, &coded);
        assert_int_equal(ckv_to_f32(dtype, coded.scales, 1, out, NULL), CKV_OK);
        assert_int_equal(bits_of(out[0]), 0x7fc00000);
        decode(&row, simd != 0, &coded, decoded);
        assert_int_equal(ckv_to_f32(dtype, decoded, 32, out, NULL), CKV_OK);
        for (size_t i = 0; i < 32; i++)
            assert_int_equal(bits_of(out[i]), 0x7fc00000);
    }
}

static void an_infinity_or_only_nans_lose_the_group(void **state)
{
    float x[32];
    (void)state;
    for (size_t t = 0; t < 3; t++) {
        for (int i = 0; i < 32; i++)
            x[i] = (float)i - 9.0f;
        x[3] = INFINITY;
        expect_all_nan(x, dtypes[t]);
        x[4] = -INFINITY;
        expect_all_nan(x, dtypes[t]);
        x[3] = NAN;
        expect_all_nan(x, dtypes[t]);
        for (int i = 0; i < 32; i++)
            x[i] = i % 3 == 0 ? NAN : INFINITY;
        expect_all_nan(x, dtypes[t]);
        for (int i = 0; i < 32; i++)
            x[i] = from_bits(i % 2 == 0 ? 0xffc12345 : 0x7f800001);
        expect_all_nan(x, dtypes[t]);
    }
}

static void a_group_wider_than_float32_is_lost_and_its_neighbours_are_not(void **state)
{
    float x[96], out[96];
    struct coded coded;
    (void)state;
    for (int i = 0; i < 96; i++)
        x[i] = (float)(i % 16);
    x[40] = 3e38f;
    x[41] = -3e38f;
    struct row row = make_row(4, 32, CKV_DTYPE_FLOAT32, x, 96);
    for (int simd = 0; simd < 2; simd++) {
        encode(&row, simd != 0, &coded);
        assert_true(isinf(from_bits(coded.scales[1])));
        decode_to_f32(&row, &coded, out);
        for (int i = 0; i < 96; i++)
            if (i / 32 == 1)
                assert_int_equal(bits_of(out[i]), 0x7fc00000);
            else
                assert_true(out[i] == x[i]);
    }
}

static void a_huge_constant_comes_back(void **state)
{
    float x[32], out[32];
    struct coded coded;
    (void)state;
    for (int i = 0; i < 32; i++)
        x[i] = 1e38f;
    struct row row = make_row(8, 32, CKV_DTYPE_FLOAT32, x, 32);
    for (int simd = 0; simd < 2; simd++) {
        encode(&row, simd != 0, &coded);
        assert_int_equal(coded.scales[0], 0x80000000);
        decode_to_f32(&row, &coded, out);
        for (int i = 0; i < 32; i++)
            assert_true(out[i] == 1e38f);
    }
}

/* Eight bits keep bfloat16 within 0.02 of values in [-2, 2]. */
static void eight_bits_are_close(void **state)
{
    struct test_random random;
    float x[DIM_MAX], in[DIM_MAX], out[DIM_MAX];
    struct coded coded;
    (void)state;
    test_random_init(&random, 8);
    for (size_t i = 0; i < DIM_MAX; i++)
        x[i] = 2.0f * unit(&random);
    struct row row = make_row(8, 64, CKV_DTYPE_BFLOAT16, x, DIM_MAX);
    encode(&row, true, &coded);
    decode_to_f32(&row, &coded, out);
    assert_int_equal(ckv_to_f32(row.dtype, row.bytes, DIM_MAX, in, NULL), CKV_OK);
    for (size_t i = 0; i < DIM_MAX; i++)
        assert_true(fabsf(in[i] - out[i]) < 0.02f);
}

/* Rows follow each other without gaps, in one call or in many, over every inner buffer.
 */
static void cutting_the_rows_changes_nothing(void **state)
{
    enum { ROWS = 37, DIM = 384, WORDS = DIM / 32 * 5, GROUPS = DIM / 128 };
    const struct ckv_affine affine = {5, 128};
    static float x[ROWS * DIM], whole[ROWS * DIM], part[DIM];
    static uint32_t packed[2][ROWS * WORDS];
    static float scales[2][ROWS * GROUPS], biases[2][ROWS * GROUPS];
    struct test_random random;
    (void)state;
    test_random_init(&random, 3);
    for (size_t i = 0; i < ROWS * DIM; i++)
        x[i] = draw_outlier(&random);
    ckv_simd_enable(true);
    assert_int_equal(ckv_affine_encode(affine, CKV_DTYPE_FLOAT32, x, ROWS, DIM, packed[0],
                                       scales[0], biases[0], NULL),
                     CKV_OK);
    assert_int_equal(ckv_affine_decode(affine, CKV_DTYPE_FLOAT32, packed[0], scales[0],
                                       biases[0], ROWS, DIM, whole, NULL),
                     CKV_OK);
    for (size_t r = 0; r < ROWS; r++) {
        assert_int_equal(ckv_affine_encode(affine, CKV_DTYPE_FLOAT32, x + r * DIM, 1, DIM,
                                           packed[1] + r * WORDS, scales[1] + r * GROUPS,
                                           biases[1] + r * GROUPS, NULL),
                         CKV_OK);
        assert_int_equal(ckv_affine_decode(affine, CKV_DTYPE_FLOAT32,
                                           packed[0] + r * WORDS, scales[0] + r * GROUPS,
                                           biases[0] + r * GROUPS, 1, DIM, part, NULL),
                         CKV_OK);
        assert_memory_equal(part, whole + r * DIM, sizeof(part));
    }
    assert_memory_equal(packed[0], packed[1], sizeof(packed[0]));
    assert_memory_equal(scales[0], scales[1], sizeof(scales[0]));
    assert_memory_equal(biases[0], biases[1], sizeof(biases[0]));
}

static void sizes_follow_the_real_width(void **state)
{
    (void)state;
    assert_int_equal(ckv_affine_packed_words((struct ckv_affine){3, 64}, 128), 12);
    assert_int_equal(ckv_affine_packed_words((struct ckv_affine){6, 64}, 256), 48);
    assert_int_equal(ckv_affine_packed_words((struct ckv_affine){5, 32}, 160), 25);
    assert_int_equal(ckv_affine_packed_words((struct ckv_affine){8, 32}, 32), 8);
    assert_int_equal(ckv_affine_groups((struct ckv_affine){8, 64}, 256), 4);
}

static void parameters_that_are_not_allowed_are_named(void **state)
{
    static const struct {
        struct ckv_affine affine;
        size_t dim;
        const char *part;
    } wrong[] = {
        {{7, 64}, 64, "bits 7"},        {{1, 64}, 64, "bits 1"},
        {{0, 64}, 64, "bits 0"},        {{9, 64}, 64, "bits 9"},
        {{4, 16}, 64, "group size 16"}, {{4, 0}, 64, "group size 0"},
        {{4, 256}, 256, "group size"},  {{4, 64}, 96, "dim 96"},
        {{4, 64}, 0, "dim 0"},
    };
    float x[256] = {0};
    uint32_t packed[64] = {0}, params[2][8] = {{0}, {0}};
    struct ckv_error error;
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(ckv_affine_check(wrong[i].affine, wrong[i].dim, &error),
                         CKV_INVALID);
        assert_non_null(strstr(error.text, wrong[i].part));
        assert_int_equal(ckv_affine_encode(wrong[i].affine, CKV_DTYPE_FLOAT32, x, 1,
                                           wrong[i].dim, packed, params[0], params[1],
                                           NULL),
                         CKV_INVALID);
        assert_int_equal(ckv_affine_decode(wrong[i].affine, CKV_DTYPE_FLOAT32, packed,
                                           params[0], params[1], 1, wrong[i].dim, x,
                                           NULL),
                         CKV_INVALID);
    }
    assert_int_equal(ckv_affine_encode((struct ckv_affine){4, 32}, CKV_DTYPE_INT32, x, 1,
                                       32, packed, params[0], params[1], &error),
                     CKV_INVALID);
    assert_non_null(strstr(error.text, "int32"));
    assert_int_equal(ckv_affine_encode((struct ckv_affine){4, 32}, CKV_DTYPE_FLOAT32,
                                       NULL, 0, 32, NULL, NULL, NULL, NULL),
                     CKV_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_every_width),
        cmocka_unit_test(the_vectors_of_one_sided_and_constant_groups),
        cmocka_unit_test(ties_go_away_from_zero),
        cmocka_unit_test(rounding_is_exact),
        cmocka_unit_test(every_finite_input_follows_the_rule),
        cmocka_unit_test(vector_and_plain_loops_agree_on_everything),
        cmocka_unit_test(any_stored_bytes_decode_to_the_same),
        cmocka_unit_test(a_nan_gets_the_highest_code_and_changes_nothing_else),
        cmocka_unit_test(an_infinity_or_only_nans_lose_the_group),
        cmocka_unit_test(a_group_wider_than_float32_is_lost_and_its_neighbours_are_not),
        cmocka_unit_test(a_huge_constant_comes_back),
        cmocka_unit_test(eight_bits_are_close),
        cmocka_unit_test(cutting_the_rows_changes_nothing),
        cmocka_unit_test(sizes_follow_the_real_width),
        cmocka_unit_test(parameters_that_are_not_allowed_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

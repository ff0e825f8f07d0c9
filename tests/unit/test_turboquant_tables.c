/* What the TurboQuant codec stands on: sign tables, centroids, boundaries, rotation. */
#include "lib/hex.h"
#include "lib/random.h"
#include "tensor/hadamard.h"
#include "tensor/turboquant_tables.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { DIM_MAX = 512 };

static const uint32_t dims[] = {64, 128, 256, 512};
static const uint32_t value_widths[] = {2, 3, 4, 5, 8};

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
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

static void threefry(uint32_t *a, uint32_t *b)
{
    static const unsigned turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    const uint32_t key[3] = {0, 42, 0x1bd11bda ^ 0 ^ 42};
    *a += key[0];
    *b += key[1];
    for (uint32_t group = 0; group < 5; group++) {
        for (size_t i = 0; i < 4; i++) {
            unsigned turn = turns[group % 2][i];
            *a += *b;
            *b = (*b << turn | *b >> (32 - turn)) ^ *a;
        }
        *a += key[(group + 1) % 3];
        *b += key[(group + 2) % 3] + group + 1;
    }
}

static void the_signs_come_out_of_their_generator(void **state)
{
    float got[DIM_MAX];
    (void)state;
    for (size_t d = 0; d < 4; d++) {
        uint32_t half = dims[d] / 2;
        ckvi_turboquant_signs(dims[d], got);
        for (uint32_t i = 0; i < half; i++) {
            uint32_t a = i, b = i + half;
            threefry(&a, &b);
            assert_true(got[i] == (a >> 31 != 0 ? -1.0f : 1.0f));
            assert_true(got[i + half] == (b >> 31 != 0 ? -1.0f : 1.0f));
        }
    }
}

static void the_signs_are_the_published_ones(void **state)
{
    static const char *const tables[] = {
        "8e5469b70248de62",
        "0ddf396a50029c6ad537834ade596014",
        "1230e662114acd106f146da9c95e9cd39bf22f3a735d27b26bd9305757c38bfe",
        ("bd4b36700de3fb6263e439d461d2ca5c8f7c479b4312dde930de2a54bacaba77"
         "843e871118154c9ac5a304321f72815d5214828ac29ba78eef4b0e526d9d6b29"),
    };
    float got[DIM_MAX];
    uint8_t want[DIM_MAX / 8];
    (void)state;
    for (size_t d = 0; d < 4; d++) {
        test_hex_bytes(tables[d], want, dims[d] / 8);
        ckvi_turboquant_signs(dims[d], got);
        for (uint32_t i = 0; i < dims[d]; i++)
            assert_true(got[i] == ((want[i / 8] >> i % 8 & 1) != 0 ? -1.0f : 1.0f));
    }
}

/* A Lloyd-Max quantizer puts each centroid at the mean of the normal distribution between
 * its boundaries; the published tables do so to about a hundredth. */
static void the_centroids_are_means_between_their_boundaries(void **state)
{
    const double root = sqrt(8.0 * atan(1.0));
    (void)state;
    for (size_t w = 0; w < 5; w++) {
        size_t count = (size_t)1 << value_widths[w];
        float centroids[256], boundaries[256];
        ckvi_turboquant_centroids(value_widths[w], centroids);
        ckvi_turboquant_boundaries(value_widths[w], boundaries);
        for (size_t i = 0; i < count; i++) {
            double low = i == 0 ? -40.0 : (double)boundaries[i - 1];
            double high = i + 1 == count ? 40.0 : (double)boundaries[i];
            double mass = 0.5 * (erf(high / sqrt(2.0)) - erf(low / sqrt(2.0)));
            double moment = (exp(-low * low / 2) - exp(-high * high / 2)) / root;
            assert_true(low < (double)centroids[i] && (double)centroids[i] < high);
            if (mass > 1e-4)
                assert_true(fabs(moment / mass - (double)centroids[i]) < 0.01);
        }
    }
}

static void the_boundaries_are_the_published_ones(void **state)
{
    static const uint32_t three[] = {0xbfdfbc2c, 0xbf866517, 0xbf00240b, 0x00000000,
                                     0x3f00240b, 0x3f866517, 0x3fdfbc2c};
    float centroids[256], boundaries[256];
    (void)state;
    ckvi_turboquant_boundaries(3, boundaries);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(bits_of(boundaries[i]), three[i]);
    assert_true(boundaries[6] == 1.74793f && boundaries[5] == 1.04996f &&
                boundaries[4] == 0.50055f);
    ckvi_turboquant_centroids(4, centroids);
    ckvi_turboquant_boundaries(4, boundaries);
    for (size_t i = 0; i < 15; i++)
        assert_true(boundaries[i] == (centroids[i] + centroids[i + 1]) * 0.5f);
    ckvi_turboquant_centroids(2, centroids);
    assert_int_equal(bits_of(centroids[0]), 0xbfc1da51);
    ckvi_turboquant_centroids(8, centroids);
    assert_int_equal(bits_of(centroids[0]), 0xc0902e85);
    assert_int_equal(bits_of(centroids[255]), 0x408af0c0);
}

static void the_rotation_is_its_own_inverse_and_keeps_the_norm(void **state)
{
    struct test_random random;
    (void)state;
    test_random_init(&random, 13);
    for (size_t d = 0; d < 4; d++) {
        float x[DIM_MAX] = {0}, y[DIM_MAX];
        double before = 0, after = 0;
        fill_normal(&random, x, dims[d]);
        memcpy(y, x, sizeof(y));
        ckvi_hadamard(y, dims[d]);
        for (size_t i = 0; i < dims[d]; i++) {
            before += (double)x[i] * (double)x[i];
            after += (double)y[i] * (double)y[i];
        }
        assert_true(fabs(before - after) < 1e-4 * before);
        ckvi_hadamard(y, dims[d]);
        for (size_t i = 0; i < dims[d]; i++)
            assert_true(fabsf(x[i] - y[i]) < 1e-4f);
    }
}

/* Element (i, j) of the transform has the sign of the parity of i AND j. */
static void the_rotation_has_sylvesters_order(void **state)
{
    (void)state;
    for (size_t d = 0; d < 4; d++) {
        for (size_t j = 0; j < dims[d]; j += 7) {
            float x[DIM_MAX] = {0}, size = (float)(1.0 / sqrt((double)dims[d]));
            x[j] = 1.0f;
            ckvi_hadamard(x, dims[d]);
            for (size_t i = 0; i < dims[d]; i++) {
                bool odd = __builtin_popcountll(i & j) % 2 != 0;
                assert_true(x[i] == (odd ? -size : size));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_signs_come_out_of_their_generator),
        cmocka_unit_test(the_signs_are_the_published_ones),
        cmocka_unit_test(the_centroids_are_means_between_their_boundaries),
        cmocka_unit_test(the_boundaries_are_the_published_ones),
        cmocka_unit_test(the_rotation_is_its_own_inverse_and_keeps_the_norm),
        cmocka_unit_test(the_rotation_has_sylvesters_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The bit stream of the codecs, against one that moves bit by bit. */
#include "lib/random.h"
#include "tensor/bitpack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint32_t widths[] = {2, 3, 4, 5, 6, 8};

enum { WIDTH_COUNT = sizeof(widths) / sizeof(widths[0]) };

static void pack_slowly(uint32_t bits, const uint8_t *codes, size_t count, uint8_t *out)
{
    memset(out, 0, count * bits / 8);
    for (size_t at = 0; at < count * bits; at++)
        if ((codes[at / bits] >> at % bits & 1) != 0)
            out[at / 8] = (uint8_t)(out[at / 8] | 1u << at % 8);
}

static void random_codes(struct test_random *random, uint32_t bits, uint8_t *codes,
                         size_t count)
{
    test_random_fill(random, codes, count);
    for (size_t i = 0; i < count; i++)
        codes[i] = (uint8_t)(codes[i] & ((1u << bits) - 1));
}

/* Blocks of exact size, so that a sanitizer sees a byte too far. */
static void check(struct test_random *random, uint32_t bits, size_t count)
{
    size_t size = count * bits / 8;
    uint8_t *codes = malloc(count + 1), *back = malloc(count == 0 ? 1 : count);
    uint8_t *want = malloc(size + 1), *got = malloc(size == 0 ? 1 : size);
    random_codes(random, bits, codes, count);
    pack_slowly(bits, codes, count, want);
    ckvi_bitpack_encode(bits, codes, count, got);
    assert_memory_equal(got, want, size);
    ckvi_bitpack_decode(bits, got, count, back);
    assert_memory_equal(back, codes, count);
    free(codes);
    free(back);
    free(want);
    free(got);
}

static void every_width_is_one_little_endian_bit_stream(void **state)
{
    struct test_random random;
    (void)state;
    test_random_init(&random, 5);
    for (size_t w = 0; w < WIDTH_COUNT; w++)
        for (size_t count = 0; count <= 512; count += 8)
            check(&random, widths[w], count);
}

static void every_byte_decodes_at_every_width(void **state)
{
    uint8_t packed[256 * 3 + 3], codes[8 * sizeof(packed) / 2], again[sizeof(packed)];
    (void)state;
    for (size_t i = 0; i < sizeof(packed); i++)
        packed[i] = (uint8_t)(i * 7 + i / 256);
    for (size_t w = 0; w < WIDTH_COUNT; w++) {
        size_t units = sizeof(packed) / widths[w];
        ckvi_bitpack_decode(widths[w], packed, units * 8, codes);
        for (size_t i = 0; i < units * 8; i++)
            assert_true(codes[i] < 1u << widths[w]);
        ckvi_bitpack_encode(widths[w], codes, units * 8, again);
        assert_memory_equal(again, packed, units * widths[w]);
    }
}

static void nothing_outside_is_written(void **state)
{
    uint8_t codes[16], packed[32];
    (void)state;
    memset(codes, 1, sizeof(codes));
    for (size_t w = 0; w < WIDTH_COUNT; w++) {
        size_t size = sizeof(codes) / 8 * widths[w];
        memset(packed, 0xa5, sizeof(packed));
        ckvi_bitpack_encode(widths[w], codes, sizeof(codes), packed + 1);
        assert_int_equal(packed[0], 0xa5);
        for (size_t i = size + 1; i < sizeof(packed); i++)
            assert_int_equal(packed[i], 0xa5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_width_is_one_little_endian_bit_stream),
        cmocka_unit_test(every_byte_decodes_at_every_width),
        cmocka_unit_test(nothing_outside_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

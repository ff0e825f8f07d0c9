/*
 * wyhash against the vectors of the format's description and of the original
 * implementation, in one piece and in any pieces.
 */
#include <coldkv/hash.h>

#include "lib/files.h"
#include "lib/random.h"
#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

struct vector {
    size_t size;
    uint64_t hash;
};

/* Byte i of the input is (31 i + 7) mod 256. */
static const struct vector ramp_vectors[] = {
    {0, UINT64_C(0x0409638ee2bde459)},     {1, UINT64_C(0xfddeeeea8cc2709c)},
    {2, UINT64_C(0xca53c1e8890f395c)},     {3, UINT64_C(0xaa4dada6d17eebb0)},
    {4, UINT64_C(0x8d9d4657e96cc294)},     {5, UINT64_C(0xc828203113ad94a7)},
    {7, UINT64_C(0x935a88298d5507c9)},     {8, UINT64_C(0x9654832f28858268)},
    {15, UINT64_C(0xb10ea23d7453482e)},    {16, UINT64_C(0x36b53f8551944db0)},
    {17, UINT64_C(0x904849bdd1e93c7c)},    {31, UINT64_C(0x21008267c30eb404)},
    {32, UINT64_C(0x4d1435b5e345c9cb)},    {33, UINT64_C(0x35eceb8164dee4ae)},
    {47, UINT64_C(0x5dc5aaaf19d7cfc9)},    {48, UINT64_C(0x3ec1b034dbe02bd7)},
    {49, UINT64_C(0x30161cb91c8df53e)},    {63, UINT64_C(0x0794c5de59c19d99)},
    {64, UINT64_C(0xefd3e3780f38a91c)},    {65, UINT64_C(0x54e9e0f63adbfdef)},
    {95, UINT64_C(0x8433907cbfd6e01a)},    {96, UINT64_C(0xaafaa5ff0421ff8c)},
    {97, UINT64_C(0x987658679c36fd56)},    {127, UINT64_C(0xeefe7c161f11d539)},
    {128, UINT64_C(0x4329d1a474b869f6)},   {255, UINT64_C(0x9ea72f9c7f36b91b)},
    {256, UINT64_C(0xe4e465a228b2d552)},   {1000, UINT64_C(0x35d3357ea07a3eb6)},
    {16384, UINT64_C(0x98bcd15f55fbdeb5)}, {16385, UINT64_C(0xe330c7b4ca3edb77)},
};

static unsigned char *make_ramp(size_t size)
{
    unsigned char *data = malloc(size + 1);
    assert_non_null(data);
    for (size_t i = 0; i < size; i++)
        data[i] = (unsigned char)(31 * i + 7);
    return data;
}

static void assert_hash(uint64_t actual, uint64_t expected, size_t size)
{
    if (actual != expected)
        fail_msg("size %zu: %016llx, expected %016llx", size, (unsigned long long)actual,
                 (unsigned long long)expected);
}

/* The hash of data cut at `cuts` random places or, with random NULL, into single bytes.
 */
static uint64_t hash_in_pieces(const unsigned char *data, size_t size,
                               struct test_random *random)
{
    struct ckv_wyhash_state state;
    size_t at = 0;
    ckv_wyhash_init(&state, 0);
    while (at < size) {
        size_t part = 1;
        if (random) {
            uint64_t widest = UINT64_C(1) << test_random_below(random, 18);
            part = (size_t)test_random_below(random, widest + 1);
        }
        if (part > size - at)
            part = size - at;
        ckv_wyhash_update(&state, data + at, part);
        at += part;
    }
    return ckv_wyhash_digest(&state);
}

static void vectors_of_the_description(void **state)
{
    unsigned char *ramp = make_ramp(16385);
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(ramp_vectors); i++) {
        size_t size = ramp_vectors[i].size;
        assert_hash(ckv_wyhash(ramp, size, 0), ramp_vectors[i].hash, size);
        assert_hash(hash_in_pieces(ramp, size, NULL), ramp_vectors[i].hash, size);
    }
    free(ramp);
}

static void texts_zeros_and_all_bytes(void **state)
{
    static const struct {
        const char *text;
        uint64_t hash;
    } texts[] = {
        {"a", UINT64_C(0x28d2053309d28531)},
        {"abc", UINT64_C(0x02a4f1d7cb516c72)},
        {"hello world", UINT64_C(0x668d5e431c3b2573)},
        {"lora-a", UINT64_C(0x73153433c8ddcab2)},
    };
    unsigned char *zeros = calloc(16384, 1);
    unsigned char bytes[256];
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(texts); i++) {
        size_t size = strlen(texts[i].text);
        assert_hash(ckv_wyhash(texts[i].text, size, 0), texts[i].hash, size);
    }
    assert_hash(ckv_wyhash(zeros, 128, 0), UINT64_C(0xb06da037eb85a067), 128);
    assert_hash(ckv_wyhash(zeros, 16384, 0), UINT64_C(0x86fe6596b9718e7c), 16384);
    for (size_t i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    assert_hash(ckv_wyhash(bytes, 256, 0), UINT64_C(0x49b63d7cb2afe93a), 256);
    free(zeros);
}

static void no_bytes_may_be_null(void **state)
{
    struct ckv_wyhash_state hash;
    (void)state;
    assert_hash(ckv_wyhash(NULL, 0, 0), UINT64_C(0x0409638ee2bde459), 0);
    ckv_wyhash_init(&hash, 0);
    ckv_wyhash_update(&hash, NULL, 0);
    assert_hash(ckv_wyhash_digest(&hash), UINT64_C(0x0409638ee2bde459), 0);
}

/* The generator that the vectors' file describes. */
static void fill_xorshift32(unsigned char *data, size_t size)
{
    uint32_t s = (uint32_t)(42 + size);
    for (size_t i = 0; i < size; i++) {
        s ^= s << 13;
        s ^= s >> 17;
        s ^= s << 5;
        data[i] = (unsigned char)s;
    }
}

/* Calls check for every vector of the original implementation's file. */
static void for_each_golden(void (*check)(const unsigned char *data, size_t size,
                                          uint64_t hash))
{
    size_t length;
    char *json =
        test_read_file(test_data_path(COLDKV_TEST_DATA, "wyhash-vectors.json"), &length);
    const char *at = json;
    size_t count = 0;
    while ((at = strstr(at, "{\"len\":")) != NULL) {
        unsigned long size = strtoul(at + 7, NULL, 10);
        const char *hex = strstr(at, "\"hash\":\"");
        unsigned char *data = malloc(size + 1);
        assert_non_null(hex);
        assert_non_null(data);
        fill_xorshift32(data, size);
        check(data, size, strtoull(hex + 8, NULL, 16));
        free(data);
        count++;
        at = hex;
    }
    assert_in_range(count, 100, 1000);
    free(json);
}

static void check_whole(const unsigned char *data, size_t size, uint64_t hash)
{
    assert_hash(ckv_wyhash(data, size, 0), hash, size);
}

static void check_pieces(const unsigned char *data, size_t size, uint64_t hash)
{
    struct test_random random;
    test_random_init(&random, size);
    assert_hash(hash_in_pieces(data, size, NULL), hash, size);
    for (int i = 0; i < 20; i++)
        assert_hash(hash_in_pieces(data, size, &random), hash, size);
}

static void golden_vectors_in_one_piece(void **state)
{
    (void)state;
    for_each_golden(check_whole);
}

static void golden_vectors_in_random_pieces(void **state)
{
    (void)state;
    for_each_golden(check_pieces);
}

/* Every way to cut a short input in three, with the bytes at any alignment. */
static void every_split_of_short_inputs(void **state)
{
    unsigned char *ramp = make_ramp(210);
    (void)state;
    for (size_t size = 0; size <= 200; size++) {
        uint64_t expected = ckv_wyhash(ramp, size, 0);
        for (size_t first = 0; first <= size; first++) {
            struct ckv_wyhash_state one;
            ckv_wyhash_init(&one, 0);
            ckv_wyhash_update(&one, ramp, first);
            for (size_t second = 0; second <= size - first; second++) {
                struct ckv_wyhash_state two = one;
                ckv_wyhash_update(&two, ramp + first, second);
                ckv_wyhash_update(&two, ramp + first + second, size - first - second);
                assert_hash(ckv_wyhash_digest(&two), expected, size);
            }
        }
    }
    free(ramp);
}

static void every_short_length_equals_the_golden_rule_at_any_address(void **state)
{
    unsigned char *ramp = make_ramp(400);
    unsigned char moved[420];
    (void)state;
    for (size_t shift = 0; shift < 8; shift++) {
        memcpy(moved + shift, ramp, 400);
        for (size_t size = 0; size <= 400; size += 13)
            assert_hash(ckv_wyhash(moved + shift, size, 0), ckv_wyhash(ramp, size, 0),
                        size);
    }
    free(ramp);
}

static void a_digest_leaves_the_state_to_go_on(void **state)
{
    unsigned char *ramp = make_ramp(500);
    struct ckv_wyhash_state hash;
    (void)state;
    ckv_wyhash_init(&hash, 0);
    for (size_t size = 0; size < 500; size++) {
        assert_hash(ckv_wyhash_digest(&hash), ckv_wyhash(ramp, size, 0), size);
        ckv_wyhash_update(&hash, ramp + size, 1);
    }
    free(ramp);
}

static void the_seed_matters_and_is_the_same_in_both_forms(void **state)
{
    static const uint64_t seeds[] = {0, 1, UINT64_C(0x123456789abcdef0), UINT64_MAX};
    unsigned char *ramp = make_ramp(300);
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(seeds); i++) {
        for (size_t size = 0; size <= 300; size += 7) {
            struct ckv_wyhash_state hash;
            uint64_t whole = ckv_wyhash(ramp, size, seeds[i]);
            ckv_wyhash_init(&hash, seeds[i]);
            ckv_wyhash_update(&hash, ramp, size / 3);
            ckv_wyhash_update(&hash, ramp + size / 3, size - size / 3);
            assert_hash(ckv_wyhash_digest(&hash), whole, size);
            if (seeds[i] != 0)
                assert_true(whole != ckv_wyhash(ramp, size, 0));
        }
    }
    free(ramp);
}

static void the_hash_of_a_golden_file(void **state)
{
    size_t size;
    void *data =
        test_read_file(test_data_path(COLDKV_TEST_DATA, "two-kv-zero.mlxkv"), &size);
    (void)state;
    assert_int_equal(size, 65664);
    assert_hash(ckv_wyhash(data, size, 0), UINT64_C(0xbb7cdf5a0bac5e3b), size);
    assert_hash(ckv_wyhash((char *)data + 26, 544, 0), UINT64_C(0x0045070b10ad5e02), 544);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_of_the_description),
        cmocka_unit_test(texts_zeros_and_all_bytes),
        cmocka_unit_test(no_bytes_may_be_null),
        cmocka_unit_test(golden_vectors_in_one_piece),
        cmocka_unit_test(golden_vectors_in_random_pieces),
        cmocka_unit_test(every_split_of_short_inputs),
        cmocka_unit_test(every_short_length_equals_the_golden_rule_at_any_address),
        cmocka_unit_test(a_digest_leaves_the_state_to_go_on),
        cmocka_unit_test(the_seed_matters_and_is_the_same_in_both_forms),
        cmocka_unit_test(the_hash_of_a_golden_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

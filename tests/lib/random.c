/*
 * Owns the generator. Bytes are taken from the numbers in little-endian order, so that
 * data made from a seed is the same on every machine.
 */
#include "lib/random.h"

#include "lib/require.h"
#include <inttypes.h>

void test_random_init(struct test_random *random, uint64_t seed)
{
    /* One step of splitmix64: neighbouring seeds must not give neighbouring streams. */
    uint64_t x = seed + UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    random->state = x ? x : 1;
}

uint64_t test_random_init_printed(struct test_random *random, uint64_t seed)
{
    const char *wanted = getenv("COLDKV_TEST_SEED");
    if (wanted && *wanted)
        seed = strtoull(wanted, NULL, 0);
    printf("seed %" PRIu64 " (COLDKV_TEST_SEED repeats it)\n", seed);
    test_random_init(random, seed);
    return seed;
}

uint64_t test_random_next(struct test_random *random)
{
    uint64_t x = random->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    random->state = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

uint64_t test_random_below(struct test_random *random, uint64_t bound)
{
    TEST_REQUIRE(bound > 0);
    return test_random_next(random) % bound;
}

void test_random_fill(struct test_random *random, void *data, size_t size)
{
    unsigned char *bytes = data;
    uint64_t number = 0;
    for (size_t i = 0; i < size; i++) {
        if (i % 8 == 0)
            number = test_random_next(random);
        bytes[i] = (unsigned char)(number >> (8 * (i % 8)));
    }
}

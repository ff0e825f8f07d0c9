/* Reproducible random numbers: xorshift64*, seeded by the test and printed by it. */
#ifndef COLDKV_TESTS_RANDOM_H
#define COLDKV_TESTS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct test_random {
    uint64_t state;
};

/* Any seed is fine; the same seed gives the same numbers everywhere. */
void test_random_init(struct test_random *random, uint64_t seed);
/* The same, with the seed printed (or taken from COLDKV_TEST_SEED when that is set), for
 * tests that draw their cases: the printed number repeats a failure. */
uint64_t test_random_init_printed(struct test_random *random, uint64_t seed);
uint64_t test_random_next(struct test_random *random);
/* 0 <= result < bound; bound > 0. */
uint64_t test_random_below(struct test_random *random, uint64_t bound);
void test_random_fill(struct test_random *random, void *data, size_t size);

#endif

/*
 * Checks inside the test library itself: a broken precondition or a failed set-up ends
 * the program at once with its place. Tests state their expectations with cmocka instead.
 */
#ifndef COLDKV_TESTS_REQUIRE_H
#define COLDKV_TESTS_REQUIRE_H

#include <stdio.h>
#include <stdlib.h>

#define TEST_REQUIRE(condition)                                                          \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "%s:%d: required: %s\n", __FILE__, __LINE__, #condition);    \
            abort();                                                                     \
        }                                                                                \
    } while (0)

#endif

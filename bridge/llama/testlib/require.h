/* A failed set-up ends the test program at once with its place. */
#ifndef COLDKV_BRIDGE_TESTLIB_REQUIRE_H
#define COLDKV_BRIDGE_TESTLIB_REQUIRE_H

#include <stdio.h>
#include <stdlib.h>

#define TEST_LLAMA_REQUIRE(condition)                                                    \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "%s:%d: required: %s\n", __FILE__, __LINE__, #condition);    \
            abort();                                                                     \
        }                                                                                \
    } while (0)

#endif

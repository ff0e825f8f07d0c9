/* What every cmocka program of ours begins with. */
#ifndef COLDKV_TESTS_UNIT_H
#define COLDKV_TESTS_UNIT_H

/* cmocka wants these before it; the blank line keeps it behind them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <coldkv/status.h>

/* Compares statuses by name, so that a failure reads well. */
#define assert_status(actual, expected)                                                  \
    assert_string_equal(ckv_status_name(actual), ckv_status_name(expected))

/* OK, or the error's text in the report. `error` is a struct ckv_error. */
#define assert_ok(actual, error)                                                         \
    do {                                                                                 \
        enum ckv_status status_of_actual;                                                \
        (error).text[0] = '\0';                                                          \
        status_of_actual = (actual);                                                     \
        if (status_of_actual != CKV_OK)                                                  \
            fail_msg("%s: %s", ckv_status_name(status_of_actual), (error).text);         \
    } while (0)

#define TEST_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif

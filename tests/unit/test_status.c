/* Status names and values, error detail, errno values. */
#include "lib/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The values are frozen: programs and scripts rely on them. */
static void values_are_frozen(void **state)
{
    (void)state;
    assert_int_equal(CKV_OK, 0);
    assert_int_equal(CKV_NOTFOUND, 1);
    assert_int_equal(CKV_AGAIN, 2);
    assert_int_equal(CKV_FULL, 3);
    assert_int_equal(CKV_EXISTS, 4);
    assert_int_equal(CKV_CANCELLED, 5);
    assert_int_equal(CKV_VANISHED, 6);
    assert_int_equal(CKV_REFUSED, 7);
    assert_int_equal(CKV_IO, 20);
    assert_int_equal(CKV_NOSPACE, 21);
    assert_int_equal(CKV_NOMEM, 22);
    assert_int_equal(CKV_CORRUPT, 23);
    assert_int_equal(CKV_VERSION, 24);
    assert_int_equal(CKV_FOREIGN, 25);
    assert_int_equal(CKV_DENIED, 26);
    assert_int_equal(CKV_TOOBIG, 27);
    assert_int_equal(CKV_UNSUPPORTED, 28);
    assert_int_equal(CKV_ENGINE, 29);
    assert_int_equal(CKV_INVALID, 40);
}

static void names_and_texts_are_there_and_names_differ(void **state)
{
    static const enum ckv_status all[] = {
#define LISTED(code, value, name, text) code,
        CKV_STATUS_LIST(LISTED)
#undef LISTED
    };
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(all); i++) {
        assert_true(strlen(ckv_status_name(all[i])) > 0);
        assert_true(strlen(ckv_status_text(all[i])) > 0);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(ckv_status_name(all[i]), ckv_status_name(all[j]));
    }
    assert_string_equal(ckv_status_name(CKV_OK), "ok");
    assert_string_equal(ckv_status_name(CKV_CORRUPT), "corrupt");
}

static void other_values_are_unknown(void **state)
{
    (void)state;
    assert_string_equal(ckv_status_name((enum ckv_status)999), "unknown");
    assert_string_equal(ckv_status_text((enum ckv_status)999), "unknown status");
}

static void set_fills_everything_and_returns_the_status(void **state)
{
    struct ckv_error error;
    (void)state;
    memset(&error, 0x55, sizeof error);
    assert_status(ckv_error_set(&error, CKV_CORRUPT, "field %s: expected %d", "x", 7),
                  CKV_CORRUPT);
    assert_status(error.status, CKV_CORRUPT);
    assert_int_equal(error.os_errno, 0);
    assert_int_equal(error.file_offset, -1);
    assert_string_equal(error.text, "field x: expected 7");
}

static void clear_empties(void **state)
{
    struct ckv_error error;
    (void)state;
    memset(&error, 0x55, sizeof error);
    ckv_error_clear(&error);
    assert_status(error.status, CKV_OK);
    assert_int_equal(error.os_errno, 0);
    assert_int_equal(error.file_offset, -1);
    assert_string_equal(error.text, "");
    ckv_error_clear(NULL);
}

static void set_errno_appends_the_reason(void **state)
{
    struct ckv_error error;
    char expected[200];
    (void)state;
    assert_status(ckv_error_set_errno(&error, CKV_NOSPACE, ENOSPC, "write \"%s\"", "a"),
                  CKV_NOSPACE);
    (void)snprintf(expected, sizeof expected, "write \"a\": %s", strerror(ENOSPC));
    assert_string_equal(error.text, expected);
    assert_int_equal(error.os_errno, ENOSPC);
    assert_status(error.status, CKV_NOSPACE);
}

static void prefix_goes_before_and_keeps_the_rest(void **state)
{
    struct ckv_error error;
    (void)state;
    (void)ckv_error_set_errno(&error, CKV_IO, EIO, "read");
    error.file_offset = 42;
    ckv_error_prefix(&error, "while opening %d", 5);
    assert_memory_equal(error.text, "while opening 5: read: ", 23);
    assert_status(error.status, CKV_IO);
    assert_int_equal(error.os_errno, EIO);
    assert_int_equal(error.file_offset, 42);
}

static void null_errors_are_fine_everywhere(void **state)
{
    (void)state;
    assert_status(ckv_error_set(NULL, CKV_IO, "x %d", 1), CKV_IO);
    assert_status(ckv_error_set_errno(NULL, CKV_DENIED, EPERM, "x"), CKV_DENIED);
    ckv_error_prefix(NULL, "x");
}

static void long_texts_are_cut_and_terminated(void **state)
{
    struct ckv_error error;
    char longest[2 * CKV_ERROR_TEXT_SIZE];
    (void)state;
    memset(longest, 'q', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    (void)ckv_error_set(&error, CKV_IO, "%s", longest);
    assert_int_equal(strlen(error.text), CKV_ERROR_TEXT_SIZE - 1);
    (void)ckv_error_set_errno(&error, CKV_IO, EIO, "%s", longest);
    assert_int_equal(strlen(error.text), CKV_ERROR_TEXT_SIZE - 1);
    ckv_error_prefix(&error, "abc");
    assert_int_equal(strlen(error.text), CKV_ERROR_TEXT_SIZE - 1);
    assert_memory_equal(error.text, "abc: qqq", 8);
    ckv_error_prefix(&error, "%s", longest);
    assert_int_equal(strlen(error.text), CKV_ERROR_TEXT_SIZE - 1);
}

static void errno_values_have_their_status(void **state)
{
    static const struct {
        int os_errno;
        enum ckv_status status;
    } cases[] = {
        {0, CKV_OK},
        {ENOSPC, CKV_NOSPACE},
        {EDQUOT, CKV_NOSPACE},
        {ENOENT, CKV_NOTFOUND},
        {ENOMEM, CKV_NOMEM},
        {EACCES, CKV_DENIED},
        {EPERM, CKV_DENIED},
        {EROFS, CKV_DENIED},
        {ELOOP, CKV_DENIED},
        {EEXIST, CKV_EXISTS},
        {EWOULDBLOCK, CKV_AGAIN},
        {EAGAIN, CKV_AGAIN},
        {ESTALE, CKV_VANISHED},
        {EIO, CKV_IO},
        {EMFILE, CKV_IO},
        {EBADF, CKV_IO},
        {EINVAL, CKV_IO},
    };
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(cases); i++)
        assert_status(ckv_status_from_errno(cases[i].os_errno), cases[i].status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_frozen),
        cmocka_unit_test(names_and_texts_are_there_and_names_differ),
        cmocka_unit_test(other_values_are_unknown),
        cmocka_unit_test(set_fills_everything_and_returns_the_status),
        cmocka_unit_test(clear_empties),
        cmocka_unit_test(set_errno_appends_the_reason),
        cmocka_unit_test(prefix_goes_before_and_keeps_the_rest),
        cmocka_unit_test(null_errors_are_fine_everywhere),
        cmocka_unit_test(long_texts_are_cut_and_terminated),
        cmocka_unit_test(errno_values_have_their_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

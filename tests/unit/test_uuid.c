/* Random names: their form, their spread, and a generator that fails. */
#include "unit/file_support.h"

#include "lib/faulty_io.h"
#include <errno.h>

static void a_uuid_has_the_form_of_version_4(void **state)
{
    (void)state;
    for (int round = 0; round < 64; round++) {
        char text[CKV_UUID_TEXT_SIZE];
        struct ckv_error error;
        assert_ok(ckv_uuid_create(ckv_io_posix(), text, &error), error);
        assert_int_equal(strlen(text), CKV_UUID_TEXT_SIZE - 1);
        for (size_t i = 0; i < strlen(text); i++) {
            bool dash = i == 8 || i == 13 || i == 18 || i == 23;
            assert_true(dash ? text[i] == '-'
                             : strchr("0123456789abcdef", text[i]) != NULL);
        }
        assert_int_equal(text[14], '4');
        assert_non_null(strchr("89ab", text[19]));
    }
}

static void uuids_differ(void **state)
{
    char texts[100][CKV_UUID_TEXT_SIZE];
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(texts); i++) {
        struct ckv_error error;
        assert_ok(ckv_uuid_create(ckv_io_posix(), texts[i], &error), error);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(texts[i], texts[j]);
    }
}

static void a_failing_generator_is_reported(void **state)
{
    struct test_faulty_io faulty;
    struct ckv_error error;
    char text[CKV_UUID_TEXT_SIZE] = "before";
    (void)state;
    test_faulty_io_init(&faulty, ckv_io_posix());
    test_faulty_io_fail_nth(&faulty, 1, EIO, false);
    assert_status(ckv_uuid_create(&faulty.io, text, &error), CKV_IO);
    assert_int_equal(error.os_errno, EIO);
    assert_string_equal(text, "");
    test_faulty_io_deinit(&faulty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_uuid_has_the_form_of_version_4),
        cmocka_unit_test(uuids_differ),
        cmocka_unit_test(a_failing_generator_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Text from token bytes: characters are never cut, and nothing invalid gets through. */
#include "utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Feeds `bytes` in pieces of `piece` bytes and flushes; the text goes to `out`. */
static void feed(const char *bytes, size_t length, size_t piece, struct srv_buf *out)
{
    struct srv_utf8 state = {0};
    size_t at;

    for (at = 0; at < length; at += piece) {
        size_t count = length - at < piece ? length - at : piece;

        assert_true(srv_utf8_feed(&state, bytes + at, count, out));
    }
    assert_true(srv_utf8_flush(&state, out));
}

static void expect(const char *bytes, size_t length, const char *text)
{
    size_t piece;

    for (piece = 1; piece <= length; piece++) {
        struct srv_buf out = {0};

        feed(bytes, length, piece, &out);
        assert_int_equal(out.length, strlen(text));
        assert_memory_equal(out.data, text, out.length);
        srv_buf_deinit(&out);
    }
}

static void test_valid_text_is_unchanged_however_it_is_cut(void **state)
{
    static const char text[] =
        "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z\xEF\xBF\xBD\xF4\x8F\xBF\xBF";

    (void)state;
    expect(text, sizeof(text) - 1, text);
}

static void test_an_incomplete_character_is_held_back(void **state)
{
    struct srv_utf8 utf8 = {0};
    struct srv_buf out = {0};

    (void)state;
    assert_true(srv_utf8_feed(&utf8, "x\xF0\x9F\x98", 4, &out));
    assert_string_equal(out.data, "x");
    assert_true(srv_utf8_feed(&utf8, "\x80", 1, &out));
    assert_string_equal(out.data, "x\xF0\x9F\x98\x80");
    assert_true(srv_utf8_flush(&utf8, &out));
    assert_string_equal(out.data, "x\xF0\x9F\x98\x80");
    srv_buf_deinit(&out);
}

static void test_what_stays_incomplete_becomes_one_replacement(void **state)
{
    (void)state;
    expect("x\xF0\x9F\x98", 4, "x\xEF\xBF\xBD");
    expect("\xC3", 1, "\xEF\xBF\xBD");
}

static void test_invalid_bytes_become_replacements(void **state)
{
    (void)state;
    expect("\x80", 1, "\xEF\xBF\xBD");
    expect("a\xFFz", 3, "a\xEF\xBF\xBDz");
    expect("\xC3(", 2, "\xEF\xBF\xBD(");
    expect("\xE2\x82(", 3, "\xEF\xBF\xBD(");
    expect("\xC0\xAF", 2, "\xEF\xBF\xBD\xEF\xBF\xBD");
    expect("\xE2\x82\xC3\xA9", 4, "\xEF\xBF\xBD\xC3\xA9");
}

/* Overlong forms, surrogates, and beyond U+10FFFF: each byte stands alone. */
static void test_forbidden_ranges_are_invalid(void **state)
{
    (void)state;
    expect("\xE0\x80\x80", 3, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    expect("\xED\xA0\x80", 3, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    expect("\xF4\x90\x80\x80", 4, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    expect("\xF0\x80", 2, "\xEF\xBF\xBD\xEF\xBF\xBD");
}

static void test_nul_bytes_pass(void **state)
{
    struct srv_buf out = {0};

    (void)state;
    feed("a\0b", 3, 1, &out);
    assert_int_equal(out.length, 3);
    assert_memory_equal(out.data, "a\0b", 3);
    srv_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_text_is_unchanged_however_it_is_cut),
        cmocka_unit_test(test_an_incomplete_character_is_held_back),
        cmocka_unit_test(test_what_stays_incomplete_becomes_one_replacement),
        cmocka_unit_test(test_invalid_bytes_become_replacements),
        cmocka_unit_test(test_forbidden_ranges_are_invalid),
        cmocka_unit_test(test_nul_bytes_pass),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

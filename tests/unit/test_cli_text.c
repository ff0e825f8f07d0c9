/*
 * How the command writes foreign bytes, sizes and times, and what it takes a slip of the
 * keyboard for.
 */
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void escape_leaves_printable_ascii_alone(void **state)
{
    char out[128];
    char all[96] = {0};
    (void)state;
    size_t count = 0;
    for (char c = 0x20; c < 0x7f; c++) {
        if (c != '\\')
            all[count++] = c;
    }
    assert_int_equal(cli_text_escape(all, out, sizeof out), 94);
    assert_string_equal(out, all);
}

static void escape_shows_everything_else_as_hex(void **state)
{
    char out[64];
    (void)state;
    cli_text_escape("\033[2Ja\\b\n\x7f\xc3\xa4\x01", out, sizeof out);
    assert_string_equal(out, "\\x1b[2Ja\\x5cb\\x0a\\x7f\\xc3\\xa4\\x01");
}

static void escape_cuts_between_bytes_and_tells_the_length(void **state)
{
    char out[6];
    (void)state;
    assert_int_equal(cli_text_escape("ab\n\n", out, sizeof out), 10);
    assert_string_equal(out, "ab");
    assert_int_equal(cli_text_escape("a\nb", out, sizeof out), 6);
    assert_string_equal(out, "a\\x0a");
    assert_int_equal(cli_text_escape("abc", NULL, 0), 3);
}

static void utf8_is_what_unicode_says(void **state)
{
    (void)state;
    assert_true(cli_text_is_utf8(""));
    assert_true(cli_text_is_utf8("plain"));
    assert_true(cli_text_is_utf8("\xc3\xa4 \xe6\x97\xa5 \xf0\x9f\x99\x82"));
    assert_true(cli_text_is_utf8("\xf4\x8f\xbf\xbf"));
    assert_true(cli_text_is_utf8("\xed\x9f\xbf\xee\x80\x80"));
    static const char *const wrong[] = {
        "\x80",
        "a\xff",
        "\xc0\xaf",
        "\xc1\xbf",
        "\xc3",
        "\xc3(",
        "\xe0\x9f\xbf",
        "\xed\xa0\x80",
        "\xe6\x97",
        "\xf0\x8f\xbf\xbf",
        "\xe6\x97(a",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(cli_text_is_utf8(wrong[i]));
}

static void sizes_read_well_at_every_scale(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 bytes"},
        {1, "1 byte"},
        {1023, "1023 bytes"},
        {1024, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {1048575, "1.0 MiB"},
        {UINT64_C(32) << 30, "32.0 GiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    char out[CLI_SIZE_TEXT];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(cli_text_size(cases[i].bytes, out), cases[i].text);
}

static void times_are_iso_with_milliseconds(void **state)
{
    char out[CLI_TIME_TEXT];
    (void)state;
    assert_string_equal(cli_text_time(0, out), "1970-01-01T00:00:00.000Z");
    assert_string_equal(cli_text_time(1751900000000, out), "2025-07-07T14:53:20.000Z");
    assert_string_equal(cli_text_time(951782400007, out), "2000-02-29T00:00:00.007Z");
    assert_string_equal(cli_text_time(UINT64_C(9007199254740991), out),
                        "287396-10-12T08:59:00.991Z");
}

static void distance_counts_slips(void **state)
{
    (void)state;
    assert_int_equal(cli_text_distance("verify", "verify"), 0);
    assert_int_equal(cli_text_distance("", "abc"), 3);
    assert_int_equal(cli_text_distance("abc", ""), 3);
    assert_int_equal(cli_text_distance("verfiy", "verify"), 1);
    assert_int_equal(cli_text_distance("verif", "verify"), 1);
    assert_int_equal(cli_text_distance("kitten", "sitting"), 3);
    assert_true(cli_text_distance("0123456789012345678901234567890123", "a") == SIZE_MAX);
}

static void nearest_guesses_only_what_is_near(void **state)
{
    static const char *const words[] = {"serve", "inspect", "verify", "repack", NULL};
    (void)state;
    assert_string_equal(cli_text_nearest("verfy", words), "verify");
    assert_string_equal(cli_text_nearest("insepct", words), "inspect");
    assert_string_equal(cli_text_nearest("server", words), "serve");
    assert_null(cli_text_nearest("frobnicate", words));
    assert_null(cli_text_nearest("", words));
}

static void ends_with_wants_something_before_the_suffix(void **state)
{
    (void)state;
    assert_true(cli_text_ends_with("a.mlxkv", ".mlxkv"));
    assert_false(cli_text_ends_with(".mlxkv", ".mlxkv"));
    assert_false(cli_text_ends_with("a.mlxkv.tmp", ".mlxkv"));
    assert_false(cli_text_ends_with("kv", ".mlxkv"));
}

static void join(const char *folder, const char *name, const char *expected)
{
    char out[32];
    assert_int_equal(cli_text_joined_size(folder, name), strlen(expected) + 1);
    assert_string_equal(cli_text_join(folder, name, out), expected);
}

static void join_puts_one_slash_between(void **state)
{
    (void)state;
    join("a/b", "c", "a/b/c");
    join("a//", "c", "a/c");
    join("/", "c", "/c");
    join(".", "c", "./c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escape_leaves_printable_ascii_alone),
        cmocka_unit_test(escape_shows_everything_else_as_hex),
        cmocka_unit_test(escape_cuts_between_bytes_and_tells_the_length),
        cmocka_unit_test(utf8_is_what_unicode_says),
        cmocka_unit_test(sizes_read_well_at_every_scale),
        cmocka_unit_test(times_are_iso_with_milliseconds),
        cmocka_unit_test(distance_counts_slips),
        cmocka_unit_test(nearest_guesses_only_what_is_near),
        cmocka_unit_test(join_puts_one_slash_between),
        cmocka_unit_test(ends_with_wants_something_before_the_suffix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

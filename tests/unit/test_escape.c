/* Foreign bytes in messages. */
#include "base/escape.h"
#include "lib/unit.h"

#include <string.h>

static void printable_text_stays(void **state)
{
    char out[CKVI_ESCAPE_SIZE];
    const char *result = ckvi_escape_string("plain name-1.mlxkv ~", out, sizeof out);
    (void)state;
    assert_ptr_equal(result, out);
    assert_string_equal(out, "plain name-1.mlxkv ~");
    assert_string_equal(ckvi_escape_string("", out, sizeof out), "");
}

static void everything_else_becomes_hex(void **state)
{
    char out[CKVI_ESCAPE_SIZE];
    (void)state;
    assert_string_equal(ckvi_escape_string("a\nb\tc\\d\x1b[2J\x7f", out, sizeof out),
                        "a\\x0ab\\x09c\\x5cd\\x1b[2J\\x7f");
    assert_string_equal(ckvi_escape_string("\xc3\xa9", out, sizeof out), "\\xc3\\xa9");
    assert_string_equal(ckvi_escape("a\0b", 3, out, sizeof out), "a\\x00b");
}

static void what_just_fits_is_whole(void **state)
{
    char out[5];
    (void)state;
    assert_string_equal(ckvi_escape_string("abcd", out, sizeof out), "abcd");
    assert_string_equal(ckvi_escape_string("\n", out, sizeof out), "\\x0a");
}

static void what_does_not_fit_ends_in_dots(void **state)
{
    char out[8];
    (void)state;
    assert_string_equal(ckvi_escape_string("abcdefgh", out, sizeof out), "abcd...");
    assert_string_equal(ckvi_escape_string("a\nbcdefgh", out, sizeof out), "a...");
    assert_string_equal(ckvi_escape_string("abc\ndefgh", out, sizeof out), "abc...");
}

/* An escape is never cut in the middle, and the text is terminated, at any capacity. */
static void every_capacity_is_safe(void **state)
{
    static const char text[] = "ab\n\ncd\x80xyz";
    char whole[100];
    (void)state;
    (void)ckvi_escape_string(text, whole, sizeof whole);
    for (size_t capacity = 1; capacity <= 40; capacity++) {
        char out[41];
        size_t size;
        size_t kept;
        memset(out, 'Z', sizeof out);
        (void)ckvi_escape_string(text, out, capacity);
        size = strnlen(out, capacity);
        assert_true(size < capacity);
        assert_int_equal(out[capacity], 'Z');
        if (strlen(whole) < capacity) {
            assert_string_equal(out, whole);
            continue;
        }
        if (capacity < 4)
            continue;
        assert_true(size >= 3);
        kept = size - 3;
        assert_string_equal(out + kept, "...");
        assert_memory_equal(out, whole, kept);
        /* Text is kept up to a place where an escape could begin or plain text stands. */
        assert_true(kept == 0 || kept == 1 || kept == 2 || kept == 6 || kept >= 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printable_text_stays),
        cmocka_unit_test(everything_else_becomes_hex),
        cmocka_unit_test(what_just_fits_is_whole),
        cmocka_unit_test(what_does_not_fit_ends_in_dots),
        cmocka_unit_test(every_capacity_is_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

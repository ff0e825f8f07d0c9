/* Stop strings in text that comes in pieces. */
#include "stop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Feeds `text` in pieces of `piece` bytes and compares what comes out, for each size.
 * Nothing that was emitted on the way may go beyond it. */
static void expect(const char *text, const char *const *stops, size_t count,
                   const char *wanted, bool hit)
{
    size_t piece;

    for (piece = 1; piece <= strlen(text); piece++) {
        struct srv_stop stop;
        struct srv_buf out = {0};
        size_t at;

        srv_stop_init(&stop, stops, count);
        for (at = 0; at < strlen(text); at += piece) {
            size_t left = strlen(text) - at;

            assert_true(
                srv_stop_feed(&stop, text + at, left < piece ? left : piece, &out));
            assert_true(out.length <= strlen(wanted));
        }
        assert_true(srv_stop_flush(&stop, &out));
        assert_int_equal(stop.hit, hit);
        assert_int_equal(out.length, strlen(wanted));
        assert_true(out.length == 0 || memcmp(out.data, wanted, out.length) == 0);
        srv_stop_deinit(&stop);
        srv_buf_deinit(&out);
    }
}

static void test_without_stop_strings_all_passes(void **state)
{
    (void)state;
    expect("hello world", NULL, 0, "hello world", false);
}

static void test_a_stop_string_is_found_across_pieces(void **state)
{
    const char *const stops[] = {"END"};

    (void)state;
    expect("one two END three", stops, 1, "one two ", true);
    expect("END", stops, 1, "", true);
}

static void test_a_beginning_that_does_not_go_on_is_emitted(void **state)
{
    const char *const stops[] = {"END", "</s>"};

    (void)state;
    expect("an ENtity </ss> EN", stops, 2, "an ENtity </ss> EN", false);
}

static void test_repeated_beginnings_are_matched(void **state)
{
    const char *const stops[] = {"aab"};

    (void)state;
    expect("aaaab!", stops, 1, "aa", true);
}

static void test_the_one_complete_first_wins(void **state)
{
    const char *const stops[] = {"abcd", "bc"};

    (void)state;
    expect("xabcd", stops, 2, "xa", true);
}

static void test_of_two_that_end_together_the_longer_wins(void **state)
{
    const char *const stops[] = {"cd", "bcd"};

    (void)state;
    expect("abcd", stops, 2, "a", true);
}

static void test_a_possible_stop_string_is_held_back(void **state)
{
    const char *const stops[] = {"\n\nUser:"};
    struct srv_stop stop;
    struct srv_buf out = {0};

    (void)state;
    srv_stop_init(&stop, stops, 1);
    assert_true(srv_stop_feed(&stop, "yes\n\nUse", 8, &out));
    assert_string_equal(out.data, "yes");
    assert_true(srv_stop_feed(&stop, "ful", 3, &out));
    assert_string_equal(out.data, "yes\n\nUseful");
    srv_stop_deinit(&stop);
    srv_buf_deinit(&out);
}

static void test_nothing_follows_a_hit(void **state)
{
    const char *const stops[] = {"."};
    struct srv_stop stop;
    struct srv_buf out = {0};

    (void)state;
    srv_stop_init(&stop, stops, 1);
    assert_true(srv_stop_feed(&stop, "a.b", 3, &out));
    assert_true(srv_stop_feed(&stop, "c", 1, &out));
    assert_true(srv_stop_flush(&stop, &out));
    assert_true(stop.hit);
    assert_string_equal(out.data, "a");
    srv_stop_deinit(&stop);
    srv_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_stop_strings_all_passes),
        cmocka_unit_test(test_a_stop_string_is_found_across_pieces),
        cmocka_unit_test(test_a_beginning_that_does_not_go_on_is_emitted),
        cmocka_unit_test(test_repeated_beginnings_are_matched),
        cmocka_unit_test(test_the_one_complete_first_wins),
        cmocka_unit_test(test_of_two_that_end_together_the_longer_wins),
        cmocka_unit_test(test_a_possible_stop_string_is_held_back),
        cmocka_unit_test(test_nothing_follows_a_hit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

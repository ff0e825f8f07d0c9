/* Framing of server-sent events. */
#include "sse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void expect_data(const char *payload, const char *framed)
{
    struct srv_buf out = {0};

    assert_true(srv_sse_append_data(&out, payload));
    assert_string_equal(out.data, framed);
    srv_buf_deinit(&out);
}

static void test_one_line_is_one_event(void **state)
{
    (void)state;
    expect_data("{\"a\":1}", "data: {\"a\":1}\n\n");
    expect_data("[DONE]", "data: [DONE]\n\n");
    expect_data("", "data: \n\n");
}

static void test_each_line_gets_its_field(void **state)
{
    (void)state;
    expect_data("a\nb\r\nc\rd", "data: a\ndata: b\ndata: c\ndata: d\n\n");
}

static void test_events_follow_each_other(void **state)
{
    struct srv_buf out = {0};

    (void)state;
    assert_true(srv_sse_append_data(&out, "1"));
    assert_true(srv_sse_append_comment(&out, "keep-alive"));
    assert_true(srv_sse_append_data(&out, "2"));
    assert_string_equal(out.data, "data: 1\n\n: keep-alive\n\ndata: 2\n\n");
    srv_buf_deinit(&out);
}

static void test_a_comment_cannot_become_a_field(void **state)
{
    struct srv_buf out = {0};

    (void)state;
    assert_true(srv_sse_append_comment(&out, "x\ndata: y"));
    assert_string_equal(out.data, ": x\n\n");
    srv_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_line_is_one_event),
        cmocka_unit_test(test_each_line_gets_its_field),
        cmocka_unit_test(test_events_follow_each_other),
        cmocka_unit_test(test_a_comment_cannot_become_a_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

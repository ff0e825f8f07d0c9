/* Which requests are let in, by their headers. */
#include "access.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { BODY_MAX = 1000, DISCARD_MAX = 5000 };

static const struct srv_access open_door = {"127.0.0.1", 8080,     true,
                                            NULL,        BODY_MAX, DISCARD_MAX};
static const struct srv_access locked_door = {"192.0.2.1", 8080,     false,
                                              "sesame",    BODY_MAX, DISCARD_MAX};

static struct srv_headers plain_headers(void)
{
    return (struct srv_headers){.host = "127.0.0.1:8080",
                                .content_type = "application/json"};
}

/* The status that a request gets; 200 when it is let in. */
static int check(const struct srv_access *access, const char *method, const char *path,
                 struct srv_headers headers)
{
    struct srv_fault fault = {0};

    if (srv_access_check(access, srv_route_find(path), method, &headers, &fault)) {
        assert_int_equal(fault.status, 0);
        return 200;
    }
    return fault.status;
}

static void test_routes_and_methods(void **state)
{
    struct srv_headers headers = plain_headers();

    (void)state;
    assert_int_equal(check(&open_door, "POST", "/v1/chat/completions", headers), 200);
    assert_int_equal(check(&open_door, "POST", "/v1/completions", headers), 200);
    assert_int_equal(check(&open_door, "GET", "/v1/completions", headers), 405);
    assert_int_equal(check(&open_door, "GET", "/v1/models", headers), 200);
    assert_int_equal(check(&open_door, "HEAD", "/health", headers), 200);
    assert_int_equal(check(&open_door, "GET", "/stats", headers), 200);
    assert_int_equal(check(&open_door, "GET", "/", headers), 404);
    assert_int_equal(check(&open_door, "GET", "/v1/models/", headers), 404);
    assert_int_equal(check(&open_door, "GET", "/v1/chat/completions", headers), 405);
    assert_int_equal(check(&open_door, "HEAD", "/v1/chat/completions", headers), 405);
    assert_int_equal(check(&open_door, "POST", "/stats", headers), 405);
    assert_int_equal(check(&open_door, "OPTIONS", "/v1/models", headers), 405);
}

static void test_host_and_origin(void **state)
{
    struct srv_headers headers = plain_headers();

    (void)state;
    headers.host = NULL;
    assert_int_equal(check(&open_door, "GET", "/health", headers), 400);
    headers.host = "evil.example:8080";
    assert_int_equal(check(&open_door, "GET", "/health", headers), 403);
    headers.host = "localhost:8080";
    headers.origin = "http://evil.example";
    assert_int_equal(check(&open_door, "GET", "/health", headers), 403);
    headers.origin = "http://localhost:8080";
    assert_int_equal(check(&open_door, "GET", "/health", headers), 200);
}

static void test_a_header_that_came_twice_is_refused(void **state)
{
    struct srv_headers headers = {0};

    (void)state;
    srv_headers_add(&headers, "host", "127.0.0.1:8080");
    srv_headers_add(&headers, "Accept", "*/*");
    srv_headers_add(&headers, "Accept", "*/*");
    assert_int_equal(check(&open_door, "GET", "/health", headers), 200);
    srv_headers_add(&headers, "HOST", "127.0.0.1:8080");
    assert_int_equal(check(&open_door, "GET", "/health", headers), 400);
}

static void test_a_key_is_asked_for_everywhere_but_at_health(void **state)
{
    struct srv_headers headers = plain_headers();

    (void)state;
    headers.host = "server.example:8080";
    assert_int_equal(check(&locked_door, "GET", "/health", headers), 200);
    assert_int_equal(check(&locked_door, "GET", "/stats", headers), 401);
    assert_int_equal(check(&locked_door, "GET", "/v1/models", headers), 401);
    assert_int_equal(check(&locked_door, "GET", "/nothing", headers), 401);
    assert_int_equal(check(&locked_door, "POST", "/v1/chat/completions", headers), 401);
    headers.authorization = "Bearer sesame";
    assert_int_equal(check(&locked_door, "GET", "/stats", headers), 200);
    assert_int_equal(check(&locked_door, "GET", "/nothing", headers), 404);
    assert_int_equal(check(&locked_door, "POST", "/v1/chat/completions", headers), 200);
}

static void test_the_body_is_json(void **state)
{
    static const char *const good[] = {"application/json", "Application/JSON",
                                       "application/json; charset=utf-8",
                                       "application/json ;charset=utf-8"};
    static const char *const bad[] = {"text/plain", "application/jsonx",
                                      "application/json+x",
                                      "application/x-www-form-urlencoded", ""};
    struct srv_headers headers = plain_headers();
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        headers.content_type = good[i];
        assert_int_equal(check(&open_door, "POST", "/v1/chat/completions", headers), 200);
    }
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        headers.content_type = bad[i];
        assert_int_equal(check(&open_door, "POST", "/v1/chat/completions", headers), 415);
    }
    headers.content_type = NULL;
    assert_int_equal(check(&open_door, "POST", "/v1/chat/completions", headers), 415);
}

static void test_the_body_is_bounded(void **state)
{
    struct srv_headers headers = plain_headers();

    (void)state;
    headers.content_length = "1000";
    assert_int_equal(check(&open_door, "POST", "/v1/chat/completions", headers), 200);
    headers.content_length = "1001";
    assert_int_equal(check(&open_door, "POST", "/v1/chat/completions", headers), 413);
    headers.content_length = "99999999999999999999999";
    assert_int_equal(check(&open_door, "POST", "/v1/chat/completions", headers), 413);
}

static bool keeps_nothing(const char *path, const char *value, int *status)
{
    struct srv_headers headers = plain_headers();
    struct srv_fault fault = {0};

    if (value)
        srv_headers_add(&headers, "x-coldkv-no-store", value);
    *status = 200;
    if (!srv_access_check(&open_door, srv_route_find(path), "POST", &headers, &fault))
        *status = fault.status;
    return headers.keeps_nothing;
}

static void test_who_wants_nothing_kept_says_so_clearly(void **state)
{
    static const char *const paths[] = {"/v1/chat/completions", "/v1/completions"};
    int status;
    size_t i;

    (void)state;
    for (i = 0; i < 2; i++) {
        assert_false(keeps_nothing(paths[i], NULL, &status));
        assert_int_equal(status, 200);
        assert_false(keeps_nothing(paths[i], "0", &status));
        assert_int_equal(status, 200);
        assert_false(keeps_nothing(paths[i], "False", &status));
        assert_int_equal(status, 200);
        assert_true(keeps_nothing(paths[i], "1", &status));
        assert_int_equal(status, 200);
        assert_true(keeps_nothing(paths[i], "true", &status));
        assert_int_equal(status, 200);
        assert_false(keeps_nothing(paths[i], "yes", &status));
        assert_int_equal(status, 400);
        assert_false(keeps_nothing(paths[i], "", &status));
        assert_int_equal(status, 400);
    }
}

/* Whoever is refused while a body is still to come is answered at once only when the body
 * is too long to be read, or would not be sent without our word. */
static void test_when_a_refusal_waits_for_the_body(void **state)
{
    const struct srv_route *chat = srv_route_find("/v1/chat/completions");
    struct srv_headers headers = plain_headers();
    struct srv_fault fault;

    (void)state;
    headers.content_type = "text/plain";
    headers.content_length = "10";
    assert_false(srv_access_check(&open_door, chat, "POST", &headers, &fault));
    assert_false(headers.answer_at_once);
    headers.expects = true;
    assert_false(srv_access_check(&open_door, chat, "POST", &headers, &fault));
    assert_true(headers.answer_at_once);
    headers.expects = false;
    headers.content_length = "5000";
    assert_false(srv_access_check(&open_door, chat, "POST", &headers, &fault));
    assert_false(headers.answer_at_once);
    headers.content_length = "5001";
    assert_false(srv_access_check(&open_door, chat, "POST", &headers, &fault));
    assert_true(headers.answer_at_once);
    headers.content_type = "application/json";
    headers.content_length = "10";
    headers.expects = true;
    assert_true(srv_access_check(&open_door, chat, "POST", &headers, &fault));
    assert_false(headers.answer_at_once);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routes_and_methods),
        cmocka_unit_test(test_host_and_origin),
        cmocka_unit_test(test_a_header_that_came_twice_is_refused),
        cmocka_unit_test(test_a_key_is_asked_for_everywhere_but_at_health),
        cmocka_unit_test(test_the_body_is_json),
        cmocka_unit_test(test_the_body_is_bounded),
        cmocka_unit_test(test_who_wants_nothing_kept_says_so_clearly),
        cmocka_unit_test(test_when_a_refusal_waits_for_the_body),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

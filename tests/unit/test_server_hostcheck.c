/* Host, Origin and Authorization headers. */
#include "hostcheck.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_own_names_with_our_port_are_own(void **state)
{
    static const char *const own[] = {"localhost:8080", "LocalHost:8080",
                                      "127.0.0.1:8080", "[::1]:8080"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        assert_true(srv_host_is_own(own[i], "127.0.0.1", 8080));
    assert_true(srv_host_is_own("127.0.0.9:8080", "127.0.0.9", 8080));
}

static void test_everything_else_is_foreign(void **state)
{
    static const char *const foreign[] = {
        "",
        "localhost",
        "localhost:",
        "localhost:80800",
        "localhost:8081",
        "localhost:8080x",
        "localhost:-8080",
        "localhost:73616", /* 8080 + 65536 */
        "evil.example:8080",
        "localhost.evil.example:8080",
        "127.0.0.1.evil.example:8080",
        "127.0.0.2:8080",
        ":8080",
        "[::1",
        "[::1]x:8080",
        "[]:8080",
        "::1:8080",
        "user@localhost:8080",
        "localhost:8080:8080",
        " localhost:8080",
    };
    size_t i;

    (void)state;
    assert_false(srv_host_is_own(NULL, "127.0.0.1", 8080));
    for (i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
        assert_false(srv_host_is_own(foreign[i], "127.0.0.1", 8080));
}

static void test_the_port_may_be_left_out_when_it_is_80(void **state)
{
    (void)state;
    assert_true(srv_host_is_own("localhost", "127.0.0.1", 80));
    assert_true(srv_host_is_own("[::1]", "::1", 80));
}

static void test_origin_is_absent_or_ours(void **state)
{
    (void)state;
    assert_true(srv_origin_is_own(NULL, "localhost:8080"));
    assert_true(srv_origin_is_own("http://localhost:8080", "localhost:8080"));
    assert_false(srv_origin_is_own("http://localhost:8081", "localhost:8080"));
    assert_false(srv_origin_is_own("https://localhost:8080", "localhost:8080"));
    assert_false(srv_origin_is_own("http://evil.example", "localhost:8080"));
    assert_false(srv_origin_is_own("null", "localhost:8080"));
    assert_false(srv_origin_is_own("", "localhost:8080"));
    assert_false(srv_origin_is_own("http://localhost:8080", NULL));
}

static void test_loopback_addresses(void **state)
{
    (void)state;
    assert_true(srv_address_is_loopback("127.0.0.1"));
    assert_true(srv_address_is_loopback("127.8.9.10"));
    assert_true(srv_address_is_loopback("::1"));
    assert_false(srv_address_is_loopback("0.0.0.0"));
    assert_false(srv_address_is_loopback("::"));
    assert_false(srv_address_is_loopback("128.0.0.1"));
    assert_false(srv_address_is_loopback("192.168.1.1"));
    assert_false(srv_address_is_loopback("localhost"));
}

static void test_bearer_keys(void **state)
{
    (void)state;
    assert_true(srv_bearer_matches("Bearer sesame", "sesame"));
    assert_true(srv_bearer_matches("bearer  sesame", "sesame"));
    assert_false(srv_bearer_matches(NULL, "sesame"));
    assert_false(srv_bearer_matches("", "sesame"));
    assert_false(srv_bearer_matches("Bearer ", "sesame"));
    assert_false(srv_bearer_matches("Bearer sesam", "sesame"));
    assert_false(srv_bearer_matches("Bearer sesame1", "sesame"));
    assert_false(srv_bearer_matches("Bearer sesamesesame", "sesame"));
    assert_false(srv_bearer_matches("Basic sesame", "sesame"));
    assert_false(srv_bearer_matches("Bearer ", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_names_with_our_port_are_own),
        cmocka_unit_test(test_everything_else_is_foreign),
        cmocka_unit_test(test_the_port_may_be_left_out_when_it_is_80),
        cmocka_unit_test(test_origin_is_absent_or_ours),
        cmocka_unit_test(test_loopback_addresses),
        cmocka_unit_test(test_bearer_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

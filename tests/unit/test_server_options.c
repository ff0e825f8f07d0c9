/* The command line of the server. */
#include "options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <coldkv/store.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static enum srv_parse_result parse(struct srv_options *out, int argc,
                                   const char *const *argv)
{
    char *copy[16];
    int i;

    for (i = 0; i < argc; i++)
        copy[i] = (char *)(uintptr_t)argv[i];
    return srv_options_parse(argc, copy, out);
}

static void test_sizes(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},
        {"4096", 4096},
        {"512M", 536870912},
        {"8G", 8589934592},
        {"8g", 8589934592},
        {"8GB", 8589934592},
        {"8GiB", 8589934592},
        {"1K", 1024},
        {"100B", 100},
        {"2T", 2199023255552},
        {"16777215T", 18446742974197923840u},
    };
    static const char *const bad[] = {"",
                                      "G",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1.5G",
                                      "8X",
                                      "8Gi",
                                      "8G ",
                                      "8GBs",
                                      "0x10",
                                      "16777216T",
                                      "18446744073709551615"};
    uint64_t bytes;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(srv_size_parse(good[i].text, &bytes));
        assert_int_equal(bytes, good[i].bytes);
    }
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(srv_size_parse(bad[i], &bytes));
}

static void test_defaults(void **state)
{
    const char *const argv[] = {"serve", "--model", "m.gguf"};
    struct srv_options options;

    (void)state;
    assert_int_equal(parse(&options, 3, argv), SRV_PARSE_OK);
    assert_string_equal(options.model, "m.gguf");
    assert_string_equal(options.host, "127.0.0.1");
    assert_int_equal(options.port, 8080);
    assert_int_equal(options.context_size, 0);
    assert_null(options.cache_dir);
    assert_true(options.cache_max_bytes == CKV_DEFAULT);
    assert_true(options.cache_free_floor_bytes == CKV_DEFAULT);
    assert_true(options.prompt_cache_bytes == CKV_DEFAULT);
    assert_true(options.spill_queue_bytes == CKV_DEFAULT);
    assert_int_equal(options.demote_idle_s, 0);
    assert_int_equal(options.min_tokens, 256);
    assert_int_equal(options.min_growth_tokens, 0);
    assert_int_equal(options.shutdown_timeout_s, 120);
    assert_int_equal(options.keepalive_s, 10);
    assert_false(options.cache_init);
}

static void test_the_tiers(void **state)
{
    const char *const argv[] = {
        "serve", "--model",           "m",   "--prompt-cache=0", "--spill-queue",
        "64M",   "--ssd-demote-idle", "300", "--min-growth=1",   "--shutdown-timeout",
        "5"};
    struct srv_options options;

    (void)state;
    assert_int_equal(parse(&options, 11, argv), SRV_PARSE_OK);
    assert_true(options.prompt_cache_bytes == 0);
    assert_true(options.spill_queue_bytes == 67108864);
    assert_int_equal(options.demote_idle_s, 300);
    assert_int_equal(options.min_growth_tokens, 1);
    assert_int_equal(options.shutdown_timeout_s, 5);
}

static void test_both_spellings_of_a_value(void **state)
{
    const char *const argv[] = {"serve",
                                "--model=m",
                                "--port",
                                "0",
                                "--ctx-size=4096",
                                "--ssd-cache",
                                "dir",
                                "--ssd-cache-max=1M",
                                "--ssd-cache-init",
                                "--threads",
                                "3",
                                "--keepalive=1"};
    struct srv_options options;

    (void)state;
    assert_int_equal(parse(&options, 12, argv), SRV_PARSE_OK);
    assert_int_equal(options.port, 0);
    assert_int_equal(options.context_size, 4096);
    assert_string_equal(options.cache_dir, "dir");
    assert_int_equal(options.cache_max_bytes, 1048576);
    assert_true(options.cache_init);
    assert_int_equal(options.thread_count, 3);
    assert_int_equal(options.keepalive_s, 1);
}

static void test_what_is_wrong_is_a_usage_error(void **state)
{
    static const char *const wrong[][4] = {
        {"serve", "--port", "8080", NULL}, /* no model */
        {"serve", "--model", NULL, NULL},
        {"serve", "--model", "", NULL},
        {"serve", "--model=m", "--port=65536", NULL},
        {"serve", "--model=m", "--port=x", NULL},
        {"serve", "--model=m", "--ssd-cache-max=8Q", NULL},
        {"serve", "--model=m", "--threads=0", NULL},
        {"serve", "--model=m", "--ssd-cache-init=1", NULL},
        {"serve", "--model=m", "--mode", NULL},
        {"serve", "--model=m", "file", NULL},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct srv_options options;
        int count = 0;

        while (count < 4 && wrong[i][count])
            count++;
        assert_int_equal(parse(&options, count, wrong[i]), SRV_PARSE_USAGE);
    }
}

/* Writes `content` to a fresh file, loads the key from it, removes it. */
static char *load_key(const char *content)
{
    char path[] = "/tmp/coldkv-test-key-XXXXXX";
    char why[128];
    int fd = mkstemp(path);
    char *key;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    close(fd);
    key = srv_key_load(path, why, sizeof(why));
    unlink(path);
    return key;
}

static void test_the_key_is_the_first_line(void **state)
{
    static const char *const bad[] = {"", "\n", "two words\n", "tab\there\n",
                                      "umlaut\xC3\xA4\n"};
    char why[128];
    char *key;
    size_t i;

    (void)state;
    key = load_key("sesame\nsecond\n");
    assert_string_equal(key, "sesame");
    free(key);
    key = load_key("sesame\r\n");
    assert_string_equal(key, "sesame");
    free(key);
    key = load_key("sesame");
    assert_string_equal(key, "sesame");
    free(key);
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_null(load_key(bad[i]));
    assert_null(srv_key_load("/nonexistent/key", why, sizeof(why)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_the_tiers),
        cmocka_unit_test(test_both_spellings_of_a_value),
        cmocka_unit_test(test_what_is_wrong_is_a_usage_error),
        cmocka_unit_test(test_the_key_is_the_first_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

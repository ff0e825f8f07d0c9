/* The way to the log hook, and the capturing log. */
#include "base/log.h"
#include "lib/capture_log.h"
#include "lib/unit.h"

#include <string.h>

static void events_up_to_the_level_arrive_formatted(void **state)
{
    struct test_log log;
    (void)state;
    test_log_init(&log);
    log.log.level = CKV_LOG_WARN;
    ckvi_log(&log.log, CKV_LOG_ERROR, "a.error", "%d of %s", 3, "x");
    ckvi_log(&log.log, CKV_LOG_WARN, "a.warn", "plain");
    ckvi_log(&log.log, CKV_LOG_INFO, "a.info", "not wanted");
    ckvi_log(&log.log, CKV_LOG_DEBUG, "a.debug", "not wanted");
    assert_int_equal(log.count, 2);
    assert_string_equal(test_log_find(&log, "a.error"), "3 of x");
    assert_int_equal(log.events[0].level, CKV_LOG_ERROR);
    assert_string_equal(test_log_find(&log, "a.warn"), "plain");
    assert_null(test_log_find(&log, "a.info"));
    test_log_deinit(&log);
}

static void no_target_is_silent(void **state)
{
    struct ckv_log silent = {NULL, CKV_LOG_DEBUG, NULL};
    (void)state;
    ckvi_log(NULL, CKV_LOG_ERROR, "x", "y");
    ckvi_log(&silent, CKV_LOG_ERROR, "x", "y");
}

static void long_text_is_cut_not_lost(void **state)
{
    struct test_log log;
    char text[5000];
    (void)state;
    memset(text, 'q', sizeof text);
    text[sizeof text - 1] = '\0';
    test_log_init(&log);
    ckvi_log(&log.log, CKV_LOG_INFO, "long", "start %s", text);
    assert_int_equal(test_log_count(&log, "long"), 1);
    assert_memory_equal(test_log_find(&log, "long"), "start qqq", 9);
    test_log_deinit(&log);
}

static void captured_events_can_be_searched(void **state)
{
    struct test_log log;
    (void)state;
    test_log_init(&log);
    for (int i = 0; i < 40; i++)
        ckvi_log(&log.log, CKV_LOG_INFO, i % 2 ? "odd" : "even", "number %d", i);
    assert_int_equal(test_log_count(&log, "odd"), 20);
    assert_string_equal(test_log_find(&log, "even"), "number 38");
    assert_true(test_log_contains(&log, "odd", "number 7"));
    assert_false(test_log_contains(&log, "even", "number 7"));
    assert_true(test_log_contains(&log, NULL, "number 7"));
    test_log_clear(&log);
    assert_int_equal(test_log_count(&log, "odd"), 0);
    test_log_deinit(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_up_to_the_level_arrive_formatted),
        cmocka_unit_test(no_target_is_silent),
        cmocka_unit_test(long_text_is_cut_not_lost),
        cmocka_unit_test(captured_events_can_be_searched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

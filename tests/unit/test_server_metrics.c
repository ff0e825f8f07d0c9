/* The counters as Prometheus reads them. */
#include "metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_line(const char *page, const char *line)
{
    const char *at = strstr(page, line);

    if (!at || (at != page && at[-1] != '\n') || at[strlen(line)] != '\n')
        fail_msg("there is no line %s", line);
}

static void test_every_count_has_its_line(void **state)
{
    struct srv_figures figures = {.has_cold = true, .waiting = 3, .running = 1};
    char *page;

    (void)state;
    figures.cold.has_store = true;
    figures.counters.completed = 7;
    figures.counters.refused = 2;
    figures.counters.turns[SRV_SOURCE_LIVE] = 4;
    figures.counters.turns[SRV_SOURCE_STORE] = 5;
    figures.counters.reused_tokens[SRV_SOURCE_QUEUE] = 123456789012;
    figures.counters.misses[SRV_MISS_TOO_SHORT] = 6;
    figures.counters.reused_bytes = 1000;
    figures.counters.prefill_ms_sum = 1500;
    figures.cold.store.written_bytes = 2500;
    figures.cold.store.restore_total_ns = 250000000;
    figures.cold.store.put_total_ns = 2000000000;
    figures.cold.queue.pending_bytes = UINT64_MAX;
    figures.cold.queue.dropped_count = 8;
    figures.cold.ram.evictions = 9;
    page = srv_metrics_encode(&figures);
    assert_non_null(page);
    expect_line(page, "# TYPE coldkv_hits_total counter");
    expect_line(page, "# TYPE coldkv_queue_bytes gauge");
    expect_line(page, "coldkv_requests_total{outcome=\"completed\"} 7");
    expect_line(page, "coldkv_requests_total{outcome=\"refused\"} 2");
    expect_line(page, "coldkv_requests_waiting 3");
    expect_line(page, "coldkv_requests_running 1");
    expect_line(page, "coldkv_hits_total{tier=\"live\"} 4");
    expect_line(page, "coldkv_hits_total{tier=\"ram\"} 0");
    expect_line(page, "coldkv_hits_total{tier=\"store\"} 5");
    expect_line(page, "coldkv_reused_tokens_total{tier=\"queue\"} 123456789012");
    expect_line(page, "coldkv_misses_total{reason=\"too_short\"} 6");
    expect_line(page, "coldkv_misses_total{reason=\"failed\"} 0");
    expect_line(page, "coldkv_prefill_seconds_total 1.5");
    expect_line(page, "coldkv_restore_seconds_total 0.25");
    expect_line(page, "coldkv_store_seconds_total 2");
    expect_line(page, "coldkv_queue_bytes 18446744073709551615");
    expect_line(page, "coldkv_queue_entries_total{outcome=\"dropped\"} 8");
    expect_line(page, "coldkv_ram_evictions_total 9");
    expect_line(page, "coldkv_bytes_written_per_byte_reused 2.5");
    free(page);
}

static void test_what_is_not_there_is_not_shown(void **state)
{
    struct srv_figures figures = {0};
    char *page = srv_metrics_encode(&figures);

    (void)state;
    assert_non_null(page);
    expect_line(page, "coldkv_requests_total{outcome=\"completed\"} 0");
    assert_null(strstr(page, "coldkv_ram_"));
    assert_null(strstr(page, "coldkv_store_"));
    free(page);
    figures.has_cold = true;
    page = srv_metrics_encode(&figures);
    assert_non_null(page);
    expect_line(page, "coldkv_ram_bytes 0");
    assert_null(strstr(page, "coldkv_store_"));
    assert_null(strstr(page, "coldkv_queue_"));
    free(page);
}

static void test_nothing_reused_is_no_division_by_zero(void **state)
{
    struct srv_figures figures = {0};

    (void)state;
    figures.cold.store.written_bytes = 5;
    assert_true(srv_bytes_written_per_byte_reused(&figures) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_count_has_its_line),
        cmocka_unit_test(test_what_is_not_there_is_not_shown),
        cmocka_unit_test(test_nothing_reused_is_no_division_by_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

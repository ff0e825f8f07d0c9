/* A clock that the test owns. Sleeping advances it; nothing else does. Thread safe. */
#ifndef COLDKV_TESTS_FAKE_CLOCK_H
#define COLDKV_TESTS_FAKE_CLOCK_H

#include <coldkv/clock.h>
#include <pthread.h>
#include <stddef.h>

#define TEST_NS_PER_MS INT64_C(1000000)
#define TEST_NS_PER_S INT64_C(1000000000)

/* 2026-01-01 00:00:00 UTC: where the wall clock starts. */
#define TEST_CLOCK_START_NS (INT64_C(1767225600) * TEST_NS_PER_S)

struct test_clock {
    struct ckv_clock clock; /* give &x.clock to the code under test */
    pthread_mutex_t mutex;
    int64_t realtime_ns;
    int64_t monotonic_ns;
    size_t sleep_count;
    int64_t slept_ns;
    /* Optional: called after each sleep with no lock held; for what happens meanwhile. */
    void (*on_sleep)(void *ctx, int64_t duration_ns);
    void *on_sleep_ctx;
};

void test_clock_init(struct test_clock *clock);
void test_clock_deinit(struct test_clock *clock);
/* Both clocks go on. */
void test_clock_advance(struct test_clock *clock, int64_t duration_ns);
/* The wall clock jumps, back too; the monotonic one does not notice. */
void test_clock_set_realtime(struct test_clock *clock, int64_t realtime_ns);
int64_t test_clock_realtime(struct test_clock *clock);

#endif

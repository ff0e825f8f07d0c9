/* Owns the fake clock. Its invariant: the monotonic side never goes back. */
#include "lib/fake_clock.h"

#include "lib/require.h"
#include <string.h>

static int64_t get_realtime(void *ctx)
{
    return test_clock_realtime(ctx);
}

static int64_t get_monotonic(void *ctx)
{
    struct test_clock *clock = ctx;
    int64_t now;
    pthread_mutex_lock(&clock->mutex);
    now = clock->monotonic_ns;
    pthread_mutex_unlock(&clock->mutex);
    return now;
}

static void sleep_for(void *ctx, int64_t duration_ns)
{
    struct test_clock *clock = ctx;
    if (duration_ns < 0)
        duration_ns = 0;
    pthread_mutex_lock(&clock->mutex);
    clock->sleep_count++;
    clock->slept_ns += duration_ns;
    clock->realtime_ns += duration_ns;
    clock->monotonic_ns += duration_ns;
    pthread_mutex_unlock(&clock->mutex);
    if (clock->on_sleep)
        clock->on_sleep(clock->on_sleep_ctx, duration_ns);
}

void test_clock_init(struct test_clock *clock)
{
    memset(clock, 0, sizeof *clock);
    clock->clock = (struct ckv_clock){clock, get_realtime, get_monotonic, sleep_for};
    clock->realtime_ns = TEST_CLOCK_START_NS;
    clock->monotonic_ns = TEST_NS_PER_S;
    TEST_REQUIRE(pthread_mutex_init(&clock->mutex, NULL) == 0);
}

void test_clock_deinit(struct test_clock *clock)
{
    pthread_mutex_destroy(&clock->mutex);
}

void test_clock_advance(struct test_clock *clock, int64_t duration_ns)
{
    TEST_REQUIRE(duration_ns >= 0);
    pthread_mutex_lock(&clock->mutex);
    clock->realtime_ns += duration_ns;
    clock->monotonic_ns += duration_ns;
    pthread_mutex_unlock(&clock->mutex);
}

void test_clock_set_realtime(struct test_clock *clock, int64_t realtime_ns)
{
    pthread_mutex_lock(&clock->mutex);
    clock->realtime_ns = realtime_ns;
    pthread_mutex_unlock(&clock->mutex);
}

int64_t test_clock_realtime(struct test_clock *clock)
{
    int64_t now;
    pthread_mutex_lock(&clock->mutex);
    now = clock->realtime_ns;
    pthread_mutex_unlock(&clock->mutex);
    return now;
}

/*
 * Owns the system's clocks. clock_gettime on these two cannot fail on a supported system;
 * if it does, time stands still at 0, which every caller survives (nothing is deleted by
 * age alone without a second look).
 */
#include "base/clock.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

#define NS_PER_S 1000000000

static int64_t read_clock(clockid_t id)
{
    struct timespec now = {0, 0};
    if (clock_gettime(id, &now) != 0)
        return 0;
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int64_t system_realtime(void *ctx)
{
    (void)ctx;
    return read_clock(CLOCK_REALTIME);
}

static int64_t system_monotonic(void *ctx)
{
    (void)ctx;
    return read_clock(CLOCK_MONOTONIC);
}

static void system_sleep(void *ctx, int64_t duration_ns)
{
    struct timespec left;
    (void)ctx;
    if (duration_ns <= 0)
        return;
    left.tv_sec = (time_t)(duration_ns / NS_PER_S);
    left.tv_nsec = (long)(duration_ns % NS_PER_S);
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

static const struct ckv_clock system_clock = {NULL, system_realtime, system_monotonic,
                                              system_sleep};

const struct ckv_clock *ckv_clock_system(void)
{
    return &system_clock;
}

const struct ckv_clock *ckvi_clock_or_system(const struct ckv_clock *clock)
{
    return clock ? clock : &system_clock;
}

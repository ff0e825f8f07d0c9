/*
 * The clock hook. Store and tiers take time only from here, so that tests own it.
 */
#ifndef COLDKV_CLOCK_H
#define COLDKV_CLOCK_H

#include <coldkv/export.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ckv_clock {
    void *ctx;
    /** Wall clock in nanoseconds since 1970, as file times count it. */
    int64_t (*realtime_ns)(void *ctx);
    /** A clock that never goes back, for durations and deadlines. */
    int64_t (*monotonic_ns)(void *ctx);
    /** Sleeps about this long (bounded waits for a lock). */
    void (*sleep_ns)(void *ctx, int64_t duration_ns);
};

/** The system's clocks. Static storage, thread safe. */
CKV_API const struct ckv_clock *ckv_clock_system(void);

#ifdef __cplusplus
}
#endif

#endif

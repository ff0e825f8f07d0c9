/* Clocks of the server, through the library's.
 * Invariant: none. Failure: none. */
#include "timing.h"

#include <coldkv/clock.h>

double srv_now_ms(void)
{
    const struct ckv_clock *clock = ckv_clock_system();

    return (double)clock->monotonic_ns(clock->ctx) / 1e6;
}

int64_t srv_now_s(void)
{
    const struct ckv_clock *clock = ckv_clock_system();

    return clock->realtime_ns(clock->ctx) / 1000000000;
}

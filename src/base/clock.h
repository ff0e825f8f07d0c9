/* The clock that an option names. */
#ifndef COLDKV_BASE_CLOCK_H
#define COLDKV_BASE_CLOCK_H

#include <coldkv/clock.h>

const struct ckv_clock *ckvi_clock_or_system(const struct ckv_clock *clock);

#endif

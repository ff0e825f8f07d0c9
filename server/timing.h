#ifndef COLDKV_SERVER_TIMING_H
#define COLDKV_SERVER_TIMING_H

#include <stdint.h>

/* A clock that never goes back, in milliseconds. */
double srv_now_ms(void);

/* The time of day in whole seconds since 1970. */
int64_t srv_now_s(void);

#endif

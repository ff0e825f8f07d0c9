/* A mutex with a condition variable: how threads of the tiers wait for each other. */
#ifndef COLDKV_TIER_MONITOR_H
#define COLDKV_TIER_MONITOR_H

#include <coldkv/clock.h>
#include <coldkv/status.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* A deadline that never comes. */
#define CKVI_NEVER INT64_MAX

struct ckvi_monitor {
    bool ready;
    pthread_mutex_t mu;
    pthread_cond_t changed;
};

enum ckv_status ckvi_monitor_init(struct ckvi_monitor *monitor, struct ckv_error *error);
/* A zeroed one is fine. */
void ckvi_monitor_deinit(struct ckvi_monitor *monitor);

void ckvi_monitor_lock(struct ckvi_monitor *monitor);
void ckvi_monitor_unlock(struct ckvi_monitor *monitor);
/* Wakes all who wait. The lock is held. */
void ckvi_monitor_tell(struct ckvi_monitor *monitor);

/* Waits for a tell, at most so long; may wake early. False: the time is up. The lock is
 * held before and after. */
bool ckvi_monitor_wait(struct ckvi_monitor *monitor, int64_t timeout_ns);
/* The same until a time on `clock`, which need not run at the speed of the system's. */
bool ckvi_monitor_wait_until(struct ckvi_monitor *monitor, const struct ckv_clock *clock,
                             int64_t deadline_ns);

/* now + duration; stays CKVI_NEVER when it would be beyond. */
int64_t ckvi_deadline(int64_t now_ns, int64_t duration_ns);

#endif

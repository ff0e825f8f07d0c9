/*
 * Owns waiting. Invariant: time is measured on the clock that never goes back, so nobody
 * waits longer because somebody set the wall clock. Failure story: only init fails.
 */
#include "tier/monitor.h"

#include <errno.h>
#include <time.h>

#define NS_PER_S 1000000000

/* macOS cannot choose the clock of a condition variable, but waits for a duration. */
#ifdef __APPLE__
static int init_condition(pthread_cond_t *condition)
{
    return pthread_cond_init(condition, NULL);
}

static int wait_for(struct ckvi_monitor *monitor, int64_t timeout_ns)
{
    struct timespec left = {.tv_sec = (time_t)(timeout_ns / NS_PER_S),
                            .tv_nsec = (long)(timeout_ns % NS_PER_S)};
    return pthread_cond_timedwait_relative_np(&monitor->changed, &monitor->mu, &left);
}
#else
static int init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);
    if (failed)
        return failed;
    failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (!failed)
        failed = pthread_cond_init(condition, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return failed;
}

static int wait_for(struct ckvi_monitor *monitor, int64_t timeout_ns)
{
    const struct ckv_clock *clock = ckv_clock_system();
    int64_t end_ns = ckvi_deadline(clock->monotonic_ns(clock->ctx), timeout_ns);
    struct timespec end = {.tv_sec = (time_t)(end_ns / NS_PER_S),
                           .tv_nsec = (long)(end_ns % NS_PER_S)};
    return pthread_cond_timedwait(&monitor->changed, &monitor->mu, &end);
}
#endif

enum ckv_status ckvi_monitor_init(struct ckvi_monitor *monitor, struct ckv_error *error)
{
    if (pthread_mutex_init(&monitor->mu, NULL) != 0)
        return ckv_error_set(error, CKV_NOMEM, "no mutex");
    if (init_condition(&monitor->changed) != 0) {
        (void)pthread_mutex_destroy(&monitor->mu);
        return ckv_error_set(error, CKV_NOMEM, "no condition variable");
    }
    monitor->ready = true;
    return CKV_OK;
}

void ckvi_monitor_deinit(struct ckvi_monitor *monitor)
{
    if (!monitor->ready)
        return;
    (void)pthread_cond_destroy(&monitor->changed);
    (void)pthread_mutex_destroy(&monitor->mu);
    monitor->ready = false;
}

void ckvi_monitor_lock(struct ckvi_monitor *monitor)
{
    (void)pthread_mutex_lock(&monitor->mu);
}

void ckvi_monitor_unlock(struct ckvi_monitor *monitor)
{
    (void)pthread_mutex_unlock(&monitor->mu);
}

void ckvi_monitor_tell(struct ckvi_monitor *monitor)
{
    (void)pthread_cond_broadcast(&monitor->changed);
}

bool ckvi_monitor_wait(struct ckvi_monitor *monitor, int64_t timeout_ns)
{
    if (timeout_ns == CKVI_NEVER) {
        (void)pthread_cond_wait(&monitor->changed, &monitor->mu);
        return true;
    }
    return timeout_ns > 0 && wait_for(monitor, timeout_ns) != ETIMEDOUT;
}

bool ckvi_monitor_wait_until(struct ckvi_monitor *monitor, const struct ckv_clock *clock,
                             int64_t deadline_ns)
{
    int64_t now_ns;
    if (deadline_ns == CKVI_NEVER)
        return ckvi_monitor_wait(monitor, CKVI_NEVER);
    now_ns = clock->monotonic_ns(clock->ctx);
    if (now_ns >= deadline_ns)
        return false;
    (void)ckvi_monitor_wait(monitor, ckvi_deadline(deadline_ns, -now_ns));
    return true;
}

int64_t ckvi_deadline(int64_t now_ns, int64_t duration_ns)
{
    if (duration_ns > 0 && now_ns > CKVI_NEVER - duration_ns)
        return CKVI_NEVER;
    return now_ns + duration_ns;
}

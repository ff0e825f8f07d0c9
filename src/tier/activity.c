/*
 * Owns the activity gate: a count of who is busy, and those who wait for it to be 0.
 *
 * Invariant: a wake that comes after a waiter looked at ckv_activity_wakes ends its wait,
 * whether that began before or after it. Failure story: only create fails.
 */
#include <coldkv/activity.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "tier/monitor.h"

struct ckv_activity {
    const struct ckv_alloc *alloc;
    struct ckvi_monitor monitor;
    /* guarded by monitor */
    uint64_t busy_count;
    uint64_t wakes;
};

enum ckv_status ckv_activity_create(const struct ckv_alloc *alloc,
                                    struct ckv_activity **out, struct ckv_error *error)
{
    struct ckv_activity *activity;
    enum ckv_status status;
    if (!out)
        return ckv_error_set(error, CKV_INVALID, "no place for the activity was given");
    *out = NULL;
    alloc = ckvi_alloc_or_default(alloc);
    activity = CKVI_NEW(alloc, struct ckv_activity);
    if (!activity)
        return ckvi_nomem(error, sizeof *activity, "an activity gate");
    activity->alloc = alloc;
    status = ckvi_monitor_init(&activity->monitor, error);
    if (status == CKV_OK)
        *out = activity;
    else
        CKVI_DELETE(alloc, activity);
    return status;
}

void ckv_activity_destroy(struct ckv_activity *activity)
{
    if (!activity)
        return;
    ckvi_monitor_deinit(&activity->monitor);
    CKVI_DELETE(activity->alloc, activity);
}

void ckv_activity_begin(struct ckv_activity *activity)
{
    ckvi_monitor_lock(&activity->monitor);
    activity->busy_count++;
    ckvi_monitor_unlock(&activity->monitor);
}

void ckv_activity_end(struct ckv_activity *activity)
{
    ckvi_monitor_lock(&activity->monitor);
    CKV_ASSERT(activity->busy_count > 0);
    activity->busy_count--;
    if (activity->busy_count == 0)
        ckvi_monitor_tell(&activity->monitor);
    ckvi_monitor_unlock(&activity->monitor);
}

bool ckv_activity_is_busy(struct ckv_activity *activity)
{
    bool busy;
    ckvi_monitor_lock(&activity->monitor);
    busy = activity->busy_count > 0;
    ckvi_monitor_unlock(&activity->monitor);
    return busy;
}

uint64_t ckv_activity_wakes(struct ckv_activity *activity)
{
    uint64_t wakes;
    ckvi_monitor_lock(&activity->monitor);
    wakes = activity->wakes;
    ckvi_monitor_unlock(&activity->monitor);
    return wakes;
}

void ckv_activity_wake(struct ckv_activity *activity)
{
    ckvi_monitor_lock(&activity->monitor);
    activity->wakes++;
    ckvi_monitor_tell(&activity->monitor);
    ckvi_monitor_unlock(&activity->monitor);
}

enum ckv_status ckv_activity_wait_idle(struct ckv_activity *activity, uint64_t wakes,
                                       int64_t timeout_ns)
{
    const struct ckv_clock *clock = ckv_clock_system();
    int64_t end_ns = timeout_ns == CKVI_NEVER
                         ? CKVI_NEVER
                         : ckvi_deadline(clock->monotonic_ns(clock->ctx), timeout_ns);
    enum ckv_status status = CKV_AGAIN;
    bool in_time = true;
    ckvi_monitor_lock(&activity->monitor);
    while (activity->wakes == wakes && activity->busy_count > 0 && in_time)
        in_time = ckvi_monitor_wait_until(&activity->monitor, clock, end_ns);
    if (activity->wakes != wakes)
        status = CKV_CANCELLED;
    else if (activity->busy_count == 0)
        status = CKV_OK;
    ckvi_monitor_unlock(&activity->monitor);
    return status;
}

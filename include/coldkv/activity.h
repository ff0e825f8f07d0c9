/*
 * The activity gate: the engine says when it works, background writes wait for it to
 * rest. Waiting is on a condition variable, never by polling, and bounded: after the
 * patience of a waiter has run out it goes on in paced chunks, so that write-behind makes
 * progress under steady load too.
 */
#ifndef COLDKV_ACTIVITY_H
#define COLDKV_ACTIVITY_H

#include <coldkv/alloc.h>
#include <coldkv/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ckv_activity;

/** Idle at first. Thread safe. */
CKV_API enum ckv_status ckv_activity_create(const struct ckv_alloc *alloc,
                                            struct ckv_activity **out,
                                            struct ckv_error *error) CKV_WARN_UNUSED;
/** Nobody may wait or be busy any more. NULL is fine. */
CKV_API void ckv_activity_destroy(struct ckv_activity *activity);

/** The engine begins and ends work (a request, from arrival to its last token). Nests:
 * busy until every begin had its end; it never reads idle between an end and a begin that
 * a waiting request announced with begin before. Never waits. */
CKV_API void ckv_activity_begin(struct ckv_activity *activity);
CKV_API void ckv_activity_end(struct ckv_activity *activity);
CKV_API bool ckv_activity_is_busy(struct ckv_activity *activity);

/** How often ckv_activity_wake was called. */
CKV_API uint64_t ckv_activity_wakes(struct ckv_activity *activity);

/** Waits until idle (OK), until timeout_ns passed (AGAIN; INT64_MAX = never), or until a
 * wake (CANCELLED). `wakes` is what ckv_activity_wakes said before the waiter looked at
 * its own reasons not to wait: a wake between the two ends the wait at once. */
CKV_API enum ckv_status ckv_activity_wait_idle(struct ckv_activity *activity,
                                               uint64_t wakes,
                                               int64_t timeout_ns) CKV_WARN_UNUSED;
/** Ends all waits with CANCELLED: somebody changed what they wait for. */
CKV_API void ckv_activity_wake(struct ckv_activity *activity);

#ifdef __cplusplus
}
#endif

#endif

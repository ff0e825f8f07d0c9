/* The inside of the durability coordinator, and its clockwork for tests. */
#ifndef COLDKV_TIER_DURABILITY_H
#define COLDKV_TIER_DURABILITY_H

#include "tier/dirty.h"
#include "tier/monitor.h"
#include "tier/prompt_cache.h"
#include <coldkv/durability.h>
#include <pthread.h>

struct ckv_durability {
    struct ckv_durability_options options; /* all filled in */
    struct ckv_prompt_cache *cache;
    struct ckv_spill_queue *queue;
    struct ckv_store *store;
    pthread_t thread;
    bool has_thread;
    struct ckvi_monitor monitor;
    /* guarded by monitor */
    size_t references; /* the owner's, and one per attempt that is queued */
    bool stopping;
    struct ckvi_dirty_table table;
    int64_t inherited_ns; /* since when a version that was just superseded was dirty */
    /* Records that could not be made or kept. */
    uint64_t lost_count;
    uint64_t lost_logged;
    uint64_t lost_flushed; /* that a flush said */
    bool flushing;
    uint64_t flush_number;
    enum ckv_status flush_status; /* of the last one */
    struct ckv_flush_evidence evidence;
};

/* As ckv_durability_start, without a thread: time passes when run_due is called. */
enum ckv_status ckvi_durability_create(struct ckv_prompt_cache *cache,
                                       struct ckv_spill_queue *queue,
                                       struct ckv_store *store,
                                       const struct ckv_durability_options *options,
                                       struct ckv_durability **out,
                                       struct ckv_error *error);
/* What the thread does when a timer is due. Returns how many attempts it made. */
size_t ckvi_durability_run_due(struct ckv_durability *durability);
/* When the next timer is due; CKVI_NEVER = none is armed. */
int64_t ckvi_durability_next_due(struct ckv_durability *durability);

/* --- shared by the coordinator's own files --- */

void ckvi_durability_unref(struct ckv_durability *durability);
int64_t ckvi_durability_now(const struct ckv_durability *durability);
/* Marks a record as running, for one attempt; the lock is held. */
void ckvi_attempt_begin(struct ckv_durability *durability, struct ckvi_dirty *dirty);
/* Makes it; no lock is held. It is over when the record is no longer running: then the
 * reference of the attempt is gone too. */
void ckvi_attempt_make(struct ckvi_dirty *dirty, bool forced);

#endif

/*
 * Owns flush: everything durable, or a true account of what is not.
 *
 * Invariant: one flush at a time; it writes one record after the other, so that the cap
 * of the queue never drops one for another. Nothing here waits beyond the deadline,
 * because only the queue's worker ever syncs. Failure story: what cannot be written stays
 * a record and is in the evidence.
 */
#include "tier/durability.h"

struct flush {
    struct ckv_durability *durability;
    uint64_t number;
    int64_t started_ns;
    int64_t deadline_ns;
    struct ckv_spill_stats before;
    uint64_t flushed_count;
    uint64_t lost_count; /* in the evidence */
    bool late;           /* the deadline came first */
};

static bool is_late(struct flush *flush)
{
    flush->late =
        flush->late || ckvi_durability_now(flush->durability) >= flush->deadline_ns;
    return flush->late;
}

static bool any_running(const struct ckv_durability *durability)
{
    const struct ckvi_dirty *dirty = durability->table.first;
    while (dirty && !dirty->running)
        dirty = dirty->next;
    return dirty != NULL;
}

/* Lets what is on its way arrive: attempts, and everything in the queue. */
static void settle_running(struct flush *flush)
{
    struct ckv_durability *durability = flush->durability;
    bool in_time = ckv_spill_queue_drain(durability->queue, flush->deadline_ns) == CKV_OK;
    ckvi_monitor_lock(&durability->monitor);
    while (in_time && any_running(durability))
        in_time = ckvi_monitor_wait_until(&durability->monitor, durability->options.clock,
                                          flush->deadline_ns);
    ckvi_monitor_unlock(&durability->monitor);
    flush->late = flush->late || !in_time;
}

/* The next record whose version this flush did not try; it is marked as tried. The lock
 * is held. */
static struct ckvi_dirty *take_untried(const struct flush *flush)
{
    struct ckvi_dirty *dirty = flush->durability->table.first;
    while (dirty && (dirty->running || (dirty->flush_number == flush->number &&
                                        dirty->flush_version == dirty->version)))
        dirty = dirty->next;
    if (!dirty)
        return NULL;
    dirty->flush_number = flush->number;
    dirty->flush_version = dirty->version;
    dirty->stored = false;
    dirty->references++;
    return dirty;
}

/* Makes an attempt for one record and waits for its end. */
static void flush_record(struct flush *flush, struct ckvi_dirty *dirty)
{
    struct ckv_durability *durability = flush->durability;
    bool in_time = true;
    ckvi_attempt_make(dirty, true);
    ckvi_monitor_lock(&durability->monitor);
    while (in_time && dirty->running)
        in_time = ckvi_monitor_wait_until(&durability->monitor, durability->options.clock,
                                          flush->deadline_ns);
    flush->late = flush->late || dirty->running;
    flush->flushed_count += !dirty->running && dirty->stored;
    ckvi_dirty_unref(&durability->table, dirty);
    ckvi_monitor_unlock(&durability->monitor);
}

static void flush_records(struct flush *flush)
{
    struct ckv_durability *durability = flush->durability;
    while (!is_late(flush)) {
        struct ckvi_dirty *dirty;
        /* What waits there, spilled by an eviction, would be dropped for this one. */
        if (ckv_spill_queue_drain(durability->queue, flush->deadline_ns) != CKV_OK)
            flush->late = true;
        if (flush->late)
            return;
        ckvi_monitor_lock(&durability->monitor);
        dirty = take_untried(flush);
        if (dirty)
            ckvi_attempt_begin(durability, dirty);
        ckvi_monitor_unlock(&durability->monitor);
        if (!dirty)
            return;
        flush_record(flush, dirty);
    }
}

/* The next record that was not looked at again. */
static struct ckvi_dirty *take_unchecked(const struct ckv_durability *durability)
{
    struct ckvi_dirty *dirty = durability->table.first;
    while (dirty && (dirty->running || dirty->rechecked))
        dirty = dirty->next;
    if (!dirty)
        return NULL;
    dirty->rechecked = true;
    dirty->references++;
    return dirty;
}

/* What is left may have become durable since its turn: by an eviction that the queue
 * wrote, by a newer version that took its place there, by an entry that covers it. */
static void recheck_records(struct flush *flush)
{
    struct ckv_durability *durability = flush->durability;
    struct ckvi_dirty *dirty;
    ckvi_monitor_lock(&durability->monitor);
    for (dirty = durability->table.first; dirty; dirty = dirty->next)
        dirty->rechecked = false;
    while ((dirty = take_unchecked(durability))) {
        bool durable;
        ckvi_monitor_unlock(&durability->monitor);
        durable = ckv_store_covers(durability->store, dirty->ns, dirty->tokens,
                                   dirty->token_count);
        ckvi_monitor_lock(&durability->monitor);
        if (durable && dirty->listed && !dirty->running) {
            ckvi_dirty_remove(&durability->table, dirty);
            flush->flushed_count++;
        }
        ckvi_dirty_unref(&durability->table, dirty);
    }
    ckvi_monitor_unlock(&durability->monitor);
}

/* The lock is held. */
static uint64_t count_missing(const struct ckv_durability *durability)
{
    const struct ckvi_dirty *dirty;
    uint64_t count = durability->lost_count - durability->lost_flushed;
    for (dirty = durability->table.first; dirty; dirty = dirty->next)
        count += dirty->missing;
    return count;
}

/* Takes stock. The lock is not held. */
static struct ckv_flush_evidence make_evidence(struct flush *flush)
{
    struct ckv_durability *durability = flush->durability;
    struct ckv_flush_evidence evidence = {.flushed_snapshots = flush->flushed_count};
    struct ckv_spill_stats now;
    struct ckv_store_stats store;
    ckv_spill_queue_get_stats(durability->queue, &now);
    ckv_store_get_stats(durability->store, &store);
    ckvi_monitor_lock(&durability->monitor);
    evidence.pending_snapshots = durability->table.map.count;
    evidence.missing_snapshots = count_missing(durability);
    flush->lost_count = durability->lost_count;
    ckvi_monitor_unlock(&durability->monitor);
    evidence.pending_spills = now.pending_count;
    evidence.pending_spill_bytes = now.pending_bytes;
    evidence.dropped_spills = now.dropped_count - flush->before.dropped_count;
    evidence.failed_spills = now.failed_count - flush->before.failed_count;
    evidence.durable_entries = store.entries;
    evidence.longest_durable_prefix_tokens = store.longest_prefix_tokens;
    evidence.durable = evidence.pending_snapshots == 0 && evidence.pending_spills == 0 &&
                       evidence.dropped_spills == 0 && evidence.failed_spills == 0 &&
                       evidence.missing_snapshots == 0;
    evidence.elapsed_ns = ckvi_durability_now(durability) - flush->started_ns;
    return evidence;
}

static enum ckv_status run_flush(struct flush *flush, struct ckv_flush_evidence *out)
{
    struct ckv_durability *durability = flush->durability;
    ckv_spill_queue_get_stats(durability->queue, &flush->before);
    settle_running(flush);
    flush_records(flush);
    if (!is_late(flush))
        settle_running(flush);
    recheck_records(flush);
    *out = make_evidence(flush);
    return flush->late ? CKV_AGAIN : CKV_OK;
}

/* Waits for the flush that another thread runs. False: the deadline came first. */
static bool await_flush(struct ckv_durability *durability, int64_t deadline_ns)
{
    uint64_t number = durability->flush_number;
    bool in_time = true;
    while (in_time && durability->flushing && durability->flush_number == number)
        in_time = ckvi_monitor_wait_until(&durability->monitor, durability->options.clock,
                                          deadline_ns);
    return in_time;
}

/* Takes the result of another thread's flush, or its place. True: *status is set. The
 * lock is held. */
static bool join_flush(struct flush *flush, struct ckv_flush_evidence *out,
                       enum ckv_status *status)
{
    struct ckv_durability *durability = flush->durability;
    while (durability->flushing) {
        if (!await_flush(durability, flush->deadline_ns)) {
            flush->late = true;
            return false;
        }
        *out = durability->evidence;
        *status = durability->flush_status;
        /* It gave up at its own deadline; this one may have more time. */
        if (*status == CKV_OK || is_late(flush))
            return true;
    }
    return false;
}

enum ckv_status ckv_durability_flush(struct ckv_durability *durability,
                                     int64_t deadline_ns, struct ckv_flush_evidence *out,
                                     struct ckv_error *error)
{
    struct flush flush = {.durability = durability, .deadline_ns = deadline_ns};
    struct ckv_flush_evidence evidence;
    enum ckv_status status = CKV_OK;
    if (!durability || !out)
        return ckv_error_set(error, CKV_INVALID,
                             "flush needs a coordinator and room for its answer");
    flush.started_ns = ckvi_durability_now(durability);
    ckvi_monitor_lock(&durability->monitor);
    if (join_flush(&flush, out, &status)) {
        ckvi_monitor_unlock(&durability->monitor);
        return status;
    }
    if (!flush.late) {
        durability->flushing = true;
        flush.number = ++durability->flush_number;
    }
    ckvi_monitor_unlock(&durability->monitor);
    if (flush.late) {
        ckv_spill_queue_get_stats(durability->queue, &flush.before);
        *out = make_evidence(&flush);
        return ckv_error_set(error, CKV_AGAIN, "another flush is still running");
    }
    status = run_flush(&flush, &evidence);
    *out = evidence;
    ckvi_monitor_lock(&durability->monitor);
    durability->evidence = evidence;
    durability->flush_status = status;
    /* A loss is said once: nothing is left of it that could become durable. */
    durability->lost_flushed = flush.lost_count;
    durability->flushing = false;
    ckvi_monitor_tell(&durability->monitor);
    ckvi_monitor_unlock(&durability->monitor);
    if (status == CKV_AGAIN)
        (void)ckv_error_set(error, CKV_AGAIN, "the deadline came before the end");
    return status;
}

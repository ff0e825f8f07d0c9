/*
 * Owns the worker of a spill queue: one entry after the other, step by step, with the
 * gate asked before every step.
 *
 * Invariant: between two steps the worker looks whether the item is to be aborted, so an
 * abort never waits for more than a step. An item starts only once the gate let its first
 * step pass: until then it may be replaced or dropped. Failure story: every failure is
 * the item's outcome; the store has logged why.
 */
#include "tier/spill_queue.h"

#include "base/checked.h"
#include "base/log.h"

/* With an engine to care for, no sync writes back more than this. */
#define SYNC_EVERY_BYTES (UINT64_C(64) << 20)
#define NS_PER_S 1000000000
/* A pace slower than one chunk in this time is none. */
#define PACE_MAX_NS (INT64_C(3600) * NS_PER_S)

/* Whether the gate must not be waited for: the queue stops, the item is to be aborted, or
 * nothing is left to start. */
static bool is_called_off(struct ckv_spill_queue *queue,
                          const struct ckvi_spill_item *item)
{
    bool off;
    ckvi_monitor_lock(&queue->monitor);
    off = queue->stopping || (item ? item->outcome != 0 : !ckvi_spill_next(queue));
    ckvi_monitor_unlock(&queue->monitor);
    return off;
}

static void count_paced(struct ckv_spill_queue *queue)
{
    ckvi_monitor_lock(&queue->monitor);
    queue->stats.paced_chunks++;
    ckvi_monitor_unlock(&queue->monitor);
}

/* How long one chunk takes at the pace. */
static int64_t pace_ns(const struct ckv_spill_options *options)
{
    uint64_t scaled;
    if (!ckvi_mul_u64(options->chunk_bytes, NS_PER_S, &scaled))
        return PACE_MAX_NS;
    scaled /= options->paced_bytes_per_second;
    return scaled < (uint64_t)PACE_MAX_NS ? (int64_t)scaled : PACE_MAX_NS;
}

static int64_t now_ns(const struct ckv_spill_queue *queue)
{
    return queue->options.clock->monotonic_ns(queue->options.clock->ctx);
}

/*
 * Waits before a step: for rest while there is patience, at the pace when there is none
 * left. item NULL: the first step of whichever item is next. False: it was called off,
 * and nothing may start unless the queue stops. Patience adds up over the
 * steps of an item, so that short rests between requests do not make it endless; it is
 * whole again when an item finds the engine at rest.
 */
static bool pass_gate(struct ckv_spill_queue *queue, const struct ckvi_spill_item *item)
{
    const struct ckv_spill_options *options = &queue->options;
    enum ckv_status status = CKV_CANCELLED;
    int64_t started_ns = now_ns(queue);
    if (!options->activity)
        return true;
    if (!item && !ckv_activity_is_busy(options->activity))
        queue->patience_ns = options->patience_ns;
    while (status == CKV_CANCELLED) {
        uint64_t wakes = ckv_activity_wakes(options->activity);
        if (is_called_off(queue, item))
            return false;
        status = ckv_activity_wait_idle(options->activity, wakes,
                                        queue->patience_ns > 0 ? queue->patience_ns
                                                               : pace_ns(options));
    }
    queue->patience_ns -= now_ns(queue) - started_ns;
    if (status == CKV_OK)
        return true;
    queue->patience_ns = 0;
    count_paced(queue);
    return true;
}

/* What the item is to be aborted with; 0 = nothing. */
static enum ckv_spill_outcome get_abort(struct ckv_spill_queue *queue,
                                        const struct ckvi_spill_item *item)
{
    enum ckv_spill_outcome outcome;
    ckvi_monitor_lock(&queue->monitor);
    outcome = item->outcome;
    ckvi_monitor_unlock(&queue->monitor);
    return outcome;
}

/* Runs the steps of a put and ends it. */
static enum ckv_spill_outcome run_put(struct ckv_spill_queue *queue,
                                      const struct ckvi_spill_item *item,
                                      struct ckv_put *put, uint64_t *id)
{
    enum ckv_spill_outcome outcome = get_abort(queue, item);
    struct ckv_stored stored;
    while (outcome == 0 && ckv_put_next(put) != CKV_STEP_DONE) {
        if (ckv_put_step(put, NULL) != CKV_OK) {
            outcome = CKV_SPILL_FAILED;
            break;
        }
        if (ckv_put_next(put) != CKV_STEP_DONE)
            (void)pass_gate(queue, item);
        outcome = get_abort(queue, item);
    }
    if (outcome == CKV_SPILL_FAILED || ckv_put_next(put) != CKV_STEP_DONE) {
        ckv_put_abort(put);
        return outcome;
    }
    if (ckv_put_commit(put, &stored, NULL) != CKV_OK)
        return CKV_SPILL_FAILED;
    *id = stored.id;
    return CKV_SPILL_STORED;
}

/* What other processes stored is durable too; where it cannot be seen, an entry may be
 * written twice. */
static void look_for_others(struct ckv_spill_queue *queue)
{
    struct ckv_error error;
    if (ckv_store_refresh(queue->store, &error) != CKV_OK)
        ckvi_log(&queue->options.log, CKV_LOG_DEBUG, "queue.refresh_failed", "%s",
                 error.text);
}

static enum ckv_spill_outcome write_item(struct ckv_spill_queue *queue,
                                         const struct ckvi_spill_item *item, uint64_t *id)
{
    const struct ckv_entry *entry = ckv_held_entry(item->held);
    struct ckv_put_options options;
    struct ckv_put *put;
    look_for_others(queue);
    if (ckv_store_covers(queue->store, item->ns, entry->tokens, entry->token_count))
        return CKV_SPILL_COVERED;
    ckv_put_options_init(&options);
    options.chunk_bytes = queue->options.chunk_bytes;
    options.sync_every_bytes = queue->options.activity ? SYNC_EVERY_BYTES : 0;
    if (ckv_put_begin(queue->store, item->ns, entry, ckv_held_source(item->held),
                      &options, &put, NULL) != CKV_OK)
        return CKV_SPILL_FAILED;
    return run_put(queue, item, put, id);
}

static void remove_stored(struct ckv_spill_queue *queue, uint64_t id)
{
    struct ckv_error error;
    enum ckv_status status = ckv_store_remove(queue->store, id, &error);
    if (status != CKV_OK && status != CKV_NOTFOUND)
        ckvi_log(&queue->options.log, CKV_LOG_ERROR, "queue.invalidate_failed",
                 "an entry of an invalidated namespace stays: %s", error.text);
}

/* Writes the running item and gives it its outcome. */
static void end_item(struct ckv_spill_queue *queue, struct ckvi_spill_item *item,
                     struct ckvi_spill_ended *ended)
{
    uint64_t id = 0;
    enum ckv_spill_outcome outcome = write_item(queue, item, &id);
    ckvi_monitor_lock(&queue->monitor);
    /* Too late to abort: a discarded item may stay, an invalidated one must not. */
    while (outcome == CKV_SPILL_STORED && item->outcome == CKV_SPILL_INVALIDATED) {
        ckvi_monitor_unlock(&queue->monitor);
        remove_stored(queue, id);
        outcome = CKV_SPILL_INVALIDATED;
        ckvi_monitor_lock(&queue->monitor);
    }
    ckvi_spill_settle(queue, item, outcome, ended);
    ckvi_monitor_tell(&queue->monitor);
    ckvi_monitor_unlock(&queue->monitor);
}

/* Waits until there is something to do; false when the worker is to end. */
static bool await_work(struct ckv_spill_queue *queue)
{
    bool work;
    ckvi_monitor_lock(&queue->monitor);
    while (!ckvi_spill_next(queue) && !queue->stopping)
        (void)ckvi_monitor_wait(&queue->monitor, CKVI_NEVER);
    work = ckvi_spill_next(queue) != NULL;
    queue->worker_ended = !work;
    if (!work)
        ckvi_monitor_tell(&queue->monitor);
    ckvi_monitor_unlock(&queue->monitor);
    return work;
}

/* NULL when there is nothing to start, or nothing may. */
static struct ckvi_spill_item *start_item(struct ckv_spill_queue *queue, bool passed)
{
    struct ckvi_spill_item *item = NULL;
    ckvi_monitor_lock(&queue->monitor);
    if (passed || queue->stopping)
        item = ckvi_spill_next(queue);
    if (item)
        item->state = CKVI_SPILL_RUNNING;
    queue->running = item;
    ckvi_monitor_unlock(&queue->monitor);
    return item;
}

void *ckvi_spill_work(void *ctx)
{
    struct ckv_spill_queue *queue = ctx;
    while (await_work(queue)) {
        struct ckvi_spill_ended ended = {NULL, NULL};
        struct ckvi_spill_item *item = start_item(queue, pass_gate(queue, NULL));
        if (!item)
            continue;
        end_item(queue, item, &ended);
        ckvi_spill_queue_finish(queue, &ended);
    }
    return NULL;
}

/*
 * Owns the list of a spill queue and the life of its items.
 *
 * Invariant: an item is in the list from its add until its outcome was told, exactly
 * once; buffers counts those that wait or run. Those that wait are written in the order
 * of the list. Failure story: an add that fails changes nothing; everything after it ends
 * in an outcome.
 */
#include "tier/spill_queue.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "file/options.h"
#include <string.h>

#define CAP_DEFAULT (UINT64_C(2) << 30)
#define PATIENCE_DEFAULT_NS (INT64_C(10) * 1000000000)
#define PACE_DEFAULT (UINT64_C(32) << 20)

void ckv_spill_options_init(struct ckv_spill_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
    options->cap_bytes = CKV_DEFAULT;
    options->coalesce = true;
}

static enum ckv_status fill_options(struct ckv_spill_options *options,
                                    const struct ckv_spill_options *given,
                                    struct ckv_error *error)
{
    enum ckv_status status;
    ckv_spill_options_init(options);
    status =
        ckvi_options_copy(options, sizeof *options, given, "spill queue options", error);
    if (status != CKV_OK)
        return status;
    if (options->patience_ns < 0)
        return ckv_error_set(error, CKV_INVALID,
                             "spill queue options: patience_ns is negative");
    options->alloc = ckvi_alloc_or_default(options->alloc);
    options->clock = ckvi_clock_or_system(options->clock);
    if (options->cap_bytes == CKV_DEFAULT)
        options->cap_bytes = CAP_DEFAULT;
    if (options->patience_ns == 0)
        options->patience_ns = PATIENCE_DEFAULT_NS;
    if (options->paced_bytes_per_second == 0)
        options->paced_bytes_per_second = PACE_DEFAULT;
    if (options->chunk_bytes == 0)
        options->chunk_bytes = (size_t)CKV_CHUNK_BYTES_DEFAULT;
    return CKV_OK;
}

/* Frees a queue whose worker does not run. */
static void release(struct ckv_spill_queue *queue)
{
    ckvi_buffers_deinit(&queue->buffers);
    ckvi_monitor_deinit(&queue->monitor);
    CKVI_DELETE(queue->options.alloc, queue);
}

enum ckv_status ckv_spill_queue_start(struct ckv_store *store,
                                      const struct ckv_spill_options *options,
                                      struct ckv_spill_queue **out,
                                      struct ckv_error *error)
{
    struct ckv_spill_options chosen;
    struct ckv_spill_queue *queue;
    enum ckv_status status;
    if (!out)
        return ckv_error_set(error, CKV_INVALID, "no place for the queue was given");
    *out = NULL;
    if (!store)
        return ckv_error_set(error, CKV_INVALID, "a spill queue needs a store");
    status = fill_options(&chosen, options, error);
    if (status != CKV_OK)
        return status;
    queue = CKVI_NEW(chosen.alloc, struct ckv_spill_queue);
    if (!queue)
        return ckvi_nomem(error, sizeof *queue, "a spill queue");
    queue->options = chosen;
    queue->store = store;
    queue->patience_ns = chosen.patience_ns;
    status = ckvi_monitor_init(&queue->monitor, error);
    if (status == CKV_OK)
        status = ckvi_buffers_init(&queue->buffers, chosen.alloc, error);
    if (status == CKV_OK &&
        pthread_create(&queue->worker, NULL, ckvi_spill_work, queue) != 0)
        status = ckv_error_set(error, CKV_NOMEM, "no thread for the spill queue");
    if (status == CKV_OK)
        *out = queue;
    else
        release(queue);
    return status;
}

static void free_item(struct ckv_spill_queue *queue, struct ckvi_spill_item *item)
{
    const struct ckv_alloc *alloc = queue->options.alloc;
    ckv_held_unref(item->held);
    ckvi_strfree(alloc, item->ns);
    CKVI_DELETE(alloc, item);
}

static struct ckvi_spill_item *make_item(struct ckv_spill_queue *queue,
                                         const struct ckvi_spill_request *request)
{
    const struct ckv_alloc *alloc = queue->options.alloc;
    struct ckvi_spill_item *item = CKVI_NEW(alloc, struct ckvi_spill_item);
    if (!item)
        return NULL;
    item->ns = ckvi_strdup(alloc, request->ns ? request->ns : "");
    if (!item->ns) {
        CKVI_DELETE(alloc, item);
        return NULL;
    }
    item->held = ckv_held_ref(request->held);
    item->done = request->done;
    item->done_ctx = request->done_ctx;
    item->state = CKVI_SPILL_WAITING;
    return item;
}

/* Puts an item before another one; NULL = at the end. */
static void link_item(struct ckv_spill_queue *queue, struct ckvi_spill_item *item,
                      struct ckvi_spill_item *before)
{
    item->next = before;
    item->prev = before ? before->prev : queue->last;
    if (item->prev)
        item->prev->next = item;
    else
        queue->first = item;
    if (before)
        before->prev = item;
    else
        queue->last = item;
}

static void unlink_item(struct ckv_spill_queue *queue, struct ckvi_spill_item *item)
{
    if (item->prev)
        item->prev->next = item->next;
    else
        queue->first = item->next;
    if (item->next)
        item->next->prev = item->prev;
    else
        queue->last = item->prev;
}

static void count_outcome(struct ckv_spill_stats *stats, enum ckv_spill_outcome outcome)
{
    switch (outcome) {
    case CKV_SPILL_STORED:
        stats->stored_count++;
        break;
    case CKV_SPILL_COVERED:
        stats->covered_count++;
        break;
    case CKV_SPILL_DROPPED:
        stats->dropped_count++;
        break;
    case CKV_SPILL_FAILED:
        stats->failed_count++;
        break;
    case CKV_SPILL_INVALIDATED:
        stats->invalidated_count++;
        break;
    case CKV_SPILL_DISCARDED:
        stats->discarded_count++;
        break;
    }
}

void ckvi_spill_settle(struct ckv_spill_queue *queue, struct ckvi_spill_item *item,
                       enum ckv_spill_outcome outcome, struct ckvi_spill_ended *ended)
{
    if (queue->running == item)
        queue->running = NULL;
    item->state = CKVI_SPILL_ENDED;
    item->outcome = outcome;
    item->ended_next = NULL;
    if (ended->last)
        ended->last->ended_next = item;
    else
        ended->first = item;
    ended->last = item;
    ckvi_buffers_remove(&queue->buffers, item->held);
    queue->stats.pending_count--;
    count_outcome(&queue->stats, outcome);
}

static void tell_outcome(struct ckv_spill_queue *queue,
                         const struct ckvi_spill_item *item)
{
    const struct ckv_entry *entry = ckv_held_entry(item->held);
    if (item->outcome == CKV_SPILL_DROPPED)
        ckvi_log(&queue->options.log, CKV_LOG_WARN, "queue.dropped",
                 "%zu tokens not stored: the spill queue is full", entry->token_count);
    if (item->done)
        item->done(item->done_ctx, item->ns, entry, item->outcome);
    if (queue->options.done)
        queue->options.done(queue->options.done_ctx, item->ns, entry, item->outcome);
}

void ckvi_spill_queue_finish(struct ckv_spill_queue *queue,
                             struct ckvi_spill_ended *ended)
{
    struct ckvi_spill_item *item;
    while ((item = ended->first)) {
        ended->first = item->ended_next;
        if (!ended->first)
            ended->last = NULL;
        tell_outcome(queue, item);
        /* Before the item leaves the list: who drained finds the memory free. */
        ckv_held_unref(item->held);
        item->held = NULL;
        ckvi_monitor_lock(&queue->monitor);
        unlink_item(queue, item);
        ckvi_monitor_tell(&queue->monitor);
        ckvi_monitor_unlock(&queue->monitor);
        free_item(queue, item);
    }
}

/* Whether an entry makes another one superfluous. */
static bool covers(const struct ckv_held *held, const struct ckv_held *other)
{
    const struct ckv_entry *new = ckv_held_entry(held);
    const struct ckv_entry *old = ckv_held_entry(other);
    if (old->token_count > new->token_count)
        return false;
    if (old->token_count < new->token_count &&
        ckv_held_floor(held) > ckv_held_floor(other))
        return false;
    return memcmp(new->tokens, old->tokens, old->token_count * sizeof *old->tokens) == 0;
}

/* Ends those that the new item covers; it takes the place of the first of them, so that a
 * conversation which never rests is written all the same. */
static void add_to_list(struct ckv_spill_queue *queue, struct ckvi_spill_item *item,
                        struct ckvi_spill_ended *ended)
{
    struct ckvi_spill_item *place = NULL;
    struct ckvi_spill_item *other;
    for (other = queue->first; other && queue->options.coalesce; other = other->next) {
        if (other->state != CKVI_SPILL_WAITING || strcmp(other->ns, item->ns) != 0 ||
            !covers(item->held, other->held))
            continue;
        place = place ? place : other;
        ckvi_spill_settle(queue, other, CKV_SPILL_COVERED, ended);
    }
    link_item(queue, item, place);
}

static struct ckvi_spill_item *oldest_waiting(const struct ckv_spill_queue *queue,
                                              const struct ckvi_spill_item *except)
{
    struct ckvi_spill_item *oldest = NULL;
    struct ckvi_spill_item *item;
    for (item = queue->first; item; item = item->next)
        if (item->state == CKVI_SPILL_WAITING && item != except &&
            (!oldest || item->number < oldest->number))
            oldest = item;
    return oldest;
}

static void enforce_cap(struct ckv_spill_queue *queue, const struct ckvi_spill_item *item,
                        struct ckvi_spill_ended *ended)
{
    struct ckvi_spill_item *oldest;
    while (queue->buffers.bytes > queue->options.cap_bytes &&
           (oldest = oldest_waiting(queue, item)))
        ckvi_spill_settle(queue, oldest, CKV_SPILL_DROPPED, ended);
}

enum ckv_status ckvi_spill_queue_push(struct ckv_spill_queue *queue,
                                      const struct ckvi_spill_request *request,
                                      struct ckvi_spill_ended *ended,
                                      struct ckv_error *error)
{
    struct ckvi_spill_item *item = make_item(queue, request);
    enum ckv_status status;
    if (!item)
        return ckvi_nomem(error, sizeof *item, "an item of the spill queue");
    ckvi_monitor_lock(&queue->monitor);
    if (queue->stopping)
        status = ckv_error_set(error, CKV_CANCELLED, "the spill queue was stopped");
    else
        status = ckvi_buffers_add(&queue->buffers, item->held, error);
    if (status == CKV_OK) {
        item->number = ++queue->newest_number;
        queue->stats.pending_count++;
        add_to_list(queue, item, ended);
        enforce_cap(queue, item, ended);
        ckvi_monitor_tell(&queue->monitor);
    }
    ckvi_monitor_unlock(&queue->monitor);
    if (status != CKV_OK)
        free_item(queue, item);
    return status;
}

enum ckv_status ckv_spill_queue_add(struct ckv_spill_queue *queue, const char *ns,
                                    struct ckv_held *held, struct ckv_error *error)
{
    struct ckvi_spill_request request = {.ns = ns, .held = held};
    struct ckvi_spill_ended ended = {NULL, NULL};
    enum ckv_status status;
    if (!queue || !held)
        return ckv_error_set(error, CKV_INVALID, "add needs a queue and a held entry");
    status = ckvi_spill_queue_push(queue, &request, &ended, error);
    ckvi_spill_queue_finish(queue, &ended);
    return status;
}

struct ckvi_spill_item *ckvi_spill_next(const struct ckv_spill_queue *queue)
{
    struct ckvi_spill_item *item = queue->first;
    while (item && item->state != CKVI_SPILL_WAITING)
        item = item->next;
    return item;
}

/* --- the end --- */

/* Ends what waits and aborts what runs; ns NULL = of all namespaces. */
static void end_items(struct ckv_spill_queue *queue, const char *ns,
                      enum ckv_spill_outcome outcome, struct ckvi_spill_ended *ended)
{
    struct ckvi_spill_item *item;
    for (item = queue->first; item; item = item->next) {
        if (ns && strcmp(ns, item->ns) != 0)
            continue;
        if (item->state == CKVI_SPILL_WAITING)
            ckvi_spill_settle(queue, item, outcome, ended);
        else if (item->state == CKVI_SPILL_RUNNING)
            item->outcome = outcome;
    }
}

static void wake_worker(struct ckv_spill_queue *queue)
{
    if (queue->options.activity)
        ckv_activity_wake(queue->options.activity);
}

static void begin_stop(struct ckv_spill_queue *queue, bool discard)
{
    struct ckvi_spill_ended ended = {NULL, NULL};
    ckvi_monitor_lock(&queue->monitor);
    queue->stopping = true;
    if (discard)
        end_items(queue, NULL, CKV_SPILL_DISCARDED, &ended);
    ckvi_monitor_tell(&queue->monitor);
    ckvi_monitor_unlock(&queue->monitor);
    wake_worker(queue);
    ckvi_spill_queue_finish(queue, &ended);
}

/* Whether it ended: at the deadline only a step in progress is not waited for. */
static bool await_worker(struct ckv_spill_queue *queue, int64_t deadline_ns)
{
    bool in_time = true;
    bool over;
    ckvi_monitor_lock(&queue->monitor);
    while (!queue->worker_ended && (in_time || !queue->running)) {
        if (in_time)
            in_time = ckvi_monitor_wait_until(&queue->monitor, queue->options.clock,
                                              deadline_ns);
        else
            (void)ckvi_monitor_wait(&queue->monitor, CKVI_NEVER);
    }
    over = queue->worker_ended;
    ckvi_monitor_unlock(&queue->monitor);
    return over;
}

enum ckv_status ckv_spill_queue_stop(struct ckv_spill_queue *queue,
                                     enum ckv_stop_mode mode, int64_t deadline_ns)
{
    if (!queue)
        return CKV_OK;
    begin_stop(queue, mode != CKV_STOP_DRAIN);
    if (await_worker(queue, deadline_ns))
        return CKV_OK;
    begin_stop(queue, true);
    return await_worker(queue, deadline_ns) ? CKV_OK : CKV_AGAIN;
}

void ckv_spill_queue_destroy(struct ckv_spill_queue *queue)
{
    if (!queue)
        return;
    begin_stop(queue, true);
    (void)pthread_join(queue->worker, NULL);
    release(queue);
}

void ckv_spill_queue_invalidate(struct ckv_spill_queue *queue, const char *ns)
{
    struct ckvi_spill_ended ended = {NULL, NULL};
    uint64_t running = 0;
    if (!queue)
        return;
    ckvi_monitor_lock(&queue->monitor);
    end_items(queue, ns ? ns : "", CKV_SPILL_INVALIDATED, &ended);
    if (queue->running && queue->running->outcome != 0)
        running = queue->running->number;
    ckvi_monitor_unlock(&queue->monitor);
    wake_worker(queue);
    ckvi_spill_queue_finish(queue, &ended);
    ckvi_monitor_lock(&queue->monitor);
    while (queue->running && queue->running->number == running)
        (void)ckvi_monitor_wait(&queue->monitor, CKVI_NEVER);
    ckvi_monitor_unlock(&queue->monitor);
}

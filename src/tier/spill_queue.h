/*
 * The inside of the spill queue, and what the tiers above it need: to add under their own
 * lock and let callbacks run after it.
 */
#ifndef COLDKV_TIER_SPILL_QUEUE_H
#define COLDKV_TIER_SPILL_QUEUE_H

#include "tier/buffers.h"
#include "tier/monitor.h"
#include <coldkv/spill_queue.h>
#include <pthread.h>

enum ckvi_spill_state {
    CKVI_SPILL_WAITING = 1,
    CKVI_SPILL_RUNNING, /* the worker writes it */
    CKVI_SPILL_ENDED,   /* has its outcome; stays in the list until that was told */
};

struct ckvi_spill_item {
    struct ckvi_spill_item *next;
    struct ckvi_spill_item *prev;
    struct ckvi_spill_item *ended_next;
    uint64_t number; /* the order of adds; the list is the order of writing */
    enum ckvi_spill_state state;
    enum ckv_spill_outcome outcome; /* running: what it is to be aborted with, or 0 */
    char *ns;
    struct ckv_held *held;
    ckv_spill_done_fn done; /* besides the queue's own; may be NULL */
    void *done_ctx;
};

struct ckv_spill_queue {
    struct ckv_spill_options options; /* all filled in */
    struct ckv_store *store;
    pthread_t worker;
    int64_t patience_ns; /* the worker's: what is left of it */
    struct ckvi_monitor monitor;
    /* guarded by monitor */
    struct ckvi_spill_item *first;
    struct ckvi_spill_item *last;
    struct ckvi_spill_item *running;
    struct ckvi_buffers buffers; /* of items that wait or run */
    uint64_t newest_number;
    bool stopping;
    bool worker_ended;
    struct ckv_spill_stats stats; /* without pending_bytes */
};

/* Items that have an outcome, linked by ended_next, on their way to be told. */
struct ckvi_spill_ended {
    struct ckvi_spill_item *first;
    struct ckvi_spill_item *last;
};

/* What is added; borrowed. done and done_ctx may be NULL. */
struct ckvi_spill_request {
    const char *ns;
    struct ckv_held *held;
    ckv_spill_done_fn done;
    void *done_ctx;
};

/* As ckv_spill_queue_add, but calls nobody: what it ended is added to `ended`, for
 * ckvi_spill_queue_finish once the caller holds no lock. */
enum ckv_status ckvi_spill_queue_push(struct ckv_spill_queue *queue,
                                      const struct ckvi_spill_request *request,
                                      struct ckvi_spill_ended *ended,
                                      struct ckv_error *error);
/* Tells the outcomes and lets go of the items. queue may be NULL when nothing ended. */
void ckvi_spill_queue_finish(struct ckv_spill_queue *queue,
                             struct ckvi_spill_ended *ended);

/* --- shared by the queue's own files; the lock is held --- */

/* Gives an item its outcome. */
void ckvi_spill_settle(struct ckv_spill_queue *queue, struct ckvi_spill_item *item,
                       enum ckv_spill_outcome outcome, struct ckvi_spill_ended *ended);
/* The next to be written; NULL = none waits. */
struct ckvi_spill_item *ckvi_spill_next(const struct ckv_spill_queue *queue);

/* The worker. ctx is the queue. */
void *ckvi_spill_work(void *ctx);

#endif

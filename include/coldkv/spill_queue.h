/*
 * The spill queue: write-behind to a store, bounded, strictly one entry at a time, on a
 * worker thread of its own. An entry that waits is served to lookups as if it were
 * stored.
 */
#ifndef COLDKV_SPILL_QUEUE_H
#define COLDKV_SPILL_QUEUE_H

#include <coldkv/activity.h>
#include <coldkv/alloc.h>
#include <coldkv/clock.h>
#include <coldkv/held.h>
#include <coldkv/log.h>
#include <coldkv/status.h>
#include <coldkv/store.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How one item ended. */
enum ckv_spill_outcome {
    CKV_SPILL_STORED = 1,  /**< durable */
    CKV_SPILL_COVERED = 2, /**< was durable already, or a newer version took its place */
    CKV_SPILL_DROPPED = 3, /**< pushed out by the byte cap */
    CKV_SPILL_FAILED = 4,  /**< the store refused or failed */
    CKV_SPILL_INVALIDATED = 5, /**< its namespace was invalidated */
    CKV_SPILL_DISCARDED = 6,   /**< the queue was stopped */
};

/** Told once per item, on the worker or on the thread that ended it; no lock is held. It
 *  must not stop, drain, invalidate or destroy the queue. */
typedef void (*ckv_spill_done_fn)(void *ctx, const char *ns,
                                  const struct ckv_entry *entry,
                                  enum ckv_spill_outcome outcome);

struct ckv_spill_options {
    size_t size; /**< sizeof this struct; set by ckv_spill_options_init */
    const struct ckv_alloc *alloc;
    const struct ckv_clock *clock;
    struct ckv_log log;
    /** Bytes of distinct buffers, waiting and in flight; beyond it the oldest waiting
     * item is dropped. 0 = only the newest and the one in flight. CKV_DEFAULT = 2 GiB. */
    uint64_t cap_bytes;
    struct ckv_activity *activity; /**< NULL = never wait */
    /** An item waits so long, all told, for the engine to rest; then it is written in
     * paced chunks, and at full speed while the engine rests; 0 = 10 s. */
    int64_t patience_ns;
    uint64_t paced_bytes_per_second; /**< 0 = 32 MiB/s */
    size_t chunk_bytes;              /**< 0 = default */
    /** A newer version of a conversation takes the place of waiting older ones that it
     * covers; set by init. */
    bool coalesce;
    ckv_spill_done_fn done;
    void *done_ctx;
};

CKV_API void ckv_spill_options_init(struct ckv_spill_options *options);

struct ckv_spill_queue;

/** Starts the worker. store is borrowed and must outlive the queue. */
CKV_API enum ckv_status ckv_spill_queue_start(struct ckv_store *store,
                                              const struct ckv_spill_options *options,
                                              struct ckv_spill_queue **out,
                                              struct ckv_error *error) CKV_WARN_UNUSED;

enum ckv_stop_mode {
    CKV_STOP_DRAIN = 1,   /**< write what waits, until the deadline */
    CKV_STOP_DISCARD = 2, /**< finish or abort the one in flight, forget the rest */
};

/**
 * Refuses new items and ends the worker; the activity is not asked any more. OK when the
 * worker has ended. AGAIN at the deadline (on the monotonic clock): one step is still in
 * progress and takes what the disk takes; everything else was discarded, and the worker
 * ends after that step. May be called again. NULL is fine.
 */
CKV_API enum ckv_status ckv_spill_queue_stop(struct ckv_spill_queue *queue,
                                             enum ckv_stop_mode mode,
                                             int64_t deadline_ns);
/** Stops, discarding, waits for the step in progress, however long it takes, and frees
 * the queue. Nobody may use it any more. NULL is fine. */
CKV_API void ckv_spill_queue_destroy(struct ckv_spill_queue *queue);

/** Takes a reference to `held`. An item larger than the cap is stored, not refused.
 * CANCELLED after stop; NOMEM. Never waits for the disk. */
CKV_API enum ckv_status ckv_spill_queue_add(struct ckv_spill_queue *queue, const char *ns,
                                            struct ckv_held *held,
                                            struct ckv_error *error) CKV_WARN_UNUSED;

/** The waiting or in-flight entry with the longest usable prefix: a new reference, or
 * NULL. */
CKV_API struct ckv_held *ckv_spill_queue_find(struct ckv_spill_queue *queue,
                                              const char *ns, const uint32_t *prompt,
                                              size_t prompt_length, uint64_t *prefix);

/** Waits until everything that was added before the call has an outcome, or the deadline
 *  (monotonic): AGAIN. */
CKV_API enum ckv_status ckv_spill_queue_drain(struct ckv_spill_queue *queue,
                                              int64_t deadline_ns) CKV_WARN_UNUSED;

/** Drops waiting items of a namespace and aborts the one in flight if it is of it: when
 * this returns, none that was added before will appear in the store. Waits for the step
 * in progress. */
CKV_API void ckv_spill_queue_invalidate(struct ckv_spill_queue *queue, const char *ns);

struct ckv_spill_stats {
    uint64_t pending_count; /**< waiting and in flight */
    uint64_t pending_bytes; /**< of distinct buffers */
    uint64_t stored_count;
    uint64_t covered_count;
    uint64_t dropped_count;
    uint64_t failed_count;
    uint64_t invalidated_count;
    uint64_t discarded_count;
    uint64_t paced_chunks; /**< steps done while the engine was busy */
};

CKV_API void ckv_spill_queue_get_stats(struct ckv_spill_queue *queue,
                                       struct ckv_spill_stats *out);

#ifdef __cplusplus
}
#endif

#endif

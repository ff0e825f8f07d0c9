/*
 * The durability coordinator: what was put becomes durable soon (debounced, when the
 * engine rests), and flush proves it. It keeps a record per (namespace, tokens) until the
 * store has it, or has an entry that serves exactly these tokens.
 */
#ifndef COLDKV_DURABILITY_H
#define COLDKV_DURABILITY_H

#include <coldkv/activity.h>
#include <coldkv/alloc.h>
#include <coldkv/clock.h>
#include <coldkv/log.h>
#include <coldkv/prompt_cache.h>
#include <coldkv/spill_queue.h>
#include <coldkv/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ckv_durability_options {
    size_t size; /**< sizeof this struct; set by ckv_durability_options_init */
    const struct ckv_alloc *alloc;
    const struct ckv_clock *clock;
    struct ckv_log log;
    int64_t debounce_ns; /**< 0 = 1 s */
    /** After a failure, doubled each time up to 64 times; while busy; 0 = 5 s. */
    int64_t retry_ns;
    /** A busy engine puts a record off no longer than this, and so do newer versions of
     * it; 0 = 10 s. */
    int64_t patience_ns;
    /** No record is made of shorter entries; CKV_DEFAULT = 256. */
    uint64_t min_tokens;
    /** What is to be written, except by flush, must be so much longer than what is
     * durable of it; CKV_DEFAULT = max(256, 5 %). */
    uint64_t min_growth_tokens;
    /** Tokens in records; beyond it the oldest record is given up, counted as missing by
     * the next flush; 0 = 64 MiB. */
    uint64_t record_cap_bytes;
    struct ckv_activity *activity; /**< NULL = always idle */
};

CKV_API void ckv_durability_options_init(struct ckv_durability_options *options);

struct ckv_durability;

/**
 * Starts its thread and listens to the cache: every put makes a record, a superseded
 * version hands its record to the newer one, an invalidated namespace has none. cache,
 * queue and store are borrowed and must outlive it.
 */
CKV_API enum ckv_status ckv_durability_start(struct ckv_prompt_cache *cache,
                                             struct ckv_spill_queue *queue,
                                             struct ckv_store *store,
                                             const struct ckv_durability_options *options,
                                             struct ckv_durability **out,
                                             struct ckv_error *error) CKV_WARN_UNUSED;
/** Stops listening and ends the thread; nothing is flushed, and flush still works. NULL
 * is fine. */
CKV_API void ckv_durability_stop(struct ckv_durability *durability);
/** Stops and frees. Nobody may use it any more. NULL is fine. */
CKV_API void ckv_durability_destroy(struct ckv_durability *durability);

/** Makes a record, or arms the timer of the one that is there: for entries that came to
 * the cache on another way than put. Empty tokens are ignored; out of memory counts as
 * missing in the next flush, and is logged. */
CKV_API void ckv_durability_schedule(struct ckv_durability *durability, const char *ns,
                                     const uint32_t *tokens, size_t token_count);

struct ckv_flush_evidence {
    /** Nothing is pending or missing, and nothing was dropped or failed since this flush
     * began. */
    bool durable;
    uint64_t pending_snapshots; /**< records that are left, missing ones included */
    uint64_t pending_spills;
    uint64_t pending_spill_bytes;
    uint64_t dropped_spills;    /**< since this flush began */
    uint64_t failed_spills;     /**< since this flush began */
    uint64_t flushed_snapshots; /**< records that this flush found or made durable */
    uint64_t missing_snapshots; /**< neither in memory nor on disk */
    uint64_t durable_entries;
    uint64_t longest_durable_prefix_tokens;
    int64_t elapsed_ns;
};

/**
 * Makes everything durable or says what is not. OK when it is through, whatever it found;
 * AGAIN when the deadline (monotonic) came first, also when the kernel is still syncing.
 * out is filled in both cases. Calls that overlap share one flush.
 */
CKV_API enum ckv_status ckv_durability_flush(struct ckv_durability *durability,
                                             int64_t deadline_ns,
                                             struct ckv_flush_evidence *out,
                                             struct ckv_error *error) CKV_WARN_UNUSED;

/** Records that are not durable yet. */
CKV_API uint64_t ckv_durability_pending(struct ckv_durability *durability);

#ifdef __cplusplus
}
#endif

#endif

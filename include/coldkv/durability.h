/*
 * The durability coordinator: what was put becomes durable soon (debounced, when the
 * engine rests), and flush proves it. It keeps a record per (namespace, tokens) until the
 * store has it.
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
    int64_t retry_ns;    /**< after a failure or while busy; 0 = 5 s */
    uint64_t min_tokens; /**< shorter entries are not written; CKV_DEFAULT = 256 */
    uint64_t
        min_growth_tokens; /**< beyond what is durable; CKV_DEFAULT = max(256, 5 %) */
    struct ckv_activity *activity; /**< NULL = always idle */
};

CKV_API void ckv_durability_options_init(struct ckv_durability_options *options);

struct ckv_durability;

/** Starts its thread. cache, queue and store are borrowed and must outlive it. */
CKV_API enum ckv_status ckv_durability_start(struct ckv_prompt_cache *cache,
                                             struct ckv_spill_queue *queue,
                                             struct ckv_store *store,
                                             const struct ckv_durability_options *options,
                                             struct ckv_durability **out,
                                             struct ckv_error *error) CKV_WARN_UNUSED;
/** Stops the thread; nothing is flushed. NULL is fine. */
CKV_API void ckv_durability_stop(struct ckv_durability *durability);

/** These tokens were put: (re)arms their timer. For ckv_prompt_cache's on_put. Empty
 * tokens are ignored; out of memory is counted and logged. */
CKV_API void ckv_durability_schedule(struct ckv_durability *durability, const char *ns,
                                     const uint32_t *tokens, size_t token_count);

struct ckv_flush_evidence {
    bool durable; /**< nothing pending, dropped, failed or missing since this flush began
                   */
    uint64_t pending_snapshots;
    uint64_t pending_spills;
    uint64_t pending_spill_bytes;
    uint64_t dropped_spills;
    uint64_t failed_spills;
    uint64_t flushed_snapshots;
    uint64_t missing_snapshots;
    uint64_t durable_entries;
    uint64_t longest_durable_prefix_tokens;
    int64_t elapsed_ns;
};

/** Makes everything durable or says what is not, at the latest at the deadline
 * (monotonic), also when the kernel is still syncing. Calls that overlap share one flush.
 */
CKV_API enum ckv_status ckv_durability_flush(struct ckv_durability *durability,
                                             int64_t deadline_ns,
                                             struct ckv_flush_evidence *out,
                                             struct ckv_error *error) CKV_WARN_UNUSED;

CKV_API uint64_t ckv_durability_pending(struct ckv_durability *durability);

#ifdef __cplusplus
}
#endif

#endif

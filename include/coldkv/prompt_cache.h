/*
 * The prompt cache: held entries in RAM over a store on disk. take compares all tiers and
 * gives the longest usable prefix, RAM on ties; put supersedes what the new entry covers
 * and spills what it evicts. Thread safe; no lock is held during I/O or callbacks.
 */
#ifndef COLDKV_PROMPT_CACHE_H
#define COLDKV_PROMPT_CACHE_H

#include <coldkv/alloc.h>
#include <coldkv/clock.h>
#include <coldkv/held.h>
#include <coldkv/log.h>
#include <coldkv/spill_queue.h>
#include <coldkv/status.h>
#include <coldkv/store.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Makes a held entry out of what a store restores: the engine's way from disk to RAM.
 *  Called on the thread that takes. */
struct ckv_restorer {
    void *ctx;
    /** Optional: whether reading `bytes` is worth `tokens` more than what is in memory.
     * The engine knows its rates; no is counted. */
    bool (*worth)(void *ctx, uint64_t tokens, uint64_t bytes);
    /** As ckv_restore_target's prepare: memory for all tensors of the entry. */
    enum ckv_status (*prepare)(void *ctx, const struct ckv_entry *entry, uint64_t prefix,
                               struct ckv_sink *sink, struct ckv_error *error);
    /** Everything arrived and was verified: gives a held entry (one reference) with the
     * same tokens. CORRUPT sets the stored entry aside for good. */
    enum ckv_status (*finish)(void *ctx, const struct ckv_entry *entry, uint64_t prefix,
                              struct ckv_held **out, struct ckv_error *error);
};

/** Told after every put, outside all locks. */
typedef void (*ckv_put_hook_fn)(void *ctx, const char *ns, const uint32_t *tokens,
                                size_t token_count);

struct ckv_prompt_cache_options {
    size_t size; /**< sizeof this struct; set by ckv_prompt_cache_options_init */
    const struct ckv_alloc *alloc;
    const struct ckv_clock *clock;
    struct ckv_log log;
    uint64_t cap_bytes;            /**< RAM: distinct buffers held. CKV_DEFAULT = 8 GB */
    struct ckv_store *store;       /**< NULL = no disk below */
    struct ckv_spill_queue *queue; /**< evicted entries go here; NULL = they are gone */
    struct ckv_restorer restorer;  /**< needed with a store */
    /** A restore that takes longer is given up between two chunks; 0 = 60 s. */
    int64_t restore_timeout_ns;
    /** Shorter entries are not spilled; CKV_DEFAULT = 256. */
    uint64_t min_tokens;
    ckv_put_hook_fn on_put;
    void *on_put_ctx;
};

CKV_API void ckv_prompt_cache_options_init(struct ckv_prompt_cache_options *options);

struct ckv_prompt_cache;

CKV_API enum ckv_status ckv_prompt_cache_create(
    const struct ckv_prompt_cache_options *options, struct ckv_prompt_cache **out,
    struct ckv_error *error) CKV_WARN_UNUSED;
/** Drops all entries without spilling. Nobody may use it any more. NULL is fine. */
CKV_API void ckv_prompt_cache_destroy(struct ckv_prompt_cache *cache);

enum ckv_tier {
    CKV_TIER_NONE = 0,
    CKV_TIER_RAM = 1,
    CKV_TIER_QUEUE = 2,
    CKV_TIER_STORE = 3
};

struct ckv_taken {
    struct ckv_held *held; /**< a reference, the caller's */
    uint64_t prefix;       /**< tokens to reuse; cut to it */
    enum ckv_tier tier;    /**< where it came from */
    uint64_t read_bytes;   /**< from the store */
    int64_t elapsed_ns;
};

/** The longest usable prefix over RAM, queue and store; never consumes. NOTFOUND = miss
 * (with the last reason in error). What came from below goes into RAM too. A failing
 * store is a miss of the store, not of take. */
CKV_API enum ckv_status ckv_prompt_cache_take(struct ckv_prompt_cache *cache,
                                              const char *ns, const uint32_t *prompt,
                                              size_t prompt_length, struct ckv_taken *out,
                                              struct ckv_error *error) CKV_WARN_UNUSED;

/** Length that take would reuse from RAM; no recency, no counters. */
CKV_API uint64_t ckv_prompt_cache_peek(struct ckv_prompt_cache *cache, const char *ns,
                                       const uint32_t *prompt, size_t prompt_length);

/** The entry with exactly these tokens: a new reference, or NULL. */
CKV_API struct ckv_held *ckv_prompt_cache_find_exact(struct ckv_prompt_cache *cache,
                                                     const char *ns,
                                                     const uint32_t *tokens,
                                                     size_t token_count);

/**
 * Keeps an entry: takes a reference. Removes entries of its namespace with identical
 * tokens, and strict prefixes e with floor(new) <= floor(e); then evicts the least
 * recently used until distinct buffers fit the cap, spilling each that is not durable. An
 * entry that is alone larger than the cap is spilled and not kept; FULL when it cannot be
 * spilled either. NOMEM: nothing changed.
 */
CKV_API enum ckv_status ckv_prompt_cache_put(struct ckv_prompt_cache *cache,
                                             const char *ns, struct ckv_held *held,
                                             struct ckv_error *error) CKV_WARN_UNUSED;

/** Spills and drops what was not used for idle_ns (on the monotonic clock). What cannot
 * be spilled stays; so without a queue it does nothing. Returns how many left. */
CKV_API size_t ckv_prompt_cache_demote_idle(struct ckv_prompt_cache *cache,
                                            int64_t idle_ns);
/** Drops everything, spills nothing. */
CKV_API void ckv_prompt_cache_clear(struct ckv_prompt_cache *cache);
/** Drops a namespace from RAM, kills its queued writes and removes its stored entries. */
CKV_API enum ckv_status ckv_prompt_cache_invalidate(
    struct ckv_prompt_cache *cache, const char *ns,
    struct ckv_error *error) CKV_WARN_UNUSED;

struct ckv_prompt_cache_stats {
    uint64_t entries;
    uint64_t bytes; /**< distinct buffers */
    uint64_t cap_bytes;
    uint64_t hits[4];   /**< by enum ckv_tier; [0] = misses */
    uint64_t tokens[4]; /**< reused, by tier */
    uint64_t demotions;
    uint64_t evictions;
    uint64_t superseded;
    uint64_t spills;           /**< handed to the queue */
    uint64_t spill_failures;   /**< evicted, not durable, and not taken by the queue */
    uint64_t keep_failures;    /**< from below, served, but no memory to keep it */
    uint64_t skipped_restores; /**< not worth it, says the engine */
};

CKV_API void ckv_prompt_cache_get_stats(struct ckv_prompt_cache *cache,
                                        struct ckv_prompt_cache_stats *out);

#ifdef __cplusplus
}
#endif

#endif

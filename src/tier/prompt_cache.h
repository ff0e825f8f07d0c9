/* The inside of the prompt cache, and what durability needs of it. */
#ifndef COLDKV_TIER_PROMPT_CACHE_H
#define COLDKV_TIER_PROMPT_CACHE_H

#include "tier/kept.h"
#include "tier/monitor.h"
#include "tier/spill_queue.h"
#include <coldkv/prompt_cache.h>

/* Who wants to know what is put. Called with the cache's lock held: must not call back,
 * wait or log. */
struct ckvi_cache_observer {
    void *ctx;
    void (*put)(void *ctx, const char *ns, const struct ckv_held *held);
    /* `held` took the place of `old`, which serves nothing that it does not serve. */
    void (*superseded)(void *ctx, const char *ns, const struct ckv_held *held,
                       const struct ckv_held *old);
    void (*invalidated)(void *ctx, const char *ns);
};

struct ckv_prompt_cache {
    struct ckv_prompt_cache_options options; /* all filled in */
    struct ckvi_monitor monitor;
    /* guarded by monitor */
    struct ckvi_kept_set set;
    uint64_t epoch; /* counts clears and invalidations */
    struct ckvi_cache_observer observer;
    struct ckv_prompt_cache_stats stats; /* without entries and bytes */
};

/* One at a time; NULL ends it: nothing is called after that. */
void ckvi_prompt_cache_observe(struct ckv_prompt_cache *cache,
                               const struct ckvi_cache_observer *observer);

/* Hands the entry with exactly these tokens to the queue. NOTFOUND when it is not kept.
 * An invalidation comes before it or after it, never between the two. */
enum ckv_status ckvi_prompt_cache_spill(struct ckv_prompt_cache *cache,
                                        struct ckv_spill_queue *queue, const char *ns,
                                        const uint32_t *tokens, size_t token_count,
                                        ckv_spill_done_fn done, void *done_ctx,
                                        struct ckv_error *error);

/* --- shared by the cache's own files --- */

int64_t ckvi_cache_now(const struct ckv_prompt_cache *cache);

/* What an entry that comes in sends out. Zeroed before. */
struct ckvi_cache_exit {
    struct ckvi_kept_list leaving; /* to be spilled */
    struct ckvi_kept_list gone;
};

/* Keeps an entry, supersedes and chooses whom to evict; new: the observer is told. The
 * lock is held; the exit is finished after it. */
enum ckv_status ckvi_cache_keep(struct ckv_prompt_cache *cache, const char *ns,
                                struct ckv_held *held, bool new,
                                struct ckvi_cache_exit *exit, struct ckv_error *error);
/* Spills those that leave and lets go of all. No lock is held. Returns how many left. */
size_t ckvi_cache_finish(struct ckv_prompt_cache *cache, struct ckvi_cache_exit *exit);

#endif

/*
 * Owns the ways out of a prompt cache: eviction, demotion, clear, invalidation.
 *
 * Invariant: an entry that is evicted or demoted is found in the cache until it is with
 * the queue, so no lookup misses it between the two; whoever leads it out is the only one
 * to free it. What is durable is not handed to the queue, where it would take the place
 * of what is not. Failure story: what the queue does not take is lost when it has to make
 * room, and stays otherwise.
 */
#include "tier/prompt_cache.h"

#include "base/log.h"

enum verdict { LEAVES, IS_LOST, STAYS };

static bool may_spill(const struct ckv_prompt_cache *cache, const struct ckvi_kept *kept)
{
    return cache->options.queue &&
           ckv_held_entry(kept->held)->token_count >= cache->options.min_tokens;
}

/* Says what becomes of an entry and hands it to the queue if it has to go there. The lock
 * is held. */
static enum verdict judge(struct ckv_prompt_cache *cache, const struct ckvi_kept *kept,
                          bool durable, struct ckvi_spill_ended *ended)
{
    const struct ckvi_spill_request request = {.ns = kept->ns, .held = kept->held};
    /* Still charged: it is being demoted, and nobody needs its room. */
    bool demoted = kept->charged;
    if (demoted && !kept->unused)
        return STAYS;
    if (durable)
        return LEAVES;
    if (!may_spill(cache, kept))
        return demoted ? STAYS : LEAVES;
    if (ckvi_spill_queue_push(cache->options.queue, &request, ended, NULL) != CKV_OK)
        return demoted ? STAYS : IS_LOST;
    cache->stats.spills++;
    return LEAVES;
}

/* Takes one out unless it stays; the lock is held. */
static enum verdict lead_out(struct ckv_prompt_cache *cache, struct ckvi_kept *kept,
                             bool durable, struct ckvi_spill_ended *ended)
{
    struct ckvi_kept_list none = {NULL, NULL};
    enum verdict verdict = judge(cache, kept, durable, ended);
    if (verdict == STAYS) {
        kept->leaving = false;
        return STAYS;
    }
    if (kept->charged)
        cache->stats.demotions++;
    if (verdict == IS_LOST)
        cache->stats.spill_failures++;
    ckvi_kept_take_out(&cache->set, kept, &none);
    return verdict;
}

/* Whether the entry left. */
static bool finish_one(struct ckv_prompt_cache *cache, struct ckvi_kept *kept)
{
    const struct ckv_prompt_cache_options *options = &cache->options;
    const struct ckv_entry *entry = ckv_held_entry(kept->held);
    struct ckvi_spill_ended ended = {NULL, NULL};
    enum verdict verdict = LEAVES;
    bool durable = options->store && ckv_store_covers(options->store, kept->ns,
                                                      entry->tokens, entry->token_count);
    ckvi_monitor_lock(&cache->monitor);
    if (!kept->gone)
        verdict = lead_out(cache, kept, durable, &ended);
    ckvi_monitor_unlock(&cache->monitor);
    ckvi_spill_queue_finish(options->queue, &ended);
    if (verdict == STAYS)
        return false;
    if (verdict == IS_LOST)
        ckvi_log(
            &options->log, CKV_LOG_WARN, "cache.lost",
            "%zu tokens evicted that are not durable and that the queue did not take",
            entry->token_count);
    ckvi_kept_free(options->alloc, kept);
    return true;
}

size_t ckvi_cache_finish(struct ckv_prompt_cache *cache, struct ckvi_cache_exit *exit)
{
    struct ckvi_kept *kept;
    size_t left = 0;
    while ((kept = ckvi_kept_pop(&exit->leaving)))
        left += finish_one(cache, kept);
    while ((kept = ckvi_kept_pop(&exit->gone)))
        ckvi_kept_free(cache->options.alloc, kept);
    return left;
}

size_t ckv_prompt_cache_demote_idle(struct ckv_prompt_cache *cache, int64_t idle_ns)
{
    struct ckvi_cache_exit exit = {{NULL, NULL}, {NULL, NULL}};
    struct ckvi_kept *kept;
    int64_t now_ns;
    if (!cache || !cache->options.queue)
        return 0;
    now_ns = ckvi_cache_now(cache);
    ckvi_monitor_lock(&cache->monitor);
    for (kept = cache->set.oldest; kept; kept = kept->newer) {
        if (kept->leaving || now_ns - kept->used_ns < idle_ns)
            continue;
        kept->leaving = true;
        kept->unused = true;
        ckvi_kept_push(&exit.leaving, kept);
    }
    ckvi_monitor_unlock(&cache->monitor);
    return ckvi_cache_finish(cache, &exit);
}

/* Takes out all of a namespace; NULL = of all. The lock is held. */
static void take_out_all(struct ckv_prompt_cache *cache, const char *ns,
                         struct ckvi_cache_exit *exit)
{
    struct ckvi_kept *kept = ckvi_kept_all(&cache->set, ns);
    while (kept) {
        struct ckvi_kept *next = kept->found;
        ckvi_kept_take_out(&cache->set, kept, &exit->gone);
        kept = next;
    }
    cache->epoch++;
}

void ckv_prompt_cache_clear(struct ckv_prompt_cache *cache)
{
    struct ckvi_cache_exit exit = {{NULL, NULL}, {NULL, NULL}};
    if (!cache)
        return;
    ckvi_monitor_lock(&cache->monitor);
    take_out_all(cache, NULL, &exit);
    ckvi_monitor_unlock(&cache->monitor);
    (void)ckvi_cache_finish(cache, &exit);
}

enum ckv_status ckv_prompt_cache_invalidate(struct ckv_prompt_cache *cache,
                                            const char *ns, struct ckv_error *error)
{
    struct ckvi_cache_exit exit = {{NULL, NULL}, {NULL, NULL}};
    const struct ckvi_cache_observer *observer;
    if (!cache)
        return ckv_error_set(error, CKV_INVALID, "no cache was given");
    ns = ns ? ns : "";
    observer = &cache->observer;
    ckvi_monitor_lock(&cache->monitor);
    take_out_all(cache, ns, &exit);
    if (observer->invalidated)
        observer->invalidated(observer->ctx, ns);
    ckvi_monitor_unlock(&cache->monitor);
    (void)ckvi_cache_finish(cache, &exit);
    /* From the top down: what the queue holds comes from here, what the store holds from
     * the queue. */
    ckv_spill_queue_invalidate(cache->options.queue, ns);
    if (!cache->options.store)
        return CKV_OK;
    return ckv_store_invalidate(cache->options.store, ns, NULL, error);
}

/*
 * Owns the prompt cache: what goes into it and what it says about itself.
 *
 * Invariant: between two calls distinct buffers fit the cap. The lock is never held while
 * a file is touched, a callback of the embedder runs or an entry is released. Failure
 * story: a put that runs out of memory changes nothing; an entry that cannot be kept or
 * spilled is evaluated again one day.
 */
#include "tier/prompt_cache.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "file/options.h"
#include <string.h>

#define CAP_DEFAULT UINT64_C(8000000000)
#define RESTORE_TIMEOUT_DEFAULT_NS (INT64_C(60) * 1000000000)
#define MIN_TOKENS_DEFAULT 256

void ckv_prompt_cache_options_init(struct ckv_prompt_cache_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
    options->cap_bytes = CKV_DEFAULT;
    options->min_tokens = CKV_DEFAULT;
}

static enum ckv_status fill_options(struct ckv_prompt_cache_options *options,
                                    const struct ckv_prompt_cache_options *given,
                                    struct ckv_error *error)
{
    enum ckv_status status;
    ckv_prompt_cache_options_init(options);
    status =
        ckvi_options_copy(options, sizeof *options, given, "prompt cache options", error);
    if (status != CKV_OK)
        return status;
    if (options->store && (!options->restorer.prepare || !options->restorer.finish))
        return ckv_error_set(error, CKV_INVALID,
                             "prompt cache options: a store needs a restorer");
    if (options->restore_timeout_ns < 0)
        return ckv_error_set(error, CKV_INVALID,
                             "prompt cache options: restore_timeout_ns is negative");
    options->alloc = ckvi_alloc_or_default(options->alloc);
    options->clock = ckvi_clock_or_system(options->clock);
    if (options->cap_bytes == CKV_DEFAULT)
        options->cap_bytes = CAP_DEFAULT;
    if (options->min_tokens == CKV_DEFAULT)
        options->min_tokens = MIN_TOKENS_DEFAULT;
    if (options->restore_timeout_ns == 0)
        options->restore_timeout_ns = RESTORE_TIMEOUT_DEFAULT_NS;
    return CKV_OK;
}

enum ckv_status ckv_prompt_cache_create(const struct ckv_prompt_cache_options *options,
                                        struct ckv_prompt_cache **out,
                                        struct ckv_error *error)
{
    struct ckv_prompt_cache_options chosen;
    struct ckv_prompt_cache *cache;
    enum ckv_status status;
    if (!out)
        return ckv_error_set(error, CKV_INVALID, "no place for the cache was given");
    *out = NULL;
    status = fill_options(&chosen, options, error);
    if (status != CKV_OK)
        return status;
    cache = CKVI_NEW(chosen.alloc, struct ckv_prompt_cache);
    if (!cache)
        return ckvi_nomem(error, sizeof *cache, "a prompt cache");
    cache->options = chosen;
    cache->stats.cap_bytes = chosen.cap_bytes;
    status = ckvi_monitor_init(&cache->monitor, error);
    if (status == CKV_OK)
        status = ckvi_kept_init(&cache->set, chosen.alloc, error);
    if (status == CKV_OK)
        *out = cache;
    else
        ckv_prompt_cache_destroy(cache);
    return status;
}

void ckv_prompt_cache_destroy(struct ckv_prompt_cache *cache)
{
    if (!cache)
        return;
    ckvi_kept_deinit(&cache->set);
    ckvi_monitor_deinit(&cache->monitor);
    CKVI_DELETE(cache->options.alloc, cache);
}

int64_t ckvi_cache_now(const struct ckv_prompt_cache *cache)
{
    return cache->options.clock->monotonic_ns(cache->options.clock->ctx);
}

static const char *ns_text(const char *ns)
{
    return ns ? ns : "";
}

/* --- put --- */

static void supersede(struct ckv_prompt_cache *cache, const struct ckvi_kept *kept,
                      bool new, struct ckvi_cache_exit *exit)
{
    const struct ckvi_cache_observer *observer = &cache->observer;
    struct ckvi_kept *old = ckvi_kept_covered(&cache->set, kept);
    while (old) {
        struct ckvi_kept *next = old->found;
        if (new && observer->superseded)
            observer->superseded(observer->ctx, kept->ns, kept->held, old->held);
        ckvi_kept_take_out(&cache->set, old, &exit->gone);
        cache->stats.superseded++;
        old = next;
    }
}

/* Out of the account, least recently used first; they stay to be found until they are
 * with the queue. */
static void evict(struct ckv_prompt_cache *cache, const struct ckvi_kept *except,
                  struct ckvi_cache_exit *exit)
{
    struct ckvi_kept *kept = cache->set.oldest;
    while (kept && cache->set.buffers.bytes > cache->options.cap_bytes) {
        struct ckvi_kept *newer = kept->newer;
        if (kept != except) {
            ckvi_kept_uncharge(&cache->set, kept);
            cache->stats.evictions++;
            /* One that is being demoted has to go now; who demotes it sees that. */
            if (!kept->leaving)
                ckvi_kept_push(&exit->leaving, kept);
            kept->leaving = true;
        }
        kept = newer;
    }
}

enum ckv_status ckvi_cache_keep(struct ckv_prompt_cache *cache, const char *ns,
                                struct ckv_held *held, bool new,
                                struct ckvi_cache_exit *exit, struct ckv_error *error)
{
    const struct ckvi_cache_observer *observer = &cache->observer;
    struct ckvi_kept *kept = NULL;
    enum ckv_status status =
        ckvi_kept_add(&cache->set, ns, held, ckvi_cache_now(cache), &kept, error);
    if (status != CKV_OK)
        return status;
    supersede(cache, kept, new, exit);
    evict(cache, kept, exit);
    if (new && observer->put)
        observer->put(observer->ctx, ns, held);
    return CKV_OK;
}

/* An entry that is alone too large. */
static enum ckv_status spill_only(struct ckv_prompt_cache *cache, const char *ns,
                                  struct ckv_held *held, struct ckv_error *error)
{
    const struct ckv_entry *entry = ckv_held_entry(held);
    const struct ckvi_spill_request request = {.ns = ns, .held = held};
    struct ckvi_spill_ended ended = {NULL, NULL};
    enum ckv_status status;
    if (!cache->options.queue || entry->token_count < cache->options.min_tokens)
        return ckv_error_set(error, CKV_FULL,
                             "the entry needs %llu bytes, the cap of the cache is %llu",
                             (unsigned long long)ckv_held_bytes(held),
                             (unsigned long long)cache->options.cap_bytes);
    status = ckvi_spill_queue_push(cache->options.queue, &request, &ended, error);
    ckvi_monitor_lock(&cache->monitor);
    if (status == CKV_OK)
        cache->stats.spills++;
    else
        cache->stats.spill_failures++;
    ckvi_monitor_unlock(&cache->monitor);
    ckvi_spill_queue_finish(cache->options.queue, &ended);
    return status;
}

enum ckv_status ckv_prompt_cache_put(struct ckv_prompt_cache *cache, const char *ns,
                                     struct ckv_held *held, struct ckv_error *error)
{
    struct ckvi_cache_exit exit = {{NULL, NULL}, {NULL, NULL}};
    const struct ckv_entry *entry;
    enum ckv_status status;
    if (!cache || !held)
        return ckv_error_set(error, CKV_INVALID, "put needs a cache and a held entry");
    if (ckv_held_bytes(held) > cache->options.cap_bytes)
        return spill_only(cache, ns_text(ns), held, error);
    ckvi_monitor_lock(&cache->monitor);
    status = ckvi_cache_keep(cache, ns_text(ns), held, true, &exit, error);
    ckvi_monitor_unlock(&cache->monitor);
    (void)ckvi_cache_finish(cache, &exit);
    if (status != CKV_OK)
        return status;
    entry = ckv_held_entry(held);
    if (cache->options.on_put)
        cache->options.on_put(cache->options.on_put_ctx, ns_text(ns), entry->tokens,
                              entry->token_count);
    return CKV_OK;
}

/* --- looking --- */

uint64_t ckv_prompt_cache_peek(struct ckv_prompt_cache *cache, const char *ns,
                               const uint32_t *prompt, size_t prompt_length)
{
    uint64_t prefix = 0;
    if (!cache || !prompt)
        return 0;
    ckvi_monitor_lock(&cache->monitor);
    (void)ckvi_kept_match(&cache->set, ns_text(ns), prompt, prompt_length, &prefix);
    ckvi_monitor_unlock(&cache->monitor);
    return prefix;
}

struct ckv_held *ckv_prompt_cache_find_exact(struct ckv_prompt_cache *cache,
                                             const char *ns, const uint32_t *tokens,
                                             size_t token_count)
{
    const struct ckvi_kept *kept;
    struct ckv_held *held = NULL;
    if (!cache || !tokens)
        return NULL;
    ckvi_monitor_lock(&cache->monitor);
    kept = ckvi_kept_same(&cache->set, ns_text(ns), tokens, token_count);
    if (kept)
        held = ckv_held_ref(kept->held);
    ckvi_monitor_unlock(&cache->monitor);
    return held;
}

void ckv_prompt_cache_get_stats(struct ckv_prompt_cache *cache,
                                struct ckv_prompt_cache_stats *out)
{
    ckvi_monitor_lock(&cache->monitor);
    *out = cache->stats;
    out->entries = cache->set.by_id.count;
    out->bytes = cache->set.buffers.bytes;
    ckvi_monitor_unlock(&cache->monitor);
}

/* --- for durability --- */

void ckvi_prompt_cache_observe(struct ckv_prompt_cache *cache,
                               const struct ckvi_cache_observer *observer)
{
    ckvi_monitor_lock(&cache->monitor);
    cache->observer = observer ? *observer : (struct ckvi_cache_observer){0};
    ckvi_monitor_unlock(&cache->monitor);
}

enum ckv_status ckvi_prompt_cache_spill(struct ckv_prompt_cache *cache,
                                        struct ckv_spill_queue *queue, const char *ns,
                                        const uint32_t *tokens, size_t token_count,
                                        ckv_spill_done_fn done, void *done_ctx,
                                        struct ckv_error *error)
{
    struct ckvi_spill_ended ended = {NULL, NULL};
    const struct ckvi_kept *kept;
    enum ckv_status status;
    ckvi_monitor_lock(&cache->monitor);
    kept = ckvi_kept_same(&cache->set, ns, tokens, token_count);
    if (kept) {
        struct ckvi_spill_request request = {ns, kept->held, done, done_ctx};
        status = ckvi_spill_queue_push(queue, &request, &ended, error);
    } else {
        status = ckv_error_set(error, CKV_NOTFOUND, "the entry is not kept any more");
    }
    if (status == CKV_OK)
        cache->stats.spills++;
    ckvi_monitor_unlock(&cache->monitor);
    ckvi_spill_queue_finish(queue, &ended);
    return status;
}

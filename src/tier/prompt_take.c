/*
 * Owns take: the comparison of the tiers, and the way of a restored entry into memory.
 *
 * Invariant: what is served next to nothing is replaced only by what serves more; the
 * entry that is given is referenced from the moment it was found. Failure story: whatever
 * happens to the store or the engine during a restore, the best of the tiers above is
 * served.
 */
#include "tier/prompt_cache.h"

/* A file is touched for hits in memory at most this often. */
#define TOUCH_EVERY_NS (INT64_C(60) * 1000000000)

struct taking {
    struct ckv_prompt_cache *cache;
    const char *ns;
    const uint32_t *prompt;
    size_t prompt_length;
    struct ckv_held *held; /* the best so far */
    uint64_t prefix;
    enum ckv_tier tier;
    uint64_t read_bytes;
    uint64_t id;    /* of the kept entry, when it is that */
    uint64_t epoch; /* when the lookup began */
    /* The restore. */
    int64_t deadline_ns;
    struct ckv_sink sink; /* the engine's */
    struct ckv_held *restored;
};

static void serve(struct taking *taking, struct ckv_held *held, uint64_t prefix,
                  enum ckv_tier tier)
{
    ckv_held_unref(taking->held);
    taking->held = held;
    taking->prefix = prefix;
    taking->tier = tier;
}

static void look_in_memory(struct taking *taking)
{
    struct ckv_prompt_cache *cache = taking->cache;
    const struct ckvi_kept *kept;
    uint64_t prefix;
    ckvi_monitor_lock(&cache->monitor);
    taking->epoch = cache->epoch;
    kept = ckvi_kept_match(&cache->set, taking->ns, taking->prompt, taking->prompt_length,
                           &prefix);
    if (kept) {
        taking->id = kept->id;
        serve(taking, ckv_held_ref(kept->held), prefix, CKV_TIER_RAM);
    }
    ckvi_monitor_unlock(&cache->monitor);
}

static void look_in_queue(struct taking *taking)
{
    uint64_t prefix;
    struct ckv_held *held =
        ckv_spill_queue_find(taking->cache->options.queue, taking->ns, taking->prompt,
                             taking->prompt_length, &prefix);
    if (held && prefix > taking->prefix)
        serve(taking, held, prefix, CKV_TIER_QUEUE);
    else
        ckv_held_unref(held);
}

/* --- the restore --- */

/* Between two chunks: a call that hangs in the system is not ended by this. */
static enum ckv_status check_time(const struct taking *taking, struct ckv_error *error)
{
    if (ckvi_cache_now(taking->cache) < taking->deadline_ns)
        return CKV_OK;
    return ckv_error_set(error, CKV_CANCELLED, "the restore took longer than its limit");
}

static enum ckv_status lend(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                            size_t wanted, void **data, size_t *size,
                            struct ckv_error *error)
{
    const struct taking *taking = ctx;
    enum ckv_status status = check_time(taking, error);
    if (status != CKV_OK)
        return status;
    return taking->sink.lend(taking->sink.ctx, cache, tensor, offset, wanted, data, size,
                             error);
}

static enum ckv_status took(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                            size_t size, struct ckv_error *error)
{
    const struct taking *taking = ctx;
    if (!taking->sink.took)
        return CKV_OK;
    return taking->sink.took(taking->sink.ctx, cache, tensor, offset, size, error);
}

static void drop(void *ctx)
{
    const struct taking *taking = ctx;
    if (taking->sink.drop)
        taking->sink.drop(taking->sink.ctx);
}

static enum ckv_status prepare(void *ctx, const struct ckv_entry *entry, uint64_t prefix,
                               struct ckv_sink *sink, struct ckv_error *error)
{
    struct taking *taking = ctx;
    const struct ckv_restorer *restorer = &taking->cache->options.restorer;
    enum ckv_status status;
    /* The best candidate failed, and the next one is no better than what is in memory. */
    if (prefix <= taking->prefix)
        return ckv_error_set(error, CKV_CANCELLED, "memory serves as much");
    taking->sink = (struct ckv_sink){0};
    status = restorer->prepare(restorer->ctx, entry, prefix, &taking->sink, error);
    if (status != CKV_OK)
        return status;
    *sink = (struct ckv_sink){taking, lend, took, drop};
    return CKV_OK;
}

static enum ckv_status accept(void *ctx, const struct ckv_entry *entry, uint64_t prefix,
                              struct ckv_error *error)
{
    struct taking *taking = ctx;
    const struct ckv_restorer *restorer = &taking->cache->options.restorer;
    struct ckv_held *held = NULL;
    enum ckv_status status = restorer->finish(restorer->ctx, entry, prefix, &held, error);
    if (status != CKV_OK)
        return status;
    if (!held)
        return ckv_error_set(error, CKV_ENGINE, "the engine gave no entry");
    if (ckv_held_entry(held)->token_count != entry->token_count) {
        ckv_held_unref(held);
        return ckv_error_set(error, CKV_ENGINE, "the engine gave another entry");
    }
    taking->restored = held;
    return CKV_OK;
}

/* Whether the store has something better that is worth its reading. */
static bool is_worth(const struct taking *taking)
{
    struct ckv_prompt_cache *cache = taking->cache;
    const struct ckv_restorer *restorer = &cache->options.restorer;
    struct ckv_candidate best;
    size_t count = 0;
    if (ckv_store_find(cache->options.store, taking->ns, taking->prompt,
                       taking->prompt_length, &best, 1, &count, NULL) != CKV_OK ||
        count == 0 || best.prefix <= taking->prefix)
        return false;
    if (!restorer->worth ||
        restorer->worth(restorer->ctx, best.prefix - taking->prefix, best.tensor_bytes))
        return true;
    ckvi_monitor_lock(&cache->monitor);
    cache->stats.skipped_restores++;
    ckvi_monitor_unlock(&cache->monitor);
    return false;
}

static void look_in_store(struct taking *taking, struct ckv_error *error)
{
    struct ckv_prompt_cache *cache = taking->cache;
    const struct ckv_restore_target target = {
        .ctx = taking, .prepare = prepare, .accept = accept};
    struct ckv_restored restored;
    if (!cache->options.store || !is_worth(taking))
        return;
    taking->deadline_ns =
        ckvi_deadline(ckvi_cache_now(cache), cache->options.restore_timeout_ns);
    if (ckv_store_restore(cache->options.store, taking->ns, taking->prompt,
                          taking->prompt_length, &target, &restored, error) != CKV_OK)
        return;
    taking->read_bytes = restored.read_bytes;
    serve(taking, taking->restored, restored.prefix, CKV_TIER_STORE);
}

/* --- the result --- */

/* Counts a hit in memory; true when its file is to be touched. */
static bool use_kept(struct taking *taking)
{
    struct ckv_prompt_cache *cache = taking->cache;
    struct ckvi_kept *kept = ckvi_kept_by_id(&cache->set, taking->id);
    int64_t now_ns = ckvi_cache_now(cache);
    if (!kept)
        return false;
    ckvi_kept_use(&cache->set, kept, now_ns);
    if (now_ns - kept->touched_ns < TOUCH_EVERY_NS)
        return false;
    kept->touched_ns = now_ns;
    return true;
}

/* Into memory, unless it is too large or an invalidation came between. A failure is none:
 * the caller has the entry. */
static void keep(struct taking *taking, struct ckvi_cache_exit *exit)
{
    struct ckv_prompt_cache *cache = taking->cache;
    struct ckv_error error;
    if (cache->epoch != taking->epoch ||
        ckv_held_bytes(taking->held) > cache->options.cap_bytes)
        return;
    if (ckvi_cache_keep(cache, taking->ns, taking->held, false, exit, &error) != CKV_OK)
        cache->stats.keep_failures++;
}

static void settle(struct taking *taking)
{
    struct ckv_prompt_cache *cache = taking->cache;
    struct ckvi_cache_exit exit = {{NULL, NULL}, {NULL, NULL}};
    const struct ckv_entry *entry;
    bool touches = false;
    ckvi_monitor_lock(&cache->monitor);
    cache->stats.hits[taking->tier]++;
    cache->stats.tokens[taking->tier] += taking->prefix;
    if (taking->tier == CKV_TIER_RAM)
        touches = use_kept(taking);
    else if (taking->held)
        keep(taking, &exit);
    ckvi_monitor_unlock(&cache->monitor);
    (void)ckvi_cache_finish(cache, &exit);
    if (!touches || !cache->options.store)
        return;
    entry = ckv_held_entry(taking->held);
    ckv_store_touch(cache->options.store, taking->ns, entry->tokens, entry->token_count);
}

enum ckv_status ckv_prompt_cache_take(struct ckv_prompt_cache *cache, const char *ns,
                                      const uint32_t *prompt, size_t prompt_length,
                                      struct ckv_taken *out, struct ckv_error *error)
{
    struct taking taking = {
        .cache = cache,
        .ns = ns ? ns : "",
        .prompt = prompt,
        .prompt_length = prompt_length,
    };
    int64_t started_ns;
    if (!cache || !out || (!prompt && prompt_length > 0))
        return ckv_error_set(error, CKV_INVALID,
                             "take needs a cache, a prompt and room for its answer");
    *out = (struct ckv_taken){0};
    started_ns = ckvi_cache_now(cache);
    (void)ckv_error_set(error, CKV_NOTFOUND, "no entry shares a usable prefix");
    look_in_memory(&taking);
    look_in_queue(&taking);
    look_in_store(&taking, error);
    settle(&taking);
    if (!taking.held) {
        if (error)
            error->status = CKV_NOTFOUND;
        return CKV_NOTFOUND;
    }
    *out = (struct ckv_taken){
        .held = taking.held,
        .prefix = taking.prefix,
        .tier = taking.tier,
        .read_bytes = taking.read_bytes,
        .elapsed_ns = ckvi_cache_now(cache) - started_ns,
    };
    return CKV_OK;
}

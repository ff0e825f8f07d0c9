/* The server's use of its tiers: take before a prompt is evaluated, hold after the reply.
 * Invariant: the context is touched on the engine's thread only; nothing is read or
 * written by it while tokens are made. Failure: every one becomes a miss or "not stored",
 * a log line and a counter. */
#include "cold.h"

#include "cold_parts.h"
#include "log.h"
#include "timing.h"

#include <coldkv/clock.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S INT64_C(1000000000)

const char *srv_cold_fingerprint(const struct srv_cold *cold)
{
    return ckv_llama_identity(cold->bridge)->fingerprint;
}

void srv_cold_get_stats(struct srv_cold *cold, struct srv_cold_stats *out)
{
    *out = (struct srv_cold_stats){.has_store = cold->store != NULL};
    if (cold->store) {
        /* From the first station to the last: what left one is in the next by then. */
        out->pending = ckv_durability_pending(cold->durability);
        ckv_spill_queue_get_stats(cold->queue, &out->queue);
        ckv_store_get_stats(cold->store, &out->store);
        if (out->pending < out->queue.pending_count)
            out->pending = out->queue.pending_count;
    }
    ckv_prompt_cache_get_stats(cold->cache, &out->ram);
}

bool srv_cold_flush(struct srv_cold *cold, uint32_t timeout_s,
                    struct ckv_flush_evidence *out)
{
    const struct ckv_clock *clock = ckv_clock_system();
    struct ckv_error error;
    enum ckv_status status;

    *out = (struct ckv_flush_evidence){0};
    if (!cold->store)
        return false;
    /* Whoever saw a reply end and asks then means that reply too. */
    srv_stats_wait_handed_over(cold->stats);
    ckv_error_clear(&error);
    status = ckv_durability_flush(cold->durability,
                                  clock->monotonic_ns(clock->ctx) + timeout_s * NS_PER_S,
                                  out, &error);
    if (status != CKV_OK)
        srv_log("flush (%s): %s", ckv_status_name(status), error.text);
    return true;
}

void srv_cold_tick(struct srv_cold *cold)
{
    if (cold->demote_idle_s > 0)
        (void)ckv_prompt_cache_demote_idle(cold->cache, cold->demote_idle_s * NS_PER_S);
}

void srv_cold_begin_work(struct srv_cold *cold)
{
    if (cold)
        ckv_activity_begin(cold->activity);
}

void srv_cold_end_work(struct srv_cold *cold)
{
    if (cold)
        ckv_activity_end(cold->activity);
}

static void report(struct srv_cold *cold, const char *what, enum ckv_status status,
                   const struct ckv_error *error)
{
    srv_log("%s (%s): %s", what, ckv_status_name(status), error->text);
    srv_stats_begin(cold->stats)->tier_failures++;
    srv_stats_end(cold->stats);
}

static void refresh(struct srv_cold *cold)
{
    struct ckv_error error;
    enum ckv_status status;

    if (!cold->store)
        return;
    ckv_error_clear(&error);
    status = ckv_store_refresh(cold->store, &error);
    if (status != CKV_OK)
        report(cold, "cannot look for new entries", status, &error);
}

/* Token ids of libllama are signed and never negative in a prompt: the same bits. */
static const uint32_t *as_unsigned(const int32_t *tokens)
{
    return (const uint32_t *)(const void *)tokens;
}

/* What the tiers could serve, without reading anything. */
static size_t longest_known(struct srv_cold *cold, const char *ns, const int32_t *tokens,
                            size_t count)
{
    uint64_t best = ckv_prompt_cache_peek(cold->cache, ns, as_unsigned(tokens), count);
    struct ckv_candidate candidate;
    struct ckv_error error;
    uint64_t queued = 0;
    size_t found = 0;
    enum ckv_status status;

    if (!cold->store)
        return (size_t)best;
    ckv_held_unref(
        ckv_spill_queue_find(cold->queue, ns, as_unsigned(tokens), count, &queued));
    if (queued > best)
        best = queued;
    ckv_error_clear(&error);
    status = ckv_store_find(cold->store, ns, as_unsigned(tokens), count, &candidate, 1,
                            &found, &error);
    if (status != CKV_OK)
        report(cold, "cannot look up a prompt", status, &error);
    else if (found > 0 && candidate.prefix > best)
        best = candidate.prefix;
    return (size_t)best;
}

/* How much of the prompt the live sequence holds; its last token is always evaluated. */
static size_t live_prefix(const struct srv_live *live, const char *ns,
                          const int32_t *tokens, size_t count)
{
    size_t limit = live->count < count - 1 ? live->count : count - 1;
    size_t prefix = 0;

    if (live->count == 0 || strcmp(live->ns, ns) != 0)
        return 0;
    while (prefix < limit && live->tokens[prefix] == tokens[prefix])
        prefix++;
    return prefix;
}

static bool cut_live(struct srv_cold *cold, const struct srv_live *live, size_t prefix,
                     struct srv_cold_taken *out)
{
    struct ckv_error error;
    enum ckv_status status;

    ckv_error_clear(&error);
    status = ckv_llama_cut(cold->bridge, 0, live->count, prefix, &error);
    if (status != CKV_OK) {
        report(cold, "the sequence cannot be cut", status, &error);
        return false;
    }
    out->source = SRV_SOURCE_LIVE;
    out->prefix = prefix;
    return true;
}

static enum srv_source source_of(enum ckv_tier tier)
{
    switch (tier) {
    case CKV_TIER_RAM:
        return SRV_SOURCE_RAM;
    case CKV_TIER_QUEUE:
        return SRV_SOURCE_QUEUE;
    case CKV_TIER_STORE:
        return SRV_SOURCE_STORE;
    case CKV_TIER_NONE:
        break;
    }
    return SRV_SOURCE_NONE;
}

/* Of an entry's bytes, those of the prefix. */
static uint64_t share(const struct ckv_held *held, uint64_t prefix)
{
    const struct ckv_entry *entry = ckv_held_entry(held);

    return (uint64_t)((double)ckv_entry_tensor_bytes(entry) * (double)prefix /
                      (double)entry->token_count);
}

static void take_from_tiers(struct srv_cold *cold, const char *ns, const int32_t *tokens,
                            size_t count, struct srv_cold_taken *out)
{
    struct ckv_taken taken = {0};
    struct ckv_error error;
    enum ckv_status status;

    ckv_error_clear(&error);
    status = ckv_prompt_cache_take(cold->cache, ns, as_unsigned(tokens), count, &taken,
                                   &error);
    if (status == CKV_OK && taken.prefix >= SRV_REUSE_TOKENS_MIN)
        status = ckv_llama_apply(cold->bridge, taken.held, 0, taken.prefix, &error);
    else if (status == CKV_OK)
        status = ckv_error_set(&error, CKV_NOTFOUND, "only a few tokens are left");
    if (status == CKV_OK) {
        out->source = source_of(taken.tier);
        out->prefix = (size_t)taken.prefix;
        out->read_bytes = taken.read_bytes;
        out->reused_bytes = share(taken.held, taken.prefix);
    } else {
        out->miss = SRV_MISS_FAILED;
        report(cold, "nothing is restored, the prompt is evaluated", status, &error);
    }
    ckv_held_unref(taken.held);
}

/* Fetching a few tokens more takes longer than evaluating them. */
static bool is_live_enough(size_t here, size_t known)
{
    return here >= SRV_REUSE_TOKENS_MIN && here + SRV_REUSE_TOKENS_MIN > known;
}

void srv_cold_take(struct srv_cold *cold, const char *ns, const int32_t *tokens,
                   size_t count, const struct srv_live *live, struct srv_cold_taken *out)
{
    size_t here = live_prefix(live, ns, tokens, count);
    size_t known;
    double began_ms = srv_now_ms();

    *out = (struct srv_cold_taken){0};
    refresh(cold);
    known = longest_known(cold, ns, tokens, count);
    if (known < SRV_REUSE_TOKENS_MIN && here < SRV_REUSE_TOKENS_MIN)
        out->miss = known > 0 || here > 0 ? SRV_MISS_TOO_SHORT : SRV_MISS_NO_PREFIX;
    else if (!is_live_enough(here, known) || !cut_live(cold, live, here, out))
        take_from_tiers(cold, ns, tokens, count, out);
    out->elapsed_ms = srv_now_ms() - began_ms;
}

/* Whether an entry in memory can be cut to exactly these tokens. */
static bool is_held(struct srv_cold *cold, const char *ns, const int32_t *tokens,
                    size_t count)
{
    /* A lookup leaves the prompt's last token to be evaluated, hence one more. */
    uint32_t *longer = calloc(count + 1, sizeof(*longer));
    bool held;

    if (!longer)
        return false;
    memcpy(longer, tokens, count * sizeof(*longer));
    held = ckv_prompt_cache_peek(cold->cache, ns, longer, count + 1) == count;
    free(longer);
    return held;
}

void srv_cold_hold(struct srv_cold *cold, const char *ns, const int32_t *tokens,
                   size_t count)
{
    struct ckv_held *held = NULL;
    struct ckv_error error;
    enum ckv_status status;

    if (count < SRV_REUSE_TOKENS_MIN || is_held(cold, ns, tokens, count))
        return;
    ckv_error_clear(&error);
    status = ckv_llama_hold(cold->bridge, 0, tokens, count, &held, &error);
    if (status == CKV_OK)
        status = ckv_prompt_cache_put(cold->cache, ns, held, &error);
    if (status != CKV_OK)
        report(cold, "not kept", status, &error);
    ckv_held_unref(held);
}

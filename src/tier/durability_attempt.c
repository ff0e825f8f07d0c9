/*
 * Owns attempts: one record on its way to the store.
 *
 * Invariant: a record has at most one attempt; the attempt holds a reference to it and to
 * the coordinator until its outcome is known, which may be after the coordinator was
 * destroyed. A record leaves the table only when the store serves its tokens, or when it
 * was invalidated. Failure story: whatever goes wrong leaves the record in the table with
 * a timer, later each time.
 */
#include "tier/durability.h"

#include "base/checked.h"

#define GROWTH_MIN_TOKENS 256
#define GROWTH_PART 20 /* 5 % */
#define DOUBLINGS_MAX 6

enum result {
    RESULT_QUEUED, /* the outcome comes later */
    RESULT_STORED,
    RESULT_INVALIDATED,
    RESULT_MISSING,
    RESULT_FAILED,
    RESULT_BUSY,     /* not tried: the engine works */
    RESULT_SMALL,    /* not tried: too little would become durable */
    RESULT_REPLACED, /* a newer version, not durable yet, took its place in the queue */
};

void ckvi_attempt_begin(struct ckv_durability *durability, struct ckvi_dirty *dirty)
{
    dirty->owner = durability;
    dirty->running = true;
    dirty->missing = false;
    dirty->attempt_version = dirty->version;
    dirty->references++;
    durability->references++;
}

/* --- its end --- */

static void rearm(const struct ckv_durability *durability, struct ckvi_dirty *dirty,
                  enum result result)
{
    const struct ckv_durability_options *options = &durability->options;
    int64_t now_ns = ckvi_durability_now(durability);
    int64_t wait_ns = options->retry_ns;
    /* Nothing to do but to see, one day, that it became durable on another way. */
    if (result == RESULT_SMALL)
        dirty->failures = DOUBLINGS_MAX;
    if (result == RESULT_BUSY) {
        int64_t latest_ns = ckvi_deadline(dirty->since_ns, options->patience_ns);
        dirty->due_ns = ckvi_deadline(now_ns, wait_ns);
        if (latest_ns < dirty->due_ns)
            dirty->due_ns = latest_ns;
        return;
    }
    if (result == RESULT_REPLACED) {
        dirty->due_ns = ckvi_deadline(now_ns, wait_ns);
        return;
    }
    for (uint32_t i = 0; i < dirty->failures && wait_ns < CKVI_NEVER / 2; i++)
        wait_ns *= 2;
    if (dirty->failures < DOUBLINGS_MAX)
        dirty->failures++;
    dirty->due_ns = ckvi_deadline(now_ns, wait_ns);
}

static void settle(struct ckv_durability *durability, struct ckvi_dirty *dirty,
                   enum result result)
{
    bool current = dirty->version == dirty->attempt_version;
    dirty->running = false;
    dirty->missing = result == RESULT_MISSING;
    dirty->stored = result == RESULT_STORED;
    if (result == RESULT_INVALIDATED || (result == RESULT_STORED && current))
        ckvi_dirty_remove(&durability->table, dirty);
    else if (current)
        rearm(durability, dirty, result);
}

static void end_attempt(struct ckvi_dirty *dirty, enum result result)
{
    struct ckv_durability *durability = dirty->owner;
    ckvi_monitor_lock(&durability->monitor);
    settle(durability, dirty, result);
    ckvi_dirty_unref(&durability->table, dirty);
    ckvi_monitor_tell(&durability->monitor);
    ckvi_monitor_unlock(&durability->monitor);
    ckvi_durability_unref(durability);
}

static bool is_durable(const struct ckvi_dirty *dirty)
{
    return ckv_store_covers(dirty->owner->store, dirty->ns, dirty->tokens,
                            dirty->token_count);
}

/* What became of the entry in the queue. ctx is the record. */
static void take_outcome(void *ctx, const char *ns, const struct ckv_entry *entry,
                         enum ckv_spill_outcome outcome)
{
    struct ckvi_dirty *dirty = ctx;
    enum result result = RESULT_FAILED;
    (void)ns;
    (void)entry;
    if (outcome == CKV_SPILL_INVALIDATED)
        result = RESULT_INVALIDATED;
    else if (outcome == CKV_SPILL_STORED)
        result = RESULT_STORED;
    else if (outcome == CKV_SPILL_COVERED)
        result = is_durable(dirty) ? RESULT_STORED : RESULT_REPLACED;
    end_attempt(dirty, result);
}

/* --- its beginning --- */

static bool must_wait(const struct ckvi_dirty *dirty)
{
    const struct ckv_durability *durability = dirty->owner;
    struct ckv_activity *activity = durability->options.activity;
    return activity && ckv_activity_is_busy(activity) &&
           ckvi_durability_now(durability) - dirty->since_ns <
               durability->options.patience_ns;
}

static bool grows_too_little(const struct ckvi_dirty *dirty)
{
    uint64_t wanted = dirty->owner->options.min_growth_tokens;
    struct ckv_candidate best = {0};
    size_t count = 0;
    if (ckv_store_find(dirty->owner->store, dirty->ns, dirty->tokens, dirty->token_count,
                       &best, 1, &count, NULL) != CKV_OK ||
        count == 0)
        best.prefix = 0;
    if (wanted == CKV_DEFAULT)
        wanted = ckvi_max_u64(GROWTH_MIN_TOKENS, best.prefix / GROWTH_PART);
    return dirty->token_count - best.prefix < wanted;
}

static enum result try_record(struct ckvi_dirty *dirty, bool forced)
{
    const struct ckv_durability *durability = dirty->owner;
    enum ckv_status status;
    if (!forced && must_wait(dirty))
        return RESULT_BUSY;
    if (is_durable(dirty))
        return RESULT_STORED;
    if (!forced && grows_too_little(dirty))
        return RESULT_SMALL;
    status = ckvi_prompt_cache_spill(durability->cache, durability->queue, dirty->ns,
                                     dirty->tokens, dirty->token_count, take_outcome,
                                     dirty, NULL);
    if (status == CKV_OK)
        return RESULT_QUEUED;
    return status == CKV_NOTFOUND ? RESULT_MISSING : RESULT_FAILED;
}

void ckvi_attempt_make(struct ckvi_dirty *dirty, bool forced)
{
    enum result result = try_record(dirty, forced);
    if (result != RESULT_QUEUED)
        end_attempt(dirty, result);
}

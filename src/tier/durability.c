/*
 * Owns the durability coordinator: records, timers and the thread that waits for them.
 *
 * Invariant: for everything that was put and is at least min_tokens long there is a
 * record until the store serves its tokens, or a record of an entry that supersedes it,
 * or it is counted as lost. The lock is held for bookkeeping only. It may be taken under
 * the cache's lock, never the other way round. Failure story: a record that cannot be
 * made is counted, and the next flush says so.
 */
#include "tier/durability.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "file/options.h"
#include <string.h>

#define NS_PER_S INT64_C(1000000000)
#define MIN_TOKENS_DEFAULT 256
#define RECORD_CAP_DEFAULT (UINT64_C(64) << 20)

void ckv_durability_options_init(struct ckv_durability_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
    options->min_tokens = CKV_DEFAULT;
    options->min_growth_tokens = CKV_DEFAULT;
}

static enum ckv_status fill_options(struct ckv_durability_options *options,
                                    const struct ckv_durability_options *given,
                                    struct ckv_error *error)
{
    enum ckv_status status;
    ckv_durability_options_init(options);
    status =
        ckvi_options_copy(options, sizeof *options, given, "durability options", error);
    if (status != CKV_OK)
        return status;
    if (options->debounce_ns < 0 || options->retry_ns < 0 || options->patience_ns < 0)
        return ckv_error_set(error, CKV_INVALID,
                             "durability options: a duration is negative");
    options->alloc = ckvi_alloc_or_default(options->alloc);
    options->clock = ckvi_clock_or_system(options->clock);
    if (options->debounce_ns == 0)
        options->debounce_ns = NS_PER_S;
    if (options->retry_ns == 0)
        options->retry_ns = 5 * NS_PER_S;
    if (options->patience_ns == 0)
        options->patience_ns = 10 * NS_PER_S;
    if (options->min_tokens == CKV_DEFAULT)
        options->min_tokens = MIN_TOKENS_DEFAULT;
    if (options->record_cap_bytes == 0)
        options->record_cap_bytes = RECORD_CAP_DEFAULT;
    return CKV_OK;
}

int64_t ckvi_durability_now(const struct ckv_durability *durability)
{
    return durability->options.clock->monotonic_ns(durability->options.clock->ctx);
}

/* --- records --- */

static void enforce_cap(struct ckv_durability *durability)
{
    struct ckvi_dirty_table *table = &durability->table;
    while (table->token_bytes > durability->options.record_cap_bytes &&
           table->first != table->last) {
        ckvi_dirty_remove(table, table->first);
        durability->lost_count++;
    }
}

/* Newer versions put the write off again and again, but not for ever. */
static void arm(struct ckv_durability *durability, struct ckvi_dirty *dirty)
{
    const struct ckv_durability_options *options = &durability->options;
    int64_t now_ns = ckvi_durability_now(durability);
    int64_t latest_ns;
    if (durability->inherited_ns < dirty->since_ns)
        dirty->since_ns = durability->inherited_ns;
    durability->inherited_ns = CKVI_NEVER;
    if (now_ns < dirty->since_ns)
        dirty->since_ns = now_ns;
    latest_ns = ckvi_deadline(dirty->since_ns, options->patience_ns);
    dirty->due_ns = ckvi_deadline(now_ns, options->debounce_ns);
    if (latest_ns < dirty->due_ns)
        dirty->due_ns = latest_ns;
    dirty->version++;
    dirty->failures = 0;
    dirty->missing = false;
}

/* May run under the cache's lock: no log, no waiting for the disk. */
static void note(struct ckv_durability *durability, const char *ns,
                 const uint32_t *tokens, size_t token_count)
{
    struct ckvi_dirty *dirty;
    if (token_count == 0 || token_count < durability->options.min_tokens)
        return;
    ckvi_monitor_lock(&durability->monitor);
    if (durability->stopping)
        goto out;
    dirty = ckvi_dirty_find(&durability->table, ns, tokens, token_count);
    if (!dirty) {
        dirty = ckvi_dirty_add(&durability->table, ns, tokens, token_count);
        if (dirty)
            dirty->since_ns = CKVI_NEVER;
    }
    if (dirty) {
        arm(durability, dirty);
        enforce_cap(durability);
    } else {
        durability->lost_count++;
    }
    ckvi_monitor_tell(&durability->monitor);
out:
    ckvi_monitor_unlock(&durability->monitor);
}

static void note_put(void *ctx, const char *ns, const struct ckv_held *held)
{
    const struct ckv_entry *entry = ckv_held_entry(held);
    note(ctx, ns, entry->tokens, entry->token_count);
}

static void note_superseded(void *ctx, const char *ns, const struct ckv_held *held,
                            const struct ckv_held *old)
{
    struct ckv_durability *durability = ctx;
    const struct ckv_entry *entry = ckv_held_entry(old);
    struct ckvi_dirty *dirty;
    if (entry->token_count == ckv_held_entry(held)->token_count)
        return; /* the same record */
    ckvi_monitor_lock(&durability->monitor);
    dirty = ckvi_dirty_find(&durability->table, ns, entry->tokens, entry->token_count);
    if (dirty && dirty->since_ns < durability->inherited_ns)
        durability->inherited_ns = dirty->since_ns;
    if (dirty)
        ckvi_dirty_remove(&durability->table, dirty);
    ckvi_monitor_unlock(&durability->monitor);
}

static void note_invalidated(void *ctx, const char *ns)
{
    struct ckv_durability *durability = ctx;
    struct ckvi_dirty *dirty;
    struct ckvi_dirty *next;
    ckvi_monitor_lock(&durability->monitor);
    for (dirty = durability->table.first; dirty; dirty = next) {
        next = dirty->next;
        if (strcmp(dirty->ns, ns) == 0)
            ckvi_dirty_remove(&durability->table, dirty);
    }
    ckvi_monitor_unlock(&durability->monitor);
}

void ckv_durability_schedule(struct ckv_durability *durability, const char *ns,
                             const uint32_t *tokens, size_t token_count)
{
    if (durability && tokens)
        note(durability, ns ? ns : "", tokens, token_count);
}

uint64_t ckv_durability_pending(struct ckv_durability *durability)
{
    uint64_t count;
    if (!durability)
        return 0;
    ckvi_monitor_lock(&durability->monitor);
    count = durability->table.map.count;
    ckvi_monitor_unlock(&durability->monitor);
    return count;
}

/* --- timers --- */

/* The record that is due first; NULL = none, or a flush goes before. The lock is held. */
static struct ckvi_dirty *find_next(const struct ckv_durability *durability)
{
    struct ckvi_dirty *next = NULL;
    struct ckvi_dirty *dirty;
    if (durability->flushing)
        return NULL;
    for (dirty = durability->table.first; dirty; dirty = dirty->next)
        if (!dirty->running && (!next || dirty->due_ns < next->due_ns))
            next = dirty;
    return next;
}

static int64_t next_due(const struct ckv_durability *durability)
{
    const struct ckvi_dirty *next = find_next(durability);
    return next ? next->due_ns : CKVI_NEVER;
}

int64_t ckvi_durability_next_due(struct ckv_durability *durability)
{
    int64_t due_ns;
    ckvi_monitor_lock(&durability->monitor);
    due_ns = next_due(durability);
    ckvi_monitor_unlock(&durability->monitor);
    return due_ns;
}

/* What could not be logged where it arose. */
static void log_losses(struct ckv_durability *durability)
{
    uint64_t fresh;
    ckvi_monitor_lock(&durability->monitor);
    fresh = durability->lost_count - durability->lost_logged;
    durability->lost_logged = durability->lost_count;
    ckvi_monitor_unlock(&durability->monitor);
    if (fresh > 0)
        ckvi_log(&durability->options.log, CKV_LOG_WARN, "durability.lost",
                 "no memory for %llu records: these entries may not become durable",
                 (unsigned long long)fresh);
}

size_t ckvi_durability_run_due(struct ckv_durability *durability)
{
    int64_t now_ns = ckvi_durability_now(durability);
    struct ckvi_dirty *dirty;
    size_t made = 0;
    log_losses(durability);
    do {
        ckvi_monitor_lock(&durability->monitor);
        dirty = find_next(durability);
        if (dirty && dirty->due_ns > now_ns)
            dirty = NULL;
        if (dirty)
            ckvi_attempt_begin(durability, dirty);
        ckvi_monitor_unlock(&durability->monitor);
        if (!dirty)
            break;
        ckvi_attempt_make(dirty, false);
        made++;
    } while (true);
    return made;
}

static void *run_timers(void *ctx)
{
    struct ckv_durability *durability = ctx;
    ckvi_monitor_lock(&durability->monitor);
    while (!durability->stopping) {
        bool due = !ckvi_monitor_wait_until(
            &durability->monitor, durability->options.clock, next_due(durability));
        bool lost = durability->lost_count > durability->lost_logged;
        if (!due && !lost)
            continue;
        ckvi_monitor_unlock(&durability->monitor);
        (void)ckvi_durability_run_due(durability);
        ckvi_monitor_lock(&durability->monitor);
    }
    ckvi_monitor_unlock(&durability->monitor);
    return NULL;
}

/* --- life --- */

void ckvi_durability_unref(struct ckv_durability *durability)
{
    bool last;
    ckvi_monitor_lock(&durability->monitor);
    last = --durability->references == 0;
    ckvi_monitor_unlock(&durability->monitor);
    if (!last)
        return;
    ckvi_dirty_deinit(&durability->table);
    ckvi_monitor_deinit(&durability->monitor);
    CKVI_DELETE(durability->options.alloc, durability);
}

static void listen_to(struct ckv_prompt_cache *cache, struct ckv_durability *durability)
{
    const struct ckvi_cache_observer observer = {
        .ctx = durability,
        .put = note_put,
        .superseded = note_superseded,
        .invalidated = note_invalidated,
    };
    ckvi_prompt_cache_observe(cache, &observer);
}

enum ckv_status ckvi_durability_create(struct ckv_prompt_cache *cache,
                                       struct ckv_spill_queue *queue,
                                       struct ckv_store *store,
                                       const struct ckv_durability_options *options,
                                       struct ckv_durability **out,
                                       struct ckv_error *error)
{
    struct ckv_durability_options chosen;
    struct ckv_durability *durability;
    enum ckv_status status;
    *out = NULL;
    if (!cache || !queue || !store)
        return ckv_error_set(error, CKV_INVALID,
                             "durability needs a cache, a queue and a store");
    status = fill_options(&chosen, options, error);
    if (status != CKV_OK)
        return status;
    durability = CKVI_NEW(chosen.alloc, struct ckv_durability);
    if (!durability)
        return ckvi_nomem(error, sizeof *durability, "a durability coordinator");
    durability->options = chosen;
    durability->cache = cache;
    durability->queue = queue;
    durability->store = store;
    durability->references = 1;
    durability->inherited_ns = CKVI_NEVER;
    status = ckvi_monitor_init(&durability->monitor, error);
    if (status == CKV_OK)
        status = ckvi_dirty_init(&durability->table, chosen.alloc, error);
    if (status != CKV_OK) {
        ckvi_monitor_deinit(&durability->monitor);
        CKVI_DELETE(chosen.alloc, durability);
        return status;
    }
    listen_to(cache, durability);
    *out = durability;
    return CKV_OK;
}

enum ckv_status ckv_durability_start(struct ckv_prompt_cache *cache,
                                     struct ckv_spill_queue *queue,
                                     struct ckv_store *store,
                                     const struct ckv_durability_options *options,
                                     struct ckv_durability **out, struct ckv_error *error)
{
    struct ckv_durability *durability = NULL;
    enum ckv_status status;
    if (!out)
        return ckv_error_set(error, CKV_INVALID,
                             "no place for the coordinator was given");
    *out = NULL;
    status = ckvi_durability_create(cache, queue, store, options, &durability, error);
    if (!durability)
        return status;
    durability->has_thread =
        pthread_create(&durability->thread, NULL, run_timers, durability) == 0;
    if (!durability->has_thread) {
        ckv_durability_destroy(durability);
        return ckv_error_set(error, CKV_NOMEM, "no thread for durability");
    }
    *out = durability;
    return CKV_OK;
}

void ckv_durability_stop(struct ckv_durability *durability)
{
    bool first;
    if (!durability)
        return;
    ckvi_monitor_lock(&durability->monitor);
    first = !durability->stopping;
    durability->stopping = true;
    ckvi_monitor_tell(&durability->monitor);
    ckvi_monitor_unlock(&durability->monitor);
    if (!first)
        return;
    ckvi_prompt_cache_observe(durability->cache, NULL);
    if (durability->has_thread)
        (void)pthread_join(durability->thread, NULL);
}

void ckv_durability_destroy(struct ckv_durability *durability)
{
    if (!durability)
        return;
    ckv_durability_stop(durability);
    ckvi_durability_unref(durability);
}

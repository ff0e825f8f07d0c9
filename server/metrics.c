/* The counters as Prometheus reads them.
 * Invariant: names and labels never change their meaning; every family stands once, with
 * its type and help before its samples. Failure: only memory. */
#include "metrics.h"

#include "buf.h"

#include <inttypes.h>
#include <stdio.h>

struct page {
    struct srv_buf text;
    bool ok;
};

static void add(struct page *page, const char *text)
{
    page->ok = page->ok && srv_buf_append_text(&page->text, text);
}

static void family(struct page *page, const char *name, const char *type,
                   const char *help)
{
    char line[256];

    snprintf(line, sizeof(line), "# HELP coldkv_%s %s\n# TYPE coldkv_%s %s\n", name, help,
             name, type);
    add(page, line);
}

static void sample(struct page *page, const char *name, const char *label,
                   const char *value, uint64_t number)
{
    char line[160];

    if (label)
        snprintf(line, sizeof(line), "coldkv_%s{%s=\"%s\"} %" PRIu64 "\n", name, label,
                 value, number);
    else
        snprintf(line, sizeof(line), "coldkv_%s %" PRIu64 "\n", name, number);
    add(page, line);
}

static void counter(struct page *page, const char *name, const char *help,
                    uint64_t number)
{
    family(page, name, "counter", help);
    sample(page, name, NULL, NULL, number);
}

static void gauge(struct page *page, const char *name, const char *help, uint64_t number)
{
    family(page, name, "gauge", help);
    sample(page, name, NULL, NULL, number);
}

static void real(struct page *page, const char *name, const char *type, const char *help,
                 double number)
{
    char line[96];

    family(page, name, type, help);
    snprintf(line, sizeof(line), "coldkv_%s %.9g\n", name, number);
    add(page, line);
}

double srv_bytes_written_per_byte_reused(const struct srv_figures *figures)
{
    if (figures->counters.reused_bytes == 0)
        return 0;
    return (double)figures->cold.store.written_bytes /
           (double)figures->counters.reused_bytes;
}

static void add_requests(struct page *page, const struct srv_figures *figures)
{
    const struct srv_counters *c = &figures->counters;

    family(page, "requests_total", "counter", "Requests, by how they ended.");
    sample(page, "requests_total", "outcome", "completed", c->completed);
    sample(page, "requests_total", "outcome", "cancelled", c->cancelled);
    sample(page, "requests_total", "outcome", "failed", c->failed);
    sample(page, "requests_total", "outcome", "refused", c->refused);
    gauge(page, "requests_waiting", "Requests that wait for the engine.",
          figures->waiting);
    gauge(page, "requests_running", "Requests that have their turn.", figures->running);
    counter(page, "prompt_tokens_total", "Tokens of all prompts.", c->prompt_tokens);
    counter(page, "completion_tokens_total", "Tokens that were generated.",
            c->completion_tokens);
    real(page, "prefill_seconds_total", "counter",
         "Time spent evaluating what was not reused.", c->prefill_ms_sum / 1e3);
    real(page, "first_token_seconds_total", "counter",
         "From the begin of the turn to its first token.", c->ttft_ms_sum / 1e3);
}

static void add_reuse(struct page *page, const struct srv_counters *c)
{
    int i;

    family(page, "hits_total", "counter", "Turns that reused a prefix, by its tier.");
    for (i = SRV_SOURCE_LIVE; i < SRV_SOURCE_COUNT; i++)
        sample(page, "hits_total", "tier", srv_source_name((enum srv_source)i),
               c->turns[i]);
    family(page, "reused_tokens_total", "counter",
           "Prompt tokens that were not evaluated, by tier.");
    for (i = SRV_SOURCE_LIVE; i < SRV_SOURCE_COUNT; i++)
        sample(page, "reused_tokens_total", "tier", srv_source_name((enum srv_source)i),
               c->reused_tokens[i]);
    family(page, "misses_total", "counter", "Turns that reused nothing, by reason.");
    for (i = 0; i < SRV_MISS_COUNT; i++)
        sample(page, "misses_total", "reason", srv_miss_name((enum srv_miss)i),
               c->misses[i]);
    counter(page, "reused_bytes_total", "Bytes of state that tiers gave back.",
            c->reused_bytes);
    counter(page, "tier_failures_total",
            "Faults of the tiers that became a miss or were not stored.",
            c->tier_failures);
}

static void add_memory(struct page *page, const struct ckv_prompt_cache_stats *ram)
{
    gauge(page, "ram_entries", "Prompt caches in memory.", ram->entries);
    gauge(page, "ram_bytes", "Their bytes.", ram->bytes);
    gauge(page, "ram_cap_bytes", "The most they may take.", ram->cap_bytes);
    counter(page, "ram_evictions_total", "Entries that made room.", ram->evictions);
    counter(page, "ram_demotions_total", "Entries that were idle.", ram->demotions);
    counter(page, "ram_superseded_total", "Entries that a longer one covers.",
            ram->superseded);
    counter(page, "restores_skipped_total", "Restores that were not worth it.",
            ram->skipped_restores);
}

static void add_queue(struct page *page, const struct srv_cold_stats *cold)
{
    const struct ckv_spill_stats *queue = &cold->queue;

    gauge(page, "queue_entries", "Entries that wait to be written.",
          queue->pending_count);
    gauge(page, "queue_bytes", "Their bytes.", queue->pending_bytes);
    family(page, "queue_entries_total", "counter", "Entries that left the queue.");
    sample(page, "queue_entries_total", "outcome", "stored", queue->stored_count);
    sample(page, "queue_entries_total", "outcome", "covered", queue->covered_count);
    sample(page, "queue_entries_total", "outcome", "dropped", queue->dropped_count);
    sample(page, "queue_entries_total", "outcome", "failed", queue->failed_count);
    sample(page, "queue_entries_total", "outcome", "invalidated",
           queue->invalidated_count);
    sample(page, "queue_entries_total", "outcome", "discarded", queue->discarded_count);
    counter(page, "paced_chunks_total", "Steps of writes while the engine worked.",
            queue->paced_chunks);
    gauge(page, "pending_snapshots", "Snapshots that are not durable yet.",
          cold->pending);
}

static void add_store(struct page *page, const struct ckv_store_stats *store)
{
    gauge(page, "store_entries", "Durable entries of this model.", store->entries);
    gauge(page, "store_used_bytes", "Bytes below the folder, of all models.",
          store->used_bytes);
    gauge(page, "store_cap_bytes", "The most they may be.", store->cap_bytes);
    counter(page, "restores_total", "Entries that were read.", store->restores);
    counter(page, "restore_bytes_total", "Their bytes.", store->restored_bytes);
    real(page, "restore_seconds_total", "counter", "The time that took.",
         (double)store->restore_total_ns / 1e9);
    counter(page, "restore_failures_total", "Candidates that could not be used.",
            store->restore_failures);
    counter(page, "stores_total", "Entries that were written.", store->puts);
    counter(page, "store_bytes_total", "Their bytes.", store->written_bytes);
    real(page, "store_seconds_total", "counter", "The time that took, waits included.",
         (double)store->put_total_ns / 1e9);
    counter(page, "store_failures_total", "Entries that could not be written.",
            store->put_failures);
    counter(page, "store_full_total", "Of these: no room under cap or floor.",
            store->refused_full);
    counter(page, "store_evictions_total", "Entries that made room.", store->evicted);
    counter(page, "store_superseded_total", "Entries that a longer one covers.",
            store->superseded);
    counter(page, "store_set_aside_total", "Files that were damaged.", store->set_aside);
    counter(page, "store_foreign_total", "Files that were left alone.", store->foreign);
}

char *srv_metrics_encode(const struct srv_figures *figures)
{
    struct page page = {.ok = true};

    add_requests(&page, figures);
    if (figures->has_cold) {
        add_reuse(&page, &figures->counters);
        add_memory(&page, &figures->cold.ram);
    }
    if (figures->has_cold && figures->cold.has_store) {
        add_queue(&page, &figures->cold);
        add_store(&page, &figures->cold.store);
        real(&page, "bytes_written_per_byte_reused", "gauge",
             "Bytes written to the store for each byte of state that a tier gave back.",
             srv_bytes_written_per_byte_reused(figures));
    }
    if (page.ok)
        return page.text.data;
    srv_buf_deinit(&page.text);
    return NULL;
}

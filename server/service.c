/* The endpoints behind the routes, as far as the HTTP thread serves them: quickly.
 * Invariant: nothing in here takes time that grows with a request's size.
 * Failure: NULL or a fault for the client. */
#include "service.h"

#include "metrics.h"

#include <jansson.h>

static char *dump(json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return text;
}

char *srv_service_models(struct srv_service *service)
{
    return dump(json_pack("{s:s,s:[{s:s,s:s,s:I,s:s,s:I}]}", "object", "list", "data",
                          "id", srv_engine_model_name(service->engine), "object", "model",
                          "created", (json_int_t)service->started_s, "owned_by", "coldkv",
                          "context_length",
                          (json_int_t)srv_engine_context_size(service->engine)));
}

char *srv_service_health(struct srv_service *service)
{
    bool stopping = atomic_load(&service->stopping);

    return dump(json_pack("{s:s}", "status", stopping ? "stopping" : "ok"));
}

static void get_figures(struct srv_service *service, struct srv_figures *out)
{
    *out = (struct srv_figures){.counters = srv_stats_get(service->stats),
                                .has_cold = service->cold != NULL};
    /* The counters are older than the tiers' figures: what is pending in neither is
     * durable. */
    if (service->cold)
        srv_cold_get_stats(service->cold, &out->cold);
    srv_queue_count(service->queue, &out->waiting, &out->running);
}

static json_t *store_figures(const struct ckv_store_stats *store)
{
    return json_pack(
        "{s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:I,s:I,s:I,s:I,s:f,s:I,s:I,s:I,s:I,s:I,s:I,s:I}",
        "entries", (json_int_t)store->entries, "used_bytes",
        (json_int_t)store->used_bytes, "cap_bytes", (json_int_t)store->cap_bytes,
        "free_floor_bytes", (json_int_t)store->free_floor_bytes, "restores",
        (json_int_t)store->restores, "restored_bytes", (json_int_t)store->restored_bytes,
        "restore_seconds", (double)store->restore_total_ns / 1e9, "misses",
        (json_int_t)store->misses, "restore_failures",
        (json_int_t)store->restore_failures, "puts", (json_int_t)store->puts,
        "written_bytes", (json_int_t)store->written_bytes, "put_seconds",
        (double)store->put_total_ns / 1e9, "put_failures",
        (json_int_t)store->put_failures, "refused_full", (json_int_t)store->refused_full,
        "superseded", (json_int_t)store->superseded, "evicted",
        (json_int_t)store->evicted, "set_aside", (json_int_t)store->set_aside, "foreign",
        (json_int_t)store->foreign, "swept", (json_int_t)store->swept);
}

static json_t *ram_figures(const struct ckv_prompt_cache_stats *ram)
{
    return json_pack(
        "{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "entries", (json_int_t)ram->entries,
        "bytes", (json_int_t)ram->bytes, "cap_bytes", (json_int_t)ram->cap_bytes,
        "demotions", (json_int_t)ram->demotions, "evictions", (json_int_t)ram->evictions,
        "superseded", (json_int_t)ram->superseded, "spills", (json_int_t)ram->spills,
        "spill_failures", (json_int_t)ram->spill_failures, "keep_failures",
        (json_int_t)ram->keep_failures, "skipped_restores",
        (json_int_t)ram->skipped_restores);
}

static json_t *queue_figures(const struct ckv_spill_stats *queue)
{
    return json_pack(
        "{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "pending_entries",
        (json_int_t)queue->pending_count, "pending_bytes",
        (json_int_t)queue->pending_bytes, "stored", (json_int_t)queue->stored_count,
        "covered", (json_int_t)queue->covered_count, "dropped",
        (json_int_t)queue->dropped_count, "failed", (json_int_t)queue->failed_count,
        "invalidated", (json_int_t)queue->invalidated_count, "discarded",
        (json_int_t)queue->discarded_count, "paced_chunks",
        (json_int_t)queue->paced_chunks);
}

static json_t *by_source(const uint64_t counts[SRV_SOURCE_COUNT])
{
    json_t *json = json_object();
    int i;

    for (i = SRV_SOURCE_LIVE; json && i < SRV_SOURCE_COUNT; i++)
        (void)json_object_set_new(json, srv_source_name((enum srv_source)i),
                                  json_integer((json_int_t)counts[i]));
    return json;
}

static json_t *by_miss(const uint64_t counts[SRV_MISS_COUNT])
{
    json_t *json = json_object();
    int i;

    for (i = 0; json && i < SRV_MISS_COUNT; i++)
        (void)json_object_set_new(json, srv_miss_name((enum srv_miss)i),
                                  json_integer((json_int_t)counts[i]));
    return json;
}

static uint64_t count_hits(const struct srv_counters *counters)
{
    uint64_t hits = 0;
    int i;

    for (i = SRV_SOURCE_LIVE; i < SRV_SOURCE_COUNT; i++)
        hits += counters->turns[i];
    return hits;
}

static json_t *request_figures(struct srv_service *service,
                               const struct srv_figures *figures)
{
    const struct srv_counters *c = &figures->counters;

    return json_pack(
        "{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:f,s:f}",
        "model", srv_engine_model_name(service->engine), "context_size",
        (json_int_t)srv_engine_context_size(service->engine), "threads",
        (json_int_t)srv_engine_thread_count(service->engine), "requests",
        (json_int_t)c->requests, "completed", (json_int_t)c->completed, "cancelled",
        (json_int_t)c->cancelled, "failed", (json_int_t)c->failed, "refused",
        (json_int_t)c->refused, "waiting", (json_int_t)figures->waiting, "running",
        (json_int_t)figures->running, "hits", (json_int_t)count_hits(c), "misses",
        (json_int_t)c->turns[SRV_SOURCE_NONE], "prompt_tokens",
        (json_int_t)c->prompt_tokens, "cached_tokens", (json_int_t)c->cached_tokens,
        "completion_tokens", (json_int_t)c->completion_tokens, "last_restore_ms",
        c->last_restore_ms, "last_prefill_ms", c->last_prefill_ms, "last_ttft_ms",
        c->last_ttft_ms);
}

static json_t *tier_figures(struct srv_service *service,
                            const struct srv_figures *figures)
{
    const struct srv_counters *c = &figures->counters;
    const struct srv_cold_stats *cold = &figures->cold;
    json_int_t failures =
        (json_int_t)c->tier_failures + (json_int_t)cold->store.put_failures;
    json_int_t pending = (json_int_t)c->pending + (json_int_t)cold->pending;

    return json_pack(
        "{s:s?,s:s?,s:o,s:o,s:o,s:I,s:I,s:I,s:I,s:I,s:f,s:o,s:o,s:o,s:{s:I,s:I,s:I}}",
        "fingerprint", service->cold ? srv_cold_fingerprint(service->cold) : NULL,
        "io_mode", cold->store.io_name, "hits_by_tier", by_source(c->turns),
        "reused_tokens_by_tier", by_source(c->reused_tokens), "misses_by_reason",
        by_miss(c->misses), "restored_bytes", (json_int_t)c->restored_bytes,
        "reused_bytes", (json_int_t)c->reused_bytes, "stored_bytes",
        (json_int_t)cold->store.written_bytes, "stored_entries",
        (json_int_t)cold->store.puts, "tier_failures", failures,
        "bytes_written_per_byte_reused", srv_bytes_written_per_byte_reused(figures),
        "ram", service->cold ? ram_figures(&cold->ram) : json_null(), "queue",
        cold->has_store ? queue_figures(&cold->queue) : json_null(), "store",
        cold->has_store ? store_figures(&cold->store) : json_null(), "durable", "entries",
        (json_int_t)cold->store.entries, "longest_prefix_tokens",
        (json_int_t)cold->store.longest_prefix_tokens, "pending", pending);
}

char *srv_service_stats(struct srv_service *service)
{
    struct srv_figures figures;
    json_t *json;
    json_t *tiers;

    get_figures(service, &figures);
    json = request_figures(service, &figures);
    tiers = tier_figures(service, &figures);
    if (json && (!tiers || json_object_update(json, tiers) != 0)) {
        json_decref(json);
        json = NULL;
    }
    json_decref(tiers);
    return dump(json);
}

char *srv_service_metrics(struct srv_service *service)
{
    struct srv_figures figures;

    get_figures(service, &figures);
    figures.counters.tier_failures += figures.cold.store.put_failures;
    return srv_metrics_encode(&figures);
}

void srv_service_stopping_fault(struct srv_fault *fault)
{
    srv_fault_set(fault, 503, "stopping", NULL, "the server is stopping");
}

void srv_service_full_fault(struct srv_fault *fault)
{
    srv_fault_set(fault, 429, "queue_full", NULL,
                  "%d requests are waiting already, try again later", SRV_WAITING_MAX);
}

bool srv_service_accept(struct srv_service *service, struct srv_job *job,
                        struct srv_fault *fault)
{
    enum srv_push pushed = SRV_PUSH_FULL;

    if (atomic_load(&service->stopping))
        pushed = SRV_PUSH_CLOSED;
    else if (srv_queue_has_room(service->queue))
        pushed = srv_queue_push(service->incoming, job);
    if (pushed == SRV_PUSH_FULL)
        srv_service_full_fault(fault);
    else if (pushed == SRV_PUSH_CLOSED)
        srv_service_stopping_fault(fault);
    return pushed == SRV_PUSH_OK;
}

bool srv_service_flush(struct srv_service *service, struct srv_job *job,
                       struct srv_fault *fault)
{
    switch (srv_queue_push(service->flushes, job)) {
    case SRV_PUSH_OK:
        return true;
    case SRV_PUSH_CLOSED:
        srv_service_stopping_fault(fault);
        return false;
    case SRV_PUSH_FULL:
        break;
    }
    return srv_fault_set(fault, 429, "queue_full", NULL,
                         "%d flushes are waiting already, try again later",
                         SRV_FLUSHES_MAX);
}

void srv_service_count_refused(struct srv_service *service)
{
    srv_stats_begin(service->stats)->refused++;
    srv_stats_end(service->stats);
}

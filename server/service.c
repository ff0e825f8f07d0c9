/* The endpoints behind the routes, as far as the HTTP thread serves them: quickly.
 * Invariant: nothing in here takes time that grows with a request's size.
 * Failure: NULL or a fault for the client. */
#include "service.h"

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

static json_t *store_figures(const struct ckv_store_stats *store)
{
    return json_pack(
        "{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "used_bytes",
        (json_int_t)store->used_bytes, "cap_bytes", (json_int_t)store->cap_bytes,
        "free_floor_bytes", (json_int_t)store->free_floor_bytes, "restores",
        (json_int_t)store->restores, "restored_bytes", (json_int_t)store->restored_bytes,
        "misses", (json_int_t)store->misses, "restore_failures",
        (json_int_t)store->restore_failures, "puts", (json_int_t)store->puts,
        "written_bytes", (json_int_t)store->written_bytes, "put_failures",
        (json_int_t)store->put_failures, "refused_full", (json_int_t)store->refused_full,
        "superseded", (json_int_t)store->superseded, "evicted",
        (json_int_t)store->evicted, "set_aside", (json_int_t)store->set_aside, "foreign",
        (json_int_t)store->foreign, "swept", (json_int_t)store->swept);
}

static json_t *request_figures(struct srv_service *service, const struct srv_counters *c)
{
    size_t waiting;
    size_t running;

    srv_queue_count(service->queue, &waiting, &running);
    return json_pack(
        "{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:"
        "f,s:f,s:f,"
        "s:f}",
        "model", srv_engine_model_name(service->engine), "context_size",
        (json_int_t)srv_engine_context_size(service->engine), "threads",
        (json_int_t)srv_engine_thread_count(service->engine), "requests",
        (json_int_t)c->requests, "completed", (json_int_t)c->completed, "cancelled",
        (json_int_t)c->cancelled, "failed", (json_int_t)c->failed, "refused",
        (json_int_t)c->refused, "waiting", (json_int_t)waiting, "running",
        (json_int_t)running, "hits", (json_int_t)c->hits, "misses", (json_int_t)c->misses,
        "prompt_tokens", (json_int_t)c->prompt_tokens, "cached_tokens",
        (json_int_t)c->cached_tokens, "completion_tokens",
        (json_int_t)c->completion_tokens, "restored_bytes", (json_int_t)c->restored_bytes,
        "stored_bytes", (json_int_t)c->stored_bytes, "stored_entries",
        (json_int_t)c->stored_entries, "tier_failures", (json_int_t)c->tier_failures,
        "last_restore_ms", c->last_restore_ms, "last_prefill_ms", c->last_prefill_ms,
        "last_ttft_ms", c->last_ttft_ms, "last_store_ms", c->last_store_ms);
}

char *srv_service_stats(struct srv_service *service)
{
    struct srv_counters counters = srv_stats_get(service->stats);
    struct ckv_store_stats store = {0};
    json_t *json = request_figures(service, &counters);
    json_t *tier;

    /* The counters are older than the store's figures: with pending 0 the entry is among
     * them. */
    if (service->cold)
        srv_cold_get_stats(service->cold, &store);
    tier = json_pack(
        "{s:s?,s:s?,s:o,s:{s:I,s:I,s:I}}", "fingerprint",
        service->cold ? srv_cold_fingerprint(service->cold) : NULL, "io_mode",
        store.io_name, "store", service->cold ? store_figures(&store) : json_null(),
        "durable", "entries", (json_int_t)store.entries, "longest_prefix_tokens",
        (json_int_t)store.longest_prefix_tokens, "pending", (json_int_t)counters.pending);
    if (json && (!tier || json_object_update(json, tier) != 0)) {
        json_decref(json);
        json = NULL;
    }
    json_decref(tier);
    return dump(json);
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

void srv_service_count_refused(struct srv_service *service)
{
    srv_stats_begin(service->stats)->refused++;
    srv_stats_end(service->stats);
}

/* The endpoints behind the routes.
 * Invariant: whatever refuses a request does so before it is queued, so a queued one fits
 * the context. Failure: a fault for the client, with the field it is about. */
#include "service.h"

#include "timing.h"

#include <coldkv/io.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

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

static bool fits_context(const struct srv_service *service, const struct srv_chat *chat,
                         size_t token_count, struct srv_fault *fault)
{
    uint32_t size = srv_engine_context_size(service->engine);

    if (token_count + (chat->max_tokens > 0 ? chat->max_tokens : 1) <= size)
        return true;
    if (chat->max_tokens == 0)
        return srv_fault_set(fault, 400, "context_length_exceeded", "messages",
                             "the messages have %zu tokens, the context has %u",
                             token_count, size);
    return srv_fault_set(
        fault, 400, "context_length_exceeded", "messages",
        "the messages have %zu tokens and max_tokens is %u, the context has %u",
        token_count, chat->max_tokens, size);
}

static bool random_bytes(void *data, size_t size)
{
    const struct ckv_io *io = ckv_io_posix();

    return io->random(io->ctx, data, size, NULL) == CKV_OK;
}

/* What makes this request this one: its name, its seed, its limits. */
static bool label_job(struct srv_service *service, struct srv_job *job)
{
    unsigned char random[12];
    size_t used;
    size_t i;

    if (!random_bytes(random, sizeof(random)))
        return false;
    used = (size_t)snprintf(job->id, sizeof(job->id), "chatcmpl-");
    for (i = 0; i < sizeof(random); i++)
        used +=
            (size_t)snprintf(job->id + used, sizeof(job->id) - used, "%02x", random[i]);
    if (!job->chat.has_seed && !random_bytes(&job->chat.seed, sizeof(job->chat.seed)))
        return false;
    job->model =
        job->chat.model ? job->chat.model : srv_engine_model_name(service->engine);
    job->max_tokens = job->chat.max_tokens;
    if (job->max_tokens == 0)
        job->max_tokens =
            srv_engine_context_size(service->engine) - (uint32_t)job->token_count;
    job->created_s = srv_now_s();
    job->arrived_ms = srv_now_ms();
    return true;
}

void srv_service_stopping_fault(struct srv_fault *fault)
{
    srv_fault_set(fault, 503, "stopping", NULL, "the server is stopping");
}

static bool queue_is_full(struct srv_fault *fault)
{
    return srv_fault_set(fault, 429, "queue_full", NULL,
                         "%d requests are waiting already, try again later",
                         SRV_QUEUE_LIMIT);
}

struct srv_job *srv_service_prepare(struct srv_service *service, const char *body,
                                    size_t length, struct srv_fault *fault)
{
    struct srv_chat chat;
    struct srv_job *job;
    int32_t *tokens = NULL;
    size_t token_count = 0;

    if (atomic_load(&service->stopping)) {
        srv_service_stopping_fault(fault);
        return NULL;
    }
    if (!srv_queue_has_room(service->queue)) {
        queue_is_full(fault);
        return NULL;
    }
    if (!srv_chat_parse(body, length, &chat, fault))
        return NULL;
    if (!srv_engine_tokenize(service->engine, chat.messages, chat.message_count, &tokens,
                             &token_count, fault) ||
        !fits_context(service, &chat, token_count, fault)) {
        free(tokens);
        srv_chat_deinit(&chat);
        return NULL;
    }
    job = srv_job_create(&chat, tokens, token_count);
    if (job && label_job(service, job))
        return job;
    srv_job_unref(job);
    srv_fault_set(fault, 500, NULL, NULL, "out of memory");
    return NULL;
}

bool srv_service_submit(struct srv_service *service, struct srv_job *job,
                        struct srv_fault *fault)
{
    switch (srv_queue_push(service->queue, job)) {
    case SRV_PUSH_OK:
        return true;
    case SRV_PUSH_FULL:
        return queue_is_full(fault);
    case SRV_PUSH_CLOSED:
        break;
    }
    srv_service_stopping_fault(fault);
    return false;
}

void srv_service_count_refused(struct srv_service *service)
{
    srv_stats_begin(service->stats)->refused++;
    srv_stats_end(service->stats);
}

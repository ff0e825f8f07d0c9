/* Flushes on demand, one after the other, each with its evidence as the answer.
 * Invariant: 200 means that everything which was put before the request is durable.
 * Failure: 503, with the same evidence, when something is not; 409 when there is no
 * store. */
#include "flusher.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

char *srv_flusher_encode(const struct ckv_flush_evidence *evidence)
{
    json_t *json = json_pack(
        "{s:b,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:f}", "durable", evidence->durable,
        "pending_snapshots", (json_int_t)evidence->pending_snapshots, "pending_spills",
        (json_int_t)evidence->pending_spills, "pending_spill_bytes",
        (json_int_t)evidence->pending_spill_bytes, "dropped_spills",
        (json_int_t)evidence->dropped_spills, "failed_spills",
        (json_int_t)evidence->failed_spills, "flushed_snapshots",
        (json_int_t)evidence->flushed_snapshots, "missing_snapshots",
        (json_int_t)evidence->missing_snapshots, "entries",
        (json_int_t)evidence->durable_entries, "longest_durable_prefix_tokens",
        (json_int_t)evidence->longest_durable_prefix_tokens, "elapsed_ms",
        (double)evidence->elapsed_ns / 1e6);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return text;
}

static void flush(struct srv_flusher *flusher, struct srv_job *job)
{
    struct ckv_flush_evidence evidence;
    struct srv_fault fault;
    char *text;

    if (!flusher->cold || !srv_cold_flush(flusher->cold, flusher->timeout_s, &evidence)) {
        srv_fault_set(&fault, 409, "no_ssd_cache", NULL,
                      "there is no cache on disk to flush to (see --ssd-cache)");
        srv_job_fail(job, &fault);
        return;
    }
    text = srv_flusher_encode(&evidence);
    if (text) {
        srv_job_finish_with(job, evidence.durable ? 200 : 503, text, strlen(text));
    } else {
        srv_fault_set(&fault, 500, NULL, NULL, "out of memory");
        srv_job_fail(job, &fault);
    }
    free(text);
}

static void *loop(void *arg)
{
    struct srv_flusher *flusher = arg;
    struct srv_job *job;

    while ((job = srv_queue_take(&flusher->queue)) != NULL) {
        if (srv_job_begin(job))
            flush(flusher, job);
        srv_queue_done(&flusher->queue);
    }
    return NULL;
}

bool srv_flusher_start(struct srv_flusher *flusher)
{
    return pthread_create(&flusher->thread, NULL, loop, flusher) == 0;
}

void srv_flusher_join(struct srv_flusher *flusher)
{
    pthread_join(flusher->thread, NULL);
}

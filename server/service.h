#ifndef COLDKV_SERVER_SERVICE_H
#define COLDKV_SERVER_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "cold.h"
#include "engine.h"
#include "fault.h"
#include "job.h"
#include "queue.h"
#include "stats.h"

enum {
    SRV_WAITING_MAX = 64,   /* requests that wait for the engine */
    SRV_FLUSHES_MAX = 16,   /* requests that wait for a flush */
    SRV_INCOMING_MAX = 256, /* requests that are not looked at yet */
};

/* What the endpoints answer, without HTTP around it. */
struct srv_service {
    struct srv_engine *engine;
    struct srv_cold *cold;      /* NULL = no cold tier */
    struct srv_queue *incoming; /* as they come, for the preparer */
    struct srv_queue *queue;    /* prepared, for the engine */
    struct srv_queue *flushes;  /* for the flusher */
    struct srv_stats *stats;
    int64_t started_s;
    atomic_bool stopping; /* no new work is taken; set once */
};

/* Bodies of GET answers, on the heap; NULL when memory is short. */
char *srv_service_models(struct srv_service *service);
char *srv_service_health(struct srv_service *service);
char *srv_service_stats(struct srv_service *service);
char *srv_service_metrics(struct srv_service *service);

/* Takes a chat or completion, whose connection is attached. Everything else that may be
 * wrong with it is found by the preparer. */
bool srv_service_accept(struct srv_service *service, struct srv_job *job,
                        struct srv_fault *fault);

/* Takes a request to flush; the answer is the flusher's. */
bool srv_service_flush(struct srv_service *service, struct srv_job *job,
                       struct srv_fault *fault);

void srv_service_count_refused(struct srv_service *service);

/* "the server is stopping": what is answered from then on. */
void srv_service_stopping_fault(struct srv_fault *fault);

/* What is answered when SRV_WAITING_MAX requests wait. */
void srv_service_full_fault(struct srv_fault *fault);

#endif

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

/* What the endpoints answer, without HTTP around it. */
struct srv_service {
    struct srv_engine *engine;
    struct srv_cold *cold; /* NULL = no cold tier */
    struct srv_queue *queue;
    struct srv_stats *stats;
    int64_t started_s;
    atomic_bool stopping; /* no new work is taken; set once */
};

/* Bodies of GET answers, on the heap; NULL when memory is short. */
char *srv_service_models(struct srv_service *service);
char *srv_service_health(struct srv_service *service);
char *srv_service_stats(struct srv_service *service);

/* Checks a chat request and makes it a job, which is not queued yet; NULL with `fault`
 * set. */
struct srv_job *srv_service_prepare(struct srv_service *service, const char *body,
                                    size_t length, struct srv_fault *fault);

/* Queues a prepared job, whose connection is attached. */
bool srv_service_submit(struct srv_service *service, struct srv_job *job,
                        struct srv_fault *fault);

void srv_service_count_refused(struct srv_service *service);

/* "the server is stopping": what is answered from then on. */
void srv_service_stopping_fault(struct srv_fault *fault);

#endif

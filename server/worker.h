#ifndef COLDKV_SERVER_WORKER_H
#define COLDKV_SERVER_WORKER_H

#include <pthread.h>
#include <stdbool.h>

#include "cold.h"
#include "engine.h"
#include "queue.h"
#include "stats.h"

/* The engine thread: takes one job after the other from the queue, generates its reply,
 * and holds the cache behind it. It owns the engine's context. */
struct srv_worker {
    struct srv_engine *engine;
    struct srv_cold *cold; /* NULL = no cold tier */
    struct srv_queue *queue;
    struct srv_stats *stats;
    int trace_fd; /* -1 = no trace */
    pthread_t thread;
    /* What the context holds between two turns; only the thread's own. */
    char *live_ns;
    int32_t *live_tokens;
    size_t live_count;
};

bool srv_worker_start(struct srv_worker *worker);

/* Waits until the queue is closed and the last job is served and held. */
void srv_worker_join(struct srv_worker *worker);

#endif

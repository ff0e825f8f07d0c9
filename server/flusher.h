#ifndef COLDKV_SERVER_FLUSHER_H
#define COLDKV_SERVER_FLUSHER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cold.h"
#include "queue.h"

/* The thread behind POST /admin/cache/flush: a flush waits for the disk, which neither
 * the HTTP thread nor the engine's may do. */
struct srv_flusher {
    struct srv_queue queue; /* jobs without a chat request */
    struct srv_cold *cold;  /* NULL = nothing to flush */
    uint32_t timeout_s;
    pthread_t thread;
};

/* The queue is made before, by srv_queue_init. */
bool srv_flusher_start(struct srv_flusher *flusher);

/* Waits until the queue is closed and the running flush is through. */
void srv_flusher_join(struct srv_flusher *flusher);

/* The evidence as JSON, on the heap; NULL when memory is short. */
char *srv_flusher_encode(const struct ckv_flush_evidence *evidence);

#endif

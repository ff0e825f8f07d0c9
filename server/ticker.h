#ifndef COLDKV_SERVER_TICKER_H
#define COLDKV_SERVER_TICKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cold.h"
#include "queue.h"

/* A thread that ticks the queue and the tiers at a fixed interval. */
struct srv_ticker {
    struct srv_queue *queue;
    struct srv_cold *cold; /* NULL = no tiers */
    uint32_t interval_s;
    int wake_pipe[2];
    pthread_t thread;
};

bool srv_ticker_start(struct srv_ticker *ticker, struct srv_queue *queue,
                      struct srv_cold *cold, uint32_t interval_s);
void srv_ticker_stop(struct srv_ticker *ticker);

#endif

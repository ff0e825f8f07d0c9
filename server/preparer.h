#ifndef COLDKV_SERVER_PREPARER_H
#define COLDKV_SERVER_PREPARER_H

#include <pthread.h>
#include <stdbool.h>

#include "service.h"

/* The thread between HTTP and engine: turns bodies into tokens. Parsing and tokenizing
 * can take seconds for hostile input, and neither running streams nor the engine may wait
 * for that. */
struct srv_preparer {
    struct srv_service *service;
    pthread_t thread;
};

bool srv_preparer_start(struct srv_preparer *preparer, struct srv_service *service);

/* Waits until the queue of incoming requests is closed and the last one is through. */
void srv_preparer_join(struct srv_preparer *preparer);

#endif

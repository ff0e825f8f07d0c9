#ifndef COLDKV_SERVER_QUEUE_H
#define COLDKV_SERVER_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "job.h"

/* Jobs that wait for a thread, first come first served, and the one that has its turn.
 * Lock order: queue, then job. */
struct srv_queue {
    pthread_mutex_t mu;
    pthread_cond_t changed;
    size_t limit; /* of those that wait */
    /* guarded by mu */
    struct srv_job *head;
    struct srv_job *tail;
    size_t waiting;
    struct srv_job *running;
    bool closed;
};

enum srv_push { SRV_PUSH_OK, SRV_PUSH_FULL, SRV_PUSH_CLOSED };

bool srv_queue_init(struct srv_queue *queue, size_t limit);
void srv_queue_deinit(struct srv_queue *queue);

/* Whether a push now would not find it full. Both first drop from a full queue those
 * whose clients went away. */
bool srv_queue_has_room(struct srv_queue *queue);

/* Takes a reference of its own when it says OK. */
enum srv_push srv_queue_push(struct srv_queue *queue, struct srv_job *job);

/* Waits for the next job; NULL once the queue is closed. The job stays referenced, and
 * counts as running, until srv_queue_done. */
struct srv_job *srv_queue_take(struct srv_queue *queue);
void srv_queue_done(struct srv_queue *queue);

/* Nothing comes in any more, and what waits is ended with `fault`. */
void srv_queue_close(struct srv_queue *queue, const struct srv_fault *fault);

/* Drops waiting jobs whose clients went away, and ticks all others. */
void srv_queue_tick(struct srv_queue *queue);

void srv_queue_count(struct srv_queue *queue, size_t *waiting, size_t *running);

#endif

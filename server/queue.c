/* A line in front of a thread.
 * Invariant: `waiting` is the length of the list, and each job in it and the running one
 * are referenced once by the queue. Failure: none but "full" and "closed", which the
 * caller reports. */
#include "queue.h"

bool srv_queue_init(struct srv_queue *queue, size_t limit)
{
    *queue = (struct srv_queue){.limit = limit};
    if (pthread_mutex_init(&queue->mu, NULL) != 0)
        return false;
    if (pthread_cond_init(&queue->changed, NULL) != 0) {
        pthread_mutex_destroy(&queue->mu);
        return false;
    }
    return true;
}

void srv_queue_deinit(struct srv_queue *queue)
{
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mu);
}

/* With the queue locked. */
static void drop_gone(struct srv_queue *queue)
{
    struct srv_job **link = &queue->head;

    queue->tail = NULL;
    while (*link) {
        struct srv_job *job = *link;

        if (srv_job_check_gone(job)) {
            *link = job->next;
            queue->waiting--;
            srv_job_unref(job);
        } else {
            queue->tail = job;
            link = &job->next;
        }
    }
}

bool srv_queue_has_room(struct srv_queue *queue)
{
    bool room;

    pthread_mutex_lock(&queue->mu);
    if (queue->waiting >= queue->limit)
        drop_gone(queue);
    room = queue->waiting < queue->limit;
    pthread_mutex_unlock(&queue->mu);
    return room;
}

enum srv_push srv_queue_push(struct srv_queue *queue, struct srv_job *job)
{
    enum srv_push result = SRV_PUSH_OK;

    pthread_mutex_lock(&queue->mu);
    if (queue->waiting >= queue->limit)
        drop_gone(queue);
    if (queue->closed) {
        result = SRV_PUSH_CLOSED;
    } else if (queue->waiting >= queue->limit) {
        result = SRV_PUSH_FULL;
    } else {
        srv_job_ref(job);
        job->next = NULL;
        if (queue->tail)
            queue->tail->next = job;
        else
            queue->head = job;
        queue->tail = job;
        queue->waiting++;
        pthread_cond_signal(&queue->changed);
    }
    pthread_mutex_unlock(&queue->mu);
    return result;
}

struct srv_job *srv_queue_take(struct srv_queue *queue)
{
    struct srv_job *job = NULL;

    pthread_mutex_lock(&queue->mu);
    while (!queue->head && !queue->closed)
        pthread_cond_wait(&queue->changed, &queue->mu);
    if (queue->head) {
        job = queue->head;
        queue->head = job->next;
        if (!queue->head)
            queue->tail = NULL;
        queue->waiting--;
        queue->running = job;
    }
    pthread_mutex_unlock(&queue->mu);
    return job;
}

void srv_queue_done(struct srv_queue *queue)
{
    struct srv_job *job;

    pthread_mutex_lock(&queue->mu);
    job = queue->running;
    queue->running = NULL;
    pthread_mutex_unlock(&queue->mu);
    srv_job_unref(job);
}

void srv_queue_close(struct srv_queue *queue, const struct srv_fault *fault)
{
    struct srv_job *job;
    struct srv_job *next;

    pthread_mutex_lock(&queue->mu);
    queue->closed = true;
    job = queue->head;
    queue->head = NULL;
    queue->tail = NULL;
    queue->waiting = 0;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mu);
    for (; job; job = next) {
        next = job->next;
        srv_job_fail(job, fault);
        srv_job_unref(job);
    }
}

void srv_queue_tick(struct srv_queue *queue)
{
    struct srv_job *job;

    pthread_mutex_lock(&queue->mu);
    drop_gone(queue);
    for (job = queue->head; job; job = job->next)
        srv_job_tick(job);
    if (queue->running)
        srv_job_tick(queue->running);
    pthread_mutex_unlock(&queue->mu);
}

void srv_queue_count(struct srv_queue *queue, size_t *waiting, size_t *running)
{
    pthread_mutex_lock(&queue->mu);
    *waiting = queue->waiting;
    *running = queue->running ? 1 : 0;
    pthread_mutex_unlock(&queue->mu);
}

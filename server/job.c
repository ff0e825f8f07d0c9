/* The life of one request between two threads.
 * Invariant: `suspended` is true exactly while the connection sleeps; it is set and
 * cleared under the job's mutex together with the call that does it, so nothing that is
 * awake is ever resumed and nothing that sleeps is forgotten. The descriptor is valid
 * exactly while `connection` is set. Failure: a job that cannot grow its output is
 * cancelled, and its connection is closed. */
#include "job.h"

#include "sse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct srv_job *srv_job_create(struct srv_buf *body)
{
    struct srv_job *job = calloc(1, sizeof(*job));

    if (!job || pthread_mutex_init(&job->mu, NULL) != 0) {
        free(job);
        return NULL;
    }
    job->body = *body;
    *body = (struct srv_buf){0};
    job->refs = 1;
    job->out_status = 200;
    job->fd = -1;
    return job;
}

struct srv_job *srv_job_ref(struct srv_job *job)
{
    pthread_mutex_lock(&job->mu);
    job->refs++;
    pthread_mutex_unlock(&job->mu);
    return job;
}

void srv_job_unref(struct srv_job *job)
{
    unsigned left;

    if (!job)
        return;
    pthread_mutex_lock(&job->mu);
    left = --job->refs;
    pthread_mutex_unlock(&job->mu);
    if (left > 0)
        return;
    pthread_mutex_destroy(&job->mu);
    srv_request_deinit(&job->request);
    srv_buf_deinit(&job->body);
    srv_buf_deinit(&job->out);
    free(job->tokens);
    free(job);
}

static void wake(struct srv_job *job)
{
    if (!job->suspended)
        return;
    job->suspended = false;
    job->waker->resume(job->connection);
}

static void sleep_until_woken(struct srv_job *job)
{
    job->suspended = true;
    job->waker->suspend(job->connection);
}

static bool is_over(const struct srv_job *job)
{
    return job->state == SRV_JOB_DONE || job->state == SRV_JOB_CANCELLED;
}

static void cancel(struct srv_job *job)
{
    if (is_over(job))
        return;
    job->state = SRV_JOB_CANCELLED;
    wake(job);
}

void srv_job_attach(struct srv_job *job, void *connection, int fd,
                    const struct srv_waker *waker)
{
    pthread_mutex_lock(&job->mu);
    job->waker = waker;
    job->connection = connection;
    job->fd = fd;
    pthread_mutex_unlock(&job->mu);
}

void srv_job_detach(struct srv_job *job)
{
    pthread_mutex_lock(&job->mu);
    job->suspended = false;
    job->connection = NULL;
    job->fd = -1;
    cancel(job);
    pthread_mutex_unlock(&job->mu);
}

enum srv_job_answer srv_job_answer_or_suspend(struct srv_job *job)
{
    enum srv_job_answer answer = SRV_ANSWER_WAIT;

    pthread_mutex_lock(&job->mu);
    if (job->state == SRV_JOB_CANCELLED)
        answer = SRV_ANSWER_GONE;
    else if (job->commenced)
        answer = SRV_ANSWER_STREAM;
    else if (job->state == SRV_JOB_DONE)
        answer = job->fault.status != 0 ? SRV_ANSWER_FAULT : SRV_ANSWER_BODY;
    else
        sleep_until_woken(job);
    pthread_mutex_unlock(&job->mu);
    return answer;
}

struct srv_buf srv_job_take_body(struct srv_job *job)
{
    struct srv_buf body;

    pthread_mutex_lock(&job->mu);
    body = job->out;
    job->out = (struct srv_buf){0};
    pthread_mutex_unlock(&job->mu);
    return body;
}

enum srv_job_read srv_job_read_or_suspend(struct srv_job *job, char *bytes,
                                          size_t capacity, size_t *count)
{
    enum srv_job_read result = SRV_READ_SUSPENDED;
    size_t left;

    pthread_mutex_lock(&job->mu);
    left = job->out.length - job->out_at;
    *count = left < capacity ? left : capacity;
    if (job->state == SRV_JOB_CANCELLED) {
        result = SRV_READ_BROKEN;
    } else if (left > 0) {
        result = SRV_READ_BYTES;
        memcpy(bytes, job->out.data + job->out_at, *count);
        job->out_at += *count;
    } else if (job->state == SRV_JOB_DONE) {
        result = SRV_READ_END;
    } else {
        srv_buf_clear(&job->out);
        job->out_at = 0;
        sleep_until_woken(job);
    }
    pthread_mutex_unlock(&job->mu);
    return result;
}

bool srv_job_begin(struct srv_job *job)
{
    bool begun = false;

    pthread_mutex_lock(&job->mu);
    if (job->state == SRV_JOB_QUEUED) {
        job->state = SRV_JOB_RUNNING;
        begun = true;
        if (job->request.stream) {
            job->commenced = true;
            wake(job);
        }
    }
    pthread_mutex_unlock(&job->mu);
    return begun;
}

/* With the job locked. */
static bool append(struct srv_job *job, const char *bytes, size_t length)
{
    if (is_over(job))
        return false;
    if (!srv_buf_append(&job->out, bytes, length)) {
        cancel(job);
        return false;
    }
    job->written = true;
    return true;
}

bool srv_job_write(struct srv_job *job, const char *bytes, size_t length)
{
    bool ok;

    pthread_mutex_lock(&job->mu);
    ok = append(job, bytes, length);
    if (ok)
        wake(job);
    pthread_mutex_unlock(&job->mu);
    return ok;
}

static bool socket_is_closed(int fd)
{
    char byte;
    ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (got > 0)
        return false;
    return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

bool srv_job_check_gone(struct srv_job *job)
{
    bool gone;

    pthread_mutex_lock(&job->mu);
    if (!is_over(job) && job->fd >= 0 && socket_is_closed(job->fd))
        cancel(job);
    gone = job->state == SRV_JOB_CANCELLED;
    pthread_mutex_unlock(&job->mu);
    return gone;
}

void srv_job_finish(struct srv_job *job, const char *bytes, size_t length)
{
    srv_job_finish_with(job, 200, bytes, length);
}

void srv_job_finish_with(struct srv_job *job, int status, const char *bytes,
                         size_t length)
{
    pthread_mutex_lock(&job->mu);
    job->out_status = status;
    if (append(job, bytes, length)) {
        job->state = SRV_JOB_DONE;
        wake(job);
    }
    pthread_mutex_unlock(&job->mu);
}

/* With the job locked. */
static void append_fault_event(struct srv_job *job, const struct srv_fault *fault)
{
    struct srv_buf event = {0};
    char *text = srv_fault_encode(fault);

    if (text && srv_sse_append_data(&event, text))
        (void)append(job, event.data, event.length);
    free(text);
    srv_buf_deinit(&event);
}

void srv_job_fail(struct srv_job *job, const struct srv_fault *fault)
{
    pthread_mutex_lock(&job->mu);
    if (!is_over(job)) {
        job->fault = *fault;
        if (job->commenced)
            append_fault_event(job, fault);
    }
    if (!is_over(job)) {
        job->state = SRV_JOB_DONE;
        wake(job);
    }
    pthread_mutex_unlock(&job->mu);
}

void srv_job_tick(struct srv_job *job)
{
    static const char comment[] = ": keep-alive\n\n";

    pthread_mutex_lock(&job->mu);
    if (job->request.stream && !is_over(job)) {
        /* A client that does not read what is there needs no further comments. */
        if (!job->written && job->out_at == job->out.length)
            (void)append(job, comment, sizeof(comment) - 1);
        job->commenced = true;
        job->written = false;
        wake(job);
    }
    pthread_mutex_unlock(&job->mu);
}

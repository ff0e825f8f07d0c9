#ifndef COLDKV_SERVER_JOB_H
#define COLDKV_SERVER_JOB_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "fault.h"
#include "request.h"

enum { SRV_JOB_ID_SIZE = 40 };

enum srv_job_state {
    SRV_JOB_QUEUED,
    SRV_JOB_RUNNING,
    SRV_JOB_DONE,      /* the whole answer is in `out` or `fault` */
    SRV_JOB_CANCELLED, /* nobody waits for it any more */
};

/* How the HTTP side lets a connection sleep and wakes it. resume is called only for a
 * connection that is asleep; both are called with the job locked. */
struct srv_waker {
    void (*suspend)(void *connection);
    void (*resume)(void *connection);
};

/* One request on its way from the HTTP thread to the engine thread and back. It is
 * reference counted because either side may be done with it first: the client goes away
 * while the engine computes, or the engine is done while the client still reads. */
struct srv_job {
    /* Until it is prepared, then empty. */
    struct srv_buf body;
    /* Set while it is prepared, then only read; its kind is there from the start. */
    struct srv_request request;
    int32_t *tokens;
    size_t token_count;
    uint32_t max_tokens;
    bool no_store; /* the client wants nothing of it kept; set from the start */
    char id[SRV_JOB_ID_SIZE];
    const char
        *model; /* what answers call it; borrowed from request or from the server */
    int64_t created_s;
    double arrived_ms;
    const struct srv_waker *waker;

    pthread_mutex_t mu;
    /* guarded by mu */
    unsigned refs;
    enum srv_job_state state;
    void *connection; /* NULL when the HTTP side is done with it */
    int fd;           /* of the connection, -1 with it */
    bool suspended;
    bool commenced; /* a stream's answer may begin, or has begun */
    bool written;   /* since the last tick */
    struct srv_buf out;
    size_t out_at;
    int out_status; /* HTTP, of a whole body */
    struct srv_fault fault;

    struct srv_job *next; /* guarded by the queue's mutex */
};

/* A job with one reference, for a request body that it takes over. NULL: no memory, and
 * the body stays the caller's. */
struct srv_job *srv_job_create(struct srv_buf *body);
struct srv_job *srv_job_ref(struct srv_job *job);
void srv_job_unref(struct srv_job *job);

/* HTTP side: only from the thread that owns the connection. */

void srv_job_attach(struct srv_job *job, void *connection, int fd,
                    const struct srv_waker *waker);

/* The connection ends, for whatever reason; a job that is not done is cancelled. */
void srv_job_detach(struct srv_job *job);

enum srv_job_answer {
    SRV_ANSWER_WAIT,   /* not yet; the connection was suspended */
    SRV_ANSWER_BODY,   /* answer with srv_job_take_body */
    SRV_ANSWER_FAULT,  /* answer with job->fault */
    SRV_ANSWER_STREAM, /* begin to stream with srv_job_read */
    SRV_ANSWER_GONE,   /* close the connection */
};

enum srv_job_answer srv_job_answer_or_suspend(struct srv_job *job);

/* The finished body; the caller owns it. */
struct srv_buf srv_job_take_body(struct srv_job *job);

enum srv_job_read { SRV_READ_BYTES, SRV_READ_SUSPENDED, SRV_READ_END, SRV_READ_BROKEN };

/* Moves up to `capacity` bytes of the stream out. With nothing to read the connection is
 * suspended. */
enum srv_job_read srv_job_read_or_suspend(struct srv_job *job, char *bytes,
                                          size_t capacity, size_t *count);

/* Engine side. */

/* The job's turn begins; false when it was cancelled meanwhile. */
bool srv_job_begin(struct srv_job *job);

/* Adds bytes to a stream. False: cancelled or no memory. */
bool srv_job_write(struct srv_job *job, const char *bytes, size_t length);

/* Whether nobody waits for the answer any more. Looks at the socket, because
 * libmicrohttpd does not watch it while the connection is suspended. A client that
 * half-closes its side counts as gone. */
bool srv_job_check_gone(struct srv_job *job);

/* The last bytes of a stream, or the whole body. */
void srv_job_finish(struct srv_job *job, const char *bytes, size_t length);

/* The whole body of an answer that may have another status than 200. */
void srv_job_finish_with(struct srv_job *job, int status, const char *bytes,
                         size_t length);

/* Ends the job with an error: as an HTTP status when the answer has not begun, else as an
 * event. */
void srv_job_fail(struct srv_job *job, const struct srv_fault *fault);

/* Called every few seconds for queued and running jobs: begins the answer of a stream
 * that still waits, and adds a comment when nothing was sent since the last tick. */
void srv_job_tick(struct srv_job *job);

#endif

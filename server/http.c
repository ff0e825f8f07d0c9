/* HTTP: libmicrohttpd's callbacks, checks on headers, bodies in, answers out.
 * Invariant: one exchange per request, made with its headers and freed in the completion
 * callback. A connection is suspended only by its job, inside the access handler or the
 * content reader, and resumed only by its job, which knows that it sleeps. Failure: an
 * answer that cannot be made closes the connection. */
#include "http.h"

#include "access.h"
#include "log.h"
#include "timing.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    BODY_BYTES_MAX = 16 * 1024 * 1024,
    /* How much of a refused body is read, so that its sender gets to see the answer. */
    DISCARD_BYTES_MAX = 64 * 1024 * 1024,
    /* Of all requests together: bodies are the only memory that clients fill at will. */
    BODIES_BYTES_MAX = 256 * 1024 * 1024,
    CONNECTIONS_MAX = 256,
    CONNECTION_MEMORY = 64 * 1024,
    STREAM_BLOCK = 16 * 1024,
    IDLE_TIMEOUT_S = 60,
    THREAD_STACK = 8 * 1024 * 1024,
    STOP_TIMEOUT_S = 5,
};

/* poll and not epoll: with epoll's edges libmicrohttpd 0.9.75 can miss that a client
 * closed its side together with its request, and then keeps the connection until it times
 * out. */
#define DAEMON_FLAGS                                                                     \
    (MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME)

struct srv_http {
    struct MHD_Daemon *daemon;
    struct srv_service *service;
    struct srv_access access;
    size_t bodies_bytes; /* only the daemon's thread */
    pthread_mutex_t mu;
    pthread_cond_t idle;
    size_t exchanges; /* guarded by mu */
};

struct exchange {
    struct srv_http *http;
    const struct srv_route *route;
    struct srv_fault fault;
    struct srv_buf body;
    size_t body_bytes; /* counted in http->bodies_bytes until the exchange ends */
    size_t received;
    struct srv_job *job;
    bool keeps_nothing;
};

static void suspend(void *connection)
{
    MHD_suspend_connection(connection);
}

static void resume(void *connection)
{
    MHD_resume_connection(connection);
}

static const struct srv_waker waker = {suspend, resume};

static enum MHD_Result queue_response(struct MHD_Connection *connection,
                                      struct MHD_Response *response, int status,
                                      const char *content_type, const char *allow)
{
    enum MHD_Result result;

    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", content_type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (status == 401)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (status == 405)
        MHD_add_response_header(response, "Allow", allow);
    if (status == 429)
        MHD_add_response_header(response, "Retry-After", "5");
    result = MHD_queue_response(connection, (unsigned)status, response);
    MHD_destroy_response(response);
    return result;
}

/* Takes over `text`. */
static enum MHD_Result answer_text(struct MHD_Connection *connection, int status,
                                   char *text, size_t length, const char *type,
                                   const char *allow)
{
    struct MHD_Response *response;

    if (!text)
        return MHD_NO;
    response = MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE);
    if (!response)
        free(text);
    return queue_response(connection, response, status, type, allow);
}

static enum MHD_Result answer_json(struct MHD_Connection *connection, int status,
                                   char *json, size_t length, const char *allow)
{
    return answer_text(connection, status, json, length, "application/json", allow);
}

static enum MHD_Result answer_fault(struct MHD_Connection *connection,
                                    const struct exchange *exchange)
{
    char *json = srv_fault_encode(&exchange->fault);

    if (exchange->fault.status != 500)
        srv_service_count_refused(exchange->http->service);
    return answer_json(connection, exchange->fault.status, json, json ? strlen(json) : 0,
                       exchange->route ? exchange->route->method : "");
}

static ssize_t read_stream(void *cls, uint64_t position, char *bytes, size_t capacity)
{
    size_t count = 0;

    (void)position;
    switch (srv_job_read_or_suspend(cls, bytes, capacity, &count)) {
    case SRV_READ_BYTES:
        return (ssize_t)count;
    case SRV_READ_SUSPENDED:
        return 0;
    case SRV_READ_END:
        return MHD_CONTENT_READER_END_OF_STREAM;
    case SRV_READ_BROKEN:
        break;
    }
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static void end_stream(void *cls)
{
    srv_job_unref(cls);
}

static enum MHD_Result answer_stream(struct MHD_Connection *connection,
                                     struct srv_job *job)
{
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, srv_job_ref(job), end_stream);

    if (!response)
        srv_job_unref(job);
    return queue_response(connection, response, 200, "text/event-stream", NULL);
}

/* Called when the job is queued, and again each time its connection was resumed. */
static enum MHD_Result answer_job(struct MHD_Connection *connection,
                                  struct exchange *exchange)
{
    struct srv_buf body;

    switch (srv_job_answer_or_suspend(exchange->job)) {
    case SRV_ANSWER_WAIT:
        return MHD_YES;
    case SRV_ANSWER_BODY:
        body = srv_job_take_body(exchange->job);
        return answer_json(connection, exchange->job->out_status, body.data, body.length,
                           NULL);
    case SRV_ANSWER_FAULT:
        exchange->fault = exchange->job->fault;
        return answer_fault(connection, exchange);
    case SRV_ANSWER_STREAM:
        return answer_stream(connection, exchange->job);
    case SRV_ANSWER_GONE:
        break;
    }
    return MHD_NO;
}

static void drop_body(struct exchange *exchange)
{
    exchange->http->bodies_bytes -= exchange->body_bytes;
    exchange->body_bytes = 0;
    srv_buf_deinit(&exchange->body);
}

static bool hand_over(struct exchange *exchange, struct srv_job *job)
{
    struct srv_service *service = exchange->http->service;

    if (exchange->route->id == SRV_ROUTE_FLUSH)
        return srv_service_flush(service, job, &exchange->fault);
    return srv_service_accept(service, job, &exchange->fault);
}

static bool start_job(struct MHD_Connection *connection, struct exchange *exchange)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct srv_job *job = srv_job_create(&exchange->body);

    if (!job)
        return srv_fault_set(&exchange->fault, 500, NULL, NULL, "out of memory");
    job->created_s = srv_now_s();
    job->arrived_ms = srv_now_ms();
    job->no_store = exchange->keeps_nothing;
    job->request.kind = exchange->route->id == SRV_ROUTE_COMPLETION
                            ? SRV_REQUEST_COMPLETION
                            : SRV_REQUEST_CHAT;
    srv_job_attach(job, connection, info ? info->connect_fd : -1, &waker);
    if (hand_over(exchange, job)) {
        exchange->job = job;
        return true;
    }
    srv_job_detach(job);
    srv_job_unref(job);
    return false;
}

static enum MHD_Result answer_get(struct MHD_Connection *connection,
                                  struct exchange *exchange)
{
    struct srv_service *service = exchange->http->service;
    const char *type = "application/json";
    char *json = NULL;
    int status = 200;

    switch (exchange->route->id) {
    case SRV_ROUTE_MODELS:
        json = srv_service_models(service);
        break;
    case SRV_ROUTE_STATS:
        json = srv_service_stats(service);
        break;
    case SRV_ROUTE_METRICS:
        json = srv_service_metrics(service);
        type = "text/plain; version=0.0.4; charset=utf-8";
        break;
    case SRV_ROUTE_HEALTH:
        json = srv_service_health(service);
        status = atomic_load(&service->stopping) ? 503 : 200;
        break;
    case SRV_ROUTE_CHAT:
    case SRV_ROUTE_COMPLETION:
    case SRV_ROUTE_FLUSH:
        break;
    }
    return answer_text(connection, status, json, json ? strlen(json) : 0, type, NULL);
}

static enum MHD_Result answer(struct MHD_Connection *connection,
                              struct exchange *exchange)
{
    if (exchange->job)
        return answer_job(connection, exchange);
    if (exchange->fault.status != 0)
        return answer_fault(connection, exchange);
    if (strcmp(exchange->route->method, "GET") == 0)
        return answer_get(connection, exchange);
    if (!start_job(connection, exchange))
        return answer_fault(connection, exchange);
    return answer_job(connection, exchange);
}

/* Collects the body. What is going to be refused anyway is read and dropped, because a
 * client that is still sending may not see an answer; but not without end. */
static enum MHD_Result take_body(struct exchange *exchange, const char *data, size_t size)
{
    struct srv_http *http = exchange->http;

    exchange->received += size;
    if (exchange->received > DISCARD_BYTES_MAX)
        return MHD_NO;
    if (exchange->fault.status != 0)
        return MHD_YES;
    exchange->body_bytes += size;
    http->bodies_bytes += size;
    if (exchange->received > BODY_BYTES_MAX)
        srv_fault_set(&exchange->fault, 413, "body_too_large", NULL,
                      "the body may have at most %d bytes", BODY_BYTES_MAX);
    else if (http->bodies_bytes > BODIES_BYTES_MAX)
        srv_fault_set(&exchange->fault, 503, "busy", NULL,
                      "too many large requests at once");
    else if (!srv_buf_append(&exchange->body, data, size))
        srv_fault_set(&exchange->fault, 500, NULL, NULL, "out of memory");
    if (exchange->fault.status != 0)
        drop_body(exchange);
    return MHD_YES;
}

static struct exchange *begin_exchange(struct srv_http *http)
{
    struct exchange *exchange = calloc(1, sizeof(*exchange));

    if (!exchange)
        return NULL;
    exchange->http = http;
    pthread_mutex_lock(&http->mu);
    http->exchanges++;
    pthread_mutex_unlock(&http->mu);
    return exchange;
}

static void collect_headers(struct MHD_Connection *connection,
                            struct srv_headers *headers);

/* The first call for a request: only its headers are there. */
static enum MHD_Result take_headers(struct MHD_Connection *connection,
                                    struct srv_http *http, const char *path,
                                    const char *method, void **state)
{
    struct exchange *exchange = begin_exchange(http);
    struct srv_headers headers = {0};

    if (!exchange)
        return MHD_NO;
    *state = exchange;
    collect_headers(connection, &headers);
    exchange->route = srv_route_find(path);
    if (!srv_access_check(&http->access, exchange->route, method, &headers,
                          &exchange->fault) &&
        headers.answer_at_once)
        return answer_fault(connection, exchange);
    exchange->keeps_nothing = headers.keeps_nothing;
    return MHD_YES;
}

static enum MHD_Result collect_one(void *cls, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    (void)kind;
    srv_headers_add(cls, name, value ? value : "");
    return MHD_YES;
}

static void collect_headers(struct MHD_Connection *connection,
                            struct srv_headers *headers)
{
    MHD_get_connection_values(connection, MHD_HEADER_KIND, collect_one, headers);
}

static enum MHD_Result handle(void *cls, struct MHD_Connection *connection,
                              const char *path, const char *method, const char *version,
                              const char *data, size_t *size, void **state)
{
    struct exchange *exchange = *state;

    (void)version;
    if (!exchange)
        return take_headers(connection, cls, path, method, state);
    if (*size > 0) {
        size_t taken = *size;

        *size = 0;
        return take_body(exchange, data, taken);
    }
    return answer(connection, exchange);
}

static void complete(void *cls, struct MHD_Connection *connection, void **state,
                     enum MHD_RequestTerminationCode code)
{
    struct srv_http *http = cls;
    struct exchange *exchange = *state;

    (void)connection;
    (void)code;
    if (!exchange)
        return;
    *state = NULL;
    if (exchange->job) {
        srv_job_detach(exchange->job);
        srv_job_unref(exchange->job);
    }
    drop_body(exchange);
    free(exchange);
    pthread_mutex_lock(&http->mu);
    if (--http->exchanges == 0)
        pthread_cond_signal(&http->idle);
    pthread_mutex_unlock(&http->mu);
}

/* Paths are compared as they were sent: a decoded NUL would end one early. */
static size_t keep_escapes(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls;
    (void)connection;
    return strlen(text);
}

bool srv_http_start(struct srv_service *service, struct srv_listener *listener,
                    const char *api_key, struct srv_http **out, struct srv_fault *fault)
{
    struct srv_http *http = calloc(1, sizeof(*http));

    *out = NULL;
    if (!http)
        return srv_fault_set(fault, 500, NULL, NULL, "out of memory");
    http->service = service;
    http->access = (struct srv_access){
        .address = listener->address,
        .port = listener->port,
        .loopback = listener->loopback,
        .api_key = api_key,
        .body_bytes_max = BODY_BYTES_MAX,
        .discard_bytes_max = DISCARD_BYTES_MAX,
    };
    pthread_mutex_init(&http->mu, NULL);
    pthread_cond_init(&http->idle, NULL);
    http->daemon = MHD_start_daemon(
        DAEMON_FLAGS, 0, NULL, NULL, handle, http, MHD_OPTION_LISTEN_SOCKET, listener->fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_TIMEOUT_S,
        MHD_OPTION_THREAD_STACK_SIZE, (size_t)THREAD_STACK, MHD_OPTION_UNESCAPE_CALLBACK,
        keep_escapes, NULL, MHD_OPTION_NOTIFY_COMPLETED, complete, http, MHD_OPTION_END);
    if (!http->daemon) {
        pthread_cond_destroy(&http->idle);
        pthread_mutex_destroy(&http->mu);
        free(http);
        return srv_fault_set(fault, 500, NULL, NULL, "cannot start the HTTP server");
    }
    listener->fd = -1;
    *out = http;
    return true;
}

/* False when clients still read after the timeout. */
static bool wait_until_idle(struct srv_http *http)
{
    struct timespec deadline;
    int error = 0;

    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += STOP_TIMEOUT_S;
    pthread_mutex_lock(&http->mu);
    while (http->exchanges > 0 && error == 0)
        error = pthread_cond_timedwait(&http->idle, &http->mu, &deadline);
    pthread_mutex_unlock(&http->mu);
    return error == 0;
}

void srv_http_stop(struct srv_http *http)
{
    MHD_socket listen_fd;

    if (!http)
        return;
    listen_fd = MHD_quiesce_daemon(http->daemon);
    if (listen_fd != MHD_INVALID_SOCKET)
        close(listen_fd);
    if (!wait_until_idle(http))
        srv_log("some answers were not read in time");
    MHD_stop_daemon(http->daemon);
    pthread_cond_destroy(&http->idle);
    pthread_mutex_destroy(&http->mu);
    free(http);
}

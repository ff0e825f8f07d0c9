/* `coldkv serve`: what is started in which order, and stopped in the other.
 * Invariant: everything that can be refused (command line, key, port, folder) is refused
 * before or while the model loads, and nothing is announced before it can be served.
 * Failure: one line on stderr and exit status 1 or 2; what was started is stopped. */
#include "serve.h"

#include "cold.h"
#include "engine.h"
#include "flusher.h"
#include "http.h"
#include "log.h"
#include "options.h"
#include "preparer.h"
#include "service.h"
#include "stopper.h"
#include "ticker.h"
#include "timing.h"
#include "trace.h"
#include "worker.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };

struct server {
    struct srv_options options;
    struct srv_fault fault;
    char *api_key;
    struct srv_listener listener;
    struct srv_stopper stopper;
    struct srv_stats stats;
    struct srv_queue incoming;
    struct srv_queue queue;
    struct srv_service service;
    struct srv_preparer preparer;
    struct srv_worker worker;
    struct srv_flusher flusher;
    struct srv_ticker ticker;
    struct srv_http *http;
    int trace_fd;
    /* which of the threads run */
    bool prepares;
    bool works;
    bool ticks;
    bool flushes;
};

static int usage(const char *text)
{
    fprintf(stderr, "coldkv serve: %s\n", text);
    return EXIT_USAGE;
}

/* Options that contradict each other, the key and the port. */
static int open_door(struct server *server)
{
    const struct srv_options *options = &server->options;
    char why[128];

    if (options->api_key_file) {
        server->api_key = srv_key_load(options->api_key_file, why, sizeof(why));
        if (!server->api_key) {
            srv_log("--api-key-file %s: %s", options->api_key_file, why);
            return EXIT_FAILURE;
        }
    }
    if (!srv_listener_bind(&server->listener, options->host, options->port,
                           &server->fault)) {
        srv_log("%s", server->fault.message);
        return EXIT_FAILURE;
    }
    if (!server->listener.loopback && !server->api_key)
        return usage("a --host that others can reach needs --api-key-file");
    return EXIT_SUCCESS;
}

static bool is_asked_to_stop(void *ctx)
{
    return srv_stopper_is_asked(ctx);
}

static bool load_engine(struct server *server)
{
    const struct srv_engine_options options = {
        .model_path = server->options.model,
        .context_size = server->options.context_size,
        .thread_count = server->options.thread_count,
        .chat_template = server->options.chat_template,
        .is_cancelled = is_asked_to_stop,
        .cancel_ctx = &server->stopper,
    };

    return srv_engine_create(&options, &server->service.engine, &server->fault);
}

static bool open_cold(struct server *server)
{
    const struct srv_cold_options options = {
        .dir = server->options.cache_dir,
        .max_bytes = server->options.cache_max_bytes,
        .free_floor_bytes = server->options.cache_free_floor_bytes,
        .init = server->options.cache_init,
        .allow_shared_dir = server->options.cache_allow_shared,
        .prompt_cache_bytes = server->options.prompt_cache_bytes,
        .spill_queue_bytes = server->options.spill_queue_bytes,
        .demote_idle_s = server->options.demote_idle_s,
        .min_tokens = server->options.min_tokens,
        .min_growth_tokens = server->options.min_growth_tokens,
        .stats = &server->stats,
    };

    return srv_cold_open(&options, srv_engine_context(server->service.engine),
                         srv_engine_context_params(server->service.engine),
                         server->options.model, &server->service.cold, &server->fault);
}

static bool open_trace(struct server *server)
{
    if (!server->options.trace_file)
        return true;
    server->trace_fd = srv_trace_open(server->options.trace_file, &server->fault);
    return server->trace_fd >= 0;
}

static const char *tiers(const struct server *server)
{
    if (!server->service.cold)
        return "without a prompt cache";
    if (!server->options.cache_dir)
        return "with a prompt cache in memory only";
    return "with a prompt cache in memory and a cold tier";
}

static void announce(const struct server *server)
{
    bool v6 = strchr(server->listener.address, ':') != NULL;

    srv_log("model %s, context of %u tokens, %u threads, %s",
            srv_engine_model_name(server->service.engine),
            srv_engine_context_size(server->service.engine),
            srv_engine_thread_count(server->service.engine), tiers(server));
    printf("coldkv: listening on http://%s%s%s:%u\n", v6 ? "[" : "",
           server->listener.address, v6 ? "]" : "", server->listener.port);
    fflush(stdout);
}

static bool start_threads(struct server *server)
{
    server->worker = (struct srv_worker){
        .engine = server->service.engine,
        .cold = server->service.cold,
        .queue = &server->queue,
        .stats = &server->stats,
        .trace_fd = server->trace_fd,
    };
    server->prepares = srv_preparer_start(&server->preparer, &server->service);
    server->works = server->prepares && srv_worker_start(&server->worker);
    server->ticks = server->works &&
                    srv_ticker_start(&server->ticker, &server->queue,
                                     server->service.cold, server->options.keepalive_s);
    server->flusher.cold = server->service.cold;
    server->flusher.timeout_s = server->options.shutdown_timeout_s;
    server->flushes = server->ticks && srv_flusher_start(&server->flusher);
    return server->flushes ||
           srv_fault_set(&server->fault, 500, NULL, NULL, "cannot start a thread");
}

/* Ends what waits, lets what runs come to its end, and stores it. */
static void stop_threads(struct server *server)
{
    struct srv_fault stopping;

    srv_service_stopping_fault(&stopping);
    atomic_store(&server->service.stopping, true);
    srv_queue_close(&server->incoming, &stopping);
    srv_queue_close(&server->queue, &stopping);
    srv_queue_close(&server->flusher.queue, &stopping);
    if (server->prepares)
        srv_preparer_join(&server->preparer);
    if (server->works)
        srv_worker_join(&server->worker);
    if (server->ticks)
        srv_ticker_stop(&server->ticker);
    if (server->flushes)
        srv_flusher_join(&server->flusher);
}

/* What the tiers hold becomes durable now, or is named. */
static void flush(struct server *server)
{
    struct ckv_flush_evidence evidence;

    if (!server->service.cold ||
        !srv_cold_flush(server->service.cold, server->options.shutdown_timeout_s,
                        &evidence))
        return;
    srv_log("%s: %" PRIu64 " entries on disk, the longest of %" PRIu64 " tokens; %" PRIu64
            " pending, %" PRIu64 " missing, %" PRIu64 " failed, %" PRIu64
            " dropped, after %.1f s",
            evidence.durable ? "everything is stored" : "not everything is stored",
            evidence.durable_entries, evidence.longest_durable_prefix_tokens,
            evidence.pending_snapshots, evidence.missing_snapshots,
            evidence.failed_spills, evidence.dropped_spills,
            (double)evidence.elapsed_ns / 1e9);
}

/* With the engine loaded: everything else up, and down again in the other order. HTTP
 * goes last: until then it answers that the server is stopping. */
static bool run(struct server *server)
{
    bool ok = open_cold(server) && open_trace(server) && start_threads(server) &&
              srv_listener_start(&server->listener, &server->fault) &&
              srv_http_start(&server->service, &server->listener, server->api_key,
                             &server->http, &server->fault);

    if (ok) {
        announce(server);
        srv_stopper_wait(&server->stopper);
    }
    stop_threads(server);
    if (ok)
        flush(server);
    srv_http_stop(server->http);
    return ok;
}

/* With the signals waited for. A signal while the model loads is no failure. */
static int load_and_run(struct server *server)
{
    bool ok = load_engine(server) && run(server);

    srv_cold_close(server->service.cold);
    srv_engine_destroy(server->service.engine);
    if (server->trace_fd >= 0)
        close(server->trace_fd);
    if (ok || srv_stopper_is_asked(&server->stopper))
        return EXIT_SUCCESS;
    srv_log("%s", server->fault.message);
    return EXIT_FAILURE;
}

static int start(struct server *server)
{
    int status = EXIT_FAILURE;

    server->service.incoming = &server->incoming;
    server->service.queue = &server->queue;
    server->service.flushes = &server->flusher.queue;
    server->service.stats = &server->stats;
    server->service.started_s = srv_now_s();
    atomic_init(&server->service.stopping, false);
    if (!srv_stopper_start(&server->stopper)) {
        srv_log("cannot start a thread");
        return status;
    }
    status = load_and_run(server);
    srv_stopper_stop(&server->stopper);
    return status;
}

/* Mutexes and the like, which in practice never fail. */
static bool init(struct server *server)
{
    if (!srv_stats_init(&server->stats))
        return false;
    if (!srv_queue_init(&server->incoming, SRV_INCOMING_MAX))
        goto no_incoming;
    if (!srv_queue_init(&server->queue, SRV_WAITING_MAX))
        goto no_queue;
    if (srv_queue_init(&server->flusher.queue, SRV_FLUSHES_MAX))
        return true;
    srv_queue_deinit(&server->queue);
no_queue:
    srv_queue_deinit(&server->incoming);
no_incoming:
    srv_stats_deinit(&server->stats);
    return false;
}

static void deinit(struct server *server)
{
    srv_queue_deinit(&server->flusher.queue);
    srv_queue_deinit(&server->queue);
    srv_queue_deinit(&server->incoming);
    srv_stats_deinit(&server->stats);
}

int coldkv_serve_main(int argc, char **argv)
{
    struct server server = {.trace_fd = -1, .listener = {.fd = -1}};
    int status;

    switch (srv_options_parse(argc, argv, &server.options)) {
    case SRV_PARSE_HELP:
        return EXIT_SUCCESS;
    case SRV_PARSE_USAGE:
        return EXIT_USAGE;
    case SRV_PARSE_OK:
        break;
    }
    /* A log or a client that is gone must not end the process. */
    signal(SIGPIPE, SIG_IGN);
    status = open_door(&server);
    if (status == EXIT_SUCCESS && init(&server)) {
        status = start(&server);
        deinit(&server);
    }
    srv_listener_close(&server.listener);
    free(server.api_key);
    return status;
}

/* One request after the other: take what is known, evaluate, generate, answer, hold.
 * Invariant: evaluated[0..evaluated_count) is exactly what sequence 0 of the context
 * holds; between turns worker->live says the same. A prompt is always evaluated in the
 * same pieces: up to its last token in batches, then the last token alone. A restored run
 * ends with the same last piece, so both give the same logits. Failure: a failed
 * evaluation fails its request and is never stored; a client that went away ends its
 * turn, and what was evaluated for it until then is kept, for it may come back. */
#include "worker.h"

#include "log.h"
#include "reply.h"
#include "timing.h"
#include "trace.h"

#include <coldkv/hash.h>
#include <stdlib.h>
#include <string.h>

/* How many tokens are made between two looks at the client's socket. */
enum { GONE_CHECK_TOKENS = 8 };

enum outcome { OUTCOME_STOP, OUTCOME_LENGTH, OUTCOME_CANCELLED, OUTCOME_FAILED };

static const char *const outcome_names[] = {"stop", "length", "cancelled", "failed"};

struct turn {
    struct srv_worker *worker;
    struct srv_job *job;
    struct srv_reply reply;
    int32_t *evaluated;
    size_t evaluated_count;
    int32_t *generated;
    size_t generated_count;
    const char *ns;
    struct srv_cold_taken taken;
    bool has_logits;
    uint64_t first_logits_hash;
    double began_ms;
    double prefill_ms;
    double ttft_ms;
};

static void forget_live(struct srv_worker *worker)
{
    free(worker->live_tokens);
    free(worker->live_ns);
    worker->live_tokens = NULL;
    worker->live_ns = NULL;
    worker->live_count = 0;
}

/* Remembers what the context holds; without memory for that it holds nothing of use. */
static void remember_live(struct turn *turn)
{
    struct srv_worker *worker = turn->worker;

    worker->live_ns = strdup(turn->ns);
    if (!worker->live_ns)
        return;
    worker->live_tokens = turn->evaluated;
    worker->live_count = turn->evaluated_count;
    turn->evaluated = NULL;
}

static bool evaluate(struct turn *turn, const int32_t *tokens, size_t count,
                     bool want_logits)
{
    if (!srv_engine_evaluate(turn->worker->engine, tokens, count, turn->evaluated_count,
                             want_logits)) {
        turn->evaluated_count = 0;
        return false;
    }
    if (turn->evaluated + turn->evaluated_count != tokens)
        memcpy(turn->evaluated + turn->evaluated_count, tokens, count * sizeof(*tokens));
    turn->evaluated_count += count;
    return true;
}

/* Leaves the longest known prefix in the context. */
static void take(struct turn *turn)
{
    struct srv_worker *worker = turn->worker;
    const struct srv_job *job = turn->job;
    const struct srv_live live = {.ns = worker->live_ns ? worker->live_ns : "",
                                  .tokens = worker->live_tokens,
                                  .count = worker->live_count};

    if (worker->cold)
        srv_cold_take(worker->cold, turn->ns, job->tokens, job->token_count, &live,
                      &turn->taken);
    forget_live(worker);
    if (turn->taken.prefix == 0)
        srv_engine_clear(worker->engine);
    memcpy(turn->evaluated, job->tokens, turn->taken.prefix * sizeof(*job->tokens));
    turn->evaluated_count = turn->taken.prefix;
}

static enum outcome prefill(struct turn *turn)
{
    const struct srv_job *job = turn->job;
    size_t last = job->token_count - 1;
    size_t batch = srv_engine_batch_size(turn->worker->engine);
    double began_ms = srv_now_ms();

    while (turn->evaluated_count < last) {
        size_t at = turn->evaluated_count;
        size_t count = last - at < batch ? last - at : batch;

        if (srv_job_check_gone(turn->job))
            return OUTCOME_CANCELLED;
        if (!evaluate(turn, job->tokens + at, count, false))
            return OUTCOME_FAILED;
    }
    if (srv_job_check_gone(turn->job))
        return OUTCOME_CANCELLED;
    if (!evaluate(turn, job->tokens + last, 1, true))
        return OUTCOME_FAILED;
    turn->prefill_ms = srv_now_ms() - began_ms;
    return OUTCOME_STOP;
}

static void hash_logits(struct turn *turn)
{
    size_t count;
    const float *logits = srv_engine_logits(turn->worker->engine, &count);

    if (turn->worker->trace_fd < 0 || !logits)
        return;
    turn->first_logits_hash = ckv_wyhash(logits, count * sizeof(*logits), 0);
    turn->has_logits = true;
}

/* Adds the text of a token to the reply. */
static bool add_text(struct turn *turn, int32_t token)
{
    size_t length;
    const char *piece = srv_engine_piece(turn->worker->engine, token, &length);

    return piece && srv_reply_add(&turn->reply, piece, length);
}

static enum outcome lost(struct turn *turn)
{
    return srv_job_check_gone(turn->job) ? OUTCOME_CANCELLED : OUTCOME_FAILED;
}

static enum outcome generate(struct turn *turn)
{
    struct srv_engine *engine = turn->worker->engine;

    for (;;) {
        int32_t token = srv_engine_sample(engine);

        turn->generated[turn->generated_count++] = token;
        if (turn->generated_count == 1)
            turn->ttft_ms = srv_now_ms() - turn->began_ms;
        if (srv_engine_is_end(engine, token))
            return OUTCOME_STOP;
        if (!add_text(turn, token))
            return lost(turn);
        if (srv_reply_is_stopped(&turn->reply))
            return OUTCOME_STOP;
        if (turn->generated_count == turn->job->max_tokens)
            return OUTCOME_LENGTH;
        if (turn->generated_count % GONE_CHECK_TOKENS == 0 &&
            srv_job_check_gone(turn->job))
            return OUTCOME_CANCELLED;
        if (!evaluate(turn, &token, 1, true))
            return OUTCOME_FAILED;
    }
}

static enum outcome run(struct turn *turn)
{
    const struct srv_job *job = turn->job;
    enum outcome outcome;

    if (!turn->evaluated || !turn->generated ||
        !srv_engine_set_sampler(turn->worker->engine, &job->request.sampling, job->tokens,
                                job->token_count))
        return OUTCOME_FAILED;
    if (!srv_reply_begin(&turn->reply, turn->job))
        return lost(turn);
    take(turn);
    outcome = prefill(turn);
    if (outcome != OUTCOME_STOP)
        return outcome;
    hash_logits(turn);
    outcome = generate(turn);
    if (outcome <= OUTCOME_LENGTH && !srv_reply_flush(&turn->reply))
        return lost(turn);
    return outcome;
}

static void count_turn(struct turn *turn, enum outcome outcome, bool will_hold)
{
    struct srv_counters *counters = srv_stats_begin(turn->worker->stats);
    const struct srv_cold_taken *taken = &turn->taken;

    counters->requests++;
    counters->completed += outcome <= OUTCOME_LENGTH;
    counters->cancelled += outcome == OUTCOME_CANCELLED;
    counters->failed += outcome == OUTCOME_FAILED;
    if (turn->worker->cold) {
        counters->turns[taken->source]++;
        counters->reused_tokens[taken->source] += taken->prefix;
        counters->misses[taken->miss] += taken->source == SRV_SOURCE_NONE;
    }
    counters->prompt_tokens += turn->job->token_count;
    counters->cached_tokens += taken->prefix;
    counters->completion_tokens += turn->generated_count;
    counters->restored_bytes += taken->read_bytes;
    counters->reused_bytes += taken->reused_bytes;
    if (taken->source == SRV_SOURCE_STORE) {
        counters->last_restore_ms = taken->elapsed_ms;
        counters->restore_ms_sum += taken->elapsed_ms;
    }
    if (outcome <= OUTCOME_LENGTH) {
        counters->last_prefill_ms = turn->prefill_ms;
        counters->prefill_ms_sum += turn->prefill_ms;
        counters->last_ttft_ms = turn->ttft_ms;
        counters->ttft_ms_sum += turn->ttft_ms;
    }
    counters->pending += will_hold;
    srv_stats_end(turn->worker->stats);
}

static void write_trace(struct turn *turn, enum outcome outcome)
{
    const struct srv_job *job = turn->job;
    struct srv_trace_line line = {
        .id = job->id,
        .outcome = outcome_names[outcome],
        .prompt = job->tokens,
        .prompt_count = job->token_count,
        .cached_count = turn->taken.prefix,
        .source = srv_source_name(turn->taken.source),
        .evaluated = turn->evaluated,
        .evaluated_count = turn->evaluated_count,
        .generated = turn->generated,
        .generated_count = turn->generated_count,
        .has_logits = turn->has_logits,
        .first_logits_hash = turn->first_logits_hash,
        .wait_ms = turn->began_ms - job->arrived_ms,
        .ttft_ms = turn->ttft_ms,
        .prefill_ms = turn->prefill_ms,
        .restore_ms = turn->taken.elapsed_ms,
        .restored_bytes = turn->taken.read_bytes,
    };

    if (turn->worker->trace_fd >= 0 && !srv_trace_append(turn->worker->trace_fd, &line))
        srv_log("cannot write the trace");
}

static void log_turn(const struct turn *turn, enum outcome outcome)
{
    srv_log("%s: %s, %zu prompt tokens, %zu of them reused (%s) after %.0f ms, %zu "
            "generated, first after %.0f ms",
            turn->job->id, outcome_names[outcome], turn->job->token_count,
            turn->taken.prefix, srv_source_name(turn->taken.source),
            turn->taken.elapsed_ms, turn->generated_count, turn->ttft_ms);
}

/* The answer's last bytes. Whoever sees them also sees the counters and the trace. */
static void answer(struct turn *turn, enum outcome outcome)
{
    struct srv_usage usage = {
        .prompt_tokens = (uint32_t)turn->job->token_count,
        .completion_tokens = (uint32_t)turn->generated_count,
        .cached_tokens = (uint32_t)turn->taken.prefix,
    };
    struct srv_fault fault;

    if (outcome <= OUTCOME_LENGTH &&
        srv_reply_finish(&turn->reply, outcome_names[outcome], &usage))
        return;
    srv_fault_set(&fault, 500, NULL, NULL, "the model could not evaluate this request");
    srv_job_fail(turn->job, &fault);
}

static void hold(struct turn *turn)
{
    struct srv_worker *worker = turn->worker;

    srv_cold_hold(worker->cold, turn->ns, turn->evaluated, turn->evaluated_count);
    srv_stats_hand_over(worker->stats);
}

static void serve(struct srv_worker *worker, struct srv_job *job)
{
    struct turn turn = {.worker = worker, .job = job, .began_ms = srv_now_ms()};
    enum outcome outcome;
    bool may_keep;

    turn.ns = job->request.cache_salt ? job->request.cache_salt : "";
    turn.evaluated = calloc(job->token_count + job->max_tokens, sizeof(*turn.evaluated));
    turn.generated = calloc(job->max_tokens, sizeof(*turn.generated));
    outcome = run(&turn);
    may_keep = worker->cold && outcome != OUTCOME_FAILED && !job->no_store &&
               turn.evaluated_count > 0;
    count_turn(&turn, outcome, may_keep);
    write_trace(&turn, outcome);
    answer(&turn, outcome);
    log_turn(&turn, outcome);
    if (may_keep) {
        hold(&turn);
        remember_live(&turn);
    }
    srv_reply_deinit(&turn.reply);
    free(turn.evaluated);
    free(turn.generated);
}

/* The next job. The engine counts as resting only when none waits: between two requests
 * there is no time for a write. */
static struct srv_job *next_job(struct srv_worker *worker, bool *working)
{
    size_t waiting = 0;
    size_t running;
    struct srv_job *job;

    if (*working)
        srv_queue_count(worker->queue, &waiting, &running);
    if (*working && waiting == 0) {
        srv_cold_end_work(worker->cold);
        *working = false;
    }
    job = srv_queue_take(worker->queue);
    if (job && !*working) {
        srv_cold_begin_work(worker->cold);
        *working = true;
    }
    return job;
}

static void *loop(void *arg)
{
    struct srv_worker *worker = arg;
    struct srv_job *job;
    bool working = false;

    while ((job = next_job(worker, &working)) != NULL) {
        if (!srv_job_check_gone(job) && srv_job_begin(job))
            serve(worker, job);
        srv_queue_done(worker->queue);
    }
    if (working)
        srv_cold_end_work(worker->cold);
    forget_live(worker);
    return NULL;
}

bool srv_worker_start(struct srv_worker *worker)
{
    return pthread_create(&worker->thread, NULL, loop, worker) == 0;
}

void srv_worker_join(struct srv_worker *worker)
{
    pthread_join(worker->thread, NULL);
}

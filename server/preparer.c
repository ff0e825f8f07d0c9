/* From a request's body to a job that the engine can run.
 * Invariant: whatever refuses a request does so here, before it is queued for the engine,
 * so that a queued one fits the context.
 * Failure: a fault for the client, with the field it is about. */
#include "preparer.h"

#include <coldkv/io.h>
#include <stdio.h>

static bool fits_context(const struct srv_job *job, uint32_t context_size,
                         struct srv_fault *fault)
{
    const char *input = srv_request_input_name(job->request.kind);
    uint32_t max_tokens = job->request.max_tokens;

    if (job->token_count + (max_tokens > 0 ? max_tokens : 1) <= context_size)
        return true;
    if (max_tokens == 0)
        return srv_fault_set(fault, 400, "context_length_exceeded", input,
                             "'%s' has %zu tokens, the context has %u", input,
                             job->token_count, context_size);
    return srv_fault_set(fault, 400, "context_length_exceeded", input,
                         "'%s' has %zu tokens and max_tokens is %u, the context has %u",
                         input, job->token_count, max_tokens, context_size);
}

static bool random_bytes(void *data, size_t size)
{
    const struct ckv_io *io = ckv_io_posix();

    return io->random(io->ctx, data, size, NULL) == CKV_OK;
}

static bool choose_id_and_seed(struct srv_job *job)
{
    unsigned char random[12];
    size_t used;
    size_t i;

    if (!random_bytes(random, sizeof(random)))
        return false;
    used =
        (size_t)snprintf(job->id, sizeof(job->id), "%s",
                         job->request.kind == SRV_REQUEST_CHAT ? "chatcmpl-" : "cmpl-");
    for (i = 0; i < sizeof(random); i++)
        used +=
            (size_t)snprintf(job->id + used, sizeof(job->id) - used, "%02x", random[i]);
    return job->request.has_seed ||
           random_bytes(&job->request.sampling.seed, sizeof(job->request.sampling.seed));
}

static bool prepare(struct srv_service *service, struct srv_job *job,
                    struct srv_fault *fault)
{
    const struct srv_engine *engine = service->engine;
    uint32_t context_size = srv_engine_context_size(engine);
    struct srv_request *request = &job->request;
    const char *body = job->body.data ? job->body.data : "";

    if (!srv_request_parse(request->kind, body, job->body.length, request, fault))
        return false;
    srv_buf_deinit(&job->body);
    if (!srv_engine_tokenize(engine, request, &job->tokens, &job->token_count, fault) ||
        !fits_context(job, context_size, fault))
        return false;
    if (!choose_id_and_seed(job))
        return srv_fault_set(fault, 500, NULL, NULL, "no random numbers");
    job->model = request->model ? request->model : srv_engine_model_name(engine);
    job->max_tokens = request->max_tokens ? request->max_tokens
                                          : context_size - (uint32_t)job->token_count;
    return true;
}

static void pass_on(struct srv_service *service, struct srv_job *job)
{
    struct srv_fault fault;
    enum srv_push pushed;

    if (!prepare(service, job, &fault)) {
        srv_job_fail(job, &fault);
        return;
    }
    pushed = srv_queue_push(service->queue, job);
    if (pushed == SRV_PUSH_OK)
        return;
    if (pushed == SRV_PUSH_FULL)
        srv_service_full_fault(&fault);
    else
        srv_service_stopping_fault(&fault);
    srv_job_fail(job, &fault);
}

static void *loop(void *arg)
{
    struct srv_preparer *preparer = arg;
    struct srv_queue *incoming = preparer->service->incoming;
    struct srv_job *job;

    while ((job = srv_queue_take(incoming)) != NULL) {
        if (!srv_job_check_gone(job))
            pass_on(preparer->service, job);
        srv_queue_done(incoming);
    }
    return NULL;
}

bool srv_preparer_start(struct srv_preparer *preparer, struct srv_service *service)
{
    preparer->service = service;
    return pthread_create(&preparer->thread, NULL, loop, preparer) == 0;
}

void srv_preparer_join(struct srv_preparer *preparer)
{
    pthread_join(preparer->thread, NULL);
}

/* From token bytes to the answer's bytes.
 * Invariant: what is handed to the job is whole characters, and never any part of a stop
 * string. Failure: memory or a cancelled job; the caller then fails the job. */
#include "reply.h"

#include "sse.h"

#include <stdlib.h>
#include <string.h>

/* Appends one event to `out`; takes over `json`. */
static bool append_event(struct srv_buf *out, char *json)
{
    bool ok = json && srv_sse_append_data(out, json);

    free(json);
    return ok;
}

static bool send_event(struct srv_reply *reply, char *json)
{
    struct srv_buf event = {0};
    bool ok =
        append_event(&event, json) && srv_job_write(reply->job, event.data, event.length);

    srv_buf_deinit(&event);
    return ok;
}

static bool send_text(struct srv_reply *reply)
{
    bool ok;

    if (!reply->job->request.stream || reply->text.length == 0)
        return true;
    ok = send_event(reply, srv_chunk_encode_delta(&reply->head, reply->text.data,
                                                  reply->text.length,
                                                  reply->job->request.include_usage));
    srv_buf_clear(&reply->text);
    return ok;
}

bool srv_reply_begin(struct srv_reply *reply, struct srv_job *job)
{
    *reply = (struct srv_reply){
        .job = job,
        .head = {.kind = job->request.kind,
                 .id = job->id,
                 .model = job->model,
                 .created_s = job->created_s},
    };
    srv_stop_init(&reply->stop, (const char *const *)job->request.stops,
                  job->request.stop_count);
    if (!srv_buf_append(&reply->text, "", 0) ||
        !srv_buf_append(&reply->characters, "", 0))
        return false;
    if (!job->request.stream || job->request.kind != SRV_REQUEST_CHAT)
        return true;
    return send_event(reply,
                      srv_chunk_encode_role(&reply->head, job->request.include_usage));
}

bool srv_reply_add(struct srv_reply *reply, const char *bytes, size_t length)
{
    srv_buf_clear(&reply->characters);
    return srv_utf8_feed(&reply->utf8, bytes, length, &reply->characters) &&
           srv_stop_feed(&reply->stop, reply->characters.data, reply->characters.length,
                         &reply->text) &&
           send_text(reply);
}

bool srv_reply_is_stopped(const struct srv_reply *reply)
{
    return reply->stop.hit;
}

bool srv_reply_flush(struct srv_reply *reply)
{
    srv_buf_clear(&reply->characters);
    return srv_utf8_flush(&reply->utf8, &reply->characters) &&
           srv_stop_feed(&reply->stop, reply->characters.data, reply->characters.length,
                         &reply->text) &&
           srv_stop_flush(&reply->stop, &reply->text) && send_text(reply);
}

static bool finish_stream(struct srv_reply *reply, const char *finish_reason,
                          const struct srv_usage *usage)
{
    bool with_usage = reply->job->request.include_usage;
    struct srv_buf rest = {0};
    bool ok = append_event(
        &rest, srv_chunk_encode_finish(&reply->head, finish_reason, with_usage));

    if (ok && with_usage)
        ok = append_event(&rest, srv_chunk_encode_usage(&reply->head, usage));
    ok = ok && srv_sse_append_data(&rest, "[DONE]");
    if (ok)
        srv_job_finish(reply->job, rest.data, rest.length);
    srv_buf_deinit(&rest);
    return ok;
}

bool srv_reply_finish(struct srv_reply *reply, const char *finish_reason,
                      const struct srv_usage *usage)
{
    char *json;

    if (reply->job->request.stream)
        return finish_stream(reply, finish_reason, usage);
    json = srv_completion_encode(&reply->head, reply->text.data, reply->text.length,
                                 finish_reason, usage);
    if (!json)
        return false;
    srv_job_finish(reply->job, json, strlen(json));
    free(json);
    return true;
}

void srv_reply_deinit(struct srv_reply *reply)
{
    srv_stop_deinit(&reply->stop);
    srv_buf_deinit(&reply->characters);
    srv_buf_deinit(&reply->text);
}

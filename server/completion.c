/* Answers and chunks as the OpenAI API writes them.
 * Invariant: every function builds one object and frees everything it does not return.
 * Failure: NULL. */
#include "completion.h"

#include <jansson.h>

static char *dump(json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return text;
}

static json_t *make_usage(const struct srv_usage *usage)
{
    json_int_t total = (json_int_t)usage->prompt_tokens + usage->completion_tokens;

    return json_pack(
        "{s:I,s:I,s:I,s:{s:I}}", "prompt_tokens", (json_int_t)usage->prompt_tokens,
        "completion_tokens", (json_int_t)usage->completion_tokens, "total_tokens", total,
        "prompt_tokens_details", "cached_tokens", (json_int_t)usage->cached_tokens);
}

char *srv_completion_encode(const struct srv_answer_head *head, const char *content,
                            size_t length, const char *finish_reason,
                            const struct srv_usage *usage)
{
    return dump(json_pack("{s:s,s:s,s:I,s:s,s:[{s:i,s:{s:s,s:o,s:n},s:n,s:s}],s:o}", "id",
                          head->id, "object", "chat.completion", "created",
                          (json_int_t)head->created_s, "model", head->model, "choices",
                          "index", 0, "message", "role", "assistant", "content",
                          json_stringn(content, length), "refusal", "logprobs",
                          "finish_reason", finish_reason, "usage", make_usage(usage)));
}

/* `delta` is taken over. finish_reason NULL is null. */
static char *encode_chunk(const struct srv_answer_head *head, json_t *delta,
                          const char *finish_reason, bool with_usage)
{
    json_t *chunk =
        json_pack("{s:s,s:s,s:I,s:s,s:[{s:i,s:o,s:n,s:s?}]}", "id", head->id, "object",
                  "chat.completion.chunk", "created", (json_int_t)head->created_s,
                  "model", head->model, "choices", "index", 0, "delta", delta, "logprobs",
                  "finish_reason", finish_reason);

    if (chunk && with_usage && json_object_set_new(chunk, "usage", json_null()) != 0) {
        json_decref(chunk);
        return NULL;
    }
    return dump(chunk);
}

char *srv_chunk_encode_role(const struct srv_answer_head *head, bool with_usage)
{
    return encode_chunk(head, json_pack("{s:s,s:s}", "role", "assistant", "content", ""),
                        NULL, with_usage);
}

char *srv_chunk_encode_delta(const struct srv_answer_head *head, const char *content,
                             size_t length, bool with_usage)
{
    return encode_chunk(head,
                        json_pack("{s:o}", "content", json_stringn(content, length)),
                        NULL, with_usage);
}

char *srv_chunk_encode_finish(const struct srv_answer_head *head,
                              const char *finish_reason, bool with_usage)
{
    return encode_chunk(head, json_object(), finish_reason, with_usage);
}

char *srv_chunk_encode_usage(const struct srv_answer_head *head,
                             const struct srv_usage *usage)
{
    return dump(json_pack("{s:s,s:s,s:I,s:s,s:[],s:o}", "id", head->id, "object",
                          "chat.completion.chunk", "created", (json_int_t)head->created_s,
                          "model", head->model, "choices", "usage", make_usage(usage)));
}

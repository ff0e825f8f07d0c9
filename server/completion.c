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

static bool is_chat(const struct srv_answer_head *head)
{
    return head->kind == SRV_REQUEST_CHAT;
}

/* {"index", "text", "logprobs", "finish_reason"}: of a completion, whole or streamed. */
static json_t *make_text_choice(const char *text, size_t length,
                                const char *finish_reason)
{
    return json_pack("{s:i,s:o,s:n,s:s?}", "index", 0, "text", json_stringn(text, length),
                     "logprobs", "finish_reason", finish_reason);
}

static json_t *make_message_choice(const char *content, size_t length,
                                   const char *finish_reason)
{
    return json_pack("{s:i,s:{s:s,s:o,s:n},s:n,s:s}", "index", 0, "message", "role",
                     "assistant", "content", json_stringn(content, length), "refusal",
                     "logprobs", "finish_reason", finish_reason);
}

char *srv_completion_encode(const struct srv_answer_head *head, const char *content,
                            size_t length, const char *finish_reason,
                            const struct srv_usage *usage)
{
    json_t *choice = is_chat(head) ? make_message_choice(content, length, finish_reason)
                                   : make_text_choice(content, length, finish_reason);

    return dump(json_pack("{s:s,s:s,s:I,s:s,s:[o],s:o}", "id", head->id, "object",
                          is_chat(head) ? "chat.completion" : "text_completion",
                          "created", (json_int_t)head->created_s, "model", head->model,
                          "choices", choice, "usage", make_usage(usage)));
}

static const char *chunk_name(const struct srv_answer_head *head)
{
    return is_chat(head) ? "chat.completion.chunk" : "text_completion";
}

/* `choice` is taken over. */
static char *encode_chunk(const struct srv_answer_head *head, json_t *choice,
                          bool with_usage)
{
    json_t *chunk = json_pack("{s:s,s:s,s:I,s:s,s:[o]}", "id", head->id, "object",
                              chunk_name(head), "created", (json_int_t)head->created_s,
                              "model", head->model, "choices", choice);

    if (chunk && with_usage && json_object_set_new(chunk, "usage", json_null()) != 0) {
        json_decref(chunk);
        return NULL;
    }
    return dump(chunk);
}

/* `delta` is taken over. finish_reason NULL is null. */
static json_t *make_delta_choice(json_t *delta, const char *finish_reason)
{
    return json_pack("{s:i,s:o,s:n,s:s?}", "index", 0, "delta", delta, "logprobs",
                     "finish_reason", finish_reason);
}

char *srv_chunk_encode_role(const struct srv_answer_head *head, bool with_usage)
{
    json_t *delta = json_pack("{s:s,s:s}", "role", "assistant", "content", "");

    return encode_chunk(head, make_delta_choice(delta, NULL), with_usage);
}

char *srv_chunk_encode_delta(const struct srv_answer_head *head, const char *content,
                             size_t length, bool with_usage)
{
    json_t *choice =
        is_chat(head)
            ? make_delta_choice(
                  json_pack("{s:o}", "content", json_stringn(content, length)), NULL)
            : make_text_choice(content, length, NULL);

    return encode_chunk(head, choice, with_usage);
}

char *srv_chunk_encode_finish(const struct srv_answer_head *head,
                              const char *finish_reason, bool with_usage)
{
    json_t *choice = is_chat(head) ? make_delta_choice(json_object(), finish_reason)
                                   : make_text_choice("", 0, finish_reason);

    return encode_chunk(head, choice, with_usage);
}

char *srv_chunk_encode_usage(const struct srv_answer_head *head,
                             const struct srv_usage *usage)
{
    return dump(json_pack("{s:s,s:s,s:I,s:s,s:[],s:o}", "id", head->id, "object",
                          chunk_name(head), "created", (json_int_t)head->created_s,
                          "model", head->model, "choices", "usage", make_usage(usage)));
}

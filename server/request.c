/* Validation of request bodies: from bytes to a struct srv_request or a fault that names
 * the field. Invariant: every field that is accepted stands in one of the tables below.
 * Failure: the output is emptied. */
#include "request.h"

#include "fields.h"
#include "messages.h"
#include "prompt.h"
#include "readers.h"

#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define READ(name, reader)                                                               \
    {                                                                                    \
        name, SRV_RULE_READ, NULL, reader                                                \
    }
#define ONLY(name, rule)                                                                 \
    {                                                                                    \
        name, rule, NULL, NULL                                                           \
    }

static const struct srv_field shared_fields[] = {
    READ("model", srv_read_model),
    READ("max_tokens", srv_read_limit),
    READ("temperature", srv_read_temperature),
    READ("top_p", srv_read_top_p),
    READ("top_k", srv_read_top_k),
    READ("min_p", srv_read_min_p),
    READ("repetition_penalty", srv_read_repetition_penalty),
    READ("repeat_penalty", srv_read_repetition_penalty),
    READ("frequency_penalty", srv_read_frequency_penalty),
    READ("presence_penalty", srv_read_presence_penalty),
    READ("seed", srv_read_seed),
    READ("stop", srv_read_stop),
    READ("stream", srv_read_stream),
    READ("stream_options", srv_read_stream_options),
    READ("cache_salt", srv_read_cache_salt),
    ONLY("n", SRV_RULE_ONE),
    ONLY("logit_bias", SRV_RULE_EMPTY),
    ONLY("user", SRV_RULE_ANY),
};

static const struct srv_field chat_fields[] = {
    READ("messages", srv_messages_read),
    READ("max_completion_tokens", srv_read_limit),
    ONLY("logprobs", SRV_RULE_FALSE),
    ONLY("top_logprobs", SRV_RULE_ZERO),
    ONLY("response_format", SRV_RULE_TEXT_FORMAT),
    ONLY("tools", SRV_RULE_EMPTY),
    {"tool_choice", SRV_RULE_AMONG, "none|auto", NULL},
    ONLY("parallel_tool_calls", SRV_RULE_BOOL),
    ONLY("functions", SRV_RULE_EMPTY),
    {"function_call", SRV_RULE_AMONG, "none|auto", NULL},
    ONLY("modalities", SRV_RULE_TEXT_ONLY),
    ONLY("audio", SRV_RULE_NULL),
    ONLY("prediction", SRV_RULE_NULL),
    ONLY("reasoning_effort", SRV_RULE_NULL),
    {"verbosity", SRV_RULE_AMONG, "medium", NULL},
    ONLY("web_search_options", SRV_RULE_NULL),
    ONLY("store", SRV_RULE_FALSE),
    {"service_tier", SRV_RULE_AMONG, "auto|default", NULL},
    ONLY("safety_identifier", SRV_RULE_ANY),
    ONLY("prompt_cache_key", SRV_RULE_ANY),
    ONLY("metadata", SRV_RULE_ANY),
};

static const struct srv_field completion_fields[] = {
    READ("prompt", srv_prompt_read), ONLY("best_of", SRV_RULE_ONE),
    ONLY("echo", SRV_RULE_FALSE),    ONLY("logprobs", SRV_RULE_NULL),
    ONLY("suffix", SRV_RULE_NULL),
};

const char *srv_request_input_name(enum srv_request_kind kind)
{
    return kind == SRV_REQUEST_CHAT ? "messages" : "prompt";
}

static bool read_field(const char *name, json_t *value, struct srv_request *request,
                       struct srv_fault *fault)
{
    bool is_chat = request->kind == SRV_REQUEST_CHAT;
    const struct srv_field *own = is_chat ? chat_fields : completion_fields;
    size_t own_count = is_chat ? COUNT(chat_fields) : COUNT(completion_fields);

    if (srv_field_is_known(own, own_count, name))
        return srv_field_accept(own, own_count, name, value, request, fault);
    return srv_field_accept(shared_fields, COUNT(shared_fields), name, value, request,
                            fault);
}

/* The parser recurses, so the depth is bounded before it runs. */
static bool depth_is_bounded(const char *body, size_t length)
{
    bool in_string = false;
    int depth = 0;
    size_t i;

    for (i = 0; i < length; i++) {
        char c = body[i];

        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '{' || c == '[') && ++depth > SRV_JSON_DEPTH_MAX)
            return false;
        else if (!in_string && (c == '}' || c == ']'))
            depth--;
    }
    return true;
}

static bool has_input(const struct srv_request *request)
{
    return request->message_count > 0 || request->prompt ||
           request->prompt_token_count > 0;
}

/* Of fields that have no value to say "not given" but one that a client cannot give. */
static void set_defaults(struct srv_request *request)
{
    if (!(request->sampling.repetition_penalty > 0.0f))
        request->sampling.repetition_penalty = 1.0f;
    if (request->kind == SRV_REQUEST_COMPLETION && request->max_tokens == 0)
        request->max_tokens = SRV_COMPLETION_TOKENS;
}

static bool read_object(json_t *root, struct srv_request *request,
                        struct srv_fault *fault)
{
    const char *input = srv_request_input_name(request->kind);
    const char *name;
    json_t *value;

    if (!json_is_object(root))
        return srv_fault_set(fault, 400, "invalid_json", NULL,
                             "the body must be a JSON object");
    json_object_foreach(root, name, value)
    {
        if (!read_field(name, value, request, fault))
            return false;
    }
    if (!has_input(request))
        return srv_fault_set(fault, 400, "missing_required_parameter", input,
                             "'%s' is missing", input);
    if (request->include_usage && !request->stream)
        return srv_fault_set(fault, 400, "invalid_value", "stream_options",
                             "'stream_options' needs 'stream': true");
    set_defaults(request);
    return true;
}

bool srv_request_parse(enum srv_request_kind kind, const char *body, size_t length,
                       struct srv_request *out, struct srv_fault *fault)
{
    json_error_t error;
    json_t *root;
    bool ok;

    *out = (struct srv_request){.kind = kind,
                                .sampling = {.temperature = 1.0f, .top_p = 1.0f}};
    if (!depth_is_bounded(body, length))
        return srv_fault_set(fault, 400, "invalid_json", NULL,
                             "the body is nested deeper than %d levels",
                             SRV_JSON_DEPTH_MAX);
    root = json_loadb(body, length, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return srv_fault_set(fault, 400, "invalid_json", NULL,
                             "the body is not valid JSON (line %d, column %d)",
                             error.line, error.column);
    ok = read_object(root, out, fault);
    json_decref(root);
    if (!ok)
        srv_request_deinit(out);
    return ok;
}

void srv_request_deinit(struct srv_request *request)
{
    size_t i;

    for (i = 0; i < request->message_count; i++)
        free(request->messages[i].content);
    for (i = 0; i < request->stop_count; i++)
        free(request->stops[i]);
    free(request->messages);
    free(request->prompt);
    free(request->prompt_tokens);
    free(request->model);
    free(request->cache_salt);
    *request = (struct srv_request){0};
}

/* Validation of chat completion requests: from bytes to a struct srv_chat or a fault that
 * names the field. Invariant: a field is understood, or has its default value, or the
 * request is refused: nothing that a client asked for is silently left out. Failure: the
 * output is emptied. */
#include "chat.h"

#include "messages.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum rule {
    RULE_READ,        /* has its own reader */
    RULE_ANY,         /* changes nothing that we do: accepted as it is */
    RULE_NULL,        /* only null */
    RULE_FALSE,       /* only false */
    RULE_BOOL,        /* true or false, both without effect here */
    RULE_ZERO,        /* only the number 0 */
    RULE_ONE,         /* only the number 1 */
    RULE_EMPTY,       /* only an empty array or object */
    RULE_AMONG,       /* only the strings in `among`, separated by | */
    RULE_TEXT_FORMAT, /* only {"type": "text"} */
    RULE_TEXT_ONLY,   /* only ["text"] */
};

struct field {
    const char *name;
    enum rule rule;
    const char *among;
    bool (*read)(json_t *value, struct srv_chat *chat, struct srv_fault *fault);
};

static bool refuse_value(struct srv_fault *fault, const char *name, const char *wanted)
{
    return srv_fault_set(fault, 400, "invalid_value", name, "'%s' must be %s", name,
                         wanted);
}

static bool out_of_memory(struct srv_fault *fault)
{
    return srv_fault_set(fault, 500, NULL, NULL, "out of memory");
}

static bool read_messages(json_t *value, struct srv_chat *chat, struct srv_fault *fault)
{
    return srv_messages_read(value, chat, fault);
}

static bool read_model(json_t *value, struct srv_chat *chat, struct srv_fault *fault)
{
    if (!json_is_string(value) || json_string_length(value) > 256)
        return refuse_value(fault, "model", "a string of at most 256 bytes");
    chat->model = strdup(json_string_value(value));
    return chat->model ? true : out_of_memory(fault);
}

static bool read_limit(json_t *value, const char *name, struct srv_chat *chat,
                       struct srv_fault *fault)
{
    json_int_t number = json_integer_value(value);

    if (!json_is_integer(value) || number < 1 || number > INT32_MAX)
        return refuse_value(fault, name, "a positive integer");
    if (chat->max_tokens != 0 && chat->max_tokens != (uint32_t)number)
        return srv_fault_set(
            fault, 400, "invalid_value", name,
            "'max_tokens' and 'max_completion_tokens' contradict each other");
    chat->max_tokens = (uint32_t)number;
    return true;
}

static bool read_max_tokens(json_t *value, struct srv_chat *chat, struct srv_fault *fault)
{
    return read_limit(value, "max_tokens", chat, fault);
}

static bool read_max_completion_tokens(json_t *value, struct srv_chat *chat,
                                       struct srv_fault *fault)
{
    return read_limit(value, "max_completion_tokens", chat, fault);
}

static bool read_temperature(json_t *value, struct srv_chat *chat,
                             struct srv_fault *fault)
{
    double number = json_number_value(value);

    if (!json_is_number(value) || !(number >= 0.0 && number <= 2.0))
        return refuse_value(fault, "temperature", "a number from 0 to 2");
    chat->temperature = (float)number;
    return true;
}

static bool read_top_p(json_t *value, struct srv_chat *chat, struct srv_fault *fault)
{
    double number = json_number_value(value);

    if (!json_is_number(value) || !(number > 0.0 && number <= 1.0))
        return refuse_value(fault, "top_p", "a number above 0 and at most 1");
    chat->top_p = (float)number;
    return true;
}

static bool read_seed(json_t *value, struct srv_chat *chat, struct srv_fault *fault)
{
    uint64_t number = (uint64_t)json_integer_value(value);

    if (!json_is_integer(value))
        return refuse_value(fault, "seed", "an integer of 64 bits");
    /* The sampler takes 32 bits: fold, so that seeds that differ only above still differ.
     */
    chat->seed = (uint32_t)(number ^ (number >> 32));
    chat->has_seed = true;
    return true;
}

static bool add_stop(json_t *value, struct srv_chat *chat, struct srv_fault *fault)
{
    size_t length = json_string_length(value);
    char *copy;

    if (!json_is_string(value) || length == 0 || length > SRV_STOP_BYTES_MAX)
        return refuse_value(fault, "stop",
                            "a string or up to 4 strings, each of 1 to 1024 bytes");
    copy = strdup(json_string_value(value));
    if (!copy)
        return out_of_memory(fault);
    chat->stops[chat->stop_count++] = copy;
    return true;
}

static bool read_stop(json_t *value, struct srv_chat *chat, struct srv_fault *fault)
{
    size_t i;

    if (!json_is_array(value))
        return add_stop(value, chat, fault);
    if (json_array_size(value) > SRV_STOPS_MAX)
        return refuse_value(fault, "stop", "a string or up to 4 strings");
    for (i = 0; i < json_array_size(value); i++) {
        if (!add_stop(json_array_get(value, i), chat, fault))
            return false;
    }
    return true;
}

static bool read_stream(json_t *value, struct srv_chat *chat, struct srv_fault *fault)
{
    if (!json_is_boolean(value))
        return refuse_value(fault, "stream", "true or false");
    chat->stream = json_is_true(value);
    return true;
}

static bool read_stream_options(json_t *value, struct srv_chat *chat,
                                struct srv_fault *fault)
{
    const char *key;
    json_t *item;

    if (!json_is_object(value))
        return refuse_value(fault, "stream_options", "an object");
    json_object_foreach(value, key, item)
    {
        if (strcmp(key, "include_usage") == 0 && json_is_boolean(item))
            chat->include_usage = json_is_true(item);
        else if (strcmp(key, "include_usage") == 0)
            return refuse_value(fault, "stream_options.include_usage", "true or false");
        else if (strcmp(key, "include_obfuscation") != 0 || !json_is_false(item))
            return srv_fault_set(fault, 400, "unsupported_parameter", "stream_options",
                                 "'stream_options.%.64s' is not supported", key);
    }
    return true;
}

static const struct field fields[] = {
    {"messages", RULE_READ, NULL, read_messages},
    {"model", RULE_READ, NULL, read_model},
    {"max_tokens", RULE_READ, NULL, read_max_tokens},
    {"max_completion_tokens", RULE_READ, NULL, read_max_completion_tokens},
    {"temperature", RULE_READ, NULL, read_temperature},
    {"top_p", RULE_READ, NULL, read_top_p},
    {"seed", RULE_READ, NULL, read_seed},
    {"stop", RULE_READ, NULL, read_stop},
    {"stream", RULE_READ, NULL, read_stream},
    {"stream_options", RULE_READ, NULL, read_stream_options},
    {"n", RULE_ONE, NULL, NULL},
    {"frequency_penalty", RULE_ZERO, NULL, NULL},
    {"presence_penalty", RULE_ZERO, NULL, NULL},
    {"logit_bias", RULE_EMPTY, NULL, NULL},
    {"logprobs", RULE_FALSE, NULL, NULL},
    {"top_logprobs", RULE_ZERO, NULL, NULL},
    {"response_format", RULE_TEXT_FORMAT, NULL, NULL},
    {"tools", RULE_EMPTY, NULL, NULL},
    {"tool_choice", RULE_AMONG, "none|auto", NULL},
    {"parallel_tool_calls", RULE_BOOL, NULL, NULL},
    {"functions", RULE_EMPTY, NULL, NULL},
    {"function_call", RULE_AMONG, "none|auto", NULL},
    {"modalities", RULE_TEXT_ONLY, NULL, NULL},
    {"audio", RULE_NULL, NULL, NULL},
    {"prediction", RULE_NULL, NULL, NULL},
    {"reasoning_effort", RULE_NULL, NULL, NULL},
    {"verbosity", RULE_AMONG, "medium", NULL},
    {"web_search_options", RULE_NULL, NULL, NULL},
    {"store", RULE_FALSE, NULL, NULL},
    {"service_tier", RULE_AMONG, "auto|default", NULL},
    {"user", RULE_ANY, NULL, NULL},
    {"safety_identifier", RULE_ANY, NULL, NULL},
    {"prompt_cache_key", RULE_ANY, NULL, NULL},
    {"metadata", RULE_ANY, NULL, NULL},
};

static bool is_among(const char *list, const char *word)
{
    size_t length = strlen(word);

    while (*list) {
        size_t item = strcspn(list, "|");

        if (item == length && memcmp(list, word, length) == 0)
            return true;
        list += item + (list[item] == '|');
    }
    return false;
}

static bool is_empty(json_t *value)
{
    return (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

static bool is_text_format(json_t *value)
{
    json_t *type = json_object_get(value, "type");

    return json_object_size(value) == 1 && json_is_string(type) &&
           strcmp(json_string_value(type), "text") == 0;
}

static bool is_text_only(json_t *value)
{
    json_t *first = json_array_get(value, 0);

    return json_array_size(value) == 1 && json_is_string(first) &&
           strcmp(json_string_value(first), "text") == 0;
}

static bool has_default_value(const struct field *field, json_t *value)
{
    switch (field->rule) {
    case RULE_ANY:
        return true;
    case RULE_FALSE:
        return json_is_false(value);
    case RULE_BOOL:
        return json_is_boolean(value);
    case RULE_ZERO:
        return json_is_number(value) && fpclassify(json_number_value(value)) == FP_ZERO;
    case RULE_ONE:
        return json_is_integer(value) && json_integer_value(value) == 1;
    case RULE_EMPTY:
        return is_empty(value);
    case RULE_AMONG:
        return json_is_string(value) && is_among(field->among, json_string_value(value));
    case RULE_TEXT_FORMAT:
        return is_text_format(value);
    case RULE_TEXT_ONLY:
        return is_text_only(value);
    case RULE_NULL:
    case RULE_READ:
        break;
    }
    return false;
}

static const struct field *find_field(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    }
    return NULL;
}

static bool read_field(const char *name, json_t *value, struct srv_chat *chat,
                       struct srv_fault *fault)
{
    const struct field *field = find_field(name);

    if (!field)
        return srv_fault_set(fault, 400, "unknown_parameter", name,
                             "unknown field '%.64s'", name);
    if (json_is_null(value) && strcmp(name, "messages") != 0)
        return true;
    if (field->rule == RULE_READ)
        return field->read(value, chat, fault);
    if (has_default_value(field, value))
        return true;
    return srv_fault_set(
        fault, 400, "unsupported_parameter", name,
        "'%s' is not supported by this server (only its default is accepted)", name);
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

static bool read_object(json_t *root, struct srv_chat *chat, struct srv_fault *fault)
{
    const char *name;
    json_t *value;

    if (!json_is_object(root))
        return srv_fault_set(fault, 400, "invalid_json", NULL,
                             "the body must be a JSON object");
    json_object_foreach(root, name, value)
    {
        if (!read_field(name, value, chat, fault))
            return false;
    }
    if (chat->message_count == 0)
        return srv_fault_set(fault, 400, "missing_required_parameter", "messages",
                             "'messages' is missing");
    if (chat->include_usage && !chat->stream)
        return srv_fault_set(fault, 400, "invalid_value", "stream_options",
                             "'stream_options' needs 'stream': true");
    return true;
}

bool srv_chat_parse(const char *body, size_t length, struct srv_chat *out,
                    struct srv_fault *fault)
{
    json_error_t error;
    json_t *root;
    bool ok;

    *out = (struct srv_chat){.temperature = 1.0f, .top_p = 1.0f};
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
        srv_chat_deinit(out);
    return ok;
}

void srv_chat_deinit(struct srv_chat *chat)
{
    size_t i;

    for (i = 0; i < chat->message_count; i++)
        free(chat->messages[i].content);
    for (i = 0; i < chat->stop_count; i++)
        free(chat->stops[i]);
    free(chat->messages);
    free(chat->model);
    *chat = (struct srv_chat){0};
}

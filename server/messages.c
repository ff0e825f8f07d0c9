/* Validation of the array "messages".
 * Invariant: message_count counts only messages whose content is set.
 * Failure: the fault names the message by its number and the field in it. */
#include "messages.h"

#include "buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields that replies carry and that clients send back with them: harmless when empty. */
static const char *const empty_fields[] = {
    "refusal",     "audio", "tool_calls",        "function_call",
    "annotations", "name",  "reasoning_content",
};

static const char *role_of(json_t *value)
{
    static const struct {
        const char *given;
        const char *role;
    } roles[] = {
        {"system", "system"},
        {"developer", "system"},
        {"user", "user"},
        {"assistant", "assistant"},
    };
    size_t i;

    for (i = 0; json_is_string(value) && i < sizeof(roles) / sizeof(roles[0]); i++) {
        if (strcmp(json_string_value(value), roles[i].given) == 0)
            return roles[i].role;
    }
    return NULL;
}

static bool append_part(json_t *part, const char *where, struct srv_buf *text,
                        struct srv_fault *fault)
{
    json_t *type = json_object_get(part, "type");
    json_t *content = json_object_get(part, "text");

    if (!json_is_string(type) || strcmp(json_string_value(type), "text") != 0)
        return srv_fault_set(fault, 400, "unsupported_value", where,
                             "'%s' may hold only parts of type \"text\"", where);
    if (!json_is_string(content) || json_object_size(part) != 2)
        return srv_fault_set(fault, 400, "invalid_value", where,
                             "a part of '%s' must have exactly 'type' and 'text'", where);
    if (!srv_buf_append(text, json_string_value(content), json_string_length(content)))
        return srv_fault_set(fault, 500, NULL, NULL, "out of memory");
    return true;
}

/* The parts' texts follow each other without anything between them. */
static bool append_content(json_t *value, const char *where, struct srv_buf *text,
                           struct srv_fault *fault)
{
    size_t i;

    if (!srv_buf_append(text, "", 0))
        return srv_fault_set(fault, 500, NULL, NULL, "out of memory");
    if (json_is_string(value)) {
        if (srv_buf_append(text, json_string_value(value), json_string_length(value)))
            return true;
        return srv_fault_set(fault, 500, NULL, NULL, "out of memory");
    }
    if (!json_is_array(value) || json_array_size(value) == 0)
        return srv_fault_set(fault, 400, "invalid_value", where,
                             "'%s' must be a string or an array of text parts", where);
    for (i = 0; i < json_array_size(value); i++) {
        if (!append_part(json_array_get(value, i), where, text, fault))
            return false;
    }
    return true;
}

static bool may_be_ignored(const char *key, json_t *value)
{
    size_t i;

    if (strcmp(key, "role") == 0 || strcmp(key, "content") == 0)
        return true;
    for (i = 0; i < sizeof(empty_fields) / sizeof(empty_fields[0]); i++) {
        if (strcmp(key, empty_fields[i]) == 0)
            return json_is_null(value) ||
                   (json_is_array(value) && json_array_size(value) == 0);
    }
    return false;
}

static bool check_fields(json_t *item, size_t number, struct srv_fault *fault)
{
    const char *key;
    json_t *value;

    json_object_foreach(item, key, value)
    {
        char where[96];

        if (may_be_ignored(key, value))
            continue;
        snprintf(where, sizeof(where), "messages[%zu].%.64s", number, key);
        return srv_fault_set(fault, 400, "unsupported_parameter", where,
                             "'%s' is not supported", where);
    }
    return true;
}

static bool read_message(json_t *item, size_t number, struct srv_request *request,
                         struct srv_fault *fault)
{
    struct srv_buf text = {0};
    const char *role = role_of(json_object_get(item, "role"));
    char where[48];

    snprintf(where, sizeof(where), "messages[%zu].role", number);
    if (!json_is_object(item))
        return srv_fault_set(fault, 400, "invalid_value", "messages",
                             "'messages[%zu]' must be an object", number);
    if (!role)
        return srv_fault_set(
            fault, 400, "invalid_value", where,
            "'%s' must be \"system\", \"developer\", \"user\" or \"assistant\"", where);
    if (!check_fields(item, number, fault))
        return false;
    snprintf(where, sizeof(where), "messages[%zu].content", number);
    if (!append_content(json_object_get(item, "content"), where, &text, fault)) {
        srv_buf_deinit(&text);
        return false;
    }
    request->messages[request->message_count++] =
        (struct srv_message){.role = role, .content = text.data};
    return true;
}

bool srv_messages_read(json_t *value, const char *name, struct srv_request *request,
                       struct srv_fault *fault)
{
    size_t count = json_array_size(value);
    size_t i;

    if (!json_is_array(value) || count == 0 || count > SRV_MESSAGES_MAX)
        return srv_fault_set(fault, 400, "invalid_value", name,
                             "'%s' must be an array of 1 to %d messages", name,
                             SRV_MESSAGES_MAX);
    request->messages = calloc(count, sizeof(*request->messages));
    if (!request->messages)
        return srv_fault_set(fault, 500, NULL, NULL, "out of memory");
    for (i = 0; i < count; i++) {
        if (!read_message(json_array_get(value, i), i, request, fault))
            return false;
    }
    return true;
}

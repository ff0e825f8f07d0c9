/* Validation of "prompt" of a completion request.
 * Invariant: the request holds a text or tokens, not both, and not nothing.
 * Failure: the fault says what a prompt may be. */
#include "prompt.h"

#include <stdlib.h>
#include <string.h>

static bool refuse(struct srv_fault *fault, const char *name, const char *why)
{
    return srv_fault_set(fault, 400, "invalid_value", name, "'%s' %s", name, why);
}

static bool out_of_memory(struct srv_fault *fault)
{
    return srv_fault_set(fault, 500, NULL, NULL, "out of memory");
}

static bool read_text(json_t *value, const char *name, struct srv_request *request,
                      struct srv_fault *fault)
{
    if (json_string_length(value) == 0)
        return refuse(fault, name, "must not be empty");
    request->prompt = strdup(json_string_value(value));
    return request->prompt ? true : out_of_memory(fault);
}

static bool read_tokens(json_t *value, const char *name, struct srv_request *request,
                        struct srv_fault *fault)
{
    size_t count = json_array_size(value);
    size_t i;

    request->prompt_tokens = calloc(count, sizeof(*request->prompt_tokens));
    if (!request->prompt_tokens)
        return out_of_memory(fault);
    request->prompt_token_count = count;
    for (i = 0; i < count; i++) {
        json_t *item = json_array_get(value, i);
        json_int_t token = json_integer_value(item);

        if (!json_is_integer(item) || token < 0 || token > INT32_MAX)
            return refuse(fault, name, "holds something that is no token id");
        request->prompt_tokens[i] = (int32_t)token;
    }
    return true;
}

bool srv_prompt_read(json_t *value, const char *name, struct srv_request *request,
                     struct srv_fault *fault)
{
    json_t *first = json_array_get(value, 0);
    bool nested = json_is_string(first) || json_is_array(first);

    if (json_is_string(value))
        return read_text(value, name, request, fault);
    if (nested && json_array_size(value) > 1)
        return refuse(fault, name, "may hold only one prompt");
    if (json_is_string(first))
        return read_text(first, name, request, fault);
    value = json_is_array(first) ? first : value;
    if (!json_is_array(value) || json_array_size(value) == 0)
        return refuse(fault, name,
                      "must be a string, an array with one string, or token ids");
    return read_tokens(value, name, request, fault);
}

/* The readers of fields that chats and completions share.
 * Invariant: what is in the request is within the bounds that the field has.
 * Failure: the fault names the field and says what it may be. */
#include "readers.h"

#include <stdlib.h>
#include <string.h>

static bool refuse(struct srv_fault *fault, const char *name, const char *wanted)
{
    return srv_fault_set(fault, 400, "invalid_value", name, "'%s' must be %s", name,
                         wanted);
}

static bool out_of_memory(struct srv_fault *fault)
{
    return srv_fault_set(fault, 500, NULL, NULL, "out of memory");
}

static bool number_within(json_t *value, double low, double high, float *out)
{
    double number = json_number_value(value);

    if (!json_is_number(value) || !(number >= low && number <= high))
        return false;
    *out = (float)number;
    return true;
}

bool srv_read_model(json_t *value, const char *name, struct srv_request *request,
                    struct srv_fault *fault)
{
    if (!json_is_string(value) || json_string_length(value) > 256)
        return refuse(fault, name, "a string of at most 256 bytes");
    request->model = strdup(json_string_value(value));
    return request->model ? true : out_of_memory(fault);
}

bool srv_read_limit(json_t *value, const char *name, struct srv_request *request,
                    struct srv_fault *fault)
{
    json_int_t number = json_integer_value(value);

    if (!json_is_integer(value) || number < 1 || number > INT32_MAX)
        return refuse(fault, name, "a positive integer");
    if (request->max_tokens != 0 && request->max_tokens != (uint32_t)number)
        return srv_fault_set(
            fault, 400, "invalid_value", name,
            "'max_tokens' and 'max_completion_tokens' contradict each other");
    request->max_tokens = (uint32_t)number;
    return true;
}

bool srv_read_temperature(json_t *value, const char *name, struct srv_request *request,
                          struct srv_fault *fault)
{
    return number_within(value, 0.0, 2.0, &request->sampling.temperature) ||
           refuse(fault, name, "a number from 0 to 2");
}

bool srv_read_top_p(json_t *value, const char *name, struct srv_request *request,
                    struct srv_fault *fault)
{
    return (json_number_value(value) > 0.0 &&
            number_within(value, 0.0, 1.0, &request->sampling.top_p)) ||
           refuse(fault, name, "a number above 0 and at most 1");
}

bool srv_read_min_p(json_t *value, const char *name, struct srv_request *request,
                    struct srv_fault *fault)
{
    return number_within(value, 0.0, 1.0, &request->sampling.min_p) ||
           refuse(fault, name, "a number from 0 to 1");
}

bool srv_read_top_k(json_t *value, const char *name, struct srv_request *request,
                    struct srv_fault *fault)
{
    json_int_t number = json_integer_value(value);

    if (!json_is_integer(value) || number < -1 || number > INT32_MAX)
        return refuse(fault, name, "a positive integer, or 0 or -1 for no limit");
    request->sampling.top_k = number > 0 ? (int32_t)number : 0;
    return true;
}

bool srv_read_repetition_penalty(json_t *value, const char *name,
                                 struct srv_request *request, struct srv_fault *fault)
{
    float *penalty = &request->sampling.repetition_penalty;
    float before = *penalty; /* 0 = not given yet */

    if (!(json_number_value(value) > 0.0) || !number_within(value, 0.0, 10.0, penalty))
        return refuse(fault, name, "a number above 0 and at most 10");
    if (before > 0.0f && (*penalty < before || *penalty > before))
        return srv_fault_set(
            fault, 400, "invalid_value", name,
            "'repetition_penalty' and 'repeat_penalty' contradict each other");
    return true;
}

bool srv_read_frequency_penalty(json_t *value, const char *name,
                                struct srv_request *request, struct srv_fault *fault)
{
    return number_within(value, -2.0, 2.0, &request->sampling.frequency_penalty) ||
           refuse(fault, name, "a number from -2 to 2");
}

bool srv_read_presence_penalty(json_t *value, const char *name,
                               struct srv_request *request, struct srv_fault *fault)
{
    return number_within(value, -2.0, 2.0, &request->sampling.presence_penalty) ||
           refuse(fault, name, "a number from -2 to 2");
}

bool srv_read_seed(json_t *value, const char *name, struct srv_request *request,
                   struct srv_fault *fault)
{
    uint64_t number = (uint64_t)json_integer_value(value);

    if (!json_is_integer(value))
        return refuse(fault, name, "an integer of 64 bits");
    /* The sampler takes 32 bits: fold, so that seeds that differ only above still differ.
     */
    request->sampling.seed = (uint32_t)(number ^ (number >> 32));
    request->has_seed = true;
    return true;
}

static bool add_stop(json_t *value, const char *name, struct srv_request *request,
                     struct srv_fault *fault)
{
    size_t length = json_string_length(value);
    char *copy;

    if (!json_is_string(value) || length == 0 || length > SRV_STOP_BYTES_MAX)
        return refuse(fault, name,
                      "a string or up to 4 strings, each of 1 to 1024 bytes");
    copy = strdup(json_string_value(value));
    if (!copy)
        return out_of_memory(fault);
    request->stops[request->stop_count++] = copy;
    return true;
}

bool srv_read_stop(json_t *value, const char *name, struct srv_request *request,
                   struct srv_fault *fault)
{
    size_t i;

    if (!json_is_array(value))
        return add_stop(value, name, request, fault);
    if (json_array_size(value) > SRV_STOPS_MAX)
        return refuse(fault, name, "a string or up to 4 strings");
    for (i = 0; i < json_array_size(value); i++) {
        if (!add_stop(json_array_get(value, i), name, request, fault))
            return false;
    }
    return true;
}

bool srv_read_stream(json_t *value, const char *name, struct srv_request *request,
                     struct srv_fault *fault)
{
    if (!json_is_boolean(value))
        return refuse(fault, name, "true or false");
    request->stream = json_is_true(value);
    return true;
}

bool srv_read_stream_options(json_t *value, const char *name, struct srv_request *request,
                             struct srv_fault *fault)
{
    const char *key;
    json_t *item;

    if (!json_is_object(value))
        return refuse(fault, name, "an object");
    json_object_foreach(value, key, item)
    {
        if (strcmp(key, "include_usage") == 0 && json_is_boolean(item))
            request->include_usage = json_is_true(item);
        else if (strcmp(key, "include_usage") == 0)
            return refuse(fault, "stream_options.include_usage", "true or false");
        else if (strcmp(key, "include_obfuscation") != 0 || !json_is_false(item))
            return srv_fault_set(fault, 400, "unsupported_parameter", name,
                                 "'%s.%.64s' is not supported", name, key);
    }
    return true;
}

bool srv_read_cache_salt(json_t *value, const char *name, struct srv_request *request,
                         struct srv_fault *fault)
{
    size_t length = json_string_length(value);

    if (!json_is_string(value) || length == 0 || length > SRV_SALT_BYTES_MAX)
        return refuse(fault, name, "a string of 1 to 256 bytes");
    request->cache_salt = strdup(json_string_value(value));
    return request->cache_salt ? true : out_of_memory(fault);
}

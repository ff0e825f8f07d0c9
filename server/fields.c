/* The rules by which fields of a request are accepted. Invariant: a field is understood,
 * or has the value that means "do nothing", or the request is refused: nothing that a
 * client asked for is silently left out. Failure: the fault names the field. */
#include "fields.h"

#include <math.h>
#include <string.h>

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

static bool has_default_value(const struct srv_field *field, json_t *value)
{
    switch (field->rule) {
    case SRV_RULE_ANY:
        return true;
    case SRV_RULE_FALSE:
        return json_is_false(value);
    case SRV_RULE_BOOL:
        return json_is_boolean(value);
    case SRV_RULE_ZERO:
        return json_is_number(value) && fpclassify(json_number_value(value)) == FP_ZERO;
    case SRV_RULE_ONE:
        return json_is_integer(value) && json_integer_value(value) == 1;
    case SRV_RULE_EMPTY:
        return is_empty(value);
    case SRV_RULE_AMONG:
        return json_is_string(value) && is_among(field->among, json_string_value(value));
    case SRV_RULE_TEXT_FORMAT:
        return is_text_format(value);
    case SRV_RULE_TEXT_ONLY:
        return is_text_only(value);
    case SRV_RULE_NULL:
    case SRV_RULE_READ:
        break;
    }
    return false;
}

static const struct srv_field *find_field(const struct srv_field *fields, size_t count,
                                          const char *name)
{
    size_t i;

    for (i = 0; i < count; i++) {
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    }
    return NULL;
}

bool srv_field_is_known(const struct srv_field *fields, size_t count, const char *name)
{
    return find_field(fields, count, name) != NULL;
}

bool srv_field_accept(const struct srv_field *fields, size_t count, const char *name,
                      json_t *value, struct srv_request *request, struct srv_fault *fault)
{
    const struct srv_field *field = find_field(fields, count, name);

    if (!field)
        return srv_fault_set(fault, 400, "unknown_parameter", name,
                             "unknown field '%.64s'", name);
    if (json_is_null(value))
        return true;
    if (field->rule == SRV_RULE_READ)
        return field->read(value, name, request, fault);
    if (has_default_value(field, value))
        return true;
    return srv_fault_set(
        fault, 400, "unsupported_parameter", name,
        "'%s' is not supported by this server (only its default is accepted)", name);
}

/* Errors as clients see them.
 * Invariant: message and param are printable ASCII, whatever was formatted into them.
 * Failure: encoding needs memory; without it the caller sends a body-less answer. */
#include "fault.h"

#include <jansson.h>
#include <stdio.h>

static const char *type_of(int status)
{
    switch (status) {
    case 401:
        return "authentication_error";
    case 403:
        return "permission_error";
    case 429:
        return "rate_limit_error";
    default:
        return status >= 500 ? "server_error" : "invalid_request_error";
    }
}

/* Names of fields come from the client; control bytes and non-ASCII would end up in logs.
 */
static void make_printable(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7E)
            *text = '?';
    }
}

bool srv_fault_set(struct srv_fault *fault, int status, const char *code,
                   const char *param, const char *format, ...)
{
    va_list args;

    fault->status = status;
    fault->type = type_of(status);
    fault->code = code;
    snprintf(fault->param, sizeof(fault->param), "%s", param ? param : "");
    va_start(args, format);
    vsnprintf(fault->message, sizeof(fault->message), format, args);
    va_end(args);
    make_printable(fault->param);
    make_printable(fault->message);
    return false;
}

char *srv_fault_encode(const struct srv_fault *fault)
{
    json_t *param = fault->param[0] ? json_string(fault->param) : json_null();
    json_t *code = fault->code ? json_string(fault->code) : json_null();
    json_t *json = json_pack("{s:{s:s,s:s,s:o,s:o}}", "error", "message", fault->message,
                             "type", fault->type, "param", param, "code", code);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return text;
}

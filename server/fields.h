#ifndef COLDKV_SERVER_FIELDS_H
#define COLDKV_SERVER_FIELDS_H

#include "request.h"

#include <jansson.h>

/* The rules by which fields of a request are accepted. */

enum srv_rule {
    SRV_RULE_READ,        /* has its own reader */
    SRV_RULE_ANY,         /* changes nothing that we do: accepted as it is */
    SRV_RULE_NULL,        /* only null */
    SRV_RULE_FALSE,       /* only false */
    SRV_RULE_BOOL,        /* true or false, both without effect here */
    SRV_RULE_ZERO,        /* only the number 0 */
    SRV_RULE_ONE,         /* only the number 1 */
    SRV_RULE_EMPTY,       /* only an empty array or object */
    SRV_RULE_AMONG,       /* only the strings in `among`, separated by | */
    SRV_RULE_TEXT_FORMAT, /* only {"type": "text"} */
    SRV_RULE_TEXT_ONLY,   /* only ["text"] */
};

/* Reads a value that is not null into the request. What was read before a failure stays
 * there for srv_request_deinit. */
typedef bool (*srv_field_reader)(json_t *value, const char *name,
                                 struct srv_request *request, struct srv_fault *fault);

struct srv_field {
    const char *name;
    enum srv_rule rule;
    const char *among;
    srv_field_reader read;
};

bool srv_field_is_known(const struct srv_field *fields, size_t count, const char *name);

/* Reads one field as `fields` (of `count`) have it. null stands for "not given". */
bool srv_field_accept(const struct srv_field *fields, size_t count, const char *name,
                      json_t *value, struct srv_request *request,
                      struct srv_fault *fault);

#endif

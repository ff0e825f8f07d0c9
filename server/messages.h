#ifndef COLDKV_SERVER_MESSAGES_H
#define COLDKV_SERVER_MESSAGES_H

#include "fields.h"

/* Reads the array "messages"; a srv_field_reader. */
bool srv_messages_read(json_t *value, const char *name, struct srv_request *request,
                       struct srv_fault *fault);

#endif

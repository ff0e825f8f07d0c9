#ifndef COLDKV_SERVER_PROMPT_H
#define COLDKV_SERVER_PROMPT_H

#include "fields.h"

/* Reads "prompt": a string, an array with one string, an array of token ids, or an array
 * with one such array. A srv_field_reader. */
bool srv_prompt_read(json_t *value, const char *name, struct srv_request *request,
                     struct srv_fault *fault);

#endif

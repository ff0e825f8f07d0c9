#ifndef COLDKV_SERVER_READERS_H
#define COLDKV_SERVER_READERS_H

#include "fields.h"

/* The readers of fields that chats and completions share; each is a srv_field_reader. */

bool srv_read_model(json_t *value, const char *name, struct srv_request *request,
                    struct srv_fault *fault);
/* max_tokens and max_completion_tokens, which must not contradict each other. */
bool srv_read_limit(json_t *value, const char *name, struct srv_request *request,
                    struct srv_fault *fault);
bool srv_read_temperature(json_t *value, const char *name, struct srv_request *request,
                          struct srv_fault *fault);
bool srv_read_top_p(json_t *value, const char *name, struct srv_request *request,
                    struct srv_fault *fault);
bool srv_read_min_p(json_t *value, const char *name, struct srv_request *request,
                    struct srv_fault *fault);
bool srv_read_top_k(json_t *value, const char *name, struct srv_request *request,
                    struct srv_fault *fault);
/* repetition_penalty and repeat_penalty, which must not contradict each other. */
bool srv_read_repetition_penalty(json_t *value, const char *name,
                                 struct srv_request *request, struct srv_fault *fault);
bool srv_read_frequency_penalty(json_t *value, const char *name,
                                struct srv_request *request, struct srv_fault *fault);
bool srv_read_presence_penalty(json_t *value, const char *name,
                               struct srv_request *request, struct srv_fault *fault);
bool srv_read_seed(json_t *value, const char *name, struct srv_request *request,
                   struct srv_fault *fault);
bool srv_read_stop(json_t *value, const char *name, struct srv_request *request,
                   struct srv_fault *fault);
bool srv_read_stream(json_t *value, const char *name, struct srv_request *request,
                     struct srv_fault *fault);
bool srv_read_stream_options(json_t *value, const char *name, struct srv_request *request,
                             struct srv_fault *fault);
bool srv_read_cache_salt(json_t *value, const char *name, struct srv_request *request,
                         struct srv_fault *fault);

#endif

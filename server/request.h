#ifndef COLDKV_SERVER_REQUEST_H
#define COLDKV_SERVER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fault.h"

/* What a client asks for: POST /v1/chat/completions and POST /v1/completions, checked. */

enum {
    SRV_STOPS_MAX = 4,
    SRV_STOP_BYTES_MAX = 1024,
    SRV_MESSAGES_MAX = 4096,
    SRV_SALT_BYTES_MAX = 256,
    SRV_JSON_DEPTH_MAX = 32,
    /* What /v1/completions generates when the request does not say. */
    SRV_COMPLETION_TOKENS = 16,
};

enum srv_request_kind { SRV_REQUEST_CHAT, SRV_REQUEST_COMPLETION };

struct srv_message {
    const char *role; /* static: "system", "user" or "assistant" */
    char *content;
};

/* How tokens are chosen. */
struct srv_sampling {
    float temperature;        /* 0 = the likeliest token */
    float top_p;              /* 1 = off */
    float min_p;              /* 0 = off */
    int32_t top_k;            /* 0 = off */
    float repetition_penalty; /* 1 = off */
    float frequency_penalty;  /* 0 = off */
    float presence_penalty;   /* 0 = off */
    uint32_t seed;
};

/* Everything in it is owned; all zero is an empty one. */
struct srv_request {
    enum srv_request_kind kind;
    /* Of a chat. */
    struct srv_message *messages;
    size_t message_count;
    /* Of a completion: one of the two. */
    char *prompt;
    int32_t
        *prompt_tokens; /* as the client gave them; not checked against a vocabulary */
    size_t prompt_token_count;

    char *model;         /* as the client named it, or NULL */
    uint32_t max_tokens; /* 0 = what the context has left */
    struct srv_sampling sampling;
    bool has_seed;
    char *cache_salt; /* NULL = none */
    char *stops[SRV_STOPS_MAX];
    size_t stop_count;
    bool stream;
    bool include_usage;
};

/* Parses and validates a request body. A field that is not supported is refused by name
 * unless it has the value that means "do nothing". On failure `fault` says why and `out`
 * is empty. */
bool srv_request_parse(enum srv_request_kind kind, const char *body, size_t length,
                       struct srv_request *out, struct srv_fault *fault);
void srv_request_deinit(struct srv_request *request);

/* The field that holds what is to be evaluated: "messages" or "prompt". */
const char *srv_request_input_name(enum srv_request_kind kind);

#endif

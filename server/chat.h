#ifndef COLDKV_SERVER_CHAT_H
#define COLDKV_SERVER_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fault.h"

enum {
    SRV_STOPS_MAX = 4,
    SRV_STOP_BYTES_MAX = 1024,
    SRV_MESSAGES_MAX = 4096,
    SRV_JSON_DEPTH_MAX = 32,
};

struct srv_message {
    const char *role; /* static: "system", "user" or "assistant" */
    char *content;
};

/* A checked POST /v1/chat/completions. Everything in it is owned; all zero is an empty
 * one. */
struct srv_chat {
    struct srv_message *messages;
    size_t message_count;
    char *model;         /* as the client named it, or NULL */
    uint32_t max_tokens; /* 0 = what the context has left */
    float temperature;
    float top_p;
    uint32_t seed;
    char *cache_salt; /* NULL = none */
    bool has_seed;
    char *stops[SRV_STOPS_MAX];
    size_t stop_count;
    bool stream;
    bool include_usage;
};

/* Parses and validates a request body. A field that is not supported is refused by name
 * unless it has the value that means "do nothing". On failure `fault` says why and `out`
 * is empty. */
bool srv_chat_parse(const char *body, size_t length, struct srv_chat *out,
                    struct srv_fault *fault);
void srv_chat_deinit(struct srv_chat *chat);

#endif

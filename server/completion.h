#ifndef COLDKV_SERVER_COMPLETION_H
#define COLDKV_SERVER_COMPLETION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "request.h"

/* The JSON of answers to chats and to completions. All functions return text on the heap,
 * NULL when memory is short. `content` must be valid UTF-8; it may hold NUL bytes. */

struct srv_usage {
    uint32_t prompt_tokens;
    uint32_t completion_tokens;
    uint32_t cached_tokens;
};

struct srv_answer_head {
    enum srv_request_kind kind;
    const char *id;
    const char *model;
    int64_t created_s;
};

char *srv_completion_encode(const struct srv_answer_head *head, const char *content,
                            size_t length, const char *finish_reason,
                            const struct srv_usage *usage);

/* Chunks of a stream. `with_usage`: the client asked for usage, so that every chunk
 * carries the field, null in all but the last. The chunk with the role is for chats only.
 */
char *srv_chunk_encode_role(const struct srv_answer_head *head, bool with_usage);
char *srv_chunk_encode_delta(const struct srv_answer_head *head, const char *content,
                             size_t length, bool with_usage);
char *srv_chunk_encode_finish(const struct srv_answer_head *head,
                              const char *finish_reason, bool with_usage);
char *srv_chunk_encode_usage(const struct srv_answer_head *head,
                             const struct srv_usage *usage);

#endif

#ifndef COLDKV_SERVER_TRACE_H
#define COLDKV_SERVER_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fault.h"

/* A file that gets one JSON line for each request that had its turn. It holds token ids,
 * so who may read it may read the prompts: it is made with mode 0600. */

struct srv_trace_line {
    const char *id;
    const char *outcome; /* "stop", "length", "cancelled" or "failed" */
    const int32_t *prompt;
    size_t prompt_count;
    size_t cached_count;
    const char *source;       /* srv_source_name */
    const int32_t *evaluated; /* what the context holds, and a snapshot would hold */
    size_t evaluated_count;
    const int32_t *generated;
    size_t generated_count;
    bool has_logits;
    uint64_t first_logits_hash;
    double wait_ms; /* from arrival to its turn */
    double ttft_ms; /* from its turn to its first token; 0 when there was none */
    double prefill_ms;
    double restore_ms;
    uint64_t restored_bytes;
};

/* Opens for appending; -1 with the reason in `fault`. */
int srv_trace_open(const char *path, struct srv_fault *fault);

/* One write; false when it failed. */
bool srv_trace_append(int fd, const struct srv_trace_line *line);

#endif

#ifndef COLDKV_SERVER_REPLY_H
#define COLDKV_SERVER_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "completion.h"
#include "job.h"
#include "stop.h"
#include "utf8.h"

/* The text of one reply as it comes into being: bytes of tokens in, characters out, stop
 * strings cut off, and for a stream one event for each piece. */
struct srv_reply {
    struct srv_job *job; /* borrowed */
    struct srv_answer_head head;
    struct srv_utf8 utf8;
    struct srv_stop stop;
    struct srv_buf characters; /* of one token, before stop strings are looked for */
    struct srv_buf text;       /* the whole text, or for a stream what is not sent yet */
};

/* For a streamed chat sends the first chunk. All of these: false = cancelled or no
 * memory. */
bool srv_reply_begin(struct srv_reply *reply, struct srv_job *job);
bool srv_reply_add(struct srv_reply *reply, const char *bytes, size_t length);

/* Whether a stop string was found; nothing further is needed then. */
bool srv_reply_is_stopped(const struct srv_reply *reply);

/* The end of the text. Nothing is sent for a reply that is not streamed. */
bool srv_reply_flush(struct srv_reply *reply);

/* Hands the rest over and finishes the job. */
bool srv_reply_finish(struct srv_reply *reply, const char *finish_reason,
                      const struct srv_usage *usage);
void srv_reply_deinit(struct srv_reply *reply);

#endif

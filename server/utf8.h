#ifndef COLDKV_SERVER_UTF8_H
#define COLDKV_SERVER_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

/* Turns the bytes of tokens into text that is valid at every moment: a token may end in
 * the middle of a character, and the beginning of that character waits here for its rest.
 * All zero is the start state. */
struct srv_utf8 {
    unsigned char held[4];
    unsigned held_count;
    unsigned missing;  /* continuation bytes still to come */
    unsigned char low; /* bounds of the next continuation byte */
    unsigned char high;
};

/* Appends to `out` what is complete; bytes that can be no character become U+FFFD, one
 * for each longest run that could have begun one. False when memory is short. */
bool srv_utf8_feed(struct srv_utf8 *state, const char *bytes, size_t length,
                   struct srv_buf *out);

/* The end of the text: what is still held can never be completed and becomes U+FFFD. */
bool srv_utf8_flush(struct srv_utf8 *state, struct srv_buf *out);

#endif

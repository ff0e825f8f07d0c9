#ifndef COLDKV_SERVER_STOP_H
#define COLDKV_SERVER_STOP_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

/* Finds stop strings in text that arrives in pieces. Text that may still turn into a stop
 * string is held back, so that none is ever emitted in part. The result does not depend
 * on how the text was cut: the stop string that is complete first wins, and of two that
 * end together the longer. */
struct srv_stop {
    const char *const *strings; /* borrowed; none is empty */
    size_t count;
    struct srv_buf held;
    bool hit;
};

void srv_stop_init(struct srv_stop *stop, const char *const *strings, size_t count);
void srv_stop_deinit(struct srv_stop *stop);

/* Appends to `out` what is certain. After a hit (stop->hit) everything further is
 * dropped. False when memory is short. */
bool srv_stop_feed(struct srv_stop *stop, const char *text, size_t length,
                   struct srv_buf *out);

/* The end of the text: what was held back was no stop string after all. */
bool srv_stop_flush(struct srv_stop *stop, struct srv_buf *out);

#endif

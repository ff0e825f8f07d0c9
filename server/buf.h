#ifndef COLDKV_SERVER_BUF_H
#define COLDKV_SERVER_BUF_H

#include <stdbool.h>
#include <stddef.h>

/* A growable run of bytes. All zero is a valid empty one. `data` is always followed by a
 * NUL once something was appended, so that text can be handed on as a string. */
struct srv_buf {
    char *data;
    size_t length;
    size_t capacity;
};

/* Appends; false when memory is short, and the buffer is then as it was. */
bool srv_buf_append(struct srv_buf *buf, const void *bytes, size_t length);
bool srv_buf_append_text(struct srv_buf *buf, const char *text);

/* Drops the first `count` bytes. */
void srv_buf_consume(struct srv_buf *buf, size_t count);

/* Empties it and keeps the memory. */
void srv_buf_clear(struct srv_buf *buf);
void srv_buf_deinit(struct srv_buf *buf);

#endif

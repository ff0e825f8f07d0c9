/* Growable bytes for replies, request bodies and held-back text.
 * Invariant: length < capacity whenever data is set, and data[length] is NUL.
 * Failure: an append that cannot grow changes nothing and says so. */
#include "buf.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct srv_buf *buf, size_t wanted)
{
    size_t capacity = buf->capacity < 64 ? 64 : buf->capacity;
    char *data;

    if (wanted <= buf->capacity)
        return true;
    while (capacity < wanted) {
        if (capacity > SIZE_MAX / 2)
            return false;
        capacity *= 2;
    }
    data = realloc(buf->data, capacity);
    if (!data)
        return false;
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

bool srv_buf_append(struct srv_buf *buf, const void *bytes, size_t length)
{
    if (length >= SIZE_MAX - buf->length || !reserve(buf, buf->length + length + 1))
        return false;
    if (length > 0)
        memcpy(buf->data + buf->length, bytes, length);
    buf->length += length;
    buf->data[buf->length] = '\0';
    return true;
}

bool srv_buf_append_text(struct srv_buf *buf, const char *text)
{
    return srv_buf_append(buf, text, strlen(text));
}

void srv_buf_consume(struct srv_buf *buf, size_t count)
{
    if (count == 0)
        return;
    if (count > buf->length)
        count = buf->length;
    memmove(buf->data, buf->data + count, buf->length - count + 1);
    buf->length -= count;
}

void srv_buf_clear(struct srv_buf *buf)
{
    buf->length = 0;
    if (buf->data)
        buf->data[0] = '\0';
}

void srv_buf_deinit(struct srv_buf *buf)
{
    free(buf->data);
    *buf = (struct srv_buf){0};
}

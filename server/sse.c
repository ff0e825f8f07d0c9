/* Framing of server-sent events.
 * Invariant: whatever the payload holds, what is appended is exactly one event or one
 * comment. Failure: when memory is short nothing is appended. */
#include "sse.h"

#include <string.h>

static bool append_lines(struct srv_buf *out, const char *payload)
{
    for (;;) {
        size_t length = strcspn(payload, "\r\n");

        if (!srv_buf_append_text(out, "data: ") ||
            !srv_buf_append(out, payload, length) || !srv_buf_append_text(out, "\n"))
            return false;
        payload += length;
        if (*payload == '\0')
            return true;
        payload += payload[0] == '\r' && payload[1] == '\n' ? 2 : 1;
    }
}

bool srv_sse_append_data(struct srv_buf *out, const char *payload)
{
    size_t before = out->length;

    if (append_lines(out, payload) && srv_buf_append_text(out, "\n"))
        return true;
    out->length = before;
    return false;
}

bool srv_sse_append_comment(struct srv_buf *out, const char *text)
{
    size_t before = out->length;

    if (srv_buf_append_text(out, ": ") &&
        srv_buf_append(out, text, strcspn(text, "\r\n")) &&
        srv_buf_append_text(out, "\n\n"))
        return true;
    out->length = before;
    return false;
}

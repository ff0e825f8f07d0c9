#ifndef COLDKV_SERVER_SSE_H
#define COLDKV_SERVER_SSE_H

#include <stdbool.h>

#include "buf.h"

/* Server-sent events: one `data:` line for each line of the payload, then an empty line.
 */
bool srv_sse_append_data(struct srv_buf *out, const char *payload);

/* A comment: clients ignore it, and it keeps the connection from looking dead. A line
 * break in the text would begin a field, so the text ends there. */
bool srv_sse_append_comment(struct srv_buf *out, const char *text);

#endif

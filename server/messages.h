#ifndef COLDKV_SERVER_MESSAGES_H
#define COLDKV_SERVER_MESSAGES_H

#include "chat.h"

#include <jansson.h>
#include <stdbool.h>

/* Reads the array "messages" into `chat`. What was read before a failure stays there for
 * srv_chat_deinit. */
bool srv_messages_read(json_t *value, struct srv_chat *chat, struct srv_fault *fault);

#endif

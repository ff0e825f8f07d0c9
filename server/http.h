#ifndef COLDKV_SERVER_HTTP_H
#define COLDKV_SERVER_HTTP_H

#include <stdbool.h>

#include "fault.h"
#include "listener.h"
#include "service.h"

struct srv_http;

/* Serves on the listener, which it then owns. `api_key` NULL = none is asked for;
 * borrowed. */
bool srv_http_start(struct srv_service *service, struct srv_listener *listener,
                    const char *api_key, struct srv_http **out, struct srv_fault *fault);

/* Waits a few seconds at most until all answers are sent, then ends. The queue must be
 * closed and the engine thread joined, so that no connection is suspended. */
void srv_http_stop(struct srv_http *http);

#endif

#ifndef COLDKV_SERVER_ACCESS_H
#define COLDKV_SERVER_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "fault.h"

/* Who may ask for what, decided from the request line and the headers alone. */

enum srv_route_id {
    SRV_ROUTE_CHAT,
    SRV_ROUTE_COMPLETION,
    SRV_ROUTE_MODELS,
    SRV_ROUTE_HEALTH,
    SRV_ROUTE_STATS,
    SRV_ROUTE_METRICS,
    SRV_ROUTE_FLUSH,
};

struct srv_route {
    enum srv_route_id id;
    const char *path;
    const char *method;
};

/* NULL: no such path. Static storage. */
const struct srv_route *srv_route_find(const char *path);

/* The headers that matter. Values are borrowed; all zero before the first. */
struct srv_headers {
    const char *host;
    const char *origin;
    const char *authorization;
    const char *content_type;
    const char *content_length;
    const char *no_store;
    bool duplicate;      /* one of the above came twice */
    bool answer_at_once; /* set by srv_access_check: do not wait for the body */
    bool keeps_nothing;  /* set by srv_access_check: X-Coldkv-No-Store asks for it */
    bool expects;        /* the client waits for our word before it sends the body */
};

void srv_headers_add(struct srv_headers *headers, const char *name, const char *value);

struct srv_access {
    const char *address; /* the one we are bound to */
    uint16_t port;
    bool loopback;
    const char *api_key; /* NULL = none */
    uint64_t body_bytes_max;
    uint64_t discard_bytes_max; /* longer refused bodies are not waited for */
};

/* False with `fault` set when the request is refused. route may be NULL (404). */
bool srv_access_check(const struct srv_access *access, const struct srv_route *route,
                      const char *method, struct srv_headers *headers,
                      struct srv_fault *fault);

#endif

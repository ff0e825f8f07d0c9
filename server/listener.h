#ifndef COLDKV_SERVER_LISTENER_H
#define COLDKV_SERVER_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "fault.h"

/* A bound socket. It refuses connections until srv_listener_start. */
struct srv_listener {
    int fd;
    char address[64]; /* numeric, IPv6 without brackets */
    uint16_t port;    /* the real one when 0 was asked for */
    bool loopback;
};

bool srv_listener_bind(struct srv_listener *listener, const char *host, uint16_t port,
                       struct srv_fault *fault);
bool srv_listener_start(struct srv_listener *listener, struct srv_fault *fault);
void srv_listener_close(struct srv_listener *listener);

#endif

/* The listening socket.
 * Invariant: it is bound before the model is loaded, so that a taken port is an error at
 * once, and listens only afterwards, so that a client never waits for the model without
 * knowing. Failure: in words, with the reason of the system. */
#include "listener.h"

#include "hostcheck.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Binds a new socket; -1 with errno set. */
static int bind_one(const struct addrinfo *info)
{
    int yes = 1;
    int saved;
    int fd = socket(info->ai_family, info->ai_socktype, info->ai_protocol);

    if (fd < 0)
        return -1;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 &&
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0)
        return fd;
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static bool learn_address(struct srv_listener *listener)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof(address);
    char service[16];
    uint16_t port = 0;

    if (getsockname(listener->fd, (struct sockaddr *)&address, &length) != 0)
        return false;
    if (getnameinfo((struct sockaddr *)&address, length, listener->address,
                    sizeof(listener->address), service, sizeof(service),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    if (address.ss_family == AF_INET)
        port = ((const struct sockaddr_in *)(const void *)&address)->sin_port;
    else if (address.ss_family == AF_INET6)
        port = ((const struct sockaddr_in6 *)(const void *)&address)->sin6_port;
    listener->port = ntohs(port);
    listener->loopback = srv_address_is_loopback(listener->address);
    return true;
}

bool srv_listener_bind(struct srv_listener *listener, const char *host, uint16_t port,
                       struct srv_fault *fault)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct addrinfo *info;
    char service[16];
    int error;

    listener->fd = -1;
    snprintf(service, sizeof(service), "%u", port);
    hints.ai_flags = AI_NUMERICSERV | AI_PASSIVE;
    error = getaddrinfo(host, service, &hints, &found);
    if (error != 0)
        return srv_fault_set(fault, 500, NULL, NULL, "--host %s: %s", host,
                             gai_strerror(error));
    errno = 0;
    for (info = found; info && listener->fd < 0; info = info->ai_next)
        listener->fd = bind_one(info);
    freeaddrinfo(found);
    if (listener->fd >= 0 && learn_address(listener))
        return true;
    srv_fault_set(fault, 500, NULL, NULL, "cannot listen on %s port %u: %s", host, port,
                  strerror(errno));
    srv_listener_close(listener);
    return false;
}

bool srv_listener_start(struct srv_listener *listener, struct srv_fault *fault)
{
    if (listen(listener->fd, 128) == 0)
        return true;
    return srv_fault_set(fault, 500, NULL, NULL, "cannot listen on port %u: %s",
                         listener->port, strerror(errno));
}

void srv_listener_close(struct srv_listener *listener)
{
    if (listener->fd >= 0)
        close(listener->fd);
    listener->fd = -1;
}

/* Who may talk to the server: Host, Origin and Authorization headers.
 * Invariant: everything not recognised is refused. Failure: none, these are pure
 * functions. */
#include "hostcheck.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HOST_NAME_MAX_BYTES = 255 };

/* Splits "name:port" or "[v6]:port"; no port gives 80. */
static bool split_host(const char *host, char name[HOST_NAME_MAX_BYTES + 1],
                       uint16_t *port)
{
    const char *end;
    size_t length;
    unsigned value = 0;

    if (host[0] == '[') {
        end = strchr(host, ']');
        if (!end)
            return false;
        host++;
    } else {
        end = host + strcspn(host, ":");
    }
    length = (size_t)(end - host);
    if (length == 0 || length > HOST_NAME_MAX_BYTES)
        return false;
    memcpy(name, host, length);
    name[length] = '\0';
    if (*end == ']')
        end++;
    *port = 80;
    if (*end == '\0')
        return true;
    if (*end != ':' || end[1] == '\0' || strlen(end + 1) > 5)
        return false;
    for (end++; *end; end++) {
        if (*end < '0' || *end > '9')
            return false;
        value = value * 10 + (unsigned)(*end - '0');
    }
    *port = (uint16_t)value;
    return value <= UINT16_MAX;
}

bool srv_host_is_own(const char *host, const char *bound_address, uint16_t port)
{
    char name[HOST_NAME_MAX_BYTES + 1];
    uint16_t host_port;

    if (!host || !split_host(host, name, &host_port) || host_port != port)
        return false;
    return strcasecmp(name, "localhost") == 0 || strcmp(name, "127.0.0.1") == 0 ||
           strcmp(name, "::1") == 0 || strcasecmp(name, bound_address) == 0;
}

bool srv_origin_is_own(const char *origin, const char *host)
{
    static const char scheme[] = "http://";

    if (!origin)
        return true;
    if (!host || strncasecmp(origin, scheme, sizeof(scheme) - 1) != 0)
        return false;
    return strcasecmp(origin + sizeof(scheme) - 1, host) == 0;
}

bool srv_address_is_loopback(const char *address)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (inet_pton(AF_INET, address, &v4) == 1)
        return (ntohl(v4.s_addr) >> 24) == 127;
    return inet_pton(AF_INET6, address, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool srv_bearer_matches(const char *authorization, const char *key)
{
    static const char scheme[] = "Bearer ";
    size_t key_length = strlen(key);
    size_t given_length;
    size_t i;
    unsigned char difference = 0;

    if (!authorization || strncasecmp(authorization, scheme, sizeof(scheme) - 1) != 0)
        return false;
    authorization += sizeof(scheme) - 1;
    authorization += strspn(authorization, " ");
    given_length = strlen(authorization);
    for (i = 0; i < given_length; i++) {
        unsigned char expected =
            (unsigned char)(key_length > 0 ? key[i % key_length] : 0);

        difference |= (unsigned char)((unsigned char)authorization[i] ^ expected);
    }
    return difference == 0 && given_length == key_length && key_length > 0;
}

#ifndef COLDKV_SERVER_HOSTCHECK_H
#define COLDKV_SERVER_HOSTCHECK_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a Host header names this server when it listens on loopback: localhost,
 * 127.0.0.1, [::1] or the address it was bound to, with our port (which may be left out
 * only when it is 80). A web page that had a foreign name resolve to 127.0.0.1 sends that
 * name, and is refused. */
bool srv_host_is_own(const char *host, const char *bound_address, uint16_t port);

/* Whether an Origin header is this server's own: "http://" and what the Host header says.
 * `origin` may be NULL (no browser behind it), which is fine. */
bool srv_origin_is_own(const char *origin, const char *host);

/* 127.0.0.0/8 or ::1, as an address in text (IPv6 without brackets). */
bool srv_address_is_loopback(const char *address);

/* Compares the key of "Authorization: Bearer KEY" with ours in a time that does not
 * depend on where they differ. NULL is no match. */
bool srv_bearer_matches(const char *authorization, const char *key);

#endif

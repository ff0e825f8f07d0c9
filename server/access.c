/* Checks before a request is looked at: Host, Origin, key, path, method, type, length.
 * Invariant: the order is from the most to the least sensitive, so that someone who may
 * not ask learns nothing about what there is. Failure: a fault with the matching HTTP
 * status. */
#include "access.h"

#include "hostcheck.h"
#include "options.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static const struct srv_route routes[] = {
    {SRV_ROUTE_CHAT, "/v1/chat/completions", "POST"},
    {SRV_ROUTE_COMPLETION, "/v1/completions", "POST"},
    {SRV_ROUTE_MODELS, "/v1/models", "GET"},
    {SRV_ROUTE_HEALTH, "/health", "GET"},
    {SRV_ROUTE_STATS, "/stats", "GET"},
    {SRV_ROUTE_METRICS, "/metrics", "GET"},
    {SRV_ROUTE_FLUSH, "/admin/cache/flush", "POST"},
};

const struct srv_route *srv_route_find(const char *path)
{
    size_t i;

    for (i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        if (strcmp(routes[i].path, path) == 0)
            return &routes[i];
    }
    return NULL;
}

void srv_headers_add(struct srv_headers *headers, const char *name, const char *value)
{
    const struct {
        const char *name;
        const char **value;
    } known[] = {
        {"Host", &headers->host},
        {"Origin", &headers->origin},
        {"Authorization", &headers->authorization},
        {"Content-Type", &headers->content_type},
        {"Content-Length", &headers->content_length},
        {"X-Coldkv-No-Store", &headers->no_store},
    };
    size_t i;

    if (strcasecmp(name, "Expect") == 0)
        headers->expects = true;
    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcasecmp(name, known[i].name) != 0)
            continue;
        headers->duplicate = headers->duplicate || *known[i].value;
        *known[i].value = value;
    }
}

/* "application/json", with or without parameters behind it. */
static bool is_json(const char *content_type)
{
    static const char wanted[] = "application/json";
    size_t length = sizeof(wanted) - 1;

    if (!content_type || strncasecmp(content_type, wanted, length) != 0)
        return false;
    length += strspn(content_type + length, " \t");
    return content_type[length] == '\0' || content_type[length] == ';';
}

static bool method_fits(const struct srv_route *route, const char *method)
{
    return strcmp(method, route->method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

static bool check_caller(const struct srv_access *access, const struct srv_route *route,
                         const struct srv_headers *headers, struct srv_fault *fault)
{
    bool open = route && route->id == SRV_ROUTE_HEALTH;

    if (!headers->host || headers->duplicate)
        return srv_fault_set(fault, 400, "bad_header", NULL,
                             "the Host header is missing, or a header came twice");
    if (access->loopback &&
        !srv_host_is_own(headers->host, access->address, access->port))
        return srv_fault_set(fault, 403, "foreign_host", NULL,
                             "the Host header does not name this server");
    if (!srv_origin_is_own(headers->origin, headers->host))
        return srv_fault_set(fault, 403, "foreign_origin", NULL,
                             "requests of other sites' pages are not served");
    if (access->api_key && !open &&
        !srv_bearer_matches(headers->authorization, access->api_key))
        return srv_fault_set(
            fault, 401, "invalid_api_key", NULL,
            "the key in 'Authorization: Bearer KEY' is missing or wrong");
    return true;
}

static bool check_body(const struct srv_headers *headers, uint64_t body_bytes_max,
                       struct srv_fault *fault)
{
    uint64_t length = 0;

    if (!is_json(headers->content_type))
        return srv_fault_set(fault, 415, "unsupported_media_type", NULL,
                             "the Content-Type must be application/json");
    if (headers->content_length &&
        !srv_number_parse(headers->content_length, 0, body_bytes_max, &length))
        return srv_fault_set(fault, 413, "body_too_large", NULL,
                             "the body may have at most %llu bytes",
                             (unsigned long long)body_bytes_max);
    return true;
}

/* A wish that is not understood must not be passed over: the prompt would be kept. */
static bool read_no_store(struct srv_headers *headers, struct srv_fault *fault)
{
    const char *value = headers->no_store;

    if (!value || strcmp(value, "0") == 0 || strcasecmp(value, "false") == 0)
        return true;
    headers->keeps_nothing = strcmp(value, "1") == 0 || strcasecmp(value, "true") == 0;
    return headers->keeps_nothing ||
           srv_fault_set(fault, 400, "bad_header", NULL,
                         "the header X-Coldkv-No-Store must be 1 or 0");
}

static bool generates(const struct srv_route *route)
{
    return route->id == SRV_ROUTE_CHAT || route->id == SRV_ROUTE_COMPLETION;
}

bool srv_access_check(const struct srv_access *access, const struct srv_route *route,
                      const char *method, struct srv_headers *headers,
                      struct srv_fault *fault)
{
    uint64_t length;
    bool ok = check_caller(access, route, headers, fault);

    if (ok && !route)
        ok = srv_fault_set(fault, 404, "not_found", NULL, "there is no such path");
    if (ok && !method_fits(route, method))
        ok = srv_fault_set(fault, 405, "method_not_allowed", NULL, "use %s here",
                           route->method);
    if (ok && generates(route))
        ok = check_body(headers, access->body_bytes_max, fault) &&
             read_no_store(headers, fault);
    headers->answer_at_once =
        !ok &&
        (headers->expects || (headers->content_length &&
                              !srv_number_parse(headers->content_length, 0,
                                                access->discard_bytes_max, &length)));
    return ok;
}

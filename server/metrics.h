#ifndef COLDKV_SERVER_METRICS_H
#define COLDKV_SERVER_METRICS_H

#include <stddef.h>

#include "cold.h"
#include "stats.h"

/* Everything that is counted, at one moment. */
struct srv_figures {
    struct srv_counters counters;
    struct srv_cold_stats cold;
    bool has_cold;
    size_t waiting;
    size_t running;
};

/* In the text format of Prometheus, on the heap; NULL when memory is short. */
char *srv_metrics_encode(const struct srv_figures *figures);

/* Bytes written to the store for each byte of state that a tier gave back; 0 as long as
 * none did. */
double srv_bytes_written_per_byte_reused(const struct srv_figures *figures);

#endif

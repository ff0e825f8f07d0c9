#ifndef COLDKV_SERVER_STATS_H
#define COLDKV_SERVER_STATS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Counters since the start. Times are those of the last request that had one. */
struct srv_counters {
    uint64_t requests; /* that had their turn */
    uint64_t completed;
    uint64_t cancelled; /* the client went away */
    uint64_t failed;
    uint64_t refused; /* before their turn: invalid, queue full, stopping */
    uint64_t hits;    /* of those with a turn: some prefix was restored */
    uint64_t misses;
    uint64_t prompt_tokens;
    uint64_t cached_tokens;
    uint64_t completion_tokens;
    uint64_t restored_bytes;
    uint64_t stored_bytes;
    uint64_t stored_entries;
    uint64_t tier_failures; /* each became a miss or "not stored" */
    uint64_t
        pending; /* entries between the end of their reply and the end of their store */
    double last_restore_ms;
    double last_prefill_ms;
    double last_ttft_ms;
    double last_store_ms;
};

struct srv_stats {
    pthread_mutex_t mu;
    struct srv_counters counters; /* guarded by mu */
};

bool srv_stats_init(struct srv_stats *stats);
void srv_stats_deinit(struct srv_stats *stats);

/* Locks; what is changed until srv_stats_end is seen as one change. */
struct srv_counters *srv_stats_begin(struct srv_stats *stats);
void srv_stats_end(struct srv_stats *stats);
struct srv_counters srv_stats_get(struct srv_stats *stats);

#endif

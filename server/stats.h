#ifndef COLDKV_SERVER_STATS_H
#define COLDKV_SERVER_STATS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Where a reused prefix came from: the sequence as the last turn left it, or a tier. */
enum srv_source {
    SRV_SOURCE_NONE,
    SRV_SOURCE_LIVE,
    SRV_SOURCE_RAM,
    SRV_SOURCE_QUEUE,
    SRV_SOURCE_STORE,
    SRV_SOURCE_COUNT
};

/* "none", "live", "ram", "queue", "store". */
const char *srv_source_name(enum srv_source source);

/* Why a turn reused nothing. */
enum srv_miss {
    SRV_MISS_NO_PREFIX, /* no tier knows a common beginning */
    SRV_MISS_TOO_SHORT, /* one is known, but evaluating it is cheaper than reading it */
    SRV_MISS_FAILED,    /* one is known, and could not be read or applied */
    SRV_MISS_COUNT
};

const char *srv_miss_name(enum srv_miss miss);

/* Counters since the start. Times are those of the last request that had one. */
struct srv_counters {
    uint64_t requests; /* that had their turn */
    uint64_t completed;
    uint64_t cancelled; /* the client went away */
    uint64_t failed;
    uint64_t refused; /* before their turn: invalid, queue full, stopping */
    /* Turns with a tier, by where their prefix came from; [0] = misses. */
    uint64_t turns[SRV_SOURCE_COUNT];
    uint64_t reused_tokens[SRV_SOURCE_COUNT];
    uint64_t misses[SRV_MISS_COUNT]; /* sum = turns[0] */
    uint64_t prompt_tokens;
    uint64_t cached_tokens;
    uint64_t completion_tokens;
    uint64_t restored_bytes; /* read from the store */
    uint64_t reused_bytes;   /* of states, in proportion to the prefix; live ones not */
    uint64_t tier_failures;  /* each became a miss or "not stored" */
    uint64_t handed_over;    /* replies whose state went to the tiers, or could not */
    uint64_t pending;        /* replies that ended and are not handed to the tiers yet */
    double restore_ms_sum;
    double prefill_ms_sum;
    double ttft_ms_sum;
    double last_restore_ms;
    double last_prefill_ms;
    double last_ttft_ms;
};

struct srv_stats {
    pthread_mutex_t mu;
    pthread_cond_t handed_over;
    struct srv_counters counters; /* guarded by mu */
};

bool srv_stats_init(struct srv_stats *stats);
void srv_stats_deinit(struct srv_stats *stats);

/* Locks; what is changed until srv_stats_end is seen as one change. */
struct srv_counters *srv_stats_begin(struct srv_stats *stats);
void srv_stats_end(struct srv_stats *stats);
/* A reply's state was handed to the tiers: one less is pending. */
void srv_stats_hand_over(struct srv_stats *stats);

/* Waits until those are handed over that were pending when it was called. */
void srv_stats_wait_handed_over(struct srv_stats *stats);

struct srv_counters srv_stats_get(struct srv_stats *stats);

#endif

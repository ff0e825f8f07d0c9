/* Counters shared by the HTTP and the engine thread.
 * Invariant: read and written only under the mutex, which is never held across any other
 * call. Failure: none after init. */
#include "stats.h"

const char *srv_source_name(enum srv_source source)
{
    static const char *const names[SRV_SOURCE_COUNT] = {"none", "live", "ram", "queue",
                                                        "store"};

    return names[source];
}

const char *srv_miss_name(enum srv_miss miss)
{
    static const char *const names[SRV_MISS_COUNT] = {"no_prefix", "too_short", "failed"};

    return names[miss];
}

bool srv_stats_init(struct srv_stats *stats)
{
    *stats = (struct srv_stats){0};
    if (pthread_mutex_init(&stats->mu, NULL) != 0)
        return false;
    if (pthread_cond_init(&stats->handed_over, NULL) == 0)
        return true;
    pthread_mutex_destroy(&stats->mu);
    return false;
}

void srv_stats_deinit(struct srv_stats *stats)
{
    pthread_cond_destroy(&stats->handed_over);
    pthread_mutex_destroy(&stats->mu);
}

void srv_stats_hand_over(struct srv_stats *stats)
{
    pthread_mutex_lock(&stats->mu);
    stats->counters.pending--;
    stats->counters.handed_over++;
    pthread_cond_broadcast(&stats->handed_over);
    pthread_mutex_unlock(&stats->mu);
}

void srv_stats_wait_handed_over(struct srv_stats *stats)
{
    uint64_t wanted;

    pthread_mutex_lock(&stats->mu);
    wanted = stats->counters.handed_over + stats->counters.pending;
    while (stats->counters.handed_over < wanted)
        pthread_cond_wait(&stats->handed_over, &stats->mu);
    pthread_mutex_unlock(&stats->mu);
}

struct srv_counters *srv_stats_begin(struct srv_stats *stats)
{
    pthread_mutex_lock(&stats->mu);
    return &stats->counters;
}

void srv_stats_end(struct srv_stats *stats)
{
    pthread_mutex_unlock(&stats->mu);
}

struct srv_counters srv_stats_get(struct srv_stats *stats)
{
    struct srv_counters copy;

    pthread_mutex_lock(&stats->mu);
    copy = stats->counters;
    pthread_mutex_unlock(&stats->mu);
    return copy;
}

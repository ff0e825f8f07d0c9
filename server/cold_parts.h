#ifndef COLDKV_SERVER_COLD_PARTS_H
#define COLDKV_SERVER_COLD_PARTS_H

#include "cold.h"

#include <coldkv/activity.h>
#include <coldkv/llama.h>

/* What the tiers are made of, for cold.c and cold_open.c alone. Without a store there are
 * no queue and no durability either. */
struct srv_cold {
    struct ckv_llama *bridge;
    struct ckv_store *store;
    struct ckv_activity *activity;
    struct ckv_spill_queue *queue;
    struct ckv_prompt_cache *cache;
    struct ckv_durability *durability;
    struct srv_stats *stats;
    uint32_t demote_idle_s;
};

enum {
    /* All conversations begin with the same few tokens of the chat template. To read a
     * whole entry for them would take longer than to evaluate them. */
    SRV_REUSE_TOKENS_MIN = 32,
};

#endif

#ifndef COLDKV_SERVER_COLD_H
#define COLDKV_SERVER_COLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fault.h"
#include "stats.h"

#include <coldkv/durability.h>
#include <coldkv/prompt_cache.h>
#include <coldkv/spill_queue.h>
#include <coldkv/store.h>

/* The tiers of the server: prompt caches in memory, the queue that writes them, and the
 * store, behind a few calls, none of which can fail a request. */

struct llama_context;
struct llama_context_params;
struct srv_cold;

struct srv_cold_options {
    const char *dir;           /* NULL = in memory only */
    uint64_t max_bytes;        /* CKV_DEFAULT = the store's own default */
    uint64_t free_floor_bytes; /* likewise */
    bool init;
    bool allow_shared_dir;
    uint64_t prompt_cache_bytes; /* CKV_DEFAULT = 8 GiB, at most a quarter of the RAM */
    uint64_t spill_queue_bytes;  /* CKV_DEFAULT = the queue's own default */
    uint32_t demote_idle_s;      /* 0 = never */
    uint32_t min_tokens;
    uint32_t min_growth_tokens; /* 0 = the coordinator's own default */
    struct srv_stats *stats;
};

/* Opens the tiers for this context. A model that cannot be persisted is no failure: *out
 * is NULL, the reason is logged, and the server serves without. False: the folder cannot
 * be used, and fault->message says why. */
bool srv_cold_open(const struct srv_cold_options *options, struct llama_context *context,
                   const struct llama_context_params *params, const char *model_path,
                   struct srv_cold **out, struct srv_fault *fault);

/* Gives up what is not durable yet (see srv_cold_flush). NULL is fine. */
void srv_cold_close(struct srv_cold *cold);

/* Any thread. */
const char *srv_cold_fingerprint(const struct srv_cold *cold);

struct srv_cold_stats {
    struct ckv_prompt_cache_stats ram;
    struct ckv_spill_stats queue;
    struct ckv_store_stats store;
    uint64_t pending; /* what the store does not have yet */
    bool has_store;
};

void srv_cold_get_stats(struct srv_cold *cold, struct srv_cold_stats *out);

/* Makes everything durable, at the latest until the timeout; false when there is no
 * store. Blocks. */
bool srv_cold_flush(struct srv_cold *cold, uint32_t timeout_s,
                    struct ckv_flush_evidence *out);

/* What is due now and then: idle entries leave the memory. */
void srv_cold_tick(struct srv_cold *cold);

/* Between these two nothing is written, as far as patience goes; pairs may nest. NULL is
 * fine. */
void srv_cold_begin_work(struct srv_cold *cold);
void srv_cold_end_work(struct srv_cold *cold);

/* From here on: the engine's thread. `ns` keeps prompts of different users apart; "" is
 * everybody's. */

/* What sequence 0 holds: these tokens, evaluated within this namespace. */
struct srv_live {
    const char *ns;
    const int32_t *tokens;
    size_t count;
};

struct srv_cold_taken {
    enum srv_source source;
    enum srv_miss miss; /* when source is SRV_SOURCE_NONE */
    size_t prefix;      /* tokens 0..prefix-1 are in the context */
    uint64_t read_bytes;
    uint64_t reused_bytes;
    double elapsed_ms;
};

/* Leaves the longest known prefix of the prompt in sequence 0: cut from what is there, or
 * taken from a tier when that has clearly more. Less than 32 tokens count as none, since
 * evaluating them is cheaper; the sequence is then to be cleared. */
void srv_cold_take(struct srv_cold *cold, const char *ns, const int32_t *tokens,
                   size_t count, const struct srv_live *live, struct srv_cold_taken *out);

/* Keeps a copy of sequence 0, which holds exactly these tokens: at once in memory, and on
 * disk when the engine rests. Does nothing for what memory has already. */
void srv_cold_hold(struct srv_cold *cold, const char *ns, const int32_t *tokens,
                   size_t count);

#endif

#ifndef COLDKV_SERVER_COLD_H
#define COLDKV_SERVER_COLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fault.h"
#include "stats.h"

#include <coldkv/store.h>

/* The cold tier of the server: the store and the bridge behind three calls, none of which
 * can fail a request. */

struct llama_context;
struct llama_context_params;
struct srv_cold;

struct srv_cold_options {
    const char *dir;
    uint64_t max_bytes;        /* CKV_DEFAULT = the store's own default */
    uint64_t free_floor_bytes; /* likewise */
    bool init;
    bool allow_shared_dir;
    size_t min_tokens;
    struct srv_stats *stats;
};

/* Opens the store for this context. A model that cannot be persisted is no failure: *out
 * is NULL, the reason is logged, and the server serves without a cold tier. False: the
 * folder cannot be used, and fault->message says why. */
bool srv_cold_open(const struct srv_cold_options *options, struct llama_context *context,
                   const struct llama_context_params *params, const char *model_path,
                   struct srv_cold **out, struct srv_fault *fault);
void srv_cold_close(struct srv_cold *cold);

/* Any thread. */
const char *srv_cold_fingerprint(const struct srv_cold *cold);
void srv_cold_get_stats(struct srv_cold *cold, struct ckv_store_stats *out);

/* From here on: the engine's thread. */

struct srv_cold_restored {
    size_t prefix; /* tokens 0..prefix-1 are in the context */
    uint64_t bytes;
    double elapsed_ms;
};

/* Restores the longest usable prefix into sequence 0, which is empty before; 0 is a miss.
 * A prefix of less than 32 tokens counts as a miss: evaluating it is cheaper. */
void srv_cold_restore(struct srv_cold *cold, const int32_t *tokens, size_t count,
                      struct srv_cold_restored *out);

/* Whether srv_cold_store would have something to do: enough tokens, and not durable yet.
 */
bool srv_cold_wants(struct srv_cold *cold, const int32_t *tokens, size_t count);

/* Stores sequence 0, which holds exactly these tokens. Durable or logged when it returns.
 */
void srv_cold_store(struct srv_cold *cold, const int32_t *tokens, size_t count);

#endif

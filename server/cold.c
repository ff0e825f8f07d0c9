/* The server's use of the store: restore before a prompt is evaluated, store after the
 * reply. Invariant: entries are read and written on the engine's thread, between requests
 * or before one; nothing is written while tokens are made. Failure: every one becomes a
 * miss or "not stored", a log line and a counter; only a folder that cannot be used at
 * all stops the start. */
#include "cold.h"

#include "log.h"
#include "timing.h"

#include <coldkv/llama.h>
#include <stdlib.h>

/* Shorter common prefixes are evaluated, not restored. */
enum { REUSE_TOKENS_MIN = 32 };

struct srv_cold {
    struct ckv_llama *bridge;
    struct ckv_store *store;
    struct srv_stats *stats;
    size_t min_tokens;
};

static void log_event(void *ctx, enum ckv_log_level level, const char *id,
                      const char *text)
{
    (void)ctx;
    (void)level;
    srv_log("%s: %s", id, text);
}

static const struct ckv_log tier_log = {.level = CKV_LOG_INFO, .fn = log_event};

/* The option that overrides the rule which refused the folder. */
static const char *hint(enum ckv_status status)
{
    switch (status) {
    case CKV_REFUSED:
        return " (see --ssd-cache-init)";
    case CKV_DENIED:
        return " (see --ssd-cache-allow-shared-dir)";
    default:
        return "";
    }
}

static bool open_store(struct srv_cold *cold, const struct srv_cold_options *options,
                       struct srv_fault *fault)
{
    struct ckv_store_options store_options;
    struct ckv_error error;
    enum ckv_status status;

    ckv_store_options_init(&store_options);
    store_options.log = tier_log;
    store_options.cap_bytes = options->max_bytes;
    store_options.free_floor_bytes = options->free_floor_bytes;
    store_options.init = options->init;
    store_options.allow_shared_dir = options->allow_shared_dir;
    ckv_error_clear(&error);
    status = ckv_store_open(options->dir, ckv_llama_identity(cold->bridge),
                            &store_options, &cold->store, &error);
    if (status == CKV_OK)
        return true;
    return srv_fault_set(fault, 500, NULL, NULL, "cannot use %s as a cache (%s): %s%s",
                         options->dir, ckv_status_name(status), error.text, hint(status));
}

bool srv_cold_open(const struct srv_cold_options *options, struct llama_context *context,
                   const struct llama_context_params *params, const char *model_path,
                   struct srv_cold **out, struct srv_fault *fault)
{
    struct srv_cold *cold = calloc(1, sizeof(*cold));
    struct ckv_llama_options bridge_options;
    struct ckv_error error;
    enum ckv_status status;

    *out = NULL;
    if (!cold)
        return srv_fault_set(fault, 500, NULL, NULL, "out of memory");
    cold->stats = options->stats;
    cold->min_tokens = options->min_tokens;
    ckv_llama_options_init(&bridge_options);
    bridge_options.log = tier_log;
    ckv_error_clear(&error);
    status = ckv_llama_create(context, params, model_path, &bridge_options, &cold->bridge,
                              &error);
    if (status != CKV_OK) {
        free(cold);
        if (status != CKV_UNSUPPORTED)
            return srv_fault_set(fault, 500, NULL, NULL,
                                 "cannot identify the model (%s): %s",
                                 ckv_status_name(status), error.text);
        srv_log("serving without the cold tier: %s", error.text);
        return true;
    }
    if (!open_store(cold, options, fault)) {
        srv_cold_close(cold);
        return false;
    }
    *out = cold;
    return true;
}

void srv_cold_close(struct srv_cold *cold)
{
    if (!cold)
        return;
    ckv_store_close(cold->store);
    ckv_llama_destroy(cold->bridge);
    free(cold);
}

const char *srv_cold_fingerprint(const struct srv_cold *cold)
{
    return ckv_llama_identity(cold->bridge)->fingerprint;
}

void srv_cold_get_stats(struct srv_cold *cold, struct ckv_store_stats *out)
{
    ckv_store_get_stats(cold->store, out);
}

static void count_failure(struct srv_cold *cold)
{
    srv_stats_begin(cold->stats)->tier_failures++;
    srv_stats_end(cold->stats);
}

static void report(struct srv_cold *cold, const char *what, enum ckv_status status,
                   const struct ckv_error *error)
{
    srv_log("%s (%s): %s", what, ckv_status_name(status), error->text);
    count_failure(cold);
}

static void refresh(struct srv_cold *cold)
{
    struct ckv_error error;
    enum ckv_status status;

    ckv_error_clear(&error);
    status = ckv_store_refresh(cold->store, &error);
    if (status != CKV_OK)
        report(cold, "cannot look for new entries", status, &error);
}

/* Token ids of libllama are signed and never negative in a prompt: the same bits. */
static const uint32_t *as_unsigned(const int32_t *tokens)
{
    return (const uint32_t *)(const void *)tokens;
}

/* All conversations begin with the same few tokens of the chat template. To read a whole
 * entry for them would take longer than to evaluate them. */
static bool is_worth_reading(struct srv_cold *cold, const int32_t *tokens, size_t count)
{
    struct ckv_candidate best;
    size_t found = 0;
    struct ckv_error error;
    enum ckv_status status;

    ckv_error_clear(&error);
    status = ckv_store_find(cold->store, "", as_unsigned(tokens), count, &best, 1, &found,
                            &error);
    if (status != CKV_OK)
        report(cold, "cannot look up a prompt", status, &error);
    return status == CKV_OK && found > 0 && best.prefix >= REUSE_TOKENS_MIN;
}

void srv_cold_restore(struct srv_cold *cold, const int32_t *tokens, size_t count,
                      struct srv_cold_restored *out)
{
    struct ckv_restored restored = {0};
    struct ckv_error error;
    enum ckv_status status;
    double began_ms = srv_now_ms();

    *out = (struct srv_cold_restored){0};
    refresh(cold);
    if (!is_worth_reading(cold, tokens, count))
        return;
    ckv_error_clear(&error);
    status = ckv_llama_restore(cold->bridge, cold->store, "", 0, tokens, count, &restored,
                               &error);
    if (status == CKV_OK) {
        out->prefix = (size_t)restored.prefix;
        out->bytes = restored.read_bytes;
    } else if (status != CKV_NOTFOUND) {
        report(cold, "restore failed, the prompt is evaluated", status, &error);
    }
    out->elapsed_ms = srv_now_ms() - began_ms;
}

bool srv_cold_wants(struct srv_cold *cold, const int32_t *tokens, size_t count)
{
    return count >= cold->min_tokens &&
           !ckv_store_covers(cold->store, "", as_unsigned(tokens), count);
}

static void count_stored(struct srv_cold *cold, const struct ckv_stored *stored,
                         double elapsed_ms)
{
    struct srv_counters *counters = srv_stats_begin(cold->stats);

    counters->stored_bytes += stored->written_bytes;
    counters->stored_entries++;
    counters->last_store_ms = elapsed_ms;
    srv_stats_end(cold->stats);
}

void srv_cold_store(struct srv_cold *cold, const int32_t *tokens, size_t count)
{
    struct ckv_llama_snapshot *snapshot = NULL;
    struct ckv_stored stored = {0};
    struct ckv_error error;
    enum ckv_status status;
    double began_ms = srv_now_ms();

    ckv_error_clear(&error);
    status = ckv_llama_snapshot_create(cold->bridge, 0, tokens, count, &snapshot, &error);
    if (status != CKV_OK) {
        report(cold, "not stored", status, &error);
        return;
    }
    status = ckv_store_put(cold->store, "", ckv_llama_snapshot_entry(snapshot),
                           ckv_llama_snapshot_source(snapshot), NULL, &stored, NULL);
    ckv_llama_snapshot_destroy(snapshot);
    /* Why it was not stored is in the log already: the store's own line names the entry.
     */
    if (status == CKV_OK)
        count_stored(cold, &stored, srv_now_ms() - began_ms);
    else
        count_failure(cold);
}

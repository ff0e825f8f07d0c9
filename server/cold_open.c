/* Making and ending the server's tiers.
 * Invariant: what is made last ends first; nothing that borrows outlives what it borrows
 * from. Failure: a model that cannot be persisted means no tiers and a log line; a folder
 * that cannot be used stops the start; what was made until then is ended. */
#include "cold_parts.h"

#include "log.h"

#include <stdlib.h>
#include <unistd.h>

#define PROMPT_CACHE_MAX (UINT64_C(8) << 30)

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

    if (!options->dir)
        return true;
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

static enum ckv_status start_queue(struct srv_cold *cold,
                                   const struct srv_cold_options *options,
                                   struct ckv_error *error)
{
    struct ckv_spill_options queue_options;

    if (!cold->store)
        return CKV_OK;
    ckv_spill_options_init(&queue_options);
    queue_options.log = tier_log;
    queue_options.cap_bytes = options->spill_queue_bytes;
    queue_options.activity = cold->activity;
    return ckv_spill_queue_start(cold->store, &queue_options, &cold->queue, error);
}

static uint64_t choose_prompt_cache(uint64_t wanted)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t quarter;

    if (wanted != CKV_DEFAULT)
        return wanted;
    if (pages < 1 || page_bytes < 1)
        return PROMPT_CACHE_MAX;
    quarter = (uint64_t)pages / 4 * (uint64_t)page_bytes;
    return quarter < PROMPT_CACHE_MAX ? quarter : PROMPT_CACHE_MAX;
}

static bool is_worth_reading(void *ctx, uint64_t tokens, uint64_t bytes)
{
    (void)ctx;
    (void)bytes;
    return tokens >= SRV_REUSE_TOKENS_MIN;
}

static enum ckv_status create_cache(struct srv_cold *cold,
                                    const struct srv_cold_options *options,
                                    struct ckv_error *error)
{
    struct ckv_prompt_cache_options cache_options;

    ckv_prompt_cache_options_init(&cache_options);
    cache_options.log = tier_log;
    cache_options.cap_bytes = choose_prompt_cache(options->prompt_cache_bytes);
    cache_options.store = cold->store;
    cache_options.queue = cold->queue;
    cache_options.min_tokens = options->min_tokens;
    ckv_llama_get_restorer(cold->bridge, &cache_options.restorer);
    cache_options.restorer.worth = is_worth_reading;
    return ckv_prompt_cache_create(&cache_options, &cold->cache, error);
}

static enum ckv_status start_durability(struct srv_cold *cold,
                                        const struct srv_cold_options *options,
                                        struct ckv_error *error)
{
    struct ckv_durability_options durability_options;

    if (!cold->store)
        return CKV_OK;
    ckv_durability_options_init(&durability_options);
    durability_options.log = tier_log;
    durability_options.min_tokens = options->min_tokens;
    if (options->min_growth_tokens > 0)
        durability_options.min_growth_tokens = options->min_growth_tokens;
    durability_options.activity = cold->activity;
    return ckv_durability_start(cold->cache, cold->queue, cold->store,
                                &durability_options, &cold->durability, error);
}

static bool make_tiers(struct srv_cold *cold, const struct srv_cold_options *options,
                       struct srv_fault *fault)
{
    struct ckv_error error;
    enum ckv_status status;

    ckv_error_clear(&error);
    status = ckv_activity_create(NULL, &cold->activity, &error);
    if (status == CKV_OK)
        status = start_queue(cold, options, &error);
    if (status == CKV_OK)
        status = create_cache(cold, options, &error);
    if (status == CKV_OK)
        status = start_durability(cold, options, &error);
    return status == CKV_OK ||
           srv_fault_set(fault, 500, NULL, NULL, "cannot start the prompt cache (%s): %s",
                         ckv_status_name(status), error.text);
}

/* False with fault->status 0: there is nothing to persist in this model. */
static bool make_bridge(struct srv_cold *cold, struct llama_context *context,
                        const struct llama_context_params *params, const char *model_path,
                        struct srv_fault *fault)
{
    struct ckv_llama_options options;
    struct ckv_error error;
    enum ckv_status status;

    fault->status = 0;
    ckv_llama_options_init(&options);
    options.log = tier_log;
    ckv_error_clear(&error);
    status =
        ckv_llama_create(context, params, model_path, &options, &cold->bridge, &error);
    if (status == CKV_OK)
        return true;
    if (status != CKV_UNSUPPORTED)
        return srv_fault_set(fault, 500, NULL, NULL, "cannot identify the model (%s): %s",
                             ckv_status_name(status), error.text);
    srv_log("serving without a prompt cache: %s", error.text);
    return false;
}

bool srv_cold_open(const struct srv_cold_options *options, struct llama_context *context,
                   const struct llama_context_params *params, const char *model_path,
                   struct srv_cold **out, struct srv_fault *fault)
{
    struct srv_cold *cold = calloc(1, sizeof(*cold));

    *out = NULL;
    if (!cold)
        return srv_fault_set(fault, 500, NULL, NULL, "out of memory");
    cold->stats = options->stats;
    cold->demote_idle_s = options->demote_idle_s;
    if (!make_bridge(cold, context, params, model_path, fault)) {
        srv_cold_close(cold);
        return fault->status == 0;
    }
    if (!open_store(cold, options, fault) || !make_tiers(cold, options, fault)) {
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
    ckv_durability_destroy(cold->durability);
    ckv_prompt_cache_destroy(cold->cache);
    ckv_spill_queue_destroy(cold->queue);
    ckv_store_close(cold->store);
    ckv_activity_destroy(cold->activity);
    ckv_llama_destroy(cold->bridge);
    free(cold);
}

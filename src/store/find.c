/*
 * Owns the questions to a store: candidates, cover, statistics. find is memory only;
 * covers looks whether the file is still there, because its answer lets a write be
 * skipped.
 */
#include "store/discard.h"

/* At most three per prefix: more than any restore would try. */
#define MATCHES_MAX 32

enum ckv_status ckv_store_find(struct ckv_store *store, const char *ns,
                               const uint32_t *prompt, size_t prompt_length,
                               struct ckv_candidate *out, size_t capacity, size_t *count,
                               struct ckv_error *error)
{
    struct ckv_index_match matches[MATCHES_MAX];
    size_t wanted = capacity < MATCHES_MAX ? capacity : MATCHES_MAX;
    if (!store || !count || (!prompt && prompt_length > 0) || (!out && capacity > 0))
        return ckv_error_set(error, CKV_INVALID,
                             "find needs a store, a prompt and room for its answer");
    *count = ckvi_catalog_find(&store->catalog, ckvi_ns_text(ns), prompt, prompt_length,
                               matches, wanted);
    for (size_t i = 0; out && i < *count; i++)
        out[i] = (struct ckv_candidate){
            .id = matches[i].id,
            .prefix = matches[i].prefix,
            .token_count = matches[i].length,
            .tensor_bytes = matches[i].bytes,
        };
    return CKV_OK;
}

bool ckv_store_covers(struct ckv_store *store, const char *ns, const uint32_t *tokens,
                      size_t token_count)
{
    enum ckv_status found = CKV_NOTFOUND;
    uint64_t id;
    if (!store || !tokens || token_count == 0)
        return false;
    /* Each turn but the last forgets an entry whose file is gone, so this ends. */
    while (ckvi_catalog_covers(&store->catalog, ckvi_ns_text(ns), tokens, token_count,
                               &id)) {
        if (ckvi_file_exists(store, id, &found))
            return true;
        if (found != CKV_NOTFOUND && found != CKV_VANISHED)
            return false;
        (void)ckvi_catalog_drop(&store->catalog, id);
    }
    return false;
}

static uint64_t read_count(_Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void ckv_store_get_stats(struct ckv_store *store, struct ckv_store_stats *out)
{
    struct ckvi_counters *counters = &store->counters;
    struct ckvi_catalog_counts counts;
    ckvi_catalog_count(&store->catalog, &counts);
    *out = (struct ckv_store_stats){
        .entries = counts.entries,
        .longest_prefix_tokens = counts.longest_tokens,
        .used_bytes = read_count(&counters->used_bytes),
        .cap_bytes = store->cap_bytes,
        .free_floor_bytes = store->free_floor_bytes,
        .restores = read_count(&counters->restores),
        .restored_bytes = read_count(&counters->restored_bytes),
        .partial_restores = read_count(&counters->partial_restores),
        .restore_last_ns =
            atomic_load_explicit(&counters->restore_last_ns, memory_order_relaxed),
        .restore_total_ns =
            atomic_load_explicit(&counters->restore_total_ns, memory_order_relaxed),
        .misses = read_count(&counters->misses),
        .restore_failures = read_count(&counters->restore_failures),
        .puts = read_count(&counters->puts),
        .written_bytes = read_count(&counters->written_bytes),
        .put_total_ns =
            atomic_load_explicit(&counters->put_total_ns, memory_order_relaxed),
        .put_failures = read_count(&counters->put_failures),
        .refused_full = read_count(&counters->refused_full),
        .superseded = read_count(&counters->superseded),
        .evicted = read_count(&counters->evicted),
        .set_aside = read_count(&counters->set_aside),
        .foreign = read_count(&counters->foreign),
        .swept = read_count(&counters->swept),
        .io_name = store->io->name,
    };
}

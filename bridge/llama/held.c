/*
 * Owns states in memory: sequences as held entries for the tiers, stored entries as held
 * entries, and held entries back in a sequence.
 *
 * Invariant: a held entry is immutable and its bytes passed the blob check, either when
 * they were copied out of a context or when they arrived from a store. After an apply or
 * a cut that fails the sequence is empty.
 *
 * Failure story: what arrived and is not what this context would have written is CORRUPT,
 * so that the store sets it aside; everything else only fails its caller.
 */
#include "bridge.h"
#include "memory.h"
#include "snapshot.h"

#include <inttypes.h>

/* --- a snapshot as a held entry --- */

static const struct ckv_entry *held_entry(void *ctx)
{
    return ckv_llama_snapshot_entry(ctx);
}

static const struct ckv_source *held_source(void *ctx)
{
    return ckv_llama_snapshot_source(ctx);
}

static void held_buffers(void *ctx, ckv_buffer_fn fn, void *fn_ctx)
{
    const struct ckv_entry *entry = ckv_llama_snapshot_entry(ctx);
    fn(fn_ctx, ctx, entry->caches[0].tensors[0].bytes);
}

static void held_release(void *ctx)
{
    ckv_llama_snapshot_destroy(ctx);
}

static const struct ckv_held_methods held_methods = {
    .entry = held_entry,
    .source = held_source,
    .visit_buffers = held_buffers,
    .release = held_release,
};

enum ckv_status ckv_llama_hold(struct ckv_llama *bridge, int32_t sequence,
                               const int32_t *tokens, size_t token_count,
                               struct ckv_held **out, struct ckv_error *error)
{
    struct ckv_llama_snapshot *snapshot = NULL;
    enum ckv_status status;
    *out = NULL;
    status = ckv_llama_snapshot_create(bridge, sequence, tokens, token_count, &snapshot,
                                       error);
    if (status)
        return status;
    status = ckv_held_create(bridge->alloc, &held_methods, snapshot, out, error);
    if (status)
        ckv_llama_snapshot_destroy(snapshot);
    return status;
}

/* --- a stored entry as a held entry --- */

static void drop_arriving(void *ctx)
{
    struct ckv_llama *bridge = ctx;
    ckv_llama_snapshot_destroy(bridge->arriving);
    bridge->arriving = NULL;
}

static enum ckv_status lend_arriving(void *ctx, size_t cache, size_t tensor,
                                     uint64_t offset, size_t wanted, void **data,
                                     size_t *size, struct ckv_error *error)
{
    struct ckv_llama *bridge = ctx;
    const struct ckv_entry *entry = ckv_llama_snapshot_entry(bridge->arriving);
    uint64_t bytes = entry->caches[0].tensors[0].bytes;
    if (cache != 0 || tensor != 0 || offset >= bytes)
        return ckv_error_set(error, CKV_INVALID,
                             "byte %" PRIu64 " of tensor %zu of cache %zu does not exist",
                             offset, tensor, cache);
    *data = ckvi_llama_snapshot_state(bridge->arriving) + (size_t)offset;
    *size = (size_t)(bytes - offset);
    if (*size > wanted)
        *size = wanted;
    return CKV_OK;
}

static enum ckv_status prepare(void *ctx, const struct ckv_entry *entry, uint64_t prefix,
                               struct ckv_sink *sink, struct ckv_error *error)
{
    struct ckv_llama *bridge = ctx;
    enum ckv_status status;
    (void)prefix;
    drop_arriving(bridge);
    status = ckvi_llama_check_stored(bridge, entry, error);
    if (!status)
        status = ckvi_llama_snapshot_receive(bridge, entry, &bridge->arriving, error);
    if (status)
        return status;
    *sink =
        (struct ckv_sink){.ctx = bridge, .lend = lend_arriving, .drop = drop_arriving};
    return CKV_OK;
}

static enum ckv_status finish(void *ctx, const struct ckv_entry *entry, uint64_t prefix,
                              struct ckv_held **out, struct ckv_error *error)
{
    struct ckv_llama *bridge = ctx;
    struct ckv_llama_snapshot *snapshot = bridge->arriving;
    const struct ckv_tensor *tensor = &entry->caches[0].tensors[0];
    enum ckv_status status;
    (void)prefix;
    bridge->arriving = NULL;
    status = ckvi_llama_blob_check(&bridge->layout, ckvi_llama_snapshot_state(snapshot),
                                   (size_t)tensor->bytes, entry->token_count, error);
    if (status)
        ckvi_llama_log(bridge, CKV_LOG_WARN, "llama.refused", "%s",
                       error ? error->text : ckv_status_text(status));
    else
        status = ckv_held_create(bridge->alloc, &held_methods, snapshot, out, error);
    if (status)
        ckv_llama_snapshot_destroy(snapshot);
    return status;
}

void ckv_llama_get_restorer(struct ckv_llama *bridge, struct ckv_restorer *out)
{
    *out = (struct ckv_restorer){.ctx = bridge, .prepare = prepare, .finish = finish};
}

/* --- a held entry in a sequence --- */

enum ckv_status ckv_llama_apply(struct ckv_llama *bridge, const struct ckv_held *held,
                                int32_t sequence, uint64_t prefix,
                                struct ckv_error *error)
{
    const struct ckv_entry *entry = ckv_held_entry(held);
    const struct ckvi_llama_state state = {
        .bytes = ckvi_llama_snapshot_state(ckv_held_context(held)),
        .size = (size_t)entry->caches[0].tensors[0].bytes,
        .token_count = entry->token_count,
    };
    enum ckv_status status;
    if (!ckvi_llama_sequence_valid(bridge, sequence))
        return ckv_error_set(error, CKV_INVALID, "sequence %" PRId32 " does not exist",
                             sequence);
    status = ckvi_llama_sequence_clear(bridge, sequence, error);
    if (!status)
        status = ckvi_llama_load(bridge, sequence, &state, prefix, error);
    return status;
}

enum ckv_status ckv_llama_cut(struct ckv_llama *bridge, int32_t sequence,
                              size_t token_count, uint64_t prefix,
                              struct ckv_error *error)
{
    enum ckv_status status = CKV_OK;
    if (!ckvi_llama_sequence_valid(bridge, sequence))
        return ckv_error_set(error, CKV_INVALID, "sequence %" PRId32 " does not exist",
                             sequence);
    if (prefix == 0 || prefix > token_count)
        status =
            ckv_error_set(error, CKV_INVALID, "%" PRIu64 " of %zu tokens cannot be kept",
                          prefix, token_count);
    if (!status && llama_memory_seq_pos_min(bridge->memory, sequence) != 0)
        status = ckv_error_set(error, CKV_REFUSED, "the sequence does not begin at 0");
    if (!status && prefix < token_count &&
        !llama_memory_seq_rm(bridge->memory, sequence, (llama_pos)prefix, -1))
        status = ckv_error_set(
            error, CKV_REFUSED,
            "llama.cpp does not cut the sequence to %" PRIu64 " tokens", prefix);
    if (!status &&
        (uint64_t)llama_memory_seq_pos_max(bridge->memory, sequence) + 1 != prefix)
        status = ckv_error_set(error, CKV_REFUSED,
                               "the sequence does not end at %" PRIu64 " tokens", prefix);
    if (status)
        (void)ckvi_llama_sequence_clear(bridge, sequence, NULL);
    return status;
}

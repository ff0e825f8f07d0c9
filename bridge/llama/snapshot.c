/*
 * Owns copying a sequence's state out of a context, as an entry that can be stored.
 *
 * Invariant: a snapshot's bytes passed the same check that a restore will make, and its
 * tokens are exactly the positions in it. It shares nothing with the context.
 *
 * Failure story: libllama's sizes are compared with what the layout says before and after
 * the copy; a state that is not complete, or that shares its context, is refused with
 * what was found. Creation that fails leaves nothing behind, and the sequence untouched.
 */
#include "snapshot.h"
#include "bridge.h"
#include "memory.h"

#include <inttypes.h>

struct ckv_llama_snapshot {
    const struct ckv_alloc *alloc;
    uint32_t *tokens;
    size_t token_count;
    uint8_t *state;
    size_t state_bytes;
    struct ckv_tensor tensor;
    struct ckv_cache cache;
    struct ckv_entry entry;
    const void *tensors[1];
    struct ckv_memory_source memory;
    struct ckv_source source;
};

uint64_t ckv_llama_state_bytes(struct ckv_llama *bridge, int32_t sequence)
{
    if (!ckvi_llama_sequence_valid(bridge, sequence) ||
        llama_memory_seq_pos_max(bridge->memory, sequence) < 0)
        return 0;
    return llama_state_seq_get_size(bridge->context, sequence);
}

static enum ckv_status check_sequence(const struct ckv_llama *bridge, int32_t sequence,
                                      size_t token_count, struct ckv_error *error)
{
    llama_pos first;
    llama_pos last;
    int32_t count = (int32_t)llama_n_seq_max(bridge->context);
    if (!ckvi_llama_sequence_valid(bridge, sequence))
        return ckv_error_set(error, CKV_INVALID,
                             "sequence %" PRId32 " is not in [0, %" PRId32 ")", sequence,
                             count);
    if (token_count == 0 || token_count > INT32_MAX)
        return ckv_error_set(error, CKV_INVALID, "a snapshot of %zu tokens", token_count);
    first = llama_memory_seq_pos_min(bridge->memory, sequence);
    last = llama_memory_seq_pos_max(bridge->memory, sequence);
    if (first != 0 || (size_t)last + 1 != token_count)
        return ckv_error_set(error, CKV_INVALID,
                             "sequence %" PRId32 " holds positions %" PRId32
                             " to %" PRId32 ", not the %zu tokens given",
                             sequence, first, last, token_count);
    for (int32_t i = 0; i < count; i++)
        if (i != sequence && llama_memory_seq_pos_max(bridge->memory, i) >= 0)
            return ckv_error_set(error, CKV_INVALID,
                                 "sequence %" PRId32 " is not alone: sequence %" PRId32
                                 " is in use",
                                 sequence, i);
    return CKV_OK;
}

static enum ckv_status copy_tokens(struct ckv_llama_snapshot *snapshot,
                                   const int32_t *tokens, size_t count,
                                   struct ckv_error *error)
{
    snapshot->tokens =
        ckvi_llama_allocate(snapshot->alloc, count, sizeof *snapshot->tokens);
    snapshot->token_count = count;
    if (!snapshot->tokens)
        return ckvi_llama_nomem(error, "the tokens of a snapshot");
    for (size_t i = 0; i < count; i++) {
        if (tokens[i] < 0)
            return ckv_error_set(error, CKV_INVALID, "token %zu is %" PRId32, i,
                                 tokens[i]);
        snapshot->tokens[i] = (uint32_t)tokens[i];
    }
    return CKV_OK;
}

static enum ckv_status copy_state(struct ckv_llama_snapshot *snapshot,
                                  struct ckv_llama *bridge, int32_t sequence,
                                  struct ckv_error *error)
{
    uint64_t expected = 0;
    size_t size = llama_state_seq_get_size(bridge->context, sequence);
    size_t got;
    if (!ckvi_llama_layout_size(&bridge->layout, snapshot->token_count, &expected) ||
        size != expected)
        return ckv_error_set(error, CKV_ENGINE,
                             "llama.cpp announces %zu bytes for %zu tokens, expected "
                             "%" PRIu64,
                             size, snapshot->token_count, expected);
    snapshot->state = ckvi_llama_allocate_payload(snapshot->alloc, size);
    snapshot->state_bytes = size;
    if (!snapshot->state)
        return ckv_error_set(error, CKV_NOMEM, "out of memory for a state of %zu bytes",
                             size);
    got = llama_state_seq_get_data(bridge->context, snapshot->state, size, sequence);
    if (got != size)
        return ckv_error_set(error, CKV_ENGINE, "llama.cpp gave %zu of %zu bytes", got,
                             size);
    if (ckvi_llama_blob_check(&bridge->layout, snapshot->state, size,
                              snapshot->token_count, error)) {
        ckv_error_prefix(error, "this state cannot be kept");
        if (error)
            error->status = CKV_ENGINE;
        return CKV_ENGINE;
    }
    return CKV_OK;
}

static void describe(struct ckv_llama_snapshot *snapshot)
{
    snapshot->tensor = (struct ckv_tensor){
        .dtype = CKV_DTYPE_UINT8,
        .rank = 1,
        .shape = {snapshot->state_bytes},
        .bytes = snapshot->state_bytes,
    };
    snapshot->cache = (struct ckv_cache){
        .kind = CKV_CACHE_STATE,
        .offset = snapshot->token_count,
        .floor = CKVI_LLAMA_FLOOR,
        .engine = CKVI_LLAMA_ENGINE,
        .tensors = &snapshot->tensor,
        .tensor_count = 1,
    };
    snapshot->entry = (struct ckv_entry){
        .tokens = snapshot->tokens,
        .token_count = snapshot->token_count,
        .caches = &snapshot->cache,
        .cache_count = 1,
    };
    snapshot->tensors[0] = snapshot->state;
    snapshot->memory = (struct ckv_memory_source){
        .entry = &snapshot->entry,
        .tensors = snapshot->tensors,
    };
    ckv_source_from_memory(&snapshot->memory, &snapshot->source);
}

enum ckv_status ckv_llama_snapshot_create(struct ckv_llama *bridge, int32_t sequence,
                                          const int32_t *tokens, size_t token_count,
                                          struct ckv_llama_snapshot **out,
                                          struct ckv_error *error)
{
    struct ckv_llama_snapshot *snapshot;
    enum ckv_status status;
    *out = NULL;
    status = check_sequence(bridge, sequence, token_count, error);
    if (status)
        return status;
    snapshot = ckvi_llama_allocate(bridge->alloc, 1, sizeof *snapshot);
    if (!snapshot)
        return ckvi_llama_nomem(error, "a snapshot");
    snapshot->alloc = bridge->alloc;
    status = copy_tokens(snapshot, tokens, token_count, error);
    if (!status)
        status = copy_state(snapshot, bridge, sequence, error);
    if (status) {
        ckv_llama_snapshot_destroy(snapshot);
        return status;
    }
    describe(snapshot);
    *out = snapshot;
    return CKV_OK;
}

enum ckv_status ckvi_llama_snapshot_receive(struct ckv_llama *bridge,
                                            const struct ckv_entry *entry,
                                            struct ckv_llama_snapshot **out,
                                            struct ckv_error *error)
{
    struct ckv_llama_snapshot *snapshot =
        ckvi_llama_allocate(bridge->alloc, 1, sizeof *snapshot);
    *out = NULL;
    if (!snapshot)
        return ckvi_llama_nomem(error, "a snapshot");
    snapshot->alloc = bridge->alloc;
    snapshot->token_count = entry->token_count;
    snapshot->state_bytes = (size_t)entry->caches[0].tensors[0].bytes;
    snapshot->tokens = ckvi_llama_allocate(snapshot->alloc, snapshot->token_count,
                                           sizeof *snapshot->tokens);
    snapshot->state = ckvi_llama_allocate_payload(snapshot->alloc, snapshot->state_bytes);
    if (!snapshot->tokens || !snapshot->state) {
        (void)ckv_error_set(error, CKV_NOMEM, "out of memory for a state of %zu bytes",
                            snapshot->state_bytes);
        ckv_llama_snapshot_destroy(snapshot);
        return CKV_NOMEM;
    }
    memcpy(snapshot->tokens, entry->tokens,
           snapshot->token_count * sizeof *snapshot->tokens);
    describe(snapshot);
    *out = snapshot;
    return CKV_OK;
}

uint8_t *ckvi_llama_snapshot_state(struct ckv_llama_snapshot *snapshot)
{
    return snapshot->state;
}

void ckv_llama_snapshot_destroy(struct ckv_llama_snapshot *snapshot)
{
    if (!snapshot)
        return;
    ckvi_llama_release(snapshot->alloc, snapshot->tokens, snapshot->token_count,
                       sizeof *snapshot->tokens);
    ckvi_llama_release(snapshot->alloc, snapshot->state, snapshot->state_bytes, 1);
    ckvi_llama_release(snapshot->alloc, snapshot, 1, sizeof *snapshot);
}

const struct ckv_entry *ckv_llama_snapshot_entry(
    const struct ckv_llama_snapshot *snapshot)
{
    return &snapshot->entry;
}

const struct ckv_source *ckv_llama_snapshot_source(
    const struct ckv_llama_snapshot *snapshot)
{
    return &snapshot->source;
}

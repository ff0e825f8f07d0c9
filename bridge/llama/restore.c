/*
 * Owns bringing a stored state back into a sequence.
 *
 * Invariant: bytes reach libllama only after the store verified their hash and the blob's
 * structure was compared with what this context would have written. When restore returns
 * OK the sequence holds exactly positions 0..prefix-1; in every other case it is empty,
 * unless it is not a sequence of this context, which is never touched.
 *
 * Failure story: a load that libllama refuses can leave half of it behind, so the
 * sequence is cleared after every failure before the next entry is tried. Only a state
 * whose structure is wrong although its bytes verified is CORRUPT and set aside; a
 * well-formed one that libllama declines (no room, say) is left alone.
 */
#include "bridge.h"
#include "memory.h"

#include <inttypes.h>

/* An entry whose size is off is read, found out and set aside, as long as that costs no
 * more than this many times what its tokens should need. */
#define OVERSIZE_FACTOR 2u
#define OVERSIZE_BYTES UINT64_C(65536)

struct restore {
    struct ckv_llama *bridge;
    int32_t sequence;
    uint8_t *state; /* from prepare to accept or drop */
    size_t state_bytes;
};

static void drop_state(void *ctx)
{
    struct restore *restore = ctx;
    ckvi_llama_release(restore->bridge->alloc, restore->state, restore->state_bytes, 1);
    restore->state = NULL;
    restore->state_bytes = 0;
}

static enum ckv_status lend_state(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                                  size_t wanted, void **data, size_t *size,
                                  struct ckv_error *error)
{
    struct restore *restore = ctx;
    if (cache != 0 || tensor != 0 || offset >= restore->state_bytes)
        return ckv_error_set(error, CKV_INVALID,
                             "byte %" PRIu64 " of tensor %zu of cache %zu does not exist",
                             offset, tensor, cache);
    *data = restore->state + (size_t)offset;
    *size = restore->state_bytes - (size_t)offset;
    if (*size > wanted)
        *size = wanted;
    return CKV_OK;
}

/* Whether the entry is one of ours at all; the store's own checks came before. */
static enum ckv_status check_entry(const struct ckv_entry *entry, struct ckv_error *error)
{
    const struct ckv_cache *cache = entry->caches;
    if (entry->cache_count != 1 || cache->kind != CKV_CACHE_STATE ||
        cache->tensor_count != 1)
        return ckv_error_set(error, CKV_REFUSED,
                             "the entry is not one state of an engine");
    if (strcmp(cache->engine, CKVI_LLAMA_ENGINE) != 0)
        return ckv_error_set(error, CKV_REFUSED, "the state is of another engine");
    if (cache->tensors[0].dtype != CKV_DTYPE_UINT8 || cache->tensors[0].rank != 1 ||
        cache->offset != entry->token_count)
        return ckv_error_set(error, CKV_REFUSED,
                             "the state's tensor or offset is not as this bridge writes");
    return CKV_OK;
}

static enum ckv_status check_room(const struct ckv_llama *bridge,
                                  const struct ckv_entry *entry, struct ckv_error *error)
{
    uint32_t room = llama_n_ctx_seq(bridge->context);
    uint64_t bytes = entry->caches[0].tensors[0].bytes;
    uint64_t expected = 0;
    if (entry->token_count > room)
        return ckv_error_set(error, CKV_REFUSED,
                             "the entry's %zu tokens do not fit the context of %" PRIu32,
                             entry->token_count, room);
    if (!ckvi_llama_layout_size(&bridge->layout, entry->token_count, &expected) ||
        bytes == 0 || bytes / OVERSIZE_FACTOR > expected + OVERSIZE_BYTES)
        return ckv_error_set(error, CKV_REFUSED,
                             "the entry's %" PRIu64 " bytes cannot be %zu tokens", bytes,
                             entry->token_count);
    return CKV_OK;
}

enum ckv_status ckvi_llama_check_stored(const struct ckv_llama *bridge,
                                        const struct ckv_entry *entry,
                                        struct ckv_error *error)
{
    enum ckv_status status = check_entry(entry, error);
    return status ? status : check_room(bridge, entry, error);
}

static enum ckv_status prepare(void *ctx, const struct ckv_entry *entry, uint64_t prefix,
                               struct ckv_sink *sink, struct ckv_error *error)
{
    struct restore *restore = ctx;
    enum ckv_status status;
    (void)prefix;
    drop_state(restore);
    status = ckvi_llama_check_stored(restore->bridge, entry, error);
    if (status)
        return status;
    restore->state_bytes = (size_t)entry->caches[0].tensors[0].bytes;
    restore->state =
        ckvi_llama_allocate_payload(restore->bridge->alloc, restore->state_bytes);
    if (!restore->state)
        return ckv_error_set(error, CKV_NOMEM, "out of memory for a state of %zu bytes",
                             restore->state_bytes);
    *sink = (struct ckv_sink){.ctx = restore, .lend = lend_state, .drop = drop_state};
    return CKV_OK;
}

static enum ckv_status check_positions(const struct ckv_llama *bridge, int32_t sequence,
                                       uint64_t count, const char *when,
                                       struct ckv_error *error)
{
    llama_pos first = llama_memory_seq_pos_min(bridge->memory, sequence);
    llama_pos last = llama_memory_seq_pos_max(bridge->memory, sequence);
    if (first == 0 && last >= 0 && (uint64_t)last + 1 == count)
        return CKV_OK;
    return ckv_error_set(error, CKV_REFUSED,
                         "llama.cpp holds positions %" PRId32 " to %" PRId32
                         " %s, expected 0 to %" PRIu64,
                         first, last, when, count - 1);
}

static enum ckv_status load_and_cut(struct ckv_llama *bridge, int32_t sequence,
                                    const struct ckvi_llama_state *state, uint64_t prefix,
                                    struct ckv_error *error)
{
    size_t read =
        llama_state_seq_set_data(bridge->context, state->bytes, state->size, sequence);
    enum ckv_status status;
    if (read != state->size)
        return ckv_error_set(error, CKV_REFUSED,
                             "llama.cpp took %zu of the state's %zu bytes", read,
                             state->size);
    status =
        check_positions(bridge, sequence, state->token_count, "after loading", error);
    if (status || prefix == state->token_count)
        return status;
    if (!llama_memory_seq_rm(bridge->memory, sequence, (llama_pos)prefix, -1))
        return ckv_error_set(error, CKV_REFUSED,
                             "llama.cpp does not cut the sequence to %" PRIu64 " tokens",
                             prefix);
    return check_positions(bridge, sequence, prefix, "after cutting", error);
}

enum ckv_status ckvi_llama_load(struct ckv_llama *bridge, int32_t sequence,
                                const struct ckvi_llama_state *state, uint64_t prefix,
                                struct ckv_error *error)
{
    enum ckv_status status;
    if (prefix == 0 || prefix > state->token_count)
        return ckv_error_set(error, CKV_INVALID,
                             "%" PRIu64 " of %" PRIu64 " tokens cannot be reused", prefix,
                             state->token_count);
    status = ckvi_llama_blob_check(&bridge->layout, state->bytes, state->size,
                                   (size_t)state->token_count, error);
    if (status)
        return status;
    status = load_and_cut(bridge, sequence, state, prefix, error);
    if (status)
        (void)ckvi_llama_sequence_clear(bridge, sequence, NULL);
    return status;
}

static enum ckv_status accept(void *ctx, const struct ckv_entry *entry, uint64_t prefix,
                              struct ckv_error *error)
{
    struct restore *restore = ctx;
    const struct ckvi_llama_state state = {
        .bytes = restore->state,
        .size = restore->state_bytes,
        .token_count = entry->token_count,
    };
    enum ckv_status status =
        ckvi_llama_load(restore->bridge, restore->sequence, &state, prefix, error);
    drop_state(restore);
    if (status)
        ckvi_llama_log(restore->bridge, CKV_LOG_WARN, "llama.refused", "%s",
                       error ? error->text : ckv_status_text(status));
    return status;
}

/* The store counts tokens without a sign. */
static enum ckv_status copy_prompt(const struct ckv_llama *bridge, const int32_t *prompt,
                                   size_t length, uint32_t **out, struct ckv_error *error)
{
    uint32_t *copy = ckvi_llama_allocate(bridge->alloc, length, sizeof *copy);
    *out = copy;
    if (!copy)
        return ckvi_llama_nomem(error, "the tokens of a prompt");
    for (size_t i = 0; i < length; i++) {
        if (prompt[i] < 0)
            return ckv_error_set(error, CKV_INVALID, "token %zu is %" PRId32, i,
                                 prompt[i]);
        copy[i] = (uint32_t)prompt[i];
    }
    return CKV_OK;
}

enum ckv_status ckv_llama_restore(struct ckv_llama *bridge, struct ckv_store *store,
                                  const char *ns, int32_t sequence, const int32_t *prompt,
                                  size_t prompt_length, struct ckv_restored *out,
                                  struct ckv_error *error)
{
    struct restore restore = {.bridge = bridge, .sequence = sequence};
    const struct ckv_restore_target target = {
        .ctx = &restore, .prepare = prepare, .accept = accept};
    uint32_t *tokens = NULL;
    enum ckv_status status;
    *out = (struct ckv_restored){0};
    if (!ckvi_llama_sequence_valid(bridge, sequence))
        return ckv_error_set(error, CKV_INVALID,
                             "sequence %" PRId32 " is not in [0, %" PRIu32 ")", sequence,
                             llama_n_seq_max(bridge->context));
    status = ckvi_llama_sequence_clear(bridge, sequence, error);
    if (status)
        return status;
    if (prompt_length == 0)
        return ckv_error_set(error, CKV_NOTFOUND, "an empty prompt reuses nothing");
    status = copy_prompt(bridge, prompt, prompt_length, &tokens, error);
    if (!status)
        status = ckv_store_restore(store, ns, tokens, prompt_length, &target, out, error);
    if (status)
        (void)ckvi_llama_sequence_clear(bridge, sequence, NULL);
    drop_state(&restore);
    ckvi_llama_release(bridge->alloc, tokens, prompt_length, sizeof *tokens);
    return status;
}

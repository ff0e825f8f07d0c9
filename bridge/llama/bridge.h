/* What the bridge's files share: the bridge itself, its log and its checks of sequences.
 */
#ifndef COLDKV_BRIDGE_LLAMA_BRIDGE_H
#define COLDKV_BRIDGE_LLAMA_BRIDGE_H

#include "blob.h"
#include "text.h"

#include <coldkv/llama.h>
#include <coldkv/sha256.h>
#include <llama.h>

/* In the header of every entry: whose bytes these are. */
#define CKVI_LLAMA_ENGINE "llama.cpp"
/* Shortest prefix to which a state can be cut: with full attention, keys and values of
 * every position are in it. */
#define CKVI_LLAMA_FLOOR 0

struct ckv_llama {
    const struct ckv_alloc *alloc;
    struct ckv_log log;
    struct llama_context *context; /* borrowed */
    llama_memory_t memory;         /* the context's */
    struct ckvi_llama_layout layout;
    struct ckv_store_identity identity; /* points at the texts below */
    char fingerprint[CKV_SHA256_TEXT_SIZE];
    char tokenizer_hash[CKV_SHA256_TEXT_SIZE];
    struct ckvi_llama_text model_id;
    struct ckvi_llama_text description;
    struct ckv_llama_snapshot
        *arriving; /* of the restorer, from prepare to finish or drop */
};

void ckvi_llama_log(const struct ckv_llama *bridge, enum ckv_log_level level,
                    const char *id, const char *format, ...) CKV_PRINTF(4, 5);

/* Whether libllama may be asked about this sequence at all: it aborts on others. */
bool ckvi_llama_sequence_valid(const struct ckv_llama *bridge, int32_t sequence);

/* Empties a valid sequence; ENGINE when it is not empty after that. */
enum ckv_status ckvi_llama_sequence_clear(const struct ckv_llama *bridge,
                                          int32_t sequence, struct ckv_error *error);

/* Whether a stored entry is one of this engine's states, with tokens that fit the context
 * and a size that they can have: before any of its bytes is read. REFUSED with the
 * reason. */
enum ckv_status ckvi_llama_check_stored(const struct ckv_llama *bridge,
                                        const struct ckv_entry *entry,
                                        struct ckv_error *error);

/* A state that was copied out of a context, here or by another process. */
struct ckvi_llama_state {
    const uint8_t *bytes;
    size_t size;
    uint64_t token_count;
};

/* Puts the first `prefix` tokens of a state into a valid sequence. CORRUPT: not what this
 * context would have written. After a failure the sequence is empty, or as it was when
 * nothing was given to libllama. */
enum ckv_status ckvi_llama_load(struct ckv_llama *bridge, int32_t sequence,
                                const struct ckvi_llama_state *state, uint64_t prefix,
                                struct ckv_error *error);

#endif

/*
 * The bridge to llama.cpp: one sequence of a llama_context as an entry of the kind
 * "state", and back. It lives in its own library (coldkv_llama_bridge), so that libcoldkv
 * needs no engine.
 *
 * What it keeps away from libllama: unverified or malformed bytes, sequence ids out of
 * range, states of another model, layout or RoPE setting, states that do not fit, and
 * the half-loaded sequence that a failed load leaves behind.
 *
 * Thread rule: a context belongs to one thread at a time, and so do the bridge's calls on
 * it.
 */
#ifndef COLDKV_LLAMA_H
#define COLDKV_LLAMA_H

#include <coldkv/alloc.h>
#include <coldkv/entry.h>
#include <coldkv/held.h>
#include <coldkv/log.h>
#include <coldkv/prompt_cache.h>
#include <coldkv/status.h>
#include <coldkv/store.h>
#include <coldkv/transfer.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct llama_context;
struct llama_context_params;

struct ckv_llama_options {
    size_t size; /**< sizeof this struct; set by ckv_llama_options_init */
    const struct ckv_alloc *alloc; /**< NULL = ckv_alloc_default() */
    struct ckv_log log;            /**< copied */
    /** Hash every byte of the weights instead of samples of every tensor. */
    bool full_identity;
    /** Extra text that enters the fingerprint (metadata overrides and the like); NULL =
     *  none. */
    const char *extra_identity;
};

CKV_API void ckv_llama_options_init(struct ckv_llama_options *options);

struct ckv_llama;

/**
 * Makes a bridge for `context`, which was made with exactly `params` from the model in
 * `model_path` (GGUF; of a split model the first file). Reads the file to compute the
 * identity. context is borrowed and must outlive the bridge. It must be empty: one token
 * is evaluated in sequence 0 and removed again, to see how this context writes its state.
 *
 * UNSUPPORTED, with the reason, when the context cannot be persisted faithfully: flash
 * attention left on auto, a layout with several streams, or a model kind that this
 * version does not know how to cut (sliding window, recurrent, hybrid, encoder).
 * INVALID when the context is not empty, was not made with params, or model_path is not
 * what the model was loaded from.
 */
CKV_API enum ckv_status ckv_llama_create(struct llama_context *context,
                                         const struct llama_context_params *params,
                                         const char *model_path,
                                         const struct ckv_llama_options *options,
                                         struct ckv_llama **out,
                                         struct ckv_error *error) CKV_WARN_UNUSED;
/** NULL is fine. */
CKV_API void ckv_llama_destroy(struct ckv_llama *bridge);

/** Fingerprint, tokenizer hash, model id and canonical description; for ckv_store_open.
 *  Valid as long as the bridge. */
CKV_API const struct ckv_store_identity *ckv_llama_identity(
    const struct ckv_llama *bridge);

/** Exact bytes that a snapshot of the sequence would have now; 0 when it is empty. */
CKV_API uint64_t ckv_llama_state_bytes(struct ckv_llama *bridge, int32_t sequence);

struct ckv_llama_snapshot;

/**
 * Copies the state of `sequence`, which must hold exactly positions 0..token_count-1
 * (evaluated from `tokens`) and be alone in its context. The copy belongs to the
 * snapshot; the sequence may go on at once. One copy of the state is made, no other.
 */
CKV_API enum ckv_status ckv_llama_snapshot_create(
    struct ckv_llama *bridge, int32_t sequence, const int32_t *tokens, size_t token_count,
    struct ckv_llama_snapshot **out, struct ckv_error *error) CKV_WARN_UNUSED;
/** NULL is fine. */
CKV_API void ckv_llama_snapshot_destroy(struct ckv_llama_snapshot *snapshot);
/** What to store; both are valid as long as the snapshot. The source may be read from any
 *  thread. */
CKV_API const struct ckv_entry *ckv_llama_snapshot_entry(
    const struct ckv_llama_snapshot *snapshot);
CKV_API const struct ckv_source *ckv_llama_snapshot_source(
    const struct ckv_llama_snapshot *snapshot);

/**
 * Restores the longest usable prefix of `prompt` into `sequence`, which is cleared first.
 * OK: exactly positions 0..out->prefix-1 are there and evaluation goes on at out->prefix.
 * NOTFOUND: a miss; the sequence is empty and the prompt is evaluated from 0. Other
 * failures also leave the sequence empty; one that the context does not have is INVALID
 * and touches nothing. Entries whose structure is not what this context writes, although
 * their bytes verified, are set aside; those that libllama declines (no room) are not.
 */
CKV_API enum ckv_status ckv_llama_restore(struct ckv_llama *bridge,
                                          struct ckv_store *store, const char *ns,
                                          int32_t sequence, const int32_t *prompt,
                                          size_t prompt_length, struct ckv_restored *out,
                                          struct ckv_error *error) CKV_WARN_UNUSED;

/** A snapshot of `sequence` as a held entry, for the tiers in memory: one reference, the
 * caller's. Conditions and failures are those of ckv_llama_snapshot_create. The entry is
 * released through the bridge's allocator on whichever thread drops it last, also after
 * the bridge is gone. */
CKV_API enum ckv_status ckv_llama_hold(struct ckv_llama *bridge, int32_t sequence,
                                       const int32_t *tokens, size_t token_count,
                                       struct ckv_held **out,
                                       struct ckv_error *error) CKV_WARN_UNUSED;

/** How a prompt cache makes held entries of what its store has (worth is left NULL). The
 * context is not touched; one take at a time, on the bridge's thread. */
CKV_API void ckv_llama_get_restorer(struct ckv_llama *bridge, struct ckv_restorer *out);

/** Puts the first `prefix` tokens of a held entry, which this bridge made, into
 * `sequence` in place of what it holds. The entry stays as it is. After a failure the
 * sequence is empty; one that the context does not have is INVALID and touches nothing.
 */
CKV_API enum ckv_status ckv_llama_apply(struct ckv_llama *bridge,
                                        const struct ckv_held *held, int32_t sequence,
                                        uint64_t prefix,
                                        struct ckv_error *error) CKV_WARN_UNUSED;

/** Cuts a live sequence, which holds exactly positions 0..token_count-1, to its first
 * `prefix` tokens, where its memory can still be cut there. After a failure the sequence
 * is empty. */
CKV_API enum ckv_status ckv_llama_cut(struct ckv_llama *bridge, int32_t sequence,
                                      size_t token_count, uint64_t prefix,
                                      struct ckv_error *error) CKV_WARN_UNUSED;

#ifdef __cplusplus
}
#endif

#endif

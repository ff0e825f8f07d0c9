/*
 * A held entry: one prompt prefix in memory, immutable, reference counted. It is what the
 * RAM tier keeps, what the spill queue writes and what a take gives: everybody shares one
 * picture, nobody changes it. An engine makes one from its own memory (a copy, or a
 * snapshot that shares buffers) and says how to describe and release it.
 */
#ifndef COLDKV_HELD_H
#define COLDKV_HELD_H

#include <coldkv/alloc.h>
#include <coldkv/entry.h>
#include <coldkv/status.h>
#include <coldkv/transfer.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Called for every buffer that a held entry keeps alive: an identity that is equal
 * exactly for shared buffers, and the bytes of the whole buffer. */
typedef void (*ckv_buffer_fn)(void *ctx, const void *buffer, uint64_t bytes);

/** What an engine provides. The entry, its tokens and the source stay valid and unchanged
 *  until release. */
struct ckv_held_methods {
    /** Tokens, kinds, scalars, shapes. */
    const struct ckv_entry *(*entry)(void *ctx);
    /** Lends the bytes; must be readable from any thread. */
    const struct ckv_source *(*source)(void *ctx);
    /** Names the buffers for accounting; one may be named more than once. */
    void (*visit_buffers)(void *ctx, ckv_buffer_fn fn, void *fn_ctx);
    /** The last reference is gone. Called on whichever thread dropped it. */
    void (*release)(void *ctx);
};

struct ckv_held;

/** Wraps ctx with one reference, the caller's. On failure ctx stays the caller's. The
 * entry must be valid and every cache's offset equal to its token count, and its source
 * readable from any thread; INVALID otherwise. entry, source and visit_buffers are called
 * here and never again. methods is borrowed for the life of the object (static storage).
 * alloc NULL = default. */
CKV_API enum ckv_status ckv_held_create(const struct ckv_alloc *alloc,
                                        const struct ckv_held_methods *methods, void *ctx,
                                        struct ckv_held **out,
                                        struct ckv_error *error) CKV_WARN_UNUSED;
/** One more reference; returns held. Thread safe. */
CKV_API struct ckv_held *ckv_held_ref(struct ckv_held *held);
/** NULL is fine. Thread safe. */
CKV_API void ckv_held_unref(struct ckv_held *held);

CKV_API const struct ckv_entry *ckv_held_entry(const struct ckv_held *held);
CKV_API const struct ckv_source *ckv_held_source(const struct ckv_held *held);
/** The ctx it was made with: for the engine that takes it back into use. */
CKV_API void *ckv_held_context(const struct ckv_held *held);
/** ckv_entry_floor of the entry. */
CKV_API uint64_t ckv_held_floor(const struct ckv_held *held);
/** Bytes of all buffers it keeps alive, each once. */
CKV_API uint64_t ckv_held_bytes(const struct ckv_held *held);
CKV_API void ckv_held_visit_buffers(const struct ckv_held *held, ckv_buffer_fn fn,
                                    void *fn_ctx);

#ifdef __cplusplus
}
#endif

#endif

/*
 * The prefix index: which entry shares the longest usable prefix with a prompt. Memory
 * only, one namespace per index, no locks of its own (the store brings them).
 */
#ifndef COLDKV_INDEX_H
#define COLDKV_INDEX_H

#include <coldkv/alloc.h>
#include <coldkv/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ckv_index;

/** One indexed entry as its owner describes it. */
struct ckv_index_entry {
    uint64_t id;            /**< chosen by the owner, unique in this index */
    uint64_t floor;         /**< shortest prefix it can be cut to */
    uint64_t bytes;         /**< what a restore would read */
    uint64_t recency;       /**< larger is newer */
    const uint32_t *tokens; /**< copied on insert; NULL when the index describes it */
    size_t token_count;
};

/** One way to serve a prompt. */
struct ckv_index_match {
    uint64_t id;
    uint64_t prefix; /**< tokens that can be reused */
    uint64_t length; /**< tokens of the entry */
    uint64_t bytes;
    uint64_t recency;
};

/** alloc NULL = default. */
CKV_API enum ckv_status ckv_index_create(const struct ckv_alloc *alloc,
                                         struct ckv_index **out,
                                         struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API void ckv_index_destroy(struct ckv_index *index);

/** EXISTS when the id is taken, INVALID for no tokens, 2^32 - 1 or more of them, or floor
 *  > length. */
CKV_API enum ckv_status ckv_index_insert(struct ckv_index *index,
                                         const struct ckv_index_entry *entry,
                                         struct ckv_error *error) CKV_WARN_UNUSED;
/** Whether it was there. */
CKV_API bool ckv_index_remove(struct ckv_index *index, uint64_t id);
/** Sets the recency of an entry; false when it is not there. */
CKV_API bool ckv_index_touch(struct ckv_index *index, uint64_t id, uint64_t recency);
/** The description of an entry, without its tokens (NULL): they are not stored in one
 *  piece. */
CKV_API bool ckv_index_get(const struct ckv_index *index, uint64_t id,
                           struct ckv_index_entry *out);
/** Copies the tokens of an entry, the first `capacity` of them. Returns how many it has;
 *  0 when it is not there. */
CKV_API size_t ckv_index_tokens(const struct ckv_index *index, uint64_t id, uint32_t *out,
                                size_t capacity);
CKV_API size_t ckv_index_count(const struct ckv_index *index);

/**
 * The best candidates for a prompt, at most `capacity`, in this order: usable prefix
 * (ckv_usable_prefix) descending, bytes ascending, newest first, smallest id; at one
 * prefix at most three. Allocates nothing. Takes time for the prompt's length and not for
 * the number of entries; only where many with a floor above 0 can be cut to the place at
 * which the prompt leaves them, some of those are looked at. Returns how many were
 * written.
 */
CKV_API size_t ckv_index_find(const struct ckv_index *index, const uint32_t *prompt,
                              size_t prompt_length, struct ckv_index_match *out,
                              size_t capacity);

/**
 * Entries that an entry with these tokens and this floor makes superfluous: identical
 * tokens, or a strict prefix e of them with floor(new) <= floor(e). Calls fn for each id
 * (fn must not change the index); returns how many.
 */
typedef void (*ckv_index_covered_fn)(void *ctx, uint64_t id);
CKV_API size_t ckv_index_covered(const struct ckv_index *index, const uint32_t *tokens,
                                 size_t token_count, uint64_t floor,
                                 ckv_index_covered_fn fn, void *fn_ctx);

/** Whether some entry serves exactly this prefix: it starts with `tokens` and is either
 *  just as long or can be cut to it. *id (may be NULL) is such an entry. */
CKV_API bool ckv_index_covers(const struct ckv_index *index, const uint32_t *tokens,
                              size_t token_count, uint64_t *id);

/** Token count of the longest entry; 0 when empty. */
CKV_API uint64_t ckv_index_longest(const struct ckv_index *index);

/** Calls fn for every entry, in unspecified order; described as by ckv_index_get. */
typedef void (*ckv_index_visit_fn)(void *ctx, const struct ckv_index_entry *entry);
CKV_API void ckv_index_visit(const struct ckv_index *index, ckv_index_visit_fn fn,
                             void *fn_ctx);

#ifdef __cplusplus
}
#endif

#endif

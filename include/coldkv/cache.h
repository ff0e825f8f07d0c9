/*
 * Live caches: the six kinds an engine decodes with. docs/caches.md says how each grows,
 * trims and is stored. B batch, H KV heads, S token rows, D head dim; arrays are
 * [B,H,S,D] with the token axis 2, but for ssm, whose tensors have any rank.
 *
 * A cache belongs to one thread at a time; clones may live on other threads. A function
 * that fails leaves the cache's contents as they were (it may hold memory it reserved).
 */
#ifndef COLDKV_CACHE_H
#define COLDKV_CACHE_H

#include <coldkv/affine.h>
#include <coldkv/alloc.h>
#include <coldkv/array.h>
#include <coldkv/entry.h>
#include <coldkv/status.h>
#include <coldkv/turboquant.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Rows that a cache grows by. */
#define CKV_CACHE_STEP 256u
/** Most arrays in one live cache; kinds but ssm have 2, 5 or 6. */
#define CKV_CACHE_ARRAYS_MAX 16
/** Room for any signature with its terminator. */
#define CKV_SIGNATURE_SIZE 48

/** What a cache is made with; members that its kind does not name are 0. */
struct ckv_cache_params {
    enum ckv_cache_kind kind; /**< any but CKV_CACHE_STATE */
    uint64_t max_size;        /**< rotating kinds: window in rows, > 0 */
    uint32_t group_size;      /**< qkv kinds */
    uint32_t bits;            /**< qkv kinds */
    uint32_t k_bits;          /**< turboquant */
    uint32_t v_bits;          /**< turboquant */
};

struct ckv_live_cache;

/** An empty cache. alloc NULL = default. INVALID names the parameter that is off. */
CKV_API enum ckv_status ckv_cache_create(const struct ckv_alloc *alloc,
                                         const struct ckv_cache_params *params,
                                         struct ckv_live_cache **out,
                                         struct ckv_error *error) CKV_WARN_UNUSED;
/** NULL is fine. Clones stay valid. */
CKV_API void ckv_cache_destroy(struct ckv_live_cache *cache);
/** Drops all arrays: offset 0, as if new. */
CKV_API void ckv_cache_clear(struct ckv_live_cache *cache);

CKV_API struct ckv_cache_params ckv_cache_get_params(const struct ckv_live_cache *cache);
/** Tokens seen; keeps growing in a ring. */
CKV_API uint64_t ckv_cache_offset(const struct ckv_live_cache *cache);
/** Rotating kinds: the row that the next token is written to; else 0. */
CKV_API uint64_t ckv_cache_idx(const struct ckv_live_cache *cache);
/** turboquant: head dim once known, else 0. */
CKV_API uint32_t ckv_cache_head_dim(const struct ckv_live_cache *cache);
/** No arrays yet (ssm: either one missing). */
CKV_API bool ckv_cache_is_empty(const struct ckv_live_cache *cache);
/** kv:plain, kv:quant:<bits>:<group>, kv:rotating-plain,
 * kv:rotating-quant:<bits>:<group>, kv:turboquant:<k>:<v>, ssm. */
CKV_API void ckv_cache_signature(const struct ckv_live_cache *cache,
                                 char text[CKV_SIGNATURE_SIZE]);

/**
 * Appends L tokens of keys [B,H,L,Dk] and values [B,H,L,Dv] and gives the attended window
 * as new references that the caller releases. Kinds kv (rows [0, offset)), rotating (the
 * whole buffer in ring order; rows [0, offset) before it is full) and turboquant
 * (decoded, bfloat16). keys_out and values_out may both be NULL: nothing is given (and
 * turboquant decodes nothing). INVALID for other kinds or arrays that do not fit what is
 * there.
 */
CKV_API enum ckv_status ckv_cache_append(struct ckv_live_cache *cache,
                                         const struct ckv_array *keys,
                                         const struct ckv_array *values,
                                         struct ckv_array *keys_out,
                                         struct ckv_array *values_out,
                                         struct ckv_error *error) CKV_WARN_UNUSED;

/** The same for qkv and rotating-qkv: quantizes the new tokens; out (may be NULL) takes
 * six references: key packed, scales, biases, value packed, scales, biases. */
CKV_API enum ckv_status ckv_cache_append_quantized(
    struct ckv_live_cache *cache, const struct ckv_array *keys,
    const struct ckv_array *values, struct ckv_array *out,
    struct ckv_error *error) CKV_WARN_UNUSED;

/** ssm: replaces slot 0 (conv) or 1 (recurrent) by a reference to `array`; a model with
 *  more state uses further slots, up to CKV_CACHE_ARRAYS_MAX. */
CKV_API enum ckv_status ckv_cache_set_slot(struct ckv_live_cache *cache, size_t slot,
                                           const struct ckv_array *array,
                                           struct ckv_error *error) CKV_WARN_UNUSED;
/** ssm: counts n tokens as consumed. */
CKV_API enum ckv_status ckv_cache_advance(struct ckv_live_cache *cache, uint64_t n,
                                          struct ckv_error *error) CKV_WARN_UNUSED;

/** Whether trim may be called: kv, qkv, turboquant always; rotating kinds while
 *  offset < max_size; ssm never. */
CKV_API bool ckv_cache_is_trimmable(const struct ckv_live_cache *cache);
/** Drops up to n tokens from the end; *dropped (may be NULL) says how many. REFUSED when
 *  the cache cannot be trimmed; it stays as it was. */
CKV_API enum ckv_status ckv_cache_trim(struct ckv_live_cache *cache, uint64_t n,
                                       uint64_t *dropped,
                                       struct ckv_error *error) CKV_WARN_UNUSED;
/** Takes back tokens of the last multi-token append of a rotating kind (speculative
 *  decoding), also after the ring is full: min(n, L-1) of them, *dropped says how many.
 *  REFUSED when the last change was not such an append. */
CKV_API enum ckv_status ckv_cache_bypass_trim(struct ckv_live_cache *cache, uint64_t n,
                                              uint64_t *dropped,
                                              struct ckv_error *error) CKV_WARN_UNUSED;

/** The arrays as they would be stored: references in tensor order, cut to offset for kv,
 *  qkv and turboquant, whole for the others. Returns how many (0 when empty). */
CKV_API size_t ckv_cache_state(const struct ckv_live_cache *cache,
                               struct ckv_array out[CKV_CACHE_ARRAYS_MAX]);
/** Bytes of the buffers' views with capacity: what the cache is charged with in RAM. */
CKV_API uint64_t ckv_cache_bytes(const struct ckv_live_cache *cache);
/** bytes / rows with capacity; 0 when empty, always 0 for ssm. */
CKV_API uint64_t ckv_cache_bytes_per_token(const struct ckv_live_cache *cache);
/** Rotating kinds: the arrays in temporal order, cut to the newest min(offset, max_size)
 * rows. Returns references; *count as ckv_cache_state. */
CKV_API enum ckv_status ckv_cache_temporal(const struct ckv_live_cache *cache,
                                           struct ckv_array out[CKV_CACHE_ARRAYS_MAX],
                                           size_t *count,
                                           struct ckv_error *error) CKV_WARN_UNUSED;

/** Replaces the cache's contents: arrays in tensor order (references are taken), offset
 * and, for rotating kinds, idx. Shapes, types and scalars are checked against each other
 * and the parameters; INVALID names what is off and nothing changes. */
CKV_API enum ckv_status ckv_cache_restore_state(struct ckv_live_cache *cache,
                                                const struct ckv_array *arrays,
                                                size_t count, uint64_t offset,
                                                uint64_t idx,
                                                struct ckv_error *error) CKV_WARN_UNUSED;

/**
 * Turns the cache into another kind in place: kv to qkv, rotating to rotating-qkv
 * (layout, offset and idx kept), kv or rotating to turboquant (the live window in
 * temporal order, exact size, offset kept). A cache that has the kind already stays as it
 * is. REFUSED for any other pair.
 */
CKV_API enum ckv_status ckv_cache_convert(struct ckv_live_cache *cache,
                                          const struct ckv_cache_params *params,
                                          struct ckv_error *error) CKV_WARN_UNUSED;

/** Keys and values in float: kv and rotating as they are, quantized kinds decoded to the
 * type of their scales, turboquant to bfloat16; rows as ckv_cache_state. New references.
 */
CKV_API enum ckv_status ckv_cache_fetch(const struct ckv_live_cache *cache,
                                        struct ckv_array *keys, struct ckv_array *values,
                                        struct ckv_error *error) CKV_WARN_UNUSED;

/** turboquant: keys decoded, values decoded but not rotated back (see
 * <coldkv/turboquant.h>, deferred decode); bfloat16. New arrays. */
CKV_API enum ckv_status ckv_cache_fetch_deferred(const struct ckv_live_cache *cache,
                                                 struct ckv_array *keys,
                                                 struct ckv_array *values,
                                                 struct ckv_error *error) CKV_WARN_UNUSED;

/**
 * Snapshots a list: out[i] shares the buffers of caches[i]. kv, qkv and turboquant clones
 * are cut to offset and grow on their first append; the donor goes on in place. INVALID
 * for an empty member; then nothing was cloned.
 */
CKV_API enum ckv_status ckv_caches_clone(struct ckv_live_cache *const *caches,
                                         size_t count, struct ckv_live_cache **out,
                                         struct ckv_error *error) CKV_WARN_UNUSED;
/** Destroys the members and sets them to NULL. */
CKV_API void ckv_caches_destroy(struct ckv_live_cache **caches, size_t count);

#ifdef __cplusplus
}
#endif

#endif

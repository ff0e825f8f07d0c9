/*
 * An entry: what one prompt prefix is, as the format sees it. Tokens, metadata, and for
 * every layer that owns keys and values (or a recurrent state) one cache with its kind,
 * its scalars and its tensors' types and shapes. Tensor bytes are not in here: they come
 * from a source and go to a sink (transfer.h).
 *
 * Shapes: B batch, H KV heads, S token rows, D head dim; token axis 2 unless said.
 */
#ifndef COLDKV_ENTRY_H
#define COLDKV_ENTRY_H

#include <coldkv/dtype.h>
#include <coldkv/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ckv_cache_kind {
    CKV_CACHE_KV = 1,           /**< keys, values [B,H,S,D], trimmable anywhere */
    CKV_CACHE_ROTATING = 2,     /**< sliding-window ring, whole buffer as laid out */
    CKV_CACHE_QKV = 3,          /**< affine-quantized kv: 6 tensors */
    CKV_CACHE_ROTATING_QKV = 4, /**< affine-quantized ring: 6 tensors */
    CKV_CACHE_SSM = 5,          /**< recurrent state, any number and rank of tensors */
    CKV_CACHE_TURBOQUANT = 6,   /**< 5 tensors */
    CKV_CACHE_STATE = 7,        /**< bytes that one engine owns: uint8, rank 1 */
};

#define CKV_CACHE_KIND_COUNT 7

/** The header's kind string, "kv" … "state"; NULL for another value. Static storage. */
CKV_API const char *ckv_cache_kind_name(enum ckv_cache_kind kind);

/** Limits of the format; writer and reader refuse the same. */
#define CKV_RANK_MAX 8
#define CKV_CACHES_MAX 4096
#define CKV_TENSORS_MAX 65536
#define CKV_HEADER_BYTES_MAX (64u * 1024u * 1024u)
#define CKV_JSON_DEPTH_MAX 16
#define CKV_ENGINE_NAME_MAX 63
/** Most bytes of one metadata value, unescaped. */
#define CKV_META_VALUE_MAX 65535

struct ckv_tensor {
    enum ckv_dtype dtype;
    uint32_t rank;
    uint64_t shape[CKV_RANK_MAX];
    uint64_t bytes;  /**< product(shape) x element size */
    uint64_t offset; /**< in the file, from the start of the tensor data; set by layout */
    uint64_t hash;   /**< wyhash, seed 0, of the bytes; set by the writer */
};

struct ckv_cache {
    enum ckv_cache_kind kind;
    uint64_t offset;     /**< tokens this cache has seen */
    uint64_t idx;        /**< rotating kinds: next write row */
    uint64_t max_size;   /**< rotating kinds: window in rows */
    uint32_t group_size; /**< qkv kinds */
    uint32_t bits;       /**< qkv kinds */
    uint32_t k_bits;     /**< turboquant */
    uint32_t v_bits;     /**< turboquant */
    uint32_t head_dim;   /**< turboquant */
    uint64_t floor;      /**< state: shortest prefix it can be cut to, <= offset */
    char engine[CKV_ENGINE_NAME_MAX + 1]; /**< state: who understands the bytes */
    struct ckv_tensor *tensors;
    size_t tensor_count;
};

enum ckv_meta_key {
    CKV_META_MODEL_ID = 0,       /**< "modelId" */
    CKV_META_FINGERPRINT = 1,    /**< "configFingerprint" */
    CKV_META_TOKENIZER_HASH = 2, /**< "tokenizerHash" */
    CKV_META_NAMESPACE = 3,      /**< "ns" */
};

#define CKV_META_COUNT 4

/** The header's name of a metadata key. Static storage. */
CKV_API const char *ckv_meta_key_name(enum ckv_meta_key key);

/** One metadata string, UTF-8 without NUL, in the order in which it stands in the file.
 */
struct ckv_meta {
    enum ckv_meta_key key;
    const char *value; /**< NUL-terminated */
};

/**
 * The logical content of one file. When a caller fills it for a writer, all memory is the
 * caller's and must stay unchanged until the write has ended. When it comes from
 * ckv_header_decode or a reader, it belongs to that object and ends with it.
 */
struct ckv_entry {
    uint64_t created_at_ms; /**< Unix time; writers given 0 use the clock */
    struct ckv_meta meta[CKV_META_COUNT];
    size_t meta_count;
    const uint32_t *tokens;
    size_t token_count;
    struct ckv_cache *caches;
    size_t cache_count;
};

/** The metadata value for `key`, or NULL when it is absent. Valid as long as the entry.
 */
CKV_API const char *ckv_entry_meta(const struct ckv_entry *entry, enum ckv_meta_key key);

/** Sum of all tensors' bytes. The entry must be valid. */
CKV_API uint64_t ckv_entry_tensor_bytes(const struct ckv_entry *entry);

/**
 * Checks everything a header may claim: kinds, scalars, tensor counts, ranks, shapes,
 * types and bytes per kind, metadata at most once per key, limits. Layout (tensor.offset)
 * and hashes are not looked at. CORRUPT with the field named when something is off,
 * TOOBIG beyond a limit.
 */
CKV_API enum ckv_status ckv_entry_validate(const struct ckv_entry *entry,
                                           struct ckv_error *error) CKV_WARN_UNUSED;

/**
 * What the store asks beyond the format: at least one token, and every cache's offset
 * equal to the number of tokens. FOREIGN otherwise: such a file is legal, but not ours.
 */
CKV_API enum ckv_status ckv_entry_check_offsets(const struct ckv_entry *entry,
                                                struct ckv_error *error) CKV_WARN_UNUSED;

/**
 * Restorability is one number: the shortest prefix to which the cache can still be cut.
 * kv, qkv, turboquant: 0. Rotating kinds: 0 while offset < max_size, else offset.
 * ssm: offset. state: its own floor.
 */
CKV_API uint64_t ckv_cache_floor(const struct ckv_cache *cache);
/** The maximum over the entry's caches: one untrimmable layer decides for all. */
CKV_API uint64_t ckv_entry_floor(const struct ckv_entry *entry);

/**
 * The one rule used by find, restore and supersede: of an entry of `length` tokens with
 * this floor, that shares its first `common` tokens with a prompt of `prompt_length`
 * tokens, how many may be reused? One prompt token always stays to be evaluated. 0 =
 * none.
 */
CKV_API uint64_t ckv_usable_prefix(uint64_t floor, uint64_t length, uint64_t common,
                                   uint64_t prompt_length);

#ifdef __cplusplus
}
#endif

#endif

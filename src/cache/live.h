/*
 * A live cache from inside. A kind is a machine (how rows come and go) with a codec (how
 * a token's keys and values become rows):
 *
 *                plain        affine          turboquant
 *     growing    kv           qkv             turboquant
 *     ring       rotating     rotating-qkv
 *
 * ssm has neither: its owner replaces whole arrays.
 */
#ifndef COLDKV_CACHE_LIVE_H
#define COLDKV_CACHE_LIVE_H

#include <coldkv/cache.h>

#define TOKEN_AXIS 2u

struct ckv_live_cache {
    const struct ckv_alloc *alloc;
    struct ckv_cache_params params;
    uint64_t offset;
    uint64_t idx;
    uint32_t head_dim;
    /* Tokens of the multi-token append that came last and may be taken back; else 0. */
    uint64_t undoable;
    /* Growing kinds: views of exactly `offset` rows. Rings: the whole buffer. */
    struct ckv_array arrays[CKV_CACHE_ARRAYS_MAX];
    size_t array_count; /* 0 = empty; ssm: slots up to the last one that was set */
};

/* Type and last dim of one array of a cache. */
struct ckvi_row_form {
    enum ckv_dtype dtype;
    uint64_t width;
};

/* How tokens become rows. */
struct ckvi_codec {
    size_t array_count;
    /* Checks that keys and values can be coded and gives the form of every array's rows.
     */
    enum ckv_status (*forms)(const struct ckv_live_cache *cache,
                             const struct ckv_array *keys, const struct ckv_array *values,
                             struct ckvi_row_form *out, struct ckv_error *error);
    /* Codes `rows` rows of one KV head; out[i] is where array i's rows begin. */
    enum ckv_status (*encode)(const struct ckv_live_cache *cache, enum ckv_dtype dtype,
                              const void *keys, uint64_t k_dim, const void *values,
                              uint64_t v_dim, uint64_t rows, void *const *out,
                              struct ckv_error *error);
};

extern const struct ckvi_codec ckvi_codec_plain;
extern const struct ckvi_codec ckvi_codec_affine;
extern const struct ckvi_codec ckvi_codec_turboquant;

/* The codec of a kind; NULL for ssm. */
const struct ckvi_codec *ckvi_cache_codec(enum ckv_cache_kind kind);
bool ckvi_cache_is_ring(enum ckv_cache_kind kind);

/* Tokens on their way into a cache: checked against each other, rows contiguous. */
struct ckvi_tokens {
    struct ckv_array keys;
    struct ckv_array values;
    struct ckvi_row_form forms[CKV_CACHE_ARRAYS_MAX];
    uint64_t batch;
    uint64_t heads;
    uint64_t count;
};

/* Checks keys and values against each other and against what the cache holds. deinit
 * releases what init took. */
enum ckv_status ckvi_tokens_init(const struct ckv_live_cache *cache,
                                 const struct ckv_array *keys,
                                 const struct ckv_array *values, struct ckvi_tokens *out,
                                 struct ckv_error *error);
void ckvi_tokens_deinit(struct ckvi_tokens *tokens);

/* Codes all tokens into rows [row, row + count) of the arrays, which are ours to write.
 */
enum ckv_status ckvi_tokens_encode(const struct ckv_live_cache *cache,
                                   const struct ckvi_tokens *tokens,
                                   struct ckv_array *arrays, uint64_t row,
                                   struct ckv_error *error);

/* New arrays for these tokens with `rows` rows each, all zero. */
enum ckv_status ckvi_tokens_create_arrays(const struct ckv_live_cache *cache,
                                          const struct ckvi_tokens *tokens, uint64_t rows,
                                          struct ckv_array *out, struct ckv_error *error);

/* Releases `count` arrays. */
void ckvi_arrays_unref(struct ckv_array *arrays, size_t count);
/* Gives the cache these arrays in place of its own. Cannot fail. */
void ckvi_cache_replace(struct ckv_live_cache *cache, struct ckv_array *arrays,
                        size_t count);

/* The machines. The cache's arrays hold the tokens afterwards. */
enum ckv_status ckvi_growing_append(struct ckv_live_cache *cache,
                                    const struct ckvi_tokens *tokens,
                                    struct ckv_error *error);
enum ckv_status ckvi_ring_append(struct ckv_live_cache *cache,
                                 const struct ckvi_tokens *tokens,
                                 struct ckv_error *error);
/* Rows in temporal order of each array of a ring, as one or two slices. */
enum ckv_status ckvi_ring_temporal(const struct ckv_live_cache *cache, uint64_t rows,
                                   struct ckv_array *out, struct ckv_error *error);

/* Rows that a capacity-charged view stands for. */
uint64_t ckvi_cache_rows(const struct ckv_live_cache *cache);

#endif

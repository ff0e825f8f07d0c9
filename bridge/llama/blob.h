/*
 * The outer structure of libllama's sequence state, as a plain attention cache writes it:
 *
 *     u32 magic   i32 sequence   u32 streams (1)   u32 cells (n)
 *     n x { i32 position   u32 sequences (1)   i32 sequence }
 *     u32 values_transposed   u32 layers
 *     layers x { i32 type   u64 row_bytes   n x row_bytes }                    keys
 *     layers x { i32 type   u64 row_bytes   n x row_bytes }                    values
 *  or layers x { i32 type   u32 element_bytes   u32 width   width x n elements }
 * transposed
 *
 * Numbers are in the host's byte order. Models without values of their own (MLA) have no
 * third part. libllama itself checks little of this and accepts what it does not check.
 */
#ifndef COLDKV_BRIDGE_LLAMA_BLOB_H
#define COLDKV_BRIDGE_LLAMA_BLOB_H

#include <coldkv/alloc.h>
#include <coldkv/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CKVI_LLAMA_BLOB_MAGIC 0xaf143cd8u
#define CKVI_LLAMA_LAYERS_MAX 4096u
#define CKVI_LLAMA_ROW_BYTES_MAX (UINT64_C(1) << 26)
/* libllama's own limit on sequence ids. */
#define CKVI_LLAMA_SEQUENCES_MAX 256

/* One layer's keys or values, without the data. */
struct ckvi_llama_rows {
    int32_t type;           /* of enum ggml_type */
    uint64_t token_bytes;   /* of one token */
    uint32_t element_bytes; /* transposed values only */
    uint32_t width;         /* transposed values only: elements of one token */
};

/* How one context writes its states, whatever they hold. */
struct ckvi_llama_layout {
    const struct ckv_alloc *alloc;
    bool values_transposed;
    uint32_t layer_count;
    uint32_t value_count;         /* layer_count, or 0 */
    struct ckvi_llama_rows *rows; /* keys of all layers, then values */
    uint64_t fixed_bytes;         /* of a state, beside its tokens */
    uint64_t token_bytes;         /* that each token adds */
};

/* Learns the layout from a state of exactly one token that the context itself wrote.
 * UNSUPPORTED when it is not of the structure above. */
enum ckv_status ckvi_llama_layout_learn(struct ckvi_llama_layout *layout,
                                        const struct ckv_alloc *alloc, const void *data,
                                        size_t size, struct ckv_error *error);
void ckvi_llama_layout_deinit(struct ckvi_llama_layout *layout);

/* Exact bytes of a state of token_count >= 1 tokens; false when no size can hold it. */
bool ckvi_llama_layout_size(const struct ckvi_llama_layout *layout, uint64_t token_count,
                            uint64_t *bytes);

/* CORRUPT unless the bytes are a state of positions 0..token_count-1, in this order, of
 * one sequence, in exactly this layout, with nothing before, between or behind. */
enum ckv_status ckvi_llama_blob_check(const struct ckvi_llama_layout *layout,
                                      const void *data, size_t size, uint64_t token_count,
                                      struct ckv_error *error);

#endif

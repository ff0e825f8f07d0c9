/*
 * A model's GGUF file, of a split model all parts, as the identity sees it: the keys of
 * the first part and a digest of every tensor of all parts. The bridge reads these files
 * itself; it never writes them.
 */
#ifndef COLDKV_BRIDGE_LLAMA_MODEL_FILE_H
#define COLDKV_BRIDGE_LLAMA_MODEL_FILE_H

#include <coldkv/alloc.h>
#include <coldkv/sha256.h>
#include <coldkv/status.h>
#include <gguf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One tensor. Strings belong to ggml. */
struct ckvi_llama_weight {
    const char *name;
    const char *type;
    uint64_t shape[4];
    uint64_t bytes;
    char digest[CKV_SHA256_TEXT_SIZE]; /* of what was read of it */
};

struct ckvi_llama_model_file {
    const struct ckv_alloc *alloc;
    struct gguf_context **parts;
    size_t part_count;
    struct ckvi_llama_weight *weights; /* by name */
    size_t weight_count;
    size_t weight_capacity;
    uint64_t weight_bytes; /* of all tensors, whether read or not */
};

/*
 * Reads the model of `path` (of a split model the first part). Of each tensor 64 blocks
 * of 4 KiB are hashed: the first, the last and 62 evenly spaced ones; all of it when it
 * is not larger than that or when `full`. CORRUPT when a tensor leaves its file or a name
 * comes twice, INVALID for another than the first part.
 */
enum ckv_status ckvi_llama_model_file_load(struct ckvi_llama_model_file *file,
                                           const struct ckv_alloc *alloc,
                                           const char *path, bool full,
                                           struct ckv_error *error);
void ckvi_llama_model_file_deinit(struct ckvi_llama_model_file *file);

/* The keys that describe the model; valid as long as the file. */
const struct gguf_context *ckvi_llama_model_file_keys(
    const struct ckvi_llama_model_file *file);

/* One digest of all tensors: names, types, shapes and what was read of them. Independent
 * of their order and of how the model is split. */
enum ckv_status ckvi_llama_model_file_digest(const struct ckvi_llama_model_file *file,
                                             char text[CKV_SHA256_TEXT_SIZE],
                                             struct ckv_error *error);

#endif

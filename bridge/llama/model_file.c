/*
 * Owns opening a model's GGUF files and listing their tensors.
 *
 * Invariant: after load the weights are sorted by name, names are unique, and every
 * tensor lay completely inside its file when it was read. Files are closed again; only
 * their parsed headers stay.
 *
 * Failure story: deinit of a zeroed or half-loaded file is fine. gguf.h aborts when a key
 * is read as another type than it has, so every access asks for the type first.
 */
#include "model_file.h"

#include "digest.h"
#include "memory.h"
#include "weights.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <llama.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define PATH_BYTES_MAX 4096

static int compare_weights(const void *a, const void *b)
{
    const struct ckvi_llama_weight *left = a;
    const struct ckvi_llama_weight *right = b;
    return strcmp(left->name, right->name);
}

static bool grow_weights(struct ckvi_llama_model_file *file, size_t added)
{
    size_t capacity = file->weight_count + added;
    struct ckvi_llama_weight *larger;
    if (added == 0)
        return true;
    larger = ckvi_llama_allocate(file->alloc, capacity, sizeof *larger);
    if (!larger)
        return false;
    if (file->weight_count > 0)
        memcpy(larger, file->weights, file->weight_count * sizeof *larger);
    ckvi_llama_release(file->alloc, file->weights, file->weight_capacity, sizeof *larger);
    file->weights = larger;
    file->weight_capacity = capacity;
    return true;
}

/* Where a tensor lies in its file; false when not inside it. */
static bool find_range(const struct gguf_context *part, int64_t id, uint64_t file_bytes,
                       struct ckvi_llama_range *range)
{
    uint64_t start = gguf_get_data_offset(part);
    uint64_t offset = gguf_get_tensor_offset(part, id);
    range->bytes = gguf_get_tensor_size(part, id);
    if (start > file_bytes || offset > file_bytes - start)
        return false;
    range->offset = start + offset;
    return range->bytes <= file_bytes - range->offset;
}

static enum ckv_status add_weight(struct ckvi_llama_model_file *file,
                                  const struct gguf_context *part, int64_t id,
                                  const struct ckvi_llama_range *range, bool full,
                                  struct ckv_error *error)
{
    struct ckvi_llama_weight *weight = &file->weights[file->weight_count];
    const int64_t *shape = gguf_get_tensor_ne(part, id);
    weight->name = gguf_get_tensor_name(part, id);
    weight->type = ggml_type_name(gguf_get_tensor_type(part, id));
    weight->bytes = range->bytes;
    for (size_t i = 0; i < 4; i++)
        weight->shape[i] = (uint64_t)shape[i];
    file->weight_count++;
    file->weight_bytes += range->bytes;
    return ckvi_llama_range_digest(range, full, file->alloc, weight->digest, error);
}

static enum ckv_status add_weights(struct ckvi_llama_model_file *file,
                                   const struct gguf_context *part, FILE *stream,
                                   bool full, struct ckv_error *error)
{
    struct ckvi_llama_range range = {.fd = fileno(stream)};
    int64_t count = gguf_get_n_tensors(part);
    enum ckv_status status = CKV_OK;
    struct stat about;
    if (fstat(range.fd, &about) != 0)
        return ckv_error_set_errno(error, ckv_status_from_errno(errno), errno, "fstat");
    if (!grow_weights(file, (size_t)count))
        return ckvi_llama_nomem(error, "the list of weights");
    for (int64_t i = 0; !status && i < count; i++) {
        if (!find_range(part, i, (uint64_t)about.st_size, &range))
            return ckv_error_set(error, CKV_CORRUPT,
                                 "tensor %" PRId64 " of %" PRId64
                                 " does not lie inside the file of %" PRIu64 " bytes",
                                 i, count, (uint64_t)about.st_size);
        status = add_weight(file, part, i, &range, full, error);
    }
    return status;
}

static enum ckv_status load_part(struct ckvi_llama_model_file *file, const char *path,
                                 bool full, size_t index, struct ckv_error *error)
{
    const struct gguf_init_params params = {.no_alloc = true};
    enum ckv_status status;
    FILE *stream = fopen(path, "rb");
    if (!stream) {
        int reason = errno;
        return ckv_error_set_errno(error, ckv_status_from_errno(reason), reason,
                                   "model file %s", path);
    }
    file->parts[index] = gguf_init_from_file_ptr(stream, params);
    if (file->parts[index])
        status = add_weights(file, file->parts[index], stream, full, error);
    else
        status = ckv_error_set(error, CKV_CORRUPT, "this is no GGUF file");
    if (status)
        ckv_error_prefix(error, "model file %s", path);
    fclose(stream);
    return status;
}

/* A key that split models have as u16; 0 when it is not there. */
static uint16_t get_u16(const struct gguf_context *part, const char *key)
{
    int64_t id = gguf_find_key(part, key);
    if (id < 0 || gguf_get_kv_type(part, id) != GGUF_TYPE_UINT16)
        return 0;
    return gguf_get_val_u16(part, id);
}

/* The first part is loaded; finds out how many there are and makes room for them. */
static enum ckv_status count_parts(struct ckvi_llama_model_file *file,
                                   struct ckv_error *error)
{
    uint16_t count = get_u16(file->parts[0], "split.count");
    struct gguf_context **parts;
    if (count <= 1)
        return CKV_OK;
    if (get_u16(file->parts[0], "split.no") != 0)
        return ckv_error_set(error, CKV_INVALID,
                             "the model path names part %u of %u, not the first",
                             get_u16(file->parts[0], "split.no") + 1u, count);
    parts = ckvi_llama_allocate(file->alloc, count, sizeof *parts);
    if (!parts)
        return ckvi_llama_nomem(error, "the parts of the model");
    parts[0] = file->parts[0];
    ckvi_llama_release(file->alloc, file->parts, file->part_count, sizeof *parts);
    file->parts = parts;
    file->part_count = count;
    return CKV_OK;
}

static enum ckv_status load_other_parts(struct ckvi_llama_model_file *file,
                                        const char *path, bool full,
                                        struct ckv_error *error)
{
    char prefix[PATH_BYTES_MAX];
    char part[PATH_BYTES_MAX];
    int32_t count = (int32_t)file->part_count;
    enum ckv_status status = CKV_OK;
    if (count == 1)
        return CKV_OK;
    if (strlen(path) >= sizeof prefix ||
        llama_split_prefix(prefix, sizeof prefix, path, 0, count) <= 0)
        return ckv_error_set(error, CKV_INVALID,
                             "the model has %" PRId32
                             " parts, but %s does not end in -00001-of-%05" PRId32
                             ".gguf",
                             count, path, count);
    for (int32_t i = 1; !status && i < count; i++) {
        if (llama_split_path(part, sizeof part, prefix, i, count) <= 0)
            return ckv_error_set(error, CKV_TOOBIG, "the model path is too long");
        status = load_part(file, part, full, (size_t)i, error);
    }
    return status;
}

static enum ckv_status sort_weights(struct ckvi_llama_model_file *file,
                                    struct ckv_error *error)
{
    if (file->weight_count > 1)
        qsort(file->weights, file->weight_count, sizeof *file->weights, compare_weights);
    for (size_t i = 1; i < file->weight_count; i++)
        if (strcmp(file->weights[i - 1].name, file->weights[i].name) == 0)
            return ckv_error_set(error, CKV_CORRUPT,
                                 "the model has a tensor twice (number %zu by name)", i);
    return CKV_OK;
}

enum ckv_status ckvi_llama_model_file_load(struct ckvi_llama_model_file *file,
                                           const struct ckv_alloc *alloc,
                                           const char *path, bool full,
                                           struct ckv_error *error)
{
    enum ckv_status status;
    *file = (struct ckvi_llama_model_file){.alloc = alloc, .part_count = 1};
    file->parts = ckvi_llama_allocate(alloc, 1, sizeof(struct gguf_context *));
    if (!file->parts)
        return ckvi_llama_nomem(error, "the model's header");
    status = load_part(file, path, full, 0, error);
    if (!status)
        status = count_parts(file, error);
    if (!status)
        status = load_other_parts(file, path, full, error);
    if (!status)
        status = sort_weights(file, error);
    if (status)
        ckvi_llama_model_file_deinit(file);
    return status;
}

void ckvi_llama_model_file_deinit(struct ckvi_llama_model_file *file)
{
    for (size_t i = 0; file->parts && i < file->part_count; i++)
        gguf_free(file->parts[i]);
    ckvi_llama_release(file->alloc, file->parts, file->part_count, sizeof *file->parts);
    ckvi_llama_release(file->alloc, file->weights, file->weight_capacity,
                       sizeof *file->weights);
    *file = (struct ckvi_llama_model_file){0};
}

const struct gguf_context *ckvi_llama_model_file_keys(
    const struct ckvi_llama_model_file *file)
{
    return file->parts[0];
}

enum ckv_status ckvi_llama_model_file_digest(const struct ckvi_llama_model_file *file,
                                             char text[CKV_SHA256_TEXT_SIZE],
                                             struct ckv_error *error)
{
    struct ckvi_llama_digest digest;
    ckvi_llama_digest_init(&digest, file->alloc, error);
    for (size_t i = 0; i < file->weight_count; i++) {
        const struct ckvi_llama_weight *weight = &file->weights[i];
        ckvi_llama_digest_put_string(&digest, weight->name, strlen(weight->name));
        ckvi_llama_digest_put_string(&digest, weight->type, strlen(weight->type));
        for (size_t j = 0; j < 4; j++)
            ckvi_llama_digest_put_u64(&digest, weight->shape[j]);
        ckvi_llama_digest_put_u64(&digest, weight->bytes);
        ckvi_llama_digest_put(&digest, weight->digest, CKV_SHA256_TEXT_SIZE - 1);
    }
    return ckvi_llama_digest_finish(&digest, text);
}

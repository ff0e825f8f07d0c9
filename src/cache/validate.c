/*
 * Owns the one examination of an entry, the same for what a caller wants written and for
 * what a file claims: nothing can be stored that cannot be loaded.
 *
 * Invariant: after OK every size in the entry can be added up without overflow, and every
 * integer can stand in a header.
 * Failure story: CORRUPT names cache, tensor and field; TOOBIG names the limit; nothing
 * is allocated and nothing is changed.
 */
#include <coldkv/entry.h>

#include "base/checked.h"
#include "cache/check.h"
#include "cache/kind.h"
#include "cache/utf8.h"
#include <inttypes.h>
#include <string.h>

/* product(shape) x element size; an empty axis makes it 0 whatever the others are. */
static bool shape_bytes(const struct ckv_tensor *tensor, uint64_t *out)
{
    uint64_t bytes = ckv_dtype_size(tensor->dtype);
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] == 0)
            bytes = 0;
    for (uint32_t i = 0; i < tensor->rank && bytes > 0; i++)
        if (!ckvi_mul_u64(bytes, tensor->shape[i], &bytes))
            return false;
    *out = bytes;
    return bytes <= CKVI_INTEGER_MAX;
}

static enum ckv_status check_tensor(const struct ckvi_exam *exam, size_t index)
{
    const struct ckv_tensor *tensor = &exam->cache->tensors[index];
    uint64_t bytes = 0;
    if (!ckv_dtype_valid((uint64_t)tensor->dtype))
        return ckvi_bad_tensor(exam, index, "dtype", "expected 0 to %d, found %lld",
                               CKV_DTYPE_COUNT - 1, (long long)tensor->dtype);
    if (tensor->rank > CKV_RANK_MAX)
        return ckv_error_set(exam->error, CKV_TOOBIG,
                             "caches[%zu].tensors[%zu].shape: rank %" PRIu32
                             " is over the limit of %d",
                             exam->index, index, tensor->rank, CKV_RANK_MAX);
    if (tensor->rank == 0)
        return ckvi_bad_tensor(exam, index, "shape", "expected 1 to %d axes, found none",
                               CKV_RANK_MAX);
    if (!shape_bytes(tensor, &bytes))
        return ckvi_bad_tensor(exam, index, "shape", "the product is beyond 2^53 bytes");
    if (tensor->bytes != bytes)
        return ckvi_bad_tensor(exam, index, "bytes",
                               "expected %" PRIu64
                               " (shape x element size), found %" PRIu64,
                               bytes, tensor->bytes);
    return CKV_OK;
}

static enum ckv_status check_scalars(const struct ckvi_exam *exam, uint32_t fields)
{
    for (unsigned i = 0; i < CKVI_FIELD_COUNT; i++) {
        enum ckvi_field field = (enum ckvi_field)i;
        uint64_t value;
        if (field == CKVI_FIELD_ENGINE || !(fields & CKVI_FIELD_BIT(field)))
            continue;
        value = ckvi_field_get(exam->cache, field);
        if (value > CKVI_INTEGER_MAX)
            return ckvi_bad_field(exam, ckvi_field_name(field),
                                  "expected less than 2^53, found %" PRIu64, value);
    }
    return CKV_OK;
}

static enum ckv_status check_cache(const struct ckvi_exam *exam)
{
    const struct ckv_cache *cache = exam->cache;
    const struct ckvi_kind *kind = ckvi_kind_of(cache->kind);
    enum ckv_status status;
    if (!kind)
        return ckv_error_set(exam->error, CKV_FOREIGN,
                             "caches[%zu].kind: unknown kind %d", exam->index,
                             (int)cache->kind);
    if (kind->tensor_count > 0 && cache->tensor_count != kind->tensor_count)
        return ckvi_bad_field(exam, "tensors", "expected %zu tensors, found %zu",
                              kind->tensor_count, cache->tensor_count);
    if (cache->tensor_count == 0)
        return ckvi_bad_field(exam, "tensors", "expected at least 1 tensor, found none");
    status = check_scalars(exam, kind->fields);
    for (size_t i = 0; i < cache->tensor_count && !status; i++)
        status = check_tensor(exam, i);
    return status ? status : kind->check(exam);
}

static enum ckv_status check_meta(const struct ckv_meta *meta, uint32_t *seen,
                                  struct ckv_error *error)
{
    const char *name = ckv_meta_key_name(meta->key);
    size_t size;
    if (!name || !meta->value)
        return ckv_error_set(error, CKV_INVALID, "metadata %d: no such key, or no value",
                             (int)meta->key);
    if (*seen & 1u << meta->key)
        return ckv_error_set(error, CKV_CORRUPT, "%s: the key stands twice", name);
    *seen |= 1u << meta->key;
    size = strlen(meta->value);
    if (size > CKV_META_VALUE_MAX)
        return ckv_error_set(error, CKV_TOOBIG, "%s: %zu bytes are over the limit of %d",
                             name, size, CKV_META_VALUE_MAX);
    if (!ckvi_utf8_valid(meta->value, size))
        return ckv_error_set(error, CKV_CORRUPT, "%s: not valid UTF-8", name);
    return CKV_OK;
}

static enum ckv_status check_top(const struct ckv_entry *entry, struct ckv_error *error)
{
    uint32_t seen = 0;
    if (entry->meta_count > CKV_META_COUNT)
        return ckv_error_set(error, CKV_INVALID,
                             "%zu metadata strings, at most %d are known",
                             entry->meta_count, CKV_META_COUNT);
    if (entry->created_at_ms > CKVI_INTEGER_MAX)
        return ckv_error_set(error, CKV_CORRUPT,
                             "createdAt: expected less than 2^53, found %" PRIu64,
                             entry->created_at_ms);
    if (entry->cache_count > CKV_CACHES_MAX)
        return ckv_error_set(error, CKV_TOOBIG, "caches: %zu are over the limit of %d",
                             entry->cache_count, CKV_CACHES_MAX);
    for (size_t i = 0; i < entry->meta_count; i++) {
        enum ckv_status status = check_meta(&entry->meta[i], &seen, error);
        if (status)
            return status;
    }
    return CKV_OK;
}

enum ckv_status ckv_entry_validate(const struct ckv_entry *entry, struct ckv_error *error)
{
    size_t tensor_count = 0;
    uint64_t bytes = 0;
    enum ckv_status status = check_top(entry, error);
    for (size_t i = 0; i < entry->cache_count && !status; i++) {
        struct ckvi_exam exam = {&entry->caches[i], i, error};
        if (entry->caches[i].tensor_count > CKV_TENSORS_MAX - tensor_count)
            return ckv_error_set(error, CKV_TOOBIG,
                                 "caches[%zu].tensors: more than %d tensors in all", i,
                                 CKV_TENSORS_MAX);
        tensor_count += entry->caches[i].tensor_count;
        status = check_cache(&exam);
        for (size_t j = 0; j < entry->caches[i].tensor_count && !status; j++) {
            bytes += entry->caches[i].tensors[j].bytes; /* two terms below 2^53 */
            if (bytes > CKVI_INTEGER_MAX)
                status = ckv_error_set(error, CKV_TOOBIG,
                                       "caches[%zu]: more than 2^53 bytes in all", i);
        }
    }
    return status;
}

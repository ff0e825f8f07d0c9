/*
 * Owns the checks that several cache kinds share, and how a finding is worded.
 *
 * Invariant: a check reads nothing but the entry it is given and does no arithmetic that
 * can overflow. A finding is a status, never an assertion: the numbers come from files.
 */
#include "cache/check.h"

#include <inttypes.h>
#include <stdio.h>

static void put_place(const struct ckvi_exam *exam, char *text, size_t size)
{
    const struct ckvi_kind *kind = ckvi_kind_of(exam->cache->kind);
    (void)snprintf(text, size, "caches[%zu] (%s)", exam->index, kind ? kind->name : "?");
}

enum ckv_status ckvi_bad_field(const struct ckvi_exam *exam, const char *field,
                               const char *format, ...)
{
    char place[64];
    char finding[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(finding, sizeof finding, format, arguments);
    va_end(arguments);
    put_place(exam, place, sizeof place);
    return ckv_error_set(exam->error, CKV_CORRUPT, "%s.%s: %s", place, field, finding);
}

enum ckv_status ckvi_bad_tensor(const struct ckvi_exam *exam, size_t tensor,
                                const char *field, const char *format, ...)
{
    const struct ckvi_kind *kind = ckvi_kind_of(exam->cache->kind);
    char place[64];
    char name[32] = "";
    char finding[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(finding, sizeof finding, format, arguments);
    va_end(arguments);
    put_place(exam, place, sizeof place);
    if (kind && tensor < kind->tensor_count)
        (void)snprintf(name, sizeof name, " (%s)", kind->tensor_names[tensor]);
    return ckv_error_set(exam->error, CKV_CORRUPT, "%s.tensors[%zu]%s.%s: %s", place,
                         tensor, name, field, finding);
}

enum ckv_status ckvi_check_axis(const struct ckvi_exam *exam, size_t tensor,
                                uint32_t axis, uint64_t expected, const char *why)
{
    char field[16];
    uint64_t found = exam->cache->tensors[tensor].shape[axis];
    if (found == expected)
        return CKV_OK;
    (void)snprintf(field, sizeof field, "shape[%" PRIu32 "]", axis);
    return ckvi_bad_tensor(exam, tensor, field,
                           "expected %" PRIu64 " (%s), found %" PRIu64, expected, why,
                           found);
}

enum ckv_status ckvi_check_rows(const struct ckvi_exam *exam, size_t tensor)
{
    static const char *const axis_why[3] = {"batch of the first tensor",
                                            "heads of the first tensor",
                                            "rows of the first tensor"};
    const struct ckv_tensor *first = &exam->cache->tensors[0];
    const struct ckv_tensor *here = &exam->cache->tensors[tensor];
    enum ckv_status status = CKV_OK;
    if (here->rank != 4)
        return ckvi_bad_tensor(exam, tensor, "shape", "expected rank 4, found %" PRIu32,
                               here->rank);
    for (uint32_t axis = 0; axis < 3 && !status; axis++)
        status = ckvi_check_axis(exam, tensor, axis, first->shape[axis], axis_why[axis]);
    if (status)
        return status;
    for (uint32_t axis = 0; axis < 4; axis++) {
        char field[16];
        if (axis == 2 || here->shape[axis] > 0)
            continue;
        (void)snprintf(field, sizeof field, "shape[%" PRIu32 "]", axis);
        return ckvi_bad_tensor(exam, tensor, field, "expected at least 1, found 0");
    }
    return CKV_OK;
}

enum ckv_status ckvi_check_dtype(const struct ckvi_exam *exam, size_t tensor,
                                 enum ckv_dtype expected)
{
    enum ckv_dtype found = exam->cache->tensors[tensor].dtype;
    if (found == expected)
        return CKV_OK;
    return ckvi_bad_tensor(exam, tensor, "dtype", "expected %d (%s), found %d (%s)",
                           (int)expected, ckv_dtype_name(expected), (int)found,
                           ckv_dtype_name(found));
}

enum ckv_status ckvi_check_float(const struct ckvi_exam *exam, size_t tensor)
{
    enum ckv_dtype found = exam->cache->tensors[tensor].dtype;
    if (found == CKV_DTYPE_BFLOAT16 || found == CKV_DTYPE_FLOAT16 ||
        found == CKV_DTYPE_FLOAT32)
        return CKV_OK;
    return ckvi_bad_tensor(
        exam, tensor, "dtype",
        "expected 9, 10 or 12 (float16, float32, bfloat16), found %d (%s)", (int)found,
        ckv_dtype_name(found));
}

enum ckv_status ckvi_check_offset_rows(const struct ckvi_exam *exam)
{
    return ckvi_check_axis(exam, 0, 2, exam->cache->offset, "the cache's offset");
}

/*
 * What the ring machine can reach: rows are added only when the next token needs them,
 * and dropped only from the front once the window is full. A state outside of these
 * bounds would make the next append read rows that hold nothing.
 */
enum ckv_status ckvi_check_ring(const struct ckvi_exam *exam)
{
    const struct ckv_cache *cache = exam->cache;
    uint64_t rows = cache->tensors[0].shape[2];
    uint64_t offset = cache->offset;
    uint64_t low = offset < cache->max_size ? offset : cache->max_size;
    uint64_t high = offset > cache->max_size ? offset : cache->max_size;
    if (cache->max_size == 0)
        return ckvi_bad_field(exam, "maxSize", "expected at least 1, found 0");
    if (low == 0)
        low = 1;
    if (rows < low || rows > high)
        return ckvi_bad_tensor(exam, 0, "shape[2]",
                               "expected %" PRIu64 " to %" PRIu64 " rows (offset %" PRIu64
                               ", maxSize %" PRIu64 "), found %" PRIu64,
                               low, high, offset, cache->max_size, rows);
    if (offset < rows && cache->idx != offset)
        return ckvi_bad_field(exam, "idx",
                              "expected %" PRIu64
                              " (the offset, while rows are free), found %" PRIu64,
                              offset, cache->idx);
    if (rows > cache->max_size && cache->idx != rows)
        return ckvi_bad_field(exam, "idx",
                              "expected %" PRIu64
                              " (rows, while they are more than maxSize), found %" PRIu64,
                              rows, cache->idx);
    if (cache->idx > rows)
        return ckvi_bad_field(exam, "idx",
                              "expected at most %" PRIu64 " (rows), found %" PRIu64, rows,
                              cache->idx);
    return CKV_OK;
}

enum ckv_status ckvi_check_member(const struct ckvi_exam *exam, const char *field,
                                  uint32_t value, const uint32_t *allowed,
                                  const char *list)
{
    for (size_t i = 0; allowed[i] != 0; i++)
        if (allowed[i] == value)
            return CKV_OK;
    return ckvi_bad_field(exam, field, "expected one of %s, found %" PRIu32, list, value);
}

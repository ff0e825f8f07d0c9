/*
 * Owns buffers and the views on them.
 *
 * Invariants: a buffer is contiguous in its own shape; rows of its row axis at or above
 * `mark` are seen by no view; whoever moves the mark from the end of his own view owns
 * the rows in between. References are counted atomically: release order on the way down,
 * so that the last holder sees all writes before it frees; acquire when "am I alone"
 * decides about a write.
 *
 * Failure story: everything that allocates does so before anything visible changes.
 */
#include <coldkv/array.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "tensor/rows.h"
#include "tensor/strided.h"
#include <stdatomic.h>
#include <string.h>

/* Payload alignment: a cache line, and enough for any vector unit. */
#define PAYLOAD_ALIGN 64u

struct ckv_buffer {
    const struct ckv_alloc *alloc;
    atomic_uint_fast64_t holders;
    atomic_uint_fast64_t mark; /* rows that some view sees or somebody claimed */
    uint64_t shape[CKV_ARRAY_RANK_MAX];
    uint32_t rank;
    uint32_t row_axis;
    size_t bytes;
    unsigned char *data;
};

static enum ckv_status payload_bytes(enum ckv_dtype dtype, uint32_t rank,
                                     const uint64_t *shape, size_t *out,
                                     struct ckv_error *error)
{
    uint64_t bytes = ckv_dtype_size(dtype);
    if (bytes == 0)
        return ckv_error_set(error, CKV_INVALID, "array: not an element type");
    if (rank == 0 || rank > CKV_ARRAY_RANK_MAX)
        return ckv_error_set(error, CKV_INVALID, "array: rank %u, expected 1 to %d",
                             (unsigned)rank, CKV_ARRAY_RANK_MAX);
    for (uint32_t i = 0; i < rank; i++)
        if (!ckvi_mul_u64(bytes, shape[i], &bytes) || bytes > SIZE_MAX / 2)
            return ckv_error_set(error, CKV_TOOBIG, "array: its size overflows");
    *out = (size_t)bytes;
    return CKV_OK;
}

/* A buffer with one holder; its memory is not initialised. */
static enum ckv_status buffer_create(const struct ckv_alloc *alloc, enum ckv_dtype dtype,
                                     uint32_t rank, const uint64_t *shape,
                                     uint32_t row_axis, struct ckv_buffer **out,
                                     struct ckv_error *error)
{
    struct ckv_buffer *buffer;
    size_t bytes = 0;
    enum ckv_status status = payload_bytes(dtype, rank, shape, &bytes, error);
    if (status)
        return status;
    if (row_axis >= rank)
        return ckv_error_set(error, CKV_INVALID, "array: row axis %u of rank %u",
                             (unsigned)row_axis, (unsigned)rank);
    buffer = CKVI_NEW(alloc, struct ckv_buffer);
    if (!buffer)
        return ckvi_nomem(error, sizeof *buffer, "an array");
    buffer->alloc = alloc;
    buffer->bytes = bytes;
    buffer->data = ckvi_alloc_aligned(alloc, bytes, PAYLOAD_ALIGN);
    if (!buffer->data) {
        CKVI_DELETE(alloc, buffer);
        return ckvi_nomem(error, bytes, "an array's elements");
    }
    atomic_init(&buffer->holders, 1);
    atomic_init(&buffer->mark, shape[row_axis]);
    memcpy(buffer->shape, shape, rank * sizeof *shape);
    buffer->rank = rank;
    buffer->row_axis = row_axis;
    *out = buffer;
    return CKV_OK;
}

static void view_whole(struct ckv_array *array, struct ckv_buffer *buffer,
                       enum ckv_dtype dtype)
{
    *array = CKV_ARRAY_NONE;
    array->buffer = buffer;
    array->dtype = dtype;
    array->rank = buffer->rank;
    memcpy(array->shape, buffer->shape, sizeof array->shape);
    ckvi_contiguous_strides(array->shape, array->rank, array->stride);
}

static unsigned char *first_byte(const struct ckv_array *array)
{
    return array->buffer->data + array->start * ckv_dtype_size(array->dtype);
}

enum ckv_status ckv_array_create(const struct ckv_alloc *alloc, enum ckv_dtype dtype,
                                 uint32_t rank, const uint64_t *shape, uint32_t row_axis,
                                 struct ckv_array *out, struct ckv_error *error)
{
    struct ckv_buffer *buffer = NULL;
    enum ckv_status status;
    *out = CKV_ARRAY_NONE;
    alloc = ckvi_alloc_or_default(alloc);
    status = buffer_create(alloc, dtype, rank, shape, row_axis, &buffer, error);
    if (!buffer)
        return status;
    memset(buffer->data, 0, buffer->bytes);
    view_whole(out, buffer, dtype);
    return CKV_OK;
}

enum ckv_status ckv_array_from_bytes(const struct ckv_alloc *alloc, enum ckv_dtype dtype,
                                     uint32_t rank, const uint64_t *shape,
                                     uint32_t row_axis, const void *data,
                                     struct ckv_array *out, struct ckv_error *error)
{
    struct ckv_buffer *buffer = NULL;
    enum ckv_status status;
    *out = CKV_ARRAY_NONE;
    alloc = ckvi_alloc_or_default(alloc);
    status = buffer_create(alloc, dtype, rank, shape, row_axis, &buffer, error);
    if (!buffer)
        return status;
    if (buffer->bytes > 0)
        memcpy(buffer->data, data, buffer->bytes);
    view_whole(out, buffer, dtype);
    return CKV_OK;
}

struct ckv_array ckv_array_ref(const struct ckv_array *array)
{
    struct ckv_array other = *array;
    /* A claim belongs to the value that made it. */
    other.claimed_rows = 0;
    /* Relaxed: the new value comes from one that is alive, so the buffer cannot end now.
     */
    if (other.buffer)
        (void)atomic_fetch_add_explicit(&other.buffer->holders, 1, memory_order_relaxed);
    return other;
}

void ckv_array_unref(struct ckv_array *array)
{
    struct ckv_buffer *buffer = NULL;
    if (!array || !array->buffer)
        return;
    buffer = array->buffer;
    *array = CKV_ARRAY_NONE;
    if (atomic_fetch_sub_explicit(&buffer->holders, 1, memory_order_acq_rel) != 1)
        return;
    ckvi_free_aligned(buffer->alloc, buffer->data, buffer->bytes, PAYLOAD_ALIGN);
    CKVI_DELETE(buffer->alloc, buffer);
}

uint64_t ckv_array_count(const struct ckv_array *array)
{
    uint64_t count = array->buffer ? 1 : 0;
    for (uint32_t i = 0; i < array->rank; i++)
        count *= array->shape[i];
    return count;
}

uint64_t ckv_array_bytes(const struct ckv_array *array)
{
    return array->buffer ? ckv_array_count(array) * ckv_dtype_size(array->dtype) : 0;
}

uint64_t ckv_array_buffer_bytes(const struct ckv_array *array)
{
    return array->buffer ? array->buffer->bytes : 0;
}

const void *ckv_array_buffer_id(const struct ckv_array *array)
{
    return array->buffer;
}

uint64_t ckv_array_holders(const struct ckv_array *array)
{
    if (!array->buffer)
        return 0;
    return atomic_load_explicit(&array->buffer->holders, memory_order_acquire);
}

bool ckv_array_is_contiguous(const struct ckv_array *array)
{
    uint64_t step = 1;
    for (uint32_t i = array->rank; i-- > 0;) {
        if (array->shape[i] != 1 && array->stride[i] != step)
            return false;
        step *= array->shape[i];
    }
    return true;
}

static bool same_shape(const struct ckv_array *a, const struct ckv_array *b)
{
    if (a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

bool ckv_array_equal(const struct ckv_array *a, const struct ckv_array *b)
{
    uint64_t total = ckv_array_bytes(a);
    if (!a->buffer || !b->buffer)
        return a->buffer == b->buffer;
    if (a->dtype != b->dtype || !same_shape(a, b))
        return false;
    for (uint64_t at = 0; at < total;) {
        size_t run_a;
        size_t run_b;
        const void *bytes_a = ckv_array_run(a, at, &run_a);
        const void *bytes_b = ckv_array_run(b, at, &run_b);
        size_t run = run_a < run_b ? run_a : run_b;
        if (memcmp(bytes_a, bytes_b, run) != 0)
            return false;
        at += run;
    }
    return true;
}

enum ckv_status ckv_array_slice(const struct ckv_array *array, uint32_t axis,
                                uint64_t begin, uint64_t end, struct ckv_array *out,
                                struct ckv_error *error)
{
    *out = CKV_ARRAY_NONE;
    if (axis >= array->rank || begin > end || end > array->shape[axis])
        return ckv_error_set(
            error, CKV_INVALID, "array: slice [%llu, %llu) of axis %u is out of range",
            (unsigned long long)begin, (unsigned long long)end, (unsigned)axis);
    *out = ckv_array_ref(array);
    out->shape[axis] = end - begin;
    out->start += begin * array->stride[axis];
    return CKV_OK;
}

void ckv_array_read(const struct ckv_array *array, void *out)
{
    uint64_t stride[CKV_ARRAY_RANK_MAX];
    if (ckv_array_count(array) == 0)
        return;
    ckvi_contiguous_strides(array->shape, array->rank, stride);
    ckvi_strided_copy(out, stride, first_byte(array), array->stride, array->shape,
                      array->rank, ckv_dtype_size(array->dtype));
}

enum ckv_status ckv_array_contiguous(const struct ckv_array *array, struct ckv_array *out,
                                     struct ckv_error *error)
{
    struct ckv_buffer *buffer = NULL;
    enum ckv_status status;
    if (!array->buffer || ckv_array_is_contiguous(array)) {
        *out = ckv_array_ref(array);
        return CKV_OK;
    }
    *out = CKV_ARRAY_NONE;
    status = buffer_create(array->buffer->alloc, array->dtype, array->rank, array->shape,
                           array->buffer->row_axis, &buffer, error);
    if (!buffer)
        return status;
    ckv_array_read(array, buffer->data);
    view_whole(out, buffer, array->dtype);
    return CKV_OK;
}

const void *ckv_array_run(const struct ckv_array *array, uint64_t offset,
                          size_t *run_bytes)
{
    size_t item = ckv_dtype_size(array->dtype);
    uint64_t element = offset / item;
    uint64_t inside = offset % item;
    uint64_t position = array->start;
    uint64_t run = 1;
    uint64_t done = 0; /* elements of the run that lie before `element` */
    bool open = true;
    if (offset >= ckv_array_bytes(array)) {
        *run_bytes = 0;
        return NULL;
    }
    for (uint32_t i = array->rank; i-- > 0;) {
        uint64_t at = element % array->shape[i];
        element /= array->shape[i];
        position += at * array->stride[i];
        open = open && (array->shape[i] == 1 || array->stride[i] == run);
        if (!open)
            continue;
        done += at * run;
        run *= array->shape[i];
    }
    *run_bytes = (size_t)((run - done) * item - inside);
    return array->buffer->data + position * item + inside;
}

enum ckv_status ckv_array_concat(const struct ckv_array *parts, size_t part_count,
                                 uint32_t axis, uint32_t row_axis, struct ckv_array *out,
                                 struct ckv_error *error)
{
    uint64_t shape[CKV_ARRAY_RANK_MAX];
    struct ckv_buffer *buffer = NULL;
    uint64_t at = 0;
    enum ckv_status status;
    *out = CKV_ARRAY_NONE;
    if (part_count == 0 || !parts[0].buffer || axis >= parts[0].rank)
        return ckv_error_set(error, CKV_INVALID, "array: nothing to concatenate");
    memcpy(shape, parts[0].shape, sizeof shape);
    shape[axis] = 0;
    for (size_t i = 0; i < part_count; i++) {
        struct ckv_array aligned = parts[i];
        aligned.shape[axis] = parts[0].shape[axis];
        if (!parts[i].buffer || parts[i].dtype != parts[0].dtype ||
            !same_shape(&aligned, &parts[0]))
            return ckv_error_set(error, CKV_INVALID,
                                 "array: part %zu differs in type or shape", i);
        if (!ckvi_add_u64(shape[axis], parts[i].shape[axis], &shape[axis]))
            return ckv_error_set(error, CKV_TOOBIG, "array: its size overflows");
    }
    status = buffer_create(parts[0].buffer->alloc, parts[0].dtype, parts[0].rank, shape,
                           row_axis, &buffer, error);
    if (!buffer)
        return status;
    view_whole(out, buffer, parts[0].dtype);
    for (size_t i = 0; i < part_count; i++) {
        ckv_array_write(out, axis, at, &parts[i]);
        at += parts[i].shape[axis];
    }
    return CKV_OK;
}

/* Moves the view to a buffer of its own with `capacity` rows, zeroed behind the view. */
static enum ckv_status move_view(struct ckv_array *array, uint64_t capacity,
                                 struct ckv_error *error)
{
    uint32_t axis = array->buffer->row_axis;
    uint64_t rows = array->shape[axis];
    uint64_t shape[CKV_ARRAY_RANK_MAX];
    struct ckv_buffer *buffer = NULL;
    struct ckv_array moved;
    enum ckv_status status;
    memcpy(shape, array->shape, sizeof shape);
    shape[axis] = capacity;
    status = buffer_create(array->buffer->alloc, array->dtype, array->rank, shape, axis,
                           &buffer, error);
    if (!buffer)
        return status;
    if (capacity > rows)
        memset(buffer->data, 0, buffer->bytes);
    view_whole(&moved, buffer, array->dtype);
    moved.shape[axis] = rows;
    atomic_store_explicit(&buffer->mark, rows, memory_order_relaxed);
    if (ckv_array_count(array) > 0)
        ckvi_strided_copy(buffer->data, moved.stride, first_byte(array), array->stride,
                          array->shape, array->rank, ckv_dtype_size(array->dtype));
    ckv_array_unref(array);
    *array = moved;
    return CKV_OK;
}

enum ckv_status ckv_array_own(struct ckv_array *array, struct ckv_error *error)
{
    if (!array->buffer || ckv_array_holders(array) == 1)
        return CKV_OK;
    return move_view(array, array->shape[array->buffer->row_axis], error);
}

void ckv_array_write(struct ckv_array *array, uint32_t axis, uint64_t begin,
                     const struct ckv_array *part)
{
    size_t item = ckv_dtype_size(array->dtype);
    CKV_ASSERT(axis < array->rank && array->rank == part->rank);
    CKV_ASSERT(array->dtype == part->dtype);
    CKV_ASSERT(begin <= array->shape[axis] &&
               part->shape[axis] <= array->shape[axis] - begin);
    for (uint32_t i = 0; i < array->rank; i++)
        CKV_ASSERT(i == axis || array->shape[i] == part->shape[i]);
    if (ckv_array_count(part) == 0)
        return;
    ckvi_strided_copy(first_byte(array) + begin * array->stride[axis] * item,
                      array->stride, first_byte(part), part->stride, part->shape,
                      part->rank, item);
}

static enum ckv_status check_part(const struct ckv_array *array, uint32_t axis,
                                  uint64_t begin, const struct ckv_array *part,
                                  struct ckv_error *error)
{
    if (!array->buffer || !part->buffer || array->dtype != part->dtype ||
        array->rank != part->rank || axis >= array->rank)
        return ckv_error_set(error, CKV_INVALID,
                             "array: the part has another type or rank, or there is no "
                             "axis %u",
                             (unsigned)axis);
    if (begin > array->shape[axis] || part->shape[axis] > array->shape[axis] - begin)
        return ckv_error_set(
            error, CKV_INVALID, "array: %llu rows at %llu do not fit into %llu",
            (unsigned long long)part->shape[axis], (unsigned long long)begin,
            (unsigned long long)array->shape[axis]);
    for (uint32_t i = 0; i < array->rank; i++)
        if (i != axis && array->shape[i] != part->shape[i])
            return ckv_error_set(error, CKV_INVALID,
                                 "array: axis %u is %llu, the part's is %llu",
                                 (unsigned)i, (unsigned long long)array->shape[i],
                                 (unsigned long long)part->shape[i]);
    return CKV_OK;
}

enum ckv_status ckv_array_update(struct ckv_array *array, uint32_t axis, uint64_t begin,
                                 const struct ckv_array *part, struct ckv_error *error)
{
    enum ckv_status status = check_part(array, axis, begin, part, error);
    if (status == CKV_OK)
        status = ckv_array_own(array, error);
    if (status == CKV_OK)
        ckv_array_write(array, axis, begin, part);
    return status;
}

/* Whether the view spans the buffer in every axis but the row axis, so that rows behind
 * it are its natural continuation; *end is the row behind its last one. */
static bool spans_rows(const struct ckv_array *array, uint64_t *end)
{
    const struct ckv_buffer *buffer = array->buffer;
    uint64_t stride[CKV_ARRAY_RANK_MAX];
    uint64_t step;
    ckvi_contiguous_strides(buffer->shape, buffer->rank, stride);
    step = stride[buffer->row_axis];
    for (uint32_t i = 0; i < array->rank; i++) {
        if (i != buffer->row_axis && array->shape[i] != buffer->shape[i])
            return false;
        if (array->stride[i] != stride[i])
            return false;
    }
    if (step == 0 || array->start % step != 0)
        return false;
    *end = array->start / step + array->shape[buffer->row_axis];
    return true;
}

/* Tries to make [end of view, + rows) ours in the buffer that is there. */
static bool claim_in_place(struct ckv_array *array, uint64_t rows)
{
    struct ckv_buffer *buffer = array->buffer;
    uint64_t end;
    uint_fast64_t expected;
    if (array->sealed || !spans_rows(array, &end))
        return false;
    if (rows > buffer->shape[buffer->row_axis] - end)
        return false;
    if (ckv_array_holders(array) == 1) {
        atomic_store_explicit(&buffer->mark, end + rows, memory_order_relaxed);
        return true;
    }
    /* Acquire and release: the claim orders our writes after those of an earlier holder.
     */
    expected = end;
    return atomic_compare_exchange_strong_explicit(
        &buffer->mark, &expected, end + rows, memory_order_acq_rel, memory_order_relaxed);
}

enum ckv_status ckv_array_reserve(struct ckv_array *array, uint64_t rows,
                                  uint64_t capacity, struct ckv_error *error)
{
    uint64_t needed;
    enum ckv_status status;
    if (!array->buffer)
        return ckv_error_set(error, CKV_INVALID, "array: nothing to grow");
    if (array->claimed_rows >= rows)
        return CKV_OK;
    if (!ckvi_add_u64(array->shape[array->buffer->row_axis], rows, &needed))
        return ckv_error_set(error, CKV_TOOBIG, "array: its size overflows");
    if (!claim_in_place(array, rows)) {
        status = move_view(array, capacity > needed ? capacity : needed, error);
        if (status)
            return status;
        atomic_store_explicit(&array->buffer->mark, needed, memory_order_relaxed);
    }
    array->claimed_rows = rows;
    return CKV_OK;
}

void ckv_array_append(struct ckv_array *array, const struct ckv_array *part)
{
    uint32_t axis = array->buffer->row_axis;
    uint64_t rows = array->shape[axis];
    uint64_t added = part->shape[axis];
    CKV_ASSERT(added <= array->claimed_rows);
    array->shape[axis] = rows + added;
    array->claimed_rows -= added;
    ckv_array_write(array, axis, rows, part);
}

uint32_t ckv_array_row_axis(const struct ckv_array *array)
{
    return array->buffer ? array->buffer->row_axis : 0;
}

uint64_t ckv_array_capacity(const struct ckv_array *array)
{
    uint64_t end;
    uint64_t rows;
    if (!array->buffer)
        return 0;
    rows = array->shape[array->buffer->row_axis];
    if (array->sealed || !spans_rows(array, &end))
        return rows;
    return rows + (array->buffer->shape[array->buffer->row_axis] - end);
}

void *ckvi_array_at(const struct ckv_array *array, uint64_t b, uint64_t h, uint64_t row)
{
    CKV_ASSERT(array->rank == 4);
    return first_byte(array) +
           (b * array->stride[0] + h * array->stride[1] + row * array->stride[2]) *
               ckv_dtype_size(array->dtype);
}

void ckvi_array_extend(struct ckv_array *array, uint64_t rows)
{
    CKV_ASSERT(rows <= array->claimed_rows);
    array->shape[array->buffer->row_axis] += rows;
    array->claimed_rows -= rows;
}

void ckvi_array_cut(struct ckv_array *array, uint64_t rows)
{
    uint64_t end;
    uint32_t axis = array->buffer->row_axis;
    CKV_ASSERT(rows <= array->shape[axis]);
    array->shape[axis] = rows;
    array->claimed_rows = 0;
    if (ckv_array_holders(array) == 1 && spans_rows(array, &end))
        atomic_store_explicit(&array->buffer->mark, end, memory_order_relaxed);
}

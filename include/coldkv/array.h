/*
 * Arrays: typed, strided views on reference-counted buffers.
 *
 * An array is a value: a write through one never changes what another one sees. Slicing
 * and referencing copy nothing; a write copies the buffer first when somebody else could
 * see the rows it touches.
 *
 * Appending must not copy a whole cache after each snapshot. So a buffer has a high-water
 * mark, counted in rows of its row axis: rows at or above it are seen by no view. The
 * holder whose view ends at the mark appends in place after moving the mark by
 * compare-exchange; whoever loses copies. Only a write below the mark of a shared buffer
 * copies.
 *
 * Thread rule: one array value belongs to one thread at a time; different values may be
 * used in parallel also when they share a buffer.
 */
#ifndef COLDKV_ARRAY_H
#define COLDKV_ARRAY_H

#include <coldkv/alloc.h>
#include <coldkv/dtype.h>
#include <coldkv/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CKV_ARRAY_RANK_MAX 8

struct ckv_buffer;

/** A view. Members are read freely and changed only by the functions below. buffer NULL =
 *  no array (what a zeroed struct is). */
struct ckv_array {
    struct ckv_buffer *buffer;
    enum ckv_dtype dtype;
    uint32_t rank;
    uint64_t shape[CKV_ARRAY_RANK_MAX];
    uint64_t stride[CKV_ARRAY_RANK_MAX]; /**< in elements */
    uint64_t start;                      /**< first element in the buffer */
    uint64_t claimed_rows; /**< rows behind the view that a reserve made ours */
    bool sealed;           /**< never grows in place: a clone's view */
};

#define CKV_ARRAY_NONE ((struct ckv_array){0})

/** A new, zeroed, contiguous array. `row_axis` is the axis that appends grow (2 for keys
 * and values; any axis < rank where it does not matter). TOOBIG when the size overflows.
 *  alloc NULL = default. */
CKV_API enum ckv_status ckv_array_create(const struct ckv_alloc *alloc,
                                         enum ckv_dtype dtype, uint32_t rank,
                                         const uint64_t *shape, uint32_t row_axis,
                                         struct ckv_array *out,
                                         struct ckv_error *error) CKV_WARN_UNUSED;
/** The same, filled from `data` (row-major, exactly the array's bytes). */
CKV_API enum ckv_status ckv_array_from_bytes(const struct ckv_alloc *alloc,
                                             enum ckv_dtype dtype, uint32_t rank,
                                             const uint64_t *shape, uint32_t row_axis,
                                             const void *data, struct ckv_array *out,
                                             struct ckv_error *error) CKV_WARN_UNUSED;

/** A second value for the same view. Cannot fail; both are released on their own. */
CKV_API struct ckv_array ckv_array_ref(const struct ckv_array *array);
/** Releases the value and makes it "no array". NULL or none is fine. */
CKV_API void ckv_array_unref(struct ckv_array *array);

/** product(shape); 0 for none. */
CKV_API uint64_t ckv_array_count(const struct ckv_array *array);
/** Bytes of the elements in view. */
CKV_API uint64_t ckv_array_bytes(const struct ckv_array *array);
/** Bytes of the whole buffer behind it, and an identity that is equal exactly for arrays
 *  that share a buffer (for accounting). */
CKV_API uint64_t ckv_array_buffer_bytes(const struct ckv_array *array);
CKV_API const void *ckv_array_buffer_id(const struct ckv_array *array);
CKV_API bool ckv_array_is_contiguous(const struct ckv_array *array);
/** Same type, shape and element bytes. */
CKV_API bool ckv_array_equal(const struct ckv_array *a, const struct ckv_array *b);

/** Elements [begin, end) of `axis` as a new value on the same buffer. INVALID out of
 * range. */
CKV_API enum ckv_status ckv_array_slice(const struct ckv_array *array, uint32_t axis,
                                        uint64_t begin, uint64_t end,
                                        struct ckv_array *out,
                                        struct ckv_error *error) CKV_WARN_UNUSED;

/** The view as a contiguous array: a reference when it is contiguous already, else a
 * copy. */
CKV_API enum ckv_status ckv_array_contiguous(const struct ckv_array *array,
                                             struct ckv_array *out,
                                             struct ckv_error *error) CKV_WARN_UNUSED;

/** Copies all elements in row-major order to `out` (ckv_array_bytes of them). */
CKV_API void ckv_array_read(const struct ckv_array *array, void *out);

/** The longest run of bytes that lies together in memory, starting at byte `offset` of
 * the row-major order. Read only, valid while the value lives and is not written. NULL
 * and 0 bytes when the offset is at the end or beyond. */
CKV_API const void *ckv_array_run(const struct ckv_array *array, uint64_t offset,
                                  size_t *run_bytes);

/** A new array: parts one after another along `axis`. Types and other dims must agree. */
CKV_API enum ckv_status ckv_array_concat(const struct ckv_array *parts, size_t part_count,
                                         uint32_t axis, uint32_t row_axis,
                                         struct ckv_array *out,
                                         struct ckv_error *error) CKV_WARN_UNUSED;

/** Makes this value the only holder of its buffer, copying the view when it is not; after
 *  it ckv_array_write cannot fail. On failure the array is unchanged. */
CKV_API enum ckv_status ckv_array_own(struct ckv_array *array,
                                      struct ckv_error *error) CKV_WARN_UNUSED;

/** Writes `part` over [begin, begin + its length) of `axis`; the array must be owned (see
 *  ckv_array_own), part of the same type and other dims, the range inside. */
CKV_API void ckv_array_write(struct ckv_array *array, uint32_t axis, uint64_t begin,
                             const struct ckv_array *part);

/** own + write: the update of one range, whoever shares the buffer. INVALID when part and
 * range do not fit. */
CKV_API enum ckv_status ckv_array_update(struct ckv_array *array, uint32_t axis,
                                         uint64_t begin, const struct ckv_array *part,
                                         struct ckv_error *error) CKV_WARN_UNUSED;

/**
 * Makes sure that `rows` more rows can be appended without a failure, and claims them. In
 * place when the buffer has room behind the view and either nobody else holds it or the
 * view ends at the mark; else the view moves to a new buffer of `capacity` rows (at least
 * what is needed is taken), zeroed behind the view. Elements do not change. On failure
 * the array is unchanged. Reserve every array of a cache first, then append to all.
 */
CKV_API enum ckv_status ckv_array_reserve(struct ckv_array *array, uint64_t rows,
                                          uint64_t capacity,
                                          struct ckv_error *error) CKV_WARN_UNUSED;

/** Appends `part` along the row axis into claimed rows. Cannot fail. */
CKV_API void ckv_array_append(struct ckv_array *array, const struct ckv_array *part);

/** The row axis that appends grow. */
CKV_API uint32_t ckv_array_row_axis(const struct ckv_array *array);
/** Rows that the view could reach without a new buffer; its own rows when sealed. */
CKV_API uint64_t ckv_array_capacity(const struct ckv_array *array);
/** How many values share the buffer, for tests and accounting. */
CKV_API uint64_t ckv_array_holders(const struct ckv_array *array);

#ifdef __cplusplus
}
#endif

#endif

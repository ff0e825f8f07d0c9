/* What the checks of the kinds share. Each returns OK, or CORRUPT and the text
 * "caches[1] (kv).tensors[0] (keys).shape[2]: expected ..., found ...". */
#ifndef COLDKV_CACHE_CHECK_H
#define COLDKV_CACHE_CHECK_H

#include "cache/kind.h"

/* Where the trouble is: a field of the cache, or (in_tensor) of one of its tensors. */
enum ckv_status ckvi_bad_field(const struct ckvi_exam *exam, const char *field,
                               const char *format, ...) CKV_PRINTF(3, 4);
enum ckv_status ckvi_bad_tensor(const struct ckvi_exam *exam, size_t tensor,
                                const char *field, const char *format, ...)
    CKV_PRINTF(4, 5);

/* Tensor `tensor` has this size on this axis; `why` explains the expectation. */
enum ckv_status ckvi_check_axis(const struct ckvi_exam *exam, size_t tensor,
                                uint32_t axis, uint64_t expected, const char *why);
/* Rank 4, [B,H,S,D] with B, H, D at least 1, and B, H, S as in the cache's first tensor.
 */
enum ckv_status ckvi_check_rows(const struct ckvi_exam *exam, size_t tensor);
enum ckv_status ckvi_check_dtype(const struct ckvi_exam *exam, size_t tensor,
                                 enum ckv_dtype expected);
/* A float type of caches: bfloat16, float16 or float32. */
enum ckv_status ckvi_check_float(const struct ckvi_exam *exam, size_t tensor);
/* The first tensor's token axis equals the cache's offset. */
enum ckv_status ckvi_check_offset_rows(const struct ckvi_exam *exam);
/* Ring scalars against the ring's rows (first tensor). */
enum ckv_status ckvi_check_ring(const struct ckvi_exam *exam);
/* `value` of a field is in a list that ends with 0; `list` is its text. */
enum ckv_status ckvi_check_member(const struct ckvi_exam *exam, const char *field,
                                  uint32_t value, const uint32_t *allowed,
                                  const char *list);

#endif

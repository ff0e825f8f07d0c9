/*
 * The element types of tensors, with the numbers the file format gives them.
 */
#ifndef COLDKV_DTYPE_H
#define COLDKV_DTYPE_H

#include <coldkv/export.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Values are those of the header's `dtype`, equal to current mlx-c. Frozen. */
enum ckv_dtype {
    CKV_DTYPE_BOOL = 0,
    CKV_DTYPE_UINT8 = 1,
    CKV_DTYPE_UINT16 = 2,
    CKV_DTYPE_UINT32 = 3,
    CKV_DTYPE_UINT64 = 4,
    CKV_DTYPE_INT8 = 5,
    CKV_DTYPE_INT16 = 6,
    CKV_DTYPE_INT32 = 7,
    CKV_DTYPE_INT64 = 8,
    CKV_DTYPE_FLOAT16 = 9,
    CKV_DTYPE_FLOAT32 = 10,
    CKV_DTYPE_FLOAT64 = 11,
    CKV_DTYPE_BFLOAT16 = 12,
    CKV_DTYPE_COMPLEX64 = 13,
};

#define CKV_DTYPE_COUNT 14

/** Whether `value` (for instance from a file) is one of the 14 types. */
CKV_API bool ckv_dtype_valid(uint64_t value);
/** Bytes per element: 1, 2, 4 or 8; 0 for an invalid type. */
CKV_API size_t ckv_dtype_size(enum ckv_dtype dtype);
/** Name such as "bfloat16"; "invalid" otherwise. Static storage. */
CKV_API const char *ckv_dtype_name(enum ckv_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif

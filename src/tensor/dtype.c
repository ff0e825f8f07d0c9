/*
 * Owns the table of element types. The numbers are the file format's and frozen; an old
 * mlx-c without float64 numbered the last two differently, its files are not ours.
 */
#include <coldkv/dtype.h>

struct dtype {
    const char *name;
    size_t size;
};

static const struct dtype table[CKV_DTYPE_COUNT] = {
    [CKV_DTYPE_BOOL] = {"bool", 1},         [CKV_DTYPE_UINT8] = {"uint8", 1},
    [CKV_DTYPE_UINT16] = {"uint16", 2},     [CKV_DTYPE_UINT32] = {"uint32", 4},
    [CKV_DTYPE_UINT64] = {"uint64", 8},     [CKV_DTYPE_INT8] = {"int8", 1},
    [CKV_DTYPE_INT16] = {"int16", 2},       [CKV_DTYPE_INT32] = {"int32", 4},
    [CKV_DTYPE_INT64] = {"int64", 8},       [CKV_DTYPE_FLOAT16] = {"float16", 2},
    [CKV_DTYPE_FLOAT32] = {"float32", 4},   [CKV_DTYPE_FLOAT64] = {"float64", 8},
    [CKV_DTYPE_BFLOAT16] = {"bfloat16", 2}, [CKV_DTYPE_COMPLEX64] = {"complex64", 8},
};

bool ckv_dtype_valid(uint64_t value)
{
    return value < CKV_DTYPE_COUNT;
}

size_t ckv_dtype_size(enum ckv_dtype dtype)
{
    return ckv_dtype_valid((uint64_t)dtype) ? table[dtype].size : 0;
}

const char *ckv_dtype_name(enum ckv_dtype dtype)
{
    return ckv_dtype_valid((uint64_t)dtype) ? table[dtype].name : "invalid";
}

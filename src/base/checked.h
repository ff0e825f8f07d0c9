/* Arithmetic on sizes that says when it does not fit. */
#ifndef COLDKV_BASE_CHECKED_H
#define COLDKV_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool ckvi_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    *out = a + b;
    return *out >= a;
}

static inline bool ckvi_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    if (a != 0 && b > UINT64_MAX / a)
        return false;
    *out = a * b;
    return true;
}

static inline bool ckvi_add_size(size_t a, size_t b, size_t *out)
{
    *out = a + b;
    return *out >= a;
}

static inline bool ckvi_mul_size(size_t a, size_t b, size_t *out)
{
    if (a != 0 && b > SIZE_MAX / a)
        return false;
    *out = a * b;
    return true;
}

static inline uint64_t ckvi_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t ckvi_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif

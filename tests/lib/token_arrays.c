/* Owns the numbering of tokens as floats; see the header. */
#include "lib/token_arrays.h"

#include "lib/require.h"
#include <coldkv/float.h>
#include <stdlib.h>

float test_token_element(long token, unsigned h, unsigned d, bool value)
{
    uint64_t x = (uint64_t)token * 7919u + h * 131u + d * 31u + (value ? 17u : 0u);
    x ^= x >> 7;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    return ((float)(x >> 52) - 2048.0f) / 512.0f;
}

void test_put_float(enum ckv_dtype dtype, void *out, size_t at, float value)
{
    if (dtype == CKV_DTYPE_FLOAT32)
        ((float *)out)[at] = value;
    else if (dtype == CKV_DTYPE_FLOAT16)
        ((uint16_t *)out)[at] = ckv_f16_from_f32(value);
    else
        ((uint16_t *)out)[at] = ckv_bf16_from_f32(value);
}

struct ckv_array test_token_array(enum ckv_dtype dtype, unsigned heads, uint64_t head_dim,
                                  long first, uint64_t count, bool value)
{
    uint64_t shape[4] = {1, heads, count, head_dim};
    size_t total = (size_t)(heads * count * head_dim);
    void *bytes = malloc(total * ckv_dtype_size(dtype));
    struct ckv_array array;
    size_t at = 0;
    TEST_REQUIRE(bytes != NULL);
    for (unsigned h = 0; h < heads; h++)
        for (uint64_t t = 0; t < count; t++)
            for (unsigned d = 0; d < head_dim; d++)
                test_put_float(dtype, bytes, at++,
                               test_token_element(first + (long)t, h, d, value));
    TEST_REQUIRE(ckv_array_from_bytes(NULL, dtype, 4, shape, 2, bytes, &array, NULL) ==
                 CKV_OK);
    free(bytes);
    return array;
}

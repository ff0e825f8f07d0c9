/* Keys and values whose elements depend only on the token's number: small exact floats.
 */
#ifndef COLDKV_TESTS_TOKEN_ARRAYS_H
#define COLDKV_TESTS_TOKEN_ARRAYS_H

#include <coldkv/array.h>
#include <stdbool.h>

/* Element d of KV head h of a token. */
float test_token_element(long token, unsigned h, unsigned d, bool value);
/* Writes `value` as element `at` of an array of float16, bfloat16 or float32. */
void test_put_float(enum ckv_dtype dtype, void *out, size_t at, float value);
/* [1, heads, count, head_dim] of the tokens first, first + 1, ... */
struct ckv_array test_token_array(enum ckv_dtype dtype, unsigned heads, uint64_t head_dim,
                                  long first, uint64_t count, bool value);

#endif

/* Owns the small vocabulary of the cache tests; see the header. */
#include "lib/live_caches.h"

#include "lib/require.h"
#include "lib/token_arrays.h"

const struct ckv_cache_params test_live_kinds[TEST_LIVE_KINDS] = {
    {.kind = CKV_CACHE_KV},
    {.kind = CKV_CACHE_ROTATING, .max_size = 64},
    {.kind = CKV_CACHE_QKV, .bits = 8, .group_size = 64},
    {.kind = CKV_CACHE_ROTATING_QKV, .max_size = 64, .bits = 8, .group_size = 64},
    {.kind = CKV_CACHE_TURBOQUANT, .k_bits = 8, .v_bits = 3},
    {.kind = CKV_CACHE_SSM},
};

enum ckv_status test_try_append(struct ckv_live_cache *cache, uint64_t head_dim,
                                long first, uint64_t count, struct ckv_error *error)
{
    enum ckv_dtype dtype = CKV_DTYPE_BFLOAT16;
    struct ckv_array keys = test_token_array(dtype, 2, head_dim, first, count, false);
    struct ckv_array values = test_token_array(dtype, 2, head_dim, first, count, true);
    enum ckv_cache_kind kind = ckv_cache_get_params(cache).kind;
    enum ckv_status status;
    if (kind == CKV_CACHE_QKV || kind == CKV_CACHE_ROTATING_QKV)
        status = ckv_cache_append_quantized(cache, &keys, &values, NULL, error);
    else
        status = ckv_cache_append(cache, &keys, &values, NULL, NULL, error);
    ckv_array_unref(&keys);
    ckv_array_unref(&values);
    return status;
}

/* A recurrent state that depends on the offset: conv of rank 3, recurrent of rank 4. */
static void advance(struct ckv_live_cache *cache, uint64_t count)
{
    long at = (long)(ckv_cache_offset(cache) + count);
    struct ckv_array recurrent = test_token_array(CKV_DTYPE_FLOAT32, 2, 8, at, 4, false);
    struct ckv_array four = test_token_array(CKV_DTYPE_BFLOAT16, 1, 8, at, 3, true);
    struct ckv_array conv;
    uint64_t shape[3] = {1, 3, 8};
    size_t run;
    TEST_REQUIRE(ckv_array_from_bytes(NULL, CKV_DTYPE_BFLOAT16, 3, shape, 0,
                                      ckv_array_run(&four, 0, &run), &conv,
                                      NULL) == CKV_OK);
    TEST_REQUIRE(ckv_cache_set_slot(cache, 0, &conv, NULL) == CKV_OK);
    TEST_REQUIRE(ckv_cache_set_slot(cache, 1, &recurrent, NULL) == CKV_OK);
    TEST_REQUIRE(ckv_cache_advance(cache, count, NULL) == CKV_OK);
    ckv_array_unref(&recurrent);
    ckv_array_unref(&four);
    ckv_array_unref(&conv);
}

void test_append(struct ckv_live_cache *cache, uint64_t count)
{
    if (ckv_cache_get_params(cache).kind == CKV_CACHE_SSM) {
        advance(cache, count);
        return;
    }
    TEST_REQUIRE(test_try_append(cache, 64, (long)ckv_cache_offset(cache), count, NULL) ==
                 CKV_OK);
}

void test_append_singly(struct ckv_live_cache *cache, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        test_append(cache, 1);
}

uint64_t test_state_rows(const struct ckv_live_cache *cache)
{
    struct ckv_array arrays[CKV_CACHE_ARRAYS_MAX];
    size_t count = ckv_cache_state(cache, arrays);
    uint64_t rows = count ? arrays[0].shape[2] : 0;
    for (size_t i = 0; i < count; i++)
        ckv_array_unref(&arrays[i]);
    return rows;
}

bool test_same_state(const struct ckv_live_cache *a, const struct ckv_live_cache *b)
{
    struct ckv_array x[CKV_CACHE_ARRAYS_MAX];
    struct ckv_array y[CKV_CACHE_ARRAYS_MAX];
    size_t count = ckv_cache_state(a, x);
    size_t other = ckv_cache_state(b, y);
    bool same = count == other && ckv_cache_offset(a) == ckv_cache_offset(b) &&
                ckv_cache_idx(a) == ckv_cache_idx(b);
    for (size_t i = 0; i < count; i++) {
        same = same && ckv_array_equal(&x[i], &y[i]);
        ckv_array_unref(&x[i]);
    }
    for (size_t i = 0; i < other; i++)
        ckv_array_unref(&y[i]);
    return same;
}

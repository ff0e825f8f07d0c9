/* What tests do with live caches: numbered tokens in, states compared. */
#ifndef COLDKV_TESTS_LIVE_CACHES_H
#define COLDKV_TESTS_LIVE_CACHES_H

#include <coldkv/cache.h>

/* Appends tokens first, first + 1, ... of 2 KV heads in bfloat16, whatever the kind. */
enum ckv_status test_try_append(struct ckv_live_cache *cache, uint64_t head_dim,
                                long first, uint64_t count, struct ckv_error *error);
/* The same, numbered by the cache's offset, head dim 64; must succeed. For ssm: new slots
 * and an advanced offset. */
void test_append(struct ckv_live_cache *cache, uint64_t count);
void test_append_singly(struct ckv_live_cache *cache, uint64_t count);

/* Rows of the first array of the state; 0 when empty. */
uint64_t test_state_rows(const struct ckv_live_cache *cache);
/* Same arrays, offset and write row. */
bool test_same_state(const struct ckv_live_cache *a, const struct ckv_live_cache *b);

/* The six kinds: kv, rotating 64, qkv 8/64, rotating-qkv 64 8/64, turboquant 8/3, ssm. */
#define TEST_LIVE_KINDS 6
extern const struct ckv_cache_params test_live_kinds[TEST_LIVE_KINDS];

#endif

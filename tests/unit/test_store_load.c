/*
 * From a store to live caches: cut to the reused prefix, rows read only as far as needed
 * once the file was verified, misfits passed over.
 */
#include "lib/live_caches.h"
#include "lib/store_world.h"
#include <coldkv/lifecycle.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { LENGTH = 1000 };

static struct test_world world;
static struct ckv_store *store;
static uint32_t tokens[LENGTH + 1];

static int set_up(void **state)
{
    (void)state;
    test_world_init(&world);
    store = test_world_open(&world);
    for (uint32_t i = 0; i < LENGTH + 1; i++)
        tokens[i] = 5000 + i;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ckv_store_close(store);
    return test_world_deinit(&world);
}

/* Stores one cache of each listed kind with `count` tokens; gives the caches. */
static void put(const size_t *kinds, size_t kind_count, size_t count,
                struct ckv_live_cache **caches)
{
    struct ckv_snapshot *snapshot;
    struct ckv_error error = {0};
    for (size_t i = 0; i < kind_count; i++) {
        assert_int_equal(ckv_cache_create(&world.alloc.alloc, &test_live_kinds[kinds[i]],
                                          &caches[i], NULL),
                         CKV_OK);
        test_append(caches[i], count);
    }
    assert_int_equal(ckv_snapshot_create(&world.alloc.alloc, caches, kind_count, tokens,
                                         count, &snapshot, NULL),
                     CKV_OK);
    if (ckv_store_put(store, "", ckv_snapshot_entry(snapshot),
                      ckv_snapshot_source(snapshot), NULL, NULL, &error))
        fail_msg("%s", error.text);
    ckv_snapshot_destroy(snapshot);
}

/* A prompt that shares `common` tokens with what was put. */
static enum ckv_status load(uint64_t common, uint64_t cache_count,
                            struct ckv_loaded *loaded, struct ckv_restored *restored)
{
    uint32_t prompt[LENGTH + 1];
    memcpy(prompt, tokens, sizeof prompt);
    prompt[common] = 1;
    return ckv_store_load(store, "", prompt, (size_t)common + 1, cache_count,
                          &world.alloc.alloc, loaded, restored, &world.error);
}

static void the_reused_prefix_comes_back_and_goes_on(void **state)
{
    static const size_t kinds[] = {0, 2, 4};
    struct ckv_live_cache *caches[3];
    struct ckv_loaded loaded;
    struct ckv_restored restored;
    (void)state;
    put(kinds, 3, LENGTH, caches);
    assert_int_equal(load(400, 3, &loaded, &restored), CKV_OK);
    assert_int_equal(restored.prefix, 400);
    assert_int_equal(loaded.token_count, 400);
    assert_memory_equal(loaded.tokens, tokens, 400 * sizeof *tokens);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(ckv_cache_trim(caches[i], LENGTH - 400, NULL, NULL), CKV_OK);
        test_append(caches[i], 7);
        test_append(loaded.caches[i], 7);
        assert_true(test_same_state(caches[i], loaded.caches[i]));
    }
    ckv_loaded_deinit(&loaded);
    ckv_caches_destroy(caches, 3);
}

static void a_verified_entry_is_then_read_by_prefix(void **state)
{
    static const size_t kinds[] = {0, 2, 4};
    struct ckv_live_cache *caches[3];
    struct ckv_loaded loaded;
    struct ckv_restored restored;
    struct ckv_store_stats stats;
    uint64_t total;
    (void)state;
    put(kinds, 3, LENGTH, caches);
    assert_int_equal(load(100, 3, &loaded, &restored), CKV_OK);
    total = restored.read_bytes;
    ckv_loaded_deinit(&loaded);
    for (int round = 0; round < 3; round++) {
        /* Our own touches in between do not end the memory. */
        assert_int_equal(load(100, 3, &loaded, &restored), CKV_OK);
        assert_int_equal(restored.read_bytes, total / 10);
        ckv_loaded_deinit(&loaded);
    }
    ckv_store_get_stats(store, &stats);
    assert_int_equal(stats.restores, 4);
    assert_int_equal(stats.partial_restores, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(ckv_cache_trim(caches[i], LENGTH - 100, NULL, NULL), CKV_OK);
    assert_int_equal(load(100, 3, &loaded, &restored), CKV_OK);
    for (size_t i = 0; i < 3; i++)
        assert_true(test_same_state(caches[i], loaded.caches[i]));
    ckv_loaded_deinit(&loaded);
    ckv_caches_destroy(caches, 3);
}

static void another_process_touch_ends_the_memory(void **state)
{
    static const size_t kinds[] = {0};
    struct ckv_live_cache *cache;
    struct ckv_loaded loaded;
    struct ckv_restored first;
    struct ckv_restored restored;
    struct ckv_store *mine = store;
    struct ckv_store *other;
    (void)state;
    put(kinds, 1, LENGTH, &cache);
    assert_int_equal(load(100, 1, &loaded, &first), CKV_OK);
    ckv_loaded_deinit(&loaded);
    /* The change time of a file is as fine as the clock. */
    test_clock_advance(&world.clock, 1000000);
    other = test_world_open(&world);
    store = other;
    assert_int_equal(load(100, 1, &loaded, &restored), CKV_OK);
    assert_int_equal(restored.read_bytes, first.read_bytes);
    ckv_loaded_deinit(&loaded);
    store = mine;
    assert_int_equal(load(100, 1, &loaded, &restored), CKV_OK);
    assert_int_equal(restored.read_bytes, first.read_bytes);
    ckv_loaded_deinit(&loaded);
    ckv_store_close(other);
    ckv_cache_destroy(cache);
}

static void s13_a_recurrent_entry_serves_its_exact_end_only(void **state)
{
    static const size_t kinds[] = {0, 5};
    struct ckv_live_cache *caches[2];
    struct ckv_loaded loaded;
    struct ckv_restored restored;
    (void)state;
    put(kinds, 2, 300, caches);
    assert_int_equal(load(299, 2, &loaded, &restored), CKV_NOTFOUND);
    assert_int_equal(load(300, 2, &loaded, &restored), CKV_OK);
    assert_int_equal(restored.prefix, 300);
    for (size_t i = 0; i < 2; i++)
        assert_true(test_same_state(caches[i], loaded.caches[i]));
    ckv_loaded_deinit(&loaded);
    ckv_caches_destroy(caches, 2);
}

static void an_entry_of_another_model_is_passed_over(void **state)
{
    static const size_t kinds[] = {0, 0};
    struct ckv_live_cache *caches[2];
    struct ckv_loaded loaded;
    struct ckv_store_stats stats;
    (void)state;
    put(kinds, 2, 300, caches);
    assert_int_equal(load(200, 3, &loaded, NULL), CKV_NOTFOUND);
    assert_null(loaded.caches);
    assert_non_null(strstr(world.error.text, "cached layers"));
    assert_int_equal(load(200, CKV_LOAD_ANY, &loaded, NULL), CKV_OK);
    ckv_loaded_deinit(&loaded);
    ckv_store_get_stats(store, &stats);
    assert_int_equal(stats.entries, 1);
    assert_int_equal(stats.set_aside, 0);
    ckv_caches_destroy(caches, 2);
}

static void an_engine_state_is_no_live_cache(void **state)
{
    struct ckv_loaded loaded;
    (void)state;
    (void)test_put(&world, store, "", CKV_CACHE_STATE, tokens, 300);
    assert_int_equal(load(300, 1, &loaded, NULL), CKV_NOTFOUND);
    assert_null(loaded.caches);
}

static void every_failing_allocation_is_a_miss(void **state)
{
    static const size_t kinds[] = {0, 2};
    struct ckv_live_cache *caches[2];
    struct ckv_loaded loaded;
    enum ckv_status status = CKV_NOMEM;
    (void)state;
    put(kinds, 2, 300, caches);
    for (size_t nth = 1; status != CKV_OK; nth++) {
        size_t live = world.alloc.live_blocks;
        world.alloc.fail_at = world.alloc.call_count + nth;
        status = load(200, 2, &loaded, NULL);
        if (status == CKV_OK)
            break;
        assert_int_equal(status, CKV_NOTFOUND);
        assert_null(loaded.caches);
        assert_int_equal(world.alloc.live_blocks, live);
    }
    world.alloc.fail_at = 0;
    ckv_loaded_deinit(&loaded);
    ckv_caches_destroy(caches, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_reused_prefix_comes_back_and_goes_on),
        TEST(a_verified_entry_is_then_read_by_prefix),
        TEST(another_process_touch_ends_the_memory),
        TEST(s13_a_recurrent_entry_serves_its_exact_end_only),
        TEST(an_entry_of_another_model_is_passed_over),
        TEST(an_engine_state_is_no_live_cache),
        TEST(every_failing_allocation_is_a_miss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

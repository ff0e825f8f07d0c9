/* The end of a namespace (S28, S55), and the touch of what was used from memory. */
#include "lib/store_world.h"
#include "lib/unit.h"

#include <errno.h>
#include <stdlib.h>

#define T TEST_TOKENS
#define BASE TEST_FINGERPRINT "/base"

struct fixture {
    struct test_world world;
    struct ckv_store *store;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    test_world_init(&f->world);
    f->store = test_world_open(&f->world);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int result;
    ckv_store_close(f->store);
    result = test_world_deinit(&f->world);
    free(f);
    return result;
}

static void s28_invalidate_removes_what_is_stored(void **state)
{
    struct fixture *f = *state;
    uint64_t removed = 0;
    test_put(&f->world, f->store, "lora", CKV_CACHE_KV, T(1, 2, 3));
    test_put(&f->world, f->store, "lora", CKV_CACHE_KV, T(7, 8));
    assert_ok(ckv_store_invalidate(f->store, "lora", &removed, &f->world.error),
              f->world.error);
    assert_int_equal(removed, 2);
    assert_int_equal(test_find(f->store, "lora", T(1, 2, 3, 4), NULL, NULL), 0);
    assert_int_equal(test_stats(f->store).entries, 0);
    ckv_store_close(f->store);
    f->store = test_world_open(&f->world);
    assert_int_equal(test_find(f->store, "lora", T(1, 2, 3, 4), NULL, NULL), 0);
}

static void s55_other_namespaces_stay(void **state)
{
    struct fixture *f = *state;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3));
    test_put(&f->world, f->store, "b", CKV_CACHE_KV, T(1, 2, 3));
    assert_ok(ckv_store_invalidate(f->store, NULL, NULL, &f->world.error),
              f->world.error);
    assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3, 4)), 0);
    assert_int_equal(test_restore(&f->world, f->store, "b", T(1, 2, 3, 4)), 3);
    assert_int_equal(test_world_count(&f->world, BASE, ".mlxkv"), 0);
}

static void an_unknown_namespace_has_nothing(void **state)
{
    struct fixture *f = *state;
    uint64_t removed = 7;
    assert_ok(ckv_store_invalidate(f->store, "none", &removed, &f->world.error),
              f->world.error);
    assert_int_equal(removed, 0);
    assert_status(ckv_store_invalidate(NULL, "none", NULL, &f->world.error), CKV_INVALID);
}

static void what_other_processes_stored_goes_too(void **state)
{
    struct fixture *f = *state;
    struct ckv_store *other = test_world_open(&f->world);
    uint64_t removed = 0;
    test_put(&f->world, other, "lora", CKV_CACHE_KV, T(1, 2, 3));
    assert_ok(ckv_store_invalidate(f->store, "lora", &removed, &f->world.error),
              f->world.error);
    assert_int_equal(removed, 1);
    assert_false(ckv_store_covers(other, "lora", T(1, 2, 3)));
    ckv_store_close(other);
}

static void what_cannot_be_removed_is_reported_and_stays(void **state)
{
    struct fixture *f = *state;
    struct test_fault fault = {.call = TEST_CALL_REMOVE, .nth = 1, .os_errno = EACCES};
    uint64_t removed = 0;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3));
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(7, 8));
    test_faulty_io_fail(&f->world.faulty, &fault);
    assert_status(ckv_store_invalidate(f->store, "", &removed, &f->world.error),
                  CKV_DENIED);
    assert_int_equal(f->world.error.os_errno, EACCES);
    assert_int_equal(removed, 1);
    assert_int_equal(test_stats(f->store).entries, 1);
}

static void out_of_memory_is_reported(void **state)
{
    struct fixture *f = *state;
    size_t failures = 0;
    for (size_t n = 1; n == 1 || f->world.alloc.failed_count > 0; n++) {
        enum ckv_status status;
        assert_true(n < 100);
        test_alloc_reset(&f->world.alloc);
        test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3));
        test_alloc_reset(&f->world.alloc);
        f->world.alloc.fail_at = n;
        status = ckv_store_invalidate(f->store, "", NULL, &f->world.error);
        failures += status != CKV_OK;
        if (status != CKV_OK)
            assert_status(status, CKV_NOMEM);
        else
            assert_int_equal(test_stats(f->store).entries, 0);
    }
    assert_true(failures > 0);
}

static const char *entry_of(struct fixture *f)
{
    return test_world_only(&f->world, BASE, ".mlxkv");
}

static void a_touch_makes_an_entry_the_newest(void **state)
{
    struct fixture *f = *state;
    int64_t before;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3));
    before = test_world_stat(&f->world, BASE, entry_of(f)).mtime_ns;
    test_clock_advance(&f->world.clock, TEST_NS_PER_S);
    ckv_store_touch(f->store, "", T(1, 2));
    assert_int_equal(test_world_stat(&f->world, BASE, entry_of(f)).mtime_ns,
                     before + TEST_NS_PER_S);
    ckv_store_touch(f->store, "", T(1, 2, 3));
    assert_int_equal(test_world_stat(&f->world, BASE, entry_of(f)).mtime_ns,
                     before + TEST_NS_PER_S + 1000);
}

static void a_touch_of_nothing_does_nothing(void **state)
{
    struct fixture *f = *state;
    int64_t before;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3));
    before = test_world_stat(&f->world, BASE, entry_of(f)).mtime_ns;
    test_clock_advance(&f->world.clock, TEST_NS_PER_S);
    ckv_store_touch(f->store, "", T(1, 2, 9));
    ckv_store_touch(f->store, "other", T(1, 2, 3));
    ckv_store_touch(f->store, "", NULL, 0);
    ckv_store_touch(NULL, "", T(1, 2));
    assert_int_equal(test_world_stat(&f->world, BASE, entry_of(f)).mtime_ns, before);
}

static void a_touch_forgets_a_file_that_is_gone(void **state)
{
    struct fixture *f = *state;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3));
    test_world_remove(&f->world, BASE, entry_of(f));
    ckv_store_touch(f->store, "", T(1, 2, 3));
    assert_int_equal(test_stats(f->store).entries, 0);
    assert_int_equal(test_log_count(&f->world.log, "store.touch_failed"), 0);
}

static void a_touch_that_fails_is_logged(void **state)
{
    struct fixture *f = *state;
    struct test_fault fault = {.call = TEST_CALL_SET_MTIME, .nth = 1, .os_errno = EIO};
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3));
    test_faulty_io_fail(&f->world.faulty, &fault);
    ckv_store_touch(f->store, "", T(1, 2, 3));
    assert_int_equal(test_stats(f->store).entries, 1);
    assert_int_equal(test_log_count(&f->world.log, "store.touch_failed"), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(s28_invalidate_removes_what_is_stored),
        TEST(s55_other_namespaces_stay),
        TEST(an_unknown_namespace_has_nothing),
        TEST(what_other_processes_stored_goes_too),
        TEST(what_cannot_be_removed_is_reported_and_stays),
        TEST(out_of_memory_is_reported),
        TEST(a_touch_makes_an_entry_the_newest),
        TEST(a_touch_of_nothing_does_nothing),
        TEST(a_touch_forgets_a_file_that_is_gone),
        TEST(a_touch_that_fails_is_logged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

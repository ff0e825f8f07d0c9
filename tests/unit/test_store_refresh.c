/* Two stores on one directory play two processes: what one stores, removes or breaks
 * appears in the other after refresh (S31, S32, S42, S50). */
#include "lib/store_world.h"
#include "lib/unit.h"

#include <coldkv/writer.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define T TEST_TOKENS
#define FP TEST_FINGERPRINT
#define BASE FP "/base"

struct fixture {
    struct test_world world;
    struct ckv_store *store;
    struct ckv_store *other;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    test_world_init(&f->world);
    f->store = test_world_open(&f->world);
    f->other = test_world_open(&f->world);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int result;
    ckv_store_close(f->store);
    ckv_store_close(f->other);
    result = test_world_deinit(&f->world);
    free(f);
    return result;
}

static void refresh(struct fixture *f)
{
    assert_ok(ckv_store_refresh(f->store, &f->world.error), f->world.error);
}

static void pass_time(struct fixture *f)
{
    test_clock_advance(&f->world.clock, 10 * TEST_NS_PER_S);
}

static void entries_of_others_appear(void **state)
{
    struct fixture *f = *state;
    test_put(&f->world, f->other, "", CKV_CACHE_KV, T(1, 2, 3));
    test_put(&f->world, f->other, "new", CKV_CACHE_KV, T(1, 2));
    assert_int_equal(test_find(f->store, "", T(1, 2, 3, 4), NULL, NULL), 0);
    refresh(f);
    assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3, 4)), 3);
    assert_int_equal(test_restore(&f->world, f->store, "new", T(1, 2, 3, 4)), 2);
    assert_true(ckv_store_covers(f->store, "", T(1, 2, 3)));
    pass_time(f);
    test_put(&f->world, f->other, "new", CKV_CACHE_KV, T(7, 8));
    refresh(f);
    assert_int_equal(test_restore(&f->world, f->store, "new", T(7, 8, 9)), 2);
}

static void entries_removed_by_others_disappear(void **state)
{
    struct fixture *f = *state;
    struct ckv_stored stored =
        test_put(&f->world, f->other, "", CKV_CACHE_KV, T(1, 2, 3));
    refresh(f);
    assert_int_equal(test_stats(f->store).entries, 1);
    pass_time(f);
    assert_ok(ckv_store_remove(f->other, stored.id, &f->world.error), f->world.error);
    refresh(f);
    assert_int_equal(test_stats(f->store).entries, 0);
    assert_int_equal(test_find(f->store, "", T(1, 2, 3, 4), NULL, NULL), 0);
}

static void entries_superseded_by_others_are_replaced(void **state)
{
    struct fixture *f = *state;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3));
    assert_ok(ckv_store_refresh(f->other, &f->world.error), f->world.error);
    pass_time(f);
    test_put(&f->world, f->other, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    /* Not refreshed yet: the file is gone, the restore is a miss, not a fault. */
    assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3, 9)), 0);
    refresh(f);
    assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3, 9)), 3);
    assert_int_equal(test_stats(f->store).entries, 1);
}

static void own_entries_survive_a_refresh(void **state)
{
    struct fixture *f = *state;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3));
    refresh(f);
    pass_time(f);
    refresh(f);
    refresh(f);
    assert_int_equal(test_stats(f->store).entries, 1);
    assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3, 9)), 3);
}

static void an_idle_refresh_lists_and_opens_no_file(void **state)
{
    struct fixture *f = *state;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3));
    test_put(&f->world, f->store, "a", CKV_CACHE_KV, T(1, 2, 3));
    pass_time(f);
    refresh(f);
    test_faulty_io_reset(&f->world.faulty);
    refresh(f);
    assert_int_equal(f->world.faulty.counts[TEST_CALL_LIST], 0);
    assert_int_equal(f->world.faulty.counts[TEST_CALL_OPEN_FILE], 0);
    assert_int_equal(f->world.faulty.counts[TEST_CALL_READ], 0);
    assert_true(f->world.faulty.counts[TEST_CALL_ANY] <= 6);
}

static void known_files_are_not_read_again(void **state)
{
    struct fixture *f = *state;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3));
    pass_time(f);
    refresh(f);
    pass_time(f);
    test_put(&f->world, f->other, "", CKV_CACHE_KV, T(7, 8));
    test_faulty_io_reset(&f->world.faulty);
    refresh(f);
    assert_int_equal(f->world.faulty.counts[TEST_CALL_OPEN_FILE], 1);
    assert_int_equal(test_stats(f->store).entries, 2);
}

static void a_change_within_one_tick_is_seen(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_dir parent;
    /* Clocks stand still: the second put leaves the folder's time as it was. */
    test_put(&f->world, f->other, "", CKV_CACHE_KV, T(1, 2));
    refresh(f);
    test_put(&f->world, f->other, "", CKV_CACHE_KV, T(7, 8));
    parent = test_world_dir(&f->world, FP);
    refresh(f);
    assert_int_equal(test_stats(f->store).entries, 2);
    test_world_close_dir(&f->world, &parent);
}

static void a_file_in_the_making_is_not_seen(void **state)
{
    struct fixture *f = *state;
    struct test_entry *made =
        test_entry_with_tokens(CKV_CACHE_KV, (const uint32_t[]){1, 2, 3}, 3);
    struct ckv_put *put;
    assert_ok(ckv_put_begin(f->other, "", &made->entry, &made->source, NULL, &put,
                            &f->world.error),
              f->world.error);
    while (ckv_put_next(put) != CKV_STEP_PUBLISH) {
        assert_ok(ckv_put_step(put, &f->world.error), f->world.error);
        refresh(f);
        assert_int_equal(test_stats(f->store).entries, 0);
    }
    assert_ok(ckv_put_step(put, &f->world.error), f->world.error);
    refresh(f);
    assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3, 4)), 3);
    assert_ok(ckv_put_commit(put, NULL, &f->world.error), f->world.error);
    refresh(f);
    assert_int_equal(test_stats(f->store).entries, 1);
    assert_int_equal(test_stats(f->other).entries, 1);
    test_entry_destroy(made);
}

static void a_temporary_of_a_live_put_is_never_swept(void **state)
{
    struct fixture *f = *state;
    struct test_entry *made =
        test_entry_with_tokens(CKV_CACHE_KV, (const uint32_t[]){1, 2, 3}, 3);
    struct ckv_store *third;
    struct ckv_put *put;
    assert_ok(ckv_put_begin(f->other, "", &made->entry, &made->source, NULL, &put,
                            &f->world.error),
              f->world.error);
    assert_ok(ckv_put_step(put, &f->world.error), f->world.error);
    test_clock_advance(&f->world.clock, 1000 * 3600 * TEST_NS_PER_S);
    third = test_world_open(&f->world);
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(7, 8));
    assert_int_equal(test_stats(third).swept, 0);
    ckv_store_close(third);
    assert_ok(ckv_put_commit(put, NULL, &f->world.error), f->world.error);
    refresh(f);
    assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3, 4)), 3);
    test_entry_destroy(made);
}

static void a_bad_new_file_is_set_aside(void **state)
{
    struct fixture *f = *state;
    test_put(&f->world, f->other, "", CKV_CACHE_KV, T(1, 2));
    test_world_flip(&f->world, BASE, test_world_only(&f->world, BASE, ".mlxkv"), 40);
    refresh(f);
    assert_int_equal(test_stats(f->store).set_aside, 1);
    assert_int_equal(test_world_count(&f->world, BASE, ".bad"), 1);
    assert_ok(ckv_store_refresh(f->other, &f->world.error), f->world.error);
    assert_int_equal(test_stats(f->other).entries, 0);
    assert_int_equal(test_stats(f->other).set_aside, 0);
}

static void what_another_process_set_aside_disappears(void **state)
{
    struct fixture *f = *state;
    struct ckv_stored stored =
        test_put(&f->world, f->other, "", CKV_CACHE_KV, T(1, 2, 3));
    refresh(f);
    assert_ok(ckv_store_set_aside(f->other, stored.id, "bad", &f->world.error),
              f->world.error);
    assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3, 4)), 0);
    refresh(f);
    assert_int_equal(test_stats(f->store).entries, 0);
}

/* While the first store lists its folder, it stores another entry itself. */
struct nested {
    struct fixture *fixture;
    bool done;
};

static void put_meanwhile(void *ctx, const struct test_call_event *event, size_t nth)
{
    struct nested *nested = ctx;
    struct fixture *f = nested->fixture;
    (void)event;
    (void)nth;
    if (nested->done)
        return;
    nested->done = true;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(7, 8));
}

static void an_entry_stored_during_a_refresh_is_not_forgotten(void **state)
{
    static const enum test_call calls[] = {TEST_CALL_OPEN_DIR, TEST_CALL_STAT_DIR,
                                           TEST_CALL_STAT_NAME, TEST_CALL_LIST,
                                           TEST_CALL_OPEN_FILE};
    struct fixture *f = *state;
    for (size_t i = 0; i < TEST_COUNT_OF(calls); i++) {
        struct nested nested = {f, false};
        uint64_t id;
        pass_time(f);
        test_put(&f->world, f->other, "", CKV_CACHE_KV, T(1, 2, 3));
        test_faulty_io_reset(&f->world.faulty);
        f->world.faulty.hook = put_meanwhile;
        f->world.faulty.hook_ctx = &nested;
        f->world.faulty.hook_call = calls[i];
        refresh(f);
        test_faulty_io_reset(&f->world.faulty);
        assert_true(nested.done);
        assert_int_equal(test_find(f->store, "", T(7, 8, 9), &id, NULL), 2);
        assert_int_equal(test_stats(f->store).entries, 2);
        assert_ok(ckv_store_remove(f->store, id, &f->world.error), f->world.error);
        assert_int_equal(test_find(f->store, "", T(1, 2, 3, 9), &id, NULL), 3);
        assert_ok(ckv_store_remove(f->store, id, &f->world.error), f->world.error);
        assert_ok(ckv_store_refresh(f->other, &f->world.error), f->world.error);
    }
}

static void refresh_needs_a_store(void **state)
{
    (void)state;
    assert_status(ckv_store_refresh(NULL, NULL), CKV_INVALID);
}

/* --- threads --- */

#define THREADS 4
#define ROUNDS 40

struct worker {
    struct fixture *fixture;
    struct ckv_store *store;
    uint32_t number;
    size_t failures;
};

static void work_once(struct worker *worker, uint32_t round)
{
    struct ckv_store *store = worker->store;
    const uint32_t tokens[4] = {round % 5, worker->number, round, 1};
    struct test_entry *made = test_entry_with_tokens(CKV_CACHE_STATE, tokens, 3);
    struct ckv_candidate found[4];
    struct ckv_restored restored;
    struct test_target target;
    enum ckv_status status;
    size_t count;
    status = ckv_store_put(store, round % 2 ? "odd" : "", &made->entry, &made->source,
                           NULL, NULL, NULL);
    worker->failures += status != CKV_OK && status != CKV_FULL && status != CKV_AGAIN;
    test_entry_destroy(made);
    worker->failures += ckv_store_find(store, round % 2 ? "odd" : "", tokens, 4, found, 4,
                                       &count, NULL) != CKV_OK;
    test_target_init(&target);
    status = ckv_store_restore(store, round % 2 ? "odd" : "", tokens, 4, &target.target,
                               &restored, NULL);
    worker->failures += status == CKV_OK ? !target.equal : status != CKV_NOTFOUND;
    test_target_deinit(&target);
    (void)ckv_store_covers(store, "", tokens, 3);
    if (round % 7 == 0 && count > 0) {
        status = ckv_store_remove(store, found[0].id, NULL);
        worker->failures += status != CKV_OK && status != CKV_NOTFOUND;
    }
    if (round % 5 == 0)
        worker->failures += ckv_store_refresh(store, NULL) != CKV_OK;
    (void)test_stats(store);
}

static void *work(void *ctx)
{
    struct worker *worker = ctx;
    for (uint32_t round = 0; round < ROUNDS; round++)
        work_once(worker, round);
    return NULL;
}

static void threads_share_two_stores_under_one_cap(void **state)
{
    struct fixture *f = *state;
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    struct ckv_store_stats stats;
    ckv_store_close(f->store);
    ckv_store_close(f->other);
    f->world.options.cap_bytes = 12 * 20480;
    f->world.options.log.fn = NULL;
    f->store = test_world_open(&f->world);
    f->other = test_world_open(&f->world);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){f, i % 2 ? f->other : f->store, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].failures, 0);
    }
    assert_true(test_world_used(&f->world) <= f->world.options.cap_bytes);
    assert_int_equal(test_world_count(&f->world, BASE, ".part"), 0);
    assert_int_equal(test_world_count(&f->world, BASE, ".bad"), 0);
    stats = test_stats(f->store);
    assert_int_equal(stats.set_aside, 0);
    assert_int_equal(stats.foreign, 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(entries_of_others_appear),
        TEST(entries_removed_by_others_disappear),
        TEST(entries_superseded_by_others_are_replaced),
        TEST(own_entries_survive_a_refresh),
        TEST(an_idle_refresh_lists_and_opens_no_file),
        TEST(known_files_are_not_read_again),
        TEST(a_change_within_one_tick_is_seen),
        TEST(a_file_in_the_making_is_not_seen),
        TEST(a_temporary_of_a_live_put_is_never_swept),
        TEST(a_bad_new_file_is_set_aside),
        TEST(what_another_process_set_aside_disappears),
        TEST(an_entry_stored_during_a_refresh_is_not_forgotten),
        TEST(refresh_needs_a_store),
        TEST(threads_share_two_stores_under_one_cap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

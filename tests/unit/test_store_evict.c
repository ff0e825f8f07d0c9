/* The cap, the floor and who goes: spec M30, S40-S44 and the design's "The cap". The
 * entries here are of kind state: with few tokens each takes exactly ENTRY bytes. */
#include "lib/store_world.h"
#include "lib/unit.h"

#include <coldkv/writer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define T TEST_TOKENS
#define FP TEST_FINGERPRINT
#define BASE FP "/base"
#define ENTRY UINT64_C(20480)
#define UUID "01234567-89ab-4def-8123-456789abcdef"

struct fixture {
    struct test_world world;
    struct ckv_store *store;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    test_world_init(&f->world);
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

static void open_with_cap(struct fixture *f, uint64_t cap_bytes)
{
    ckv_store_close(f->store);
    f->world.options.cap_bytes = cap_bytes;
    f->store = test_world_open(&f->world);
}

/* Stores under namespace "" and lets a second pass. */
static enum ckv_status try_put(struct fixture *f, const uint32_t *tokens, size_t count)
{
    enum ckv_status status =
        test_try_put(&f->world, f->store, "", CKV_CACHE_STATE, tokens, count, NULL);
    test_clock_advance(&f->world.clock, TEST_NS_PER_S);
    return status;
}

static void put(struct fixture *f, const uint32_t *tokens, size_t count)
{
    assert_ok(try_put(f, tokens, count), f->world.error);
}

static bool has(struct fixture *f, const uint32_t *tokens, size_t count)
{
    return ckv_store_covers(f->store, "", tokens, count);
}

static const struct ckv_io *disk(struct fixture *f)
{
    return test_memory_io_table(f->world.memory);
}

/* A complete entry of another model; mtime is the clock's. */
static void save_foreign(struct fixture *f, const char *fingerprint)
{
    static const enum ckv_cache_kind kind = CKV_CACHE_STATE;
    struct test_entry *made = test_entry_create(&(struct test_entry_options){
        .fingerprint = fingerprint, .kinds = &kind, .kind_count = 1});
    char path[64];
    struct ckv_io_dir dir;
    test_world_make_dir(&f->world, "", fingerprint);
    test_world_make_dir(&f->world, fingerprint, "base");
    test_world_write(&f->world, fingerprint, "identity.json", "", 0);
    snprintf(path, sizeof path, "%s/base", fingerprint);
    dir = test_world_dir(&f->world, path);
    assert_ok(ckv_save(disk(f), dir, UUID ".mlxkv", &made->entry, &made->source, NULL,
                       &f->world.error),
              f->world.error);
    test_world_close_dir(&f->world, &dir);
    test_entry_destroy(made);
    test_clock_advance(&f->world.clock, TEST_NS_PER_S);
}

static void the_cap_holds_to_the_byte(void **state)
{
    struct fixture *f = *state;
    open_with_cap(f, 3 * ENTRY);
    put(f, T(1));
    put(f, T(2));
    put(f, T(3));
    assert_int_equal(test_stats(f->store).entries, 3);
    assert_int_equal(test_world_used(&f->world), 3 * ENTRY);
    assert_int_equal(test_stats(f->store).used_bytes, 3 * ENTRY);
    put(f, T(4));
    assert_int_equal(test_stats(f->store).entries, 3);
    assert_int_equal(test_stats(f->store).evicted, 1);
    assert_int_equal(test_world_used(&f->world), 3 * ENTRY);
    assert_false(has(f, T(1)));
    assert_true(has(f, T(2)) && has(f, T(3)) && has(f, T(4)));
    assert_int_equal(test_log_count(&f->world.log, "store.evict"), 1);
}

static void m30_one_byte_short_evicts_at_the_next_put(void **state)
{
    struct fixture *f = *state;
    open_with_cap(f, 2 * ENTRY - 1);
    put(f, T(1));
    put(f, T(2));
    assert_false(has(f, T(1)));
    assert_true(has(f, T(2)));
    assert_int_equal(test_world_count(&f->world, BASE, ""), 1);
}

static void m30_s41_the_cap_is_enforced_at_open(void **state)
{
    struct fixture *f = *state;
    open_with_cap(f, 10 * ENTRY);
    put(f, T(1));
    put(f, T(2));
    put(f, T(3));
    test_restore(&f->world, f->store, "", T(1, 9));
    open_with_cap(f, 2 * ENTRY);
    assert_int_equal(test_stats(f->store).entries, 2);
    assert_false(has(f, T(2)));
    open_with_cap(f, 2 * ENTRY - 1);
    assert_int_equal(test_stats(f->store).entries, 1);
    assert_true(has(f, T(1)));
    assert_int_equal(test_stats(f->store).used_bytes, ENTRY);
    open_with_cap(f, 0);
    assert_int_equal(test_stats(f->store).entries, 0);
}

static void a_restore_counts_as_use(void **state)
{
    struct fixture *f = *state;
    open_with_cap(f, 2 * ENTRY);
    put(f, T(1));
    put(f, T(2));
    assert_int_equal(test_restore(&f->world, f->store, "", T(1, 9)), 1);
    put(f, T(3));
    assert_true(has(f, T(1)));
    assert_false(has(f, T(2)));
}

static void a_clock_that_goes_back_does_not_make_new_entries_old(void **state)
{
    struct fixture *f = *state;
    open_with_cap(f, 2 * ENTRY);
    put(f, T(1));
    test_clock_set_realtime(&f->world.clock, TEST_CLOCK_START_NS - 1000 * TEST_NS_PER_S);
    put(f, T(2));
    put(f, T(3));
    assert_false(has(f, T(1)));
    put(f, T(4));
    assert_false(has(f, T(2)));
    assert_true(has(f, T(3)) && has(f, T(4)));
}

static void bad_files_go_first(void **state)
{
    struct fixture *f = *state;
    struct ckv_stored bad;
    open_with_cap(f, 3 * ENTRY);
    put(f, T(1));
    put(f, T(2));
    bad = test_put(&f->world, f->store, "", CKV_CACHE_STATE, T(3));
    assert_ok(ckv_store_set_aside(f->store, bad.id, "test", &f->world.error),
              f->world.error);
    assert_int_equal(test_world_used(&f->world), 3 * ENTRY); /* counted */
    put(f, T(4));
    assert_int_equal(test_world_count(&f->world, BASE, ".bad"), 0);
    assert_true(has(f, T(1)) && has(f, T(2)) && has(f, T(4)));
}

static void covered_entries_stay_until_the_new_one_is_durable(void **state)
{
    struct fixture *f = *state;
    struct test_entry *made =
        test_entry_with_tokens(CKV_CACHE_STATE, (const uint32_t[]){1, 2, 3}, 3);
    struct ckv_put *running;
    open_with_cap(f, 2 * ENTRY);
    put(f, T(1, 2));
    assert_ok(ckv_put_begin(f->store, "", &made->entry, &made->source, NULL, &running,
                            &f->world.error),
              f->world.error);
    while (ckv_put_next(running) != CKV_STEP_SYNC_DIR) {
        assert_ok(ckv_put_step(running, &f->world.error), f->world.error);
        assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 9)), 2);
    }
    assert_ok(ckv_put_step(running, &f->world.error), f->world.error);
    assert_int_equal(test_world_count(&f->world, BASE, ""), 1);
    assert_int_equal(test_stats(f->store).superseded, 1);
    assert_int_equal(test_stats(f->store).evicted, 0);
    assert_ok(ckv_put_commit(running, NULL, &f->world.error), f->world.error);
    test_entry_destroy(made);
}

static void covered_entries_go_before_other_conversations(void **state)
{
    struct fixture *f = *state;
    open_with_cap(f, 2 * ENTRY);
    put(f, T(7, 8)); /* another conversation, least recently used */
    put(f, T(1, 2));
    put(f, T(1, 2, 3));
    assert_true(has(f, T(7, 8)));
    assert_true(has(f, T(1, 2, 3)));
    assert_int_equal(test_stats(f->store).evicted, 1);
    assert_int_equal(test_stats(f->store).superseded, 0);
    assert_true(test_log_contains(&f->world.log, "store.evict", "until that one is"));
}

static void covered_entries_are_those_of_the_namespace(void **state)
{
    struct fixture *f = *state;
    open_with_cap(f, 2 * ENTRY);
    put(f, T(1, 2));
    test_put(&f->world, f->store, "other", CKV_CACHE_STATE, T(1, 2));
    put(f, T(1, 2, 3));
    assert_true(ckv_store_covers(f->store, "other", T(1, 2)));
    assert_int_equal(test_stats(f->store).entries, 2);
}

static void s41_other_models_count_and_go_when_least_recently_used(void **state)
{
    struct fixture *f = *state;
    open_with_cap(f, 2 * ENTRY);
    save_foreign(f, "other-fp");
    put(f, T(1));
    assert_int_equal(test_stats(f->store).used_bytes, 2 * ENTRY);
    put(f, T(2));
    assert_true(has(f, T(1)) && has(f, T(2)));
    assert_false(test_world_has_dir(&f->world, "other-fp"));
}

static void another_models_folder_goes_only_when_nothing_is_left_in_it(void **state)
{
    struct fixture *f = *state;
    open_with_cap(f, 2 * ENTRY);
    save_foreign(f, "other-fp");
    test_world_write(&f->world, "other-fp", "notes", "", 0);
    put(f, T(1));
    put(f, T(2));
    assert_int_equal(test_world_count(&f->world, "other-fp", ""), 2);
    assert_false(test_world_has_dir(&f->world, "other-fp/base"));
}

static void our_own_folder_stays_with_its_identity(void **state)
{
    struct fixture *f = *state;
    f->world.identity.description = "";
    open_with_cap(f, 2 * ENTRY);
    put(f, T(1));
    open_with_cap(f, 0);
    assert_int_equal(test_world_count(&f->world, FP, ""), 1);
    open_with_cap(f, 2 * ENTRY);
    put(f, T(2));
    assert_true(has(f, T(2)));
}

static void folders_removed_by_another_process_are_made_again(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_dir root;
    struct ckv_error error;
    f->world.identity.description = "";
    open_with_cap(f, 4 * ENTRY);
    put(f, T(1));
    test_world_remove(&f->world, BASE, test_world_only(&f->world, BASE, ".mlxkv"));
    test_world_remove(&f->world, FP, "identity.json");
    root = test_world_dir(&f->world, FP);
    assert_int_equal(ckv_io_remove_dir(disk(f), root, "base", &error), CKV_OK);
    test_world_close_dir(&f->world, &root);
    root = test_world_dir(&f->world, "");
    assert_int_equal(ckv_io_remove_dir(disk(f), root, FP, &error), CKV_OK);
    test_world_close_dir(&f->world, &root);
    assert_int_equal(test_find(f->store, "", T(1, 2), NULL, NULL), 1);
    assert_ok(ckv_store_refresh(f->store, &f->world.error), f->world.error);
    assert_int_equal(test_find(f->store, "", T(1, 2), NULL, NULL), 0);
    put(f, T(2));
    assert_true(has(f, T(2)));
    assert_int_equal(test_world_count(&f->world, FP, "identity.json"), 1);
}

struct nested {
    struct fixture *fixture;
    enum ckv_status status;
};

static void put_during_restore(void *ctx)
{
    struct nested *nested = ctx;
    nested->status = try_put(nested->fixture, T(50, 51));
}

static void an_entry_being_restored_is_spared(void **state)
{
    struct fixture *f = *state;
    struct nested nested = {f, CKV_OK};
    struct test_target target;
    test_target_init(&target);
    target.on_prepare = put_during_restore;
    target.on_prepare_ctx = &nested;
    open_with_cap(f, 2 * ENTRY);
    put(f, T(1));
    put(f, T(2));
    /* The restore itself makes T(1) the newest; undo that to make it the first to go. */
    test_faulty_io_fail(
        &f->world.faulty,
        &(struct test_fault){.call = TEST_CALL_SET_MTIME, .nth = 1, .os_errno = 1});
    assert_ok(
        ckv_store_restore(f->store, "", T(1, 9), &target.target, NULL, &f->world.error),
        f->world.error);
    assert_true(target.equal);
    assert_status(nested.status, CKV_OK);
    assert_true(has(f, T(1)));
    assert_false(has(f, T(2)));
    test_target_deinit(&target);
}

static void when_all_is_being_restored_the_put_is_refused(void **state)
{
    struct fixture *f = *state;
    struct nested nested = {f, CKV_OK};
    struct test_target target;
    test_target_init(&target);
    target.on_prepare = put_during_restore;
    target.on_prepare_ctx = &nested;
    open_with_cap(f, ENTRY);
    put(f, T(1));
    assert_ok(
        ckv_store_restore(f->store, "", T(1, 9), &target.target, NULL, &f->world.error),
        f->world.error);
    assert_status(nested.status, CKV_FULL);
    assert_true(has(f, T(1)));
    test_target_deinit(&target);
}

static void touch_oldest(void *ctx, const struct test_call_event *event, size_t nth)
{
    struct fixture *f = ctx;
    struct test_names names;
    struct ckv_io_dir dir;
    const char *oldest = NULL;
    int64_t oldest_ns = INT64_MAX;
    (void)event;
    if (nth > 1)
        return;
    dir = test_world_dir(&f->world, BASE);
    test_names_init(&names, disk(f), dir);
    for (size_t i = 0; i < names.count; i++) {
        int64_t mtime = test_world_stat(&f->world, BASE, names.names[i]).mtime_ns;
        if (mtime < oldest_ns) {
            oldest_ns = mtime;
            oldest = names.names[i];
        }
    }
    test_world_set_mtime(&f->world, BASE, oldest, TEST_CLOCK_START_NS * 2);
    test_names_deinit(&names);
    test_world_close_dir(&f->world, &dir);
}

static void what_another_process_used_meanwhile_is_skipped(void **state)
{
    struct fixture *f = *state;
    open_with_cap(f, 2 * ENTRY);
    put(f, T(1));
    put(f, T(2));
    test_faulty_io_reset(&f->world.faulty);
    /* Free space is asked for between the listing and the eviction. */
    f->world.faulty.hook = touch_oldest;
    f->world.faulty.hook_ctx = f;
    f->world.faulty.hook_call = TEST_CALL_SPACE;
    put(f, T(3));
    assert_true(has(f, T(1)));
    assert_false(has(f, T(2)));
}

static void a_file_that_cannot_be_removed_stays_counted(void **state)
{
    struct fixture *f = *state;
    open_with_cap(f, 2 * ENTRY);
    put(f, T(1));
    put(f, T(2));
    test_faulty_io_reset(&f->world.faulty);
    test_faulty_io_fail(
        &f->world.faulty,
        &(struct test_fault){.call = TEST_CALL_REMOVE, .nth = 1, .os_errno = 1});
    put(f, T(3));
    assert_true(has(f, T(1)));
    assert_false(has(f, T(2)));
    assert_int_equal(test_world_used(&f->world), 2 * ENTRY);
    test_faulty_io_fail(&f->world.faulty, &(struct test_fault){.call = TEST_CALL_REMOVE,
                                                               .nth = 1,
                                                               .from_then_on = true,
                                                               .os_errno = 1});
    assert_status(try_put(f, T(4)), CKV_FULL);
    assert_int_equal(test_world_used(&f->world), 2 * ENTRY);
    assert_int_equal(test_stats(f->store).entries, 2);
}

static void nothing_goes_when_it_would_not_be_enough(void **state)
{
    struct fixture *f = *state;
    char junk[8192] = {1};
    open_with_cap(f, 2 * ENTRY);
    put(f, T(1));
    test_world_write(&f->world, BASE, "not-ours", junk, sizeof junk);
    test_world_write(&f->world, "", "not-ours", junk, sizeof junk);
    test_world_write(&f->world, FP, "not-ours", junk, sizeof junk);
    assert_status(try_put(f, T(2)), CKV_FULL);
    assert_non_null(strstr(f->world.error.text, "20480"));
    assert_non_null(strstr(f->world.error.text, "40960"));
    assert_true(has(f, T(1)));
    assert_int_equal(test_stats(f->store).refused_full, 1);
    assert_int_equal(test_stats(f->store).used_bytes, ENTRY + 3 * sizeof junk);
    test_world_remove(&f->world, FP, "not-ours");
    put(f, T(2)); /* now evicting is enough */
    assert_false(has(f, T(1)));
}

static void running_puts_count_with_their_full_length(void **state)
{
    struct fixture *f = *state;
    struct test_entry *made =
        test_entry_with_tokens(CKV_CACHE_STATE, (const uint32_t[]){1}, 1);
    struct ckv_put *running;
    open_with_cap(f, 2 * ENTRY - 1);
    assert_ok(ckv_put_begin(f->store, "", &made->entry, &made->source, NULL, &running,
                            &f->world.error),
              f->world.error);
    assert_ok(ckv_put_step(running, &f->world.error), f->world.error);
    assert_int_equal(test_world_used(&f->world), 0); /* no blocks yet */
    assert_status(try_put(f, T(2)), CKV_FULL);
    assert_ok(ckv_put_commit(running, NULL, &f->world.error), f->world.error);
    assert_int_equal(test_world_used(&f->world), ENTRY);
    put(f, T(2));
    assert_false(has(f, T(1)));
    test_entry_destroy(made);
}

static void s43_below_the_floor_puts_are_refused(void **state)
{
    struct fixture *f = *state;
    const uint64_t floor = 1000000;
    f->world.options.free_floor_bytes = floor;
    open_with_cap(f, 100 * ENTRY);
    put(f, T(1));
    test_memory_io_set_space(f->world.memory, 1 << 30, floor + ENTRY - 1);
    assert_status(try_put(f, T(2)), CKV_FULL);
    assert_non_null(strstr(f->world.error.text, "1000000"));
    assert_true(test_log_contains(&f->world.log, "store.put_failed", "stay free"));
    assert_true(has(f, T(1)));
    assert_int_equal(test_stats(f->store).refused_full, 1);
    test_memory_io_set_space(f->world.memory, 1 << 30, floor + ENTRY);
    put(f, T(2));
}

static void the_floor_counts_what_running_puts_have_reserved(void **state)
{
    struct fixture *f = *state;
    const uint64_t floor = 1000000;
    struct test_entry *made =
        test_entry_with_tokens(CKV_CACHE_STATE, (const uint32_t[]){1}, 1);
    struct ckv_put *running;
    f->world.options.free_floor_bytes = floor;
    open_with_cap(f, 100 * ENTRY);
    test_memory_io_set_space(f->world.memory, 1 << 30, floor + 2 * ENTRY - 1);
    assert_ok(ckv_put_begin(f->store, "", &made->entry, &made->source, NULL, &running,
                            &f->world.error),
              f->world.error);
    assert_ok(ckv_put_step(running, &f->world.error), f->world.error);
    assert_status(try_put(f, T(2)), CKV_FULL);
    ckv_put_abort(running);
    put(f, T(2));
    test_entry_destroy(made);
}

static void what_has_to_go_for_the_cap_gives_room_over_the_floor(void **state)
{
    struct fixture *f = *state;
    const uint64_t floor = 1000000;
    f->world.options.free_floor_bytes = floor;
    open_with_cap(f, ENTRY);
    put(f, T(1));
    test_memory_io_set_space(f->world.memory, 1 << 30, floor);
    put(f, T(2));
    assert_false(has(f, T(1)));
}

static void an_unmeasurable_directory_admits_nothing(void **state)
{
    struct fixture *f = *state;
    open_with_cap(f, 2 * ENTRY);
    put(f, T(1));
    test_faulty_io_reset(&f->world.faulty);
    test_faulty_io_fail(
        &f->world.faulty,
        &(struct test_fault){.call = TEST_CALL_STAT_NAME, .nth = 4, .os_errno = 5});
    assert_status(try_put(f, T(2)), CKV_IO);
    assert_non_null(strstr(f->world.error.text, "measured"));
    assert_true(has(f, T(1)));
    assert_int_equal(test_world_count(&f->world, BASE, ""), 1);
    put(f, T(2));
}

static void s42_two_stores_share_one_cap_and_one_order(void **state)
{
    struct fixture *f = *state;
    struct ckv_store *other;
    open_with_cap(f, 3 * ENTRY);
    other = test_world_open(&f->world);
    put(f, T(1));
    test_put(&f->world, other, "", CKV_CACHE_STATE, T(2));
    test_clock_advance(&f->world.clock, TEST_NS_PER_S);
    put(f, T(3));
    assert_int_equal(test_world_used(&f->world), 3 * ENTRY);
    /* The other one restores ours: it is not the oldest any more. */
    assert_ok(ckv_store_refresh(other, &f->world.error), f->world.error);
    assert_int_equal(test_restore(&f->world, other, "", T(1, 9)), 1);
    put(f, T(4));
    assert_int_equal(test_world_used(&f->world), 3 * ENTRY);
    assert_true(has(f, T(1)) && has(f, T(3)) && has(f, T(4)));
    assert_int_equal(test_restore(&f->world, other, "", T(2, 9)), 0);
    ckv_store_close(other);
}

static void s42_concurrent_puts_of_two_stores_keep_the_cap(void **state)
{
    struct fixture *f = *state;
    struct ckv_store *stores[2];
    struct test_entry *made[2][8];
    struct ckv_put *puts[2][8] = {{NULL}};
    uint64_t reserved = 0;
    open_with_cap(f, 5 * ENTRY);
    stores[0] = f->store;
    stores[1] = test_world_open(&f->world);
    for (uint32_t i = 0; i < 16; i++) {
        const uint32_t tokens[1] = {100 + i};
        struct ckv_put **running = &puts[i % 2][i / 2];
        made[i % 2][i / 2] = test_entry_with_tokens(CKV_CACHE_STATE, tokens, 1);
        assert_ok(ckv_put_begin(stores[i % 2], "", &made[i % 2][i / 2]->entry,
                                &made[i % 2][i / 2]->source, NULL, running,
                                &f->world.error),
                  f->world.error);
        if (ckv_put_step(*running, &f->world.error) == CKV_OK)
            reserved++;
        else
            assert_string_equal(ckv_status_name(f->world.error.status), "full");
    }
    assert_int_equal(reserved, 5);
    for (size_t i = 0; i < 16; i++) {
        if (i < 5)
            assert_ok(ckv_put_commit(puts[i % 2][i / 2], NULL, &f->world.error),
                      f->world.error);
        else
            ckv_put_abort(puts[i % 2][i / 2]);
        assert_true(test_world_used(&f->world) <= 5 * ENTRY);
        test_entry_destroy(made[i % 2][i / 2]);
    }
    assert_int_equal(test_world_used(&f->world), 5 * ENTRY);
    ckv_store_close(stores[1]);
}

static void the_other_process_finds_the_lock_taken(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_dir root;
    struct ckv_io_file lock;
    open_with_cap(f, 5 * ENTRY);
    root = test_world_dir(&f->world, "");
    assert_ok(ckv_io_open_file(disk(f), root, ".lock", CKV_IO_READ_WRITE, &lock,
                               &f->world.error),
              f->world.error);
    assert_ok(disk(f)->lock(disk(f)->ctx, lock, CKV_IO_LOCK_EXCLUSIVE, &f->world.error),
              f->world.error);
    test_world_close_dir(&f->world, &root);
    assert_status(try_put(f, T(1)), CKV_AGAIN);
    assert_false(test_world_has_dir(&f->world, BASE));
    ckv_io_close_file(disk(f), &lock);
    put(f, T(1));
}

static void dead_temporaries_make_room_for_a_put(void **state)
{
    struct fixture *f = *state;
    char junk[ENTRY] = {1};
    open_with_cap(f, 2 * ENTRY);
    put(f, T(1));
    test_world_write(&f->world, BASE, "." UUID ".part", junk, sizeof junk);
    put(f, T(2));
    assert_true(has(f, T(1)) && has(f, T(2)));
    assert_int_equal(test_stats(f->store).swept, 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_cap_holds_to_the_byte),
        TEST(m30_one_byte_short_evicts_at_the_next_put),
        TEST(m30_s41_the_cap_is_enforced_at_open),
        TEST(a_restore_counts_as_use),
        TEST(a_clock_that_goes_back_does_not_make_new_entries_old),
        TEST(bad_files_go_first),
        TEST(covered_entries_stay_until_the_new_one_is_durable),
        TEST(covered_entries_go_before_other_conversations),
        TEST(covered_entries_are_those_of_the_namespace),
        TEST(s41_other_models_count_and_go_when_least_recently_used),
        TEST(another_models_folder_goes_only_when_nothing_is_left_in_it),
        TEST(our_own_folder_stays_with_its_identity),
        TEST(folders_removed_by_another_process_are_made_again),
        TEST(an_entry_being_restored_is_spared),
        TEST(when_all_is_being_restored_the_put_is_refused),
        TEST(what_another_process_used_meanwhile_is_skipped),
        TEST(a_file_that_cannot_be_removed_stays_counted),
        TEST(nothing_goes_when_it_would_not_be_enough),
        TEST(running_puts_count_with_their_full_length),
        TEST(s43_below_the_floor_puts_are_refused),
        TEST(the_floor_counts_what_running_puts_have_reserved),
        TEST(what_has_to_go_for_the_cap_gives_room_over_the_floor),
        TEST(an_unmeasurable_directory_admits_nothing),
        TEST(s42_two_stores_share_one_cap_and_one_order),
        TEST(s42_concurrent_puts_of_two_stores_keep_the_cap),
        TEST(the_other_process_finds_the_lock_taken),
        TEST(dead_temporaries_make_room_for_a_put),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

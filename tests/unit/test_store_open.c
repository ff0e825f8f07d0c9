/* Opening a directory: trust, init, layout, limits, locks, sweeping (spec M31, S51;
 * design "The cap", "Trust", "Durable publish"). */
#include "lib/store_world.h"
#include "lib/unit.h"

#include <coldkv/writer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define T TEST_TOKENS
#define FP TEST_FINGERPRINT
#define BASE FP "/base"
#define UUID "01234567-89ab-4def-8123-456789abcdef"
#define UUID2 "11234567-89ab-4def-8123-456789abcdef"
#define HOUR_NS (3600 * TEST_NS_PER_S)

static int setup(void **state)
{
    struct test_world *world = malloc(sizeof *world);
    test_world_init(world);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct test_world *world = *state;
    int result = test_world_deinit(world);
    free(world);
    return result;
}

static void open_and_close(struct test_world *world)
{
    ckv_store_close(test_world_open(world));
}

/* A store with one entry in the namespace "". */
static void make_store(struct test_world *world)
{
    struct ckv_store *store = test_world_open(world);
    test_put(world, store, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    ckv_store_close(store);
}

static const struct ckv_io *disk(struct test_world *world)
{
    return test_memory_io_table(world->memory);
}

static void open_makes_the_layout(void **state)
{
    struct test_world *world = *state;
    struct ckv_io_dir root;
    struct ckv_io_stat stat;
    open_and_close(world);
    root = test_world_dir(world, "");
    assert_ok(disk(world)->stat_dir(disk(world)->ctx, root, &stat, &world->error),
              world->error);
    assert_int_equal(stat.mode, 0700);
    test_world_close_dir(world, &root);
    assert_int_equal(test_world_stat(world, "", ".lock").mode, 0600);
    assert_int_equal(test_world_stat(world, "", FP).mode, 0700);
    assert_int_equal(test_world_count(world, "", ""), 2);
    assert_int_equal(test_world_count(world, FP, ""), 0);
    assert_int_equal(test_log_count(&world->log, "store.open"), 1);
}

static void a_new_directory_is_durable_in_its_parent(void **state)
{
    struct test_world *world = *state;
    struct ckv_io_dir root;
    struct ckv_io_stat parent;
    const struct test_memory_op *ops;
    size_t count;
    size_t synced = 0;
    test_memory_io_record(world->memory, true);
    open_and_close(world);
    assert_ok(ckv_io_open_root(disk(world), "/", false, NULL, &root, &world->error),
              world->error);
    assert_ok(ckv_io_stat_dir(disk(world), root, &parent, &world->error), world->error);
    test_world_close_dir(world, &root);
    ops = test_memory_io_ops(world->memory, &count);
    for (size_t i = 0; i < count; i++)
        synced += ops[i].kind == TEST_OP_SYNC_DIR && ops[i].node == parent.inode;
    assert_int_equal(synced, 1);
}

static void what_was_renamed_lately_is_made_durable(void **state)
{
    struct test_world *world = *state;
    make_store(world);
    test_faulty_io_reset(&world->faulty);
    open_and_close(world);
    /* root and the folder of the one namespace: nobody knows whether they were synced */
    assert_int_equal(world->faulty.counts[TEST_CALL_SYNC_DIR], 2);
    test_clock_advance(&world->clock, HOUR_NS);
    test_faulty_io_reset(&world->faulty);
    open_and_close(world);
    assert_int_equal(world->faulty.counts[TEST_CALL_SYNC_DIR], 1);
}

static void identity_json_is_written_once(void **state)
{
    struct test_world *world = *state;
    struct ckv_io_dir dir;
    size_t size;
    char *text;
    world->identity.description = "{\"engine\":\"test\"}";
    open_and_close(world);
    world->identity.description = "{\"engine\":\"other\"}";
    open_and_close(world);
    dir = test_world_dir(world, FP);
    text = test_io_read_file(disk(world), dir, "identity.json", &size);
    assert_int_equal(size, strlen("{\"engine\":\"test\"}"));
    assert_memory_equal(text, "{\"engine\":\"test\"}", size);
    free(text);
    test_world_close_dir(world, &dir);
    assert_int_equal(test_world_count(world, FP, ""), 1);
    assert_int_equal(test_world_stat(world, FP, "identity.json").mode, 0600);
}

static void identity_json_is_durable(void **state)
{
    struct test_world *world = *state;
    long synced;
    long renamed;
    world->identity.description = "{}";
    world->faulty.tracing = true;
    open_and_close(world);
    renamed = test_faulty_io_find(&world->faulty, TEST_CALL_RENAME, "identity.json", 0);
    assert_true(renamed > 0);
    synced = test_faulty_io_find(&world->faulty, TEST_CALL_SYNC_FILE, NULL, 0);
    assert_in_range(synced, 0, renamed - 1);
    assert_true(test_faulty_io_find(&world->faulty, TEST_CALL_SYNC_DIR, NULL,
                                    (size_t)renamed) > renamed);
}

static void failing_identity_json_does_not_matter(void **state)
{
    struct test_world *world = *state;
    world->identity.description = "{}";
    test_faulty_io_fail(
        &world->faulty,
        &(struct test_fault){.call = TEST_CALL_WRITE, .nth = 1, .os_errno = 28});
    open_and_close(world);
    assert_int_equal(test_world_count(world, FP, ""), 0);
    assert_int_equal(test_log_count(&world->log, "store.identity"), 1);
    open_and_close(world);
    assert_int_equal(test_world_count(world, FP, ""), 1);
}

static void arguments_are_checked(void **state)
{
    static const char *const bad[] = {"", ".", "..", ".a", "a/b", "a b", "\xff", NULL};
    struct test_world *world = *state;
    struct ckv_store *store;
    for (size_t i = 0; i < TEST_COUNT_OF(bad); i++) {
        world->identity.fingerprint = bad[i];
        assert_status(test_world_try_open(world, &store), CKV_INVALID);
        assert_null(store);
    }
    world->identity.fingerprint = FP;
    world->identity.tokenizer_hash = NULL;
    assert_status(test_world_try_open(world, &store), CKV_INVALID);
    world->identity.tokenizer_hash = "tok-test";
    assert_status(ckv_store_open("", &world->identity, &world->options, &store, NULL),
                  CKV_INVALID);
    assert_status(ckv_store_open(NULL, &world->identity, &world->options, &store, NULL),
                  CKV_INVALID);
    assert_status(ckv_store_open("/a", NULL, &world->options, &store, NULL), CKV_INVALID);
    assert_status(ckv_store_open("/a", &world->identity, &world->options, NULL, NULL),
                  CKV_INVALID);
    world->options.size = 0;
    assert_status(test_world_try_open(world, &store), CKV_INVALID);
    assert_int_equal(world->faulty.counts[TEST_CALL_ANY], 0);
    ckv_store_close(NULL);
}

static void missing_parent_is_told(void **state)
{
    struct test_world *world = *state;
    struct ckv_store *store;
    assert_status(ckv_store_open("/no/such", &world->identity, &world->options, &store,
                                 &world->error),
                  CKV_NOTFOUND);
    assert_non_null(strstr(world->error.text, "/no/such"));
}

static void a_file_in_place_of_the_directory_is_refused(void **state)
{
    struct test_world *world = *state;
    struct ckv_io_dir root;
    struct ckv_store *store;
    assert_ok(ckv_io_open_root(disk(world), "/", false, NULL, &root, &world->error),
              world->error);
    test_io_write_file(disk(world), root, "store", "x", 1);
    test_world_close_dir(world, &root);
    assert_status(test_world_try_open(world, &store), CKV_DENIED);
}

static void set_root_owner(struct test_world *world, uint32_t uid, uint32_t mode)
{
    struct ckv_io_dir root = test_world_dir(world, "");
    test_memory_io_set_owner(world->memory, root, NULL, uid, mode);
    test_world_close_dir(world, &root);
}

static void a_directory_others_may_write_to_is_denied(void **state)
{
    static const uint32_t modes[] = {0720, 0702, 0777, 01777};
    struct test_world *world = *state;
    struct ckv_store *store;
    open_and_close(world);
    for (size_t i = 0; i < TEST_COUNT_OF(modes); i++) {
        set_root_owner(world, TEST_MEMORY_UID, modes[i]);
        assert_status(test_world_try_open(world, &store), CKV_DENIED);
        assert_non_null(strstr(world->error.text, TEST_STORE_PATH));
        assert_non_null(strstr(world->error.text, "mode"));
        assert_non_null(strstr(world->error.text, "chmod go-w"));
    }
    world->options.allow_shared_dir = true;
    open_and_close(world);
    world->options.allow_shared_dir = false;
    set_root_owner(world, TEST_MEMORY_UID, 0755);
    open_and_close(world);
}

static void a_directory_of_another_user_is_denied(void **state)
{
    struct test_world *world = *state;
    struct ckv_store *store;
    open_and_close(world);
    set_root_owner(world, 7, 0777);
    assert_status(test_world_try_open(world, &store), CKV_DENIED);
    assert_non_null(strstr(world->error.text, "user 7"));
    assert_non_null(strstr(world->error.text, "allow_shared_dir"));
    world->options.allow_shared_dir = true;
    open_and_close(world);
}

static void make_root(struct test_world *world)
{
    struct ckv_io_dir root;
    assert_ok(
        ckv_io_open_root(disk(world), TEST_STORE_PATH, true, NULL, &root, &world->error),
        world->error);
    test_world_close_dir(world, &root);
}

static void an_empty_directory_becomes_a_store(void **state)
{
    struct test_world *world = *state;
    make_root(world);
    open_and_close(world);
    open_and_close(world);
}

static void a_directory_with_other_things_needs_init(void **state)
{
    struct test_world *world = *state;
    struct ckv_store *store;
    make_root(world);
    test_world_write(world, "", "thesis.doc", "x", 1);
    test_world_make_dir(world, "", "photos");
    test_world_make_dir(world, "photos", "base");
    assert_status(test_world_try_open(world, &store), CKV_REFUSED);
    assert_non_null(strstr(world->error.text, "init"));
    assert_non_null(strstr(world->error.text, TEST_STORE_PATH));
    assert_int_equal(test_world_count(world, "", ""), 2); /* nothing was made */
    world->options.init = true;
    open_and_close(world);
    world->options.init = false;
    open_and_close(world);
    assert_int_equal(test_world_count(world, "", "thesis.doc"), 1);
}

static void a_directory_with_an_entry_is_a_store(void **state)
{
    struct test_world *world = *state;
    struct ckv_store *store;
    make_store(world);
    test_world_remove(world, "", ".lock");
    store = test_world_open(world);
    assert_int_equal(test_stats(store).entries, 1);
    ckv_store_close(store);
}

static void default_limits_come_from_the_disk(void **state)
{
    const uint64_t gib = UINT64_C(1) << 30;
    struct test_world *world = *state;
    struct ckv_store *store;
    world->options.cap_bytes = CKV_DEFAULT;
    world->options.free_floor_bytes = CKV_DEFAULT;
    test_memory_io_set_space(world->memory, 100 * gib, 50 * gib);
    store = test_world_open(world);
    assert_int_equal(test_stats(store).cap_bytes, 10 * gib);
    assert_int_equal(test_stats(store).free_floor_bytes, 5 * gib);
    assert_string_equal(test_stats(store).io_name, "faulty");
    ckv_store_close(store);
    test_memory_io_set_space(world->memory, 1000 * gib, 500 * gib);
    store = test_world_open(world);
    assert_int_equal(test_stats(store).cap_bytes, 32 * gib);
    assert_int_equal(test_stats(store).free_floor_bytes, 50 * gib);
    ckv_store_close(store);
    test_memory_io_set_space(world->memory, 10 * gib, 5 * gib);
    store = test_world_open(world);
    assert_int_equal(test_stats(store).free_floor_bytes, 2 * gib);
    ckv_store_close(store);
}

static void without_locks_only_a_single_process_store_opens(void **state)
{
    struct test_world *world = *state;
    struct ckv_store *store;
    test_memory_io_set_unsupported(world->memory, true, false);
    assert_status(test_world_try_open(world, &store), CKV_UNSUPPORTED);
    assert_non_null(strstr(world->error.text, "single_process"));
    world->options.single_process = true;
    store = test_world_open(world);
    test_put(world, store, "", CKV_CACHE_KV, T(1, 2, 3));
    assert_int_equal(test_restore(world, store, "", T(1, 2, 3, 4)), 3);
    ckv_store_close(store);
    test_world_write(world, BASE, "." UUID ".part", "x", 1);
    store = test_world_open(world);
    assert_int_equal(test_world_count(world, BASE, ".part"), 0);
    ckv_store_close(store);
}

/* Holds .lock as another process would. */
static struct ckv_io_file hold_lock(struct test_world *world)
{
    struct ckv_io_dir root = test_world_dir(world, "");
    struct ckv_io_file file;
    assert_ok(ckv_io_open_file(disk(world), root, ".lock", CKV_IO_READ_WRITE, &file,
                               &world->error),
              world->error);
    assert_ok(
        disk(world)->lock(disk(world)->ctx, file, CKV_IO_LOCK_EXCLUSIVE, &world->error),
        world->error);
    test_world_close_dir(world, &root);
    return file;
}

static void a_lock_that_stays_taken_gives_up_after_five_seconds(void **state)
{
    struct test_world *world = *state;
    struct ckv_store *store;
    struct ckv_io_file held;
    open_and_close(world);
    held = hold_lock(world);
    assert_status(test_world_try_open(world, &store), CKV_AGAIN);
    assert_non_null(strstr(world->error.text, ".lock"));
    assert_in_range(world->clock.slept_ns, 4900 * TEST_NS_PER_MS, 5200 * TEST_NS_PER_MS);
    ckv_io_close_file(disk(world), &held);
    open_and_close(world);
}

static void release_lock(void *ctx, int64_t duration_ns)
{
    struct ckv_io_file *held = *(struct ckv_io_file **)ctx;
    struct test_world *world = *((struct test_world **)ctx + 1);
    (void)duration_ns;
    if (world->clock.sleep_count == 3)
        ckv_io_close_file(disk(world), held);
}

static void a_lock_that_comes_free_is_waited_for(void **state)
{
    struct test_world *world = *state;
    struct ckv_io_file held;
    void *both[2] = {&held, world};
    open_and_close(world);
    held = hold_lock(world);
    world->clock.on_sleep = release_lock;
    world->clock.on_sleep_ctx = both;
    open_and_close(world);
    assert_int_equal(world->clock.sleep_count, 3);
}

static void replace_lock(void *ctx, const struct test_call_event *event, size_t nth)
{
    struct test_world *world = ctx;
    (void)event;
    if (nth > 1)
        return;
    test_world_remove(world, "", ".lock");
    test_world_write(world, "", ".lock", "", 0);
}

static void a_lock_file_that_was_replaced_is_not_believed(void **state)
{
    struct test_world *world = *state;
    open_and_close(world);
    test_faulty_io_reset(&world->faulty);
    world->faulty.hook = replace_lock;
    world->faulty.hook_ctx = world;
    world->faulty.hook_call = TEST_CALL_LOCK;
    open_and_close(world);
    assert_int_equal(world->faulty.counts[TEST_CALL_LOCK], 2);
}

static void s51_dead_temporaries_are_swept(void **state)
{
    struct test_world *world = *state;
    struct ckv_store *store;
    make_store(world);
    test_world_write(world, BASE, "." UUID ".part", "x", 1);
    test_world_write(world, FP, "." UUID ".part", "x", 1);
    store = test_world_open(world);
    assert_int_equal(test_world_count(world, BASE, ".part"), 0);
    assert_int_equal(test_world_count(world, FP, ".part"), 0);
    assert_int_equal(test_stats(store).swept, 2);
    assert_int_equal(test_stats(store).entries, 1);
    assert_int_equal(test_log_count(&world->log, "store.sweep"), 2);
    ckv_store_close(store);
}

static void s51_live_temporaries_stay(void **state)
{
    struct test_world *world = *state;
    struct ckv_temporary live;
    struct ckv_io_dir dir;
    make_store(world);
    dir = test_world_dir(world, BASE);
    assert_ok(ckv_temporary_create(disk(world), dir, &live, &world->error), world->error);
    test_clock_advance(&world->clock, 100 * HOUR_NS);
    open_and_close(world);
    assert_int_equal(test_world_count(world, BASE, ".part"), 1);
    ckv_io_close_file(disk(world), &live.file);
    open_and_close(world);
    assert_int_equal(test_world_count(world, BASE, ".part"), 0);
    test_world_close_dir(world, &dir);
}

static void m31_temporaries_of_others_are_swept_after_an_hour(void **state)
{
    struct test_world *world = *state;
    make_store(world);
    test_world_write(world, BASE, UUID ".mlxkv.tmp", "x", 1);
    test_clock_advance(&world->clock, HOUR_NS);
    open_and_close(world);
    assert_int_equal(test_world_count(world, BASE, ".tmp"), 1);
    test_clock_advance(&world->clock, 1);
    open_and_close(world);
    assert_int_equal(test_world_count(world, BASE, ".tmp"), 0);
    assert_int_equal(test_world_count(world, BASE, ".mlxkv"), 1);
}

static void a_clock_in_the_past_sweeps_nothing_by_age(void **state)
{
    struct test_world *world = *state;
    make_store(world);
    test_world_write(world, BASE, UUID ".mlxkv.tmp", "x", 1);
    test_world_write(world, BASE, UUID ".bad", "x", 1);
    test_clock_set_realtime(&world->clock, 0);
    open_and_close(world);
    assert_int_equal(test_world_count(world, BASE, ""), 3);
}

static void swap_file(void *ctx, const struct test_call_event *event, size_t nth)
{
    struct test_world *world = ctx;
    (void)nth;
    (void)event;
    if (test_world_count(world, BASE, ".part") == 0)
        return;
    /* .lock is taken first; the temporary second. Its name now means another file. */
    test_world_remove(world, BASE, "." UUID ".part");
    test_world_write(world, BASE, "." UUID ".part", "new", 3);
}

static void the_sweeper_compares_the_inode_before_it_unlinks(void **state)
{
    struct test_world *world = *state;
    make_store(world);
    test_world_write(world, BASE, "." UUID ".part", "x", 1);
    world->faulty.hook = swap_file;
    world->faulty.hook_ctx = world;
    world->faulty.hook_call = TEST_CALL_LOCK;
    open_and_close(world);
    assert_int_equal(test_world_count(world, BASE, ".part"), 1);
}

static void bad_files_are_removed_after_seven_days(void **state)
{
    struct test_world *world = *state;
    struct ckv_store *store;
    make_store(world);
    test_world_write(world, BASE, UUID ".bad", "x", 1);
    test_clock_advance(&world->clock, 7 * 24 * HOUR_NS);
    open_and_close(world);
    assert_int_equal(test_world_count(world, BASE, ".bad"), 1);
    test_clock_advance(&world->clock, 1);
    store = test_world_open(world);
    assert_int_equal(test_world_count(world, BASE, ".bad"), 0);
    assert_int_equal(test_stats(store).swept, 0);
    assert_int_equal(test_stats(store).entries, 1);
    ckv_store_close(store);
}

static void names_that_are_not_ours_are_left_alone(void **state)
{
    static const char *const names[] = {
        "notes.txt",        "x.mlxkv",         UUID ".mlxkv.bak", "." UUID ".mlxkv",
        UUID ".bad.txt",    ".part",           "x.tmp",           ".hidden.part",
        "." UUID ".part.x", UUID "x.mlxkv.tmp"};
    struct test_world *world = *state;
    struct ckv_store *store;
    make_store(world);
    for (size_t i = 0; i < TEST_COUNT_OF(names); i++) {
        test_world_write(world, BASE, names[i], "x", 1);
        test_world_write(world, FP, names[i], "x", 1);
        test_world_write(world, "", names[i], "x", 1);
    }
    test_world_make_dir(world, FP, "0abc"); /* no spelling of ours */
    test_world_write(world, FP "/0abc", "." UUID ".part", "x", 1);
    test_world_make_dir(world, "", ".hidden");
    test_world_make_dir(world, ".hidden", "base");
    test_world_write(world, ".hidden/base", "." UUID ".part", "x", 1);
    test_clock_advance(&world->clock, 1000 * 24 * HOUR_NS);
    world->options.cap_bytes = 0; /* all that may go goes */
    store = test_world_open(world);
    assert_int_equal(test_stats(store).evicted, 1);
    ckv_store_close(store);
    assert_int_equal(test_world_count(world, BASE, ""), TEST_COUNT_OF(names));
    assert_int_equal(test_world_count(world, FP, ""), TEST_COUNT_OF(names) + 2);
    assert_int_equal(test_world_count(world, FP "/0abc", ""), 1);
    assert_int_equal(test_world_count(world, ".hidden/base", ""), 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(open_makes_the_layout),
        TEST(a_new_directory_is_durable_in_its_parent),
        TEST(what_was_renamed_lately_is_made_durable),
        TEST(identity_json_is_written_once),
        TEST(identity_json_is_durable),
        TEST(failing_identity_json_does_not_matter),
        TEST(arguments_are_checked),
        TEST(missing_parent_is_told),
        TEST(a_file_in_place_of_the_directory_is_refused),
        TEST(a_directory_others_may_write_to_is_denied),
        TEST(a_directory_of_another_user_is_denied),
        TEST(an_empty_directory_becomes_a_store),
        TEST(a_directory_with_other_things_needs_init),
        TEST(a_directory_with_an_entry_is_a_store),
        TEST(default_limits_come_from_the_disk),
        TEST(without_locks_only_a_single_process_store_opens),
        TEST(a_lock_that_stays_taken_gives_up_after_five_seconds),
        TEST(a_lock_that_comes_free_is_waited_for),
        TEST(a_lock_file_that_was_replaced_is_not_believed),
        TEST(s51_dead_temporaries_are_swept),
        TEST(s51_live_temporaries_stay),
        TEST(m31_temporaries_of_others_are_swept_after_an_hour),
        TEST(a_clock_in_the_past_sweeps_nothing_by_age),
        TEST(the_sweeper_compares_the_inode_before_it_unlinks),
        TEST(bad_files_are_removed_after_seven_days),
        TEST(names_that_are_not_ours_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a scan makes of each kind of file: bad, foreign, not to be trusted, not to be read
 * (spec M29, S33, S34; design "What a bad file is", "Trust"). */
#include "lib/store_world.h"
#include "lib/unit.h"

#include <coldkv/hash.h>
#include <coldkv/header.h>
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

/* Writes an entry past the store, with the identity that `made_of` says. */
static void save(struct test_world *world, const char *path, const char *name,
                 const struct test_entry_options *made_of)
{
    struct test_entry *made = test_entry_create(made_of);
    struct ckv_io_dir dir = test_world_dir(world, path);
    assert_ok(ckv_save(disk(world), dir, name, &made->entry, &made->source, NULL,
                       &world->error),
              world->error);
    test_world_close_dir(world, &dir);
    test_entry_destroy(made);
}

static void m29_corrupt_header_is_set_aside(void **state)
{
    struct test_world *world = *state;
    struct ckv_store *store;
    make_store(world);
    test_world_make_dir(world, "", "other-fp");
    test_world_make_dir(world, "other-fp", "base");
    test_world_write(world, "other-fp/base", UUID ".mlxkv", "garbage", 7);
    test_world_flip(world, BASE, test_world_only(world, BASE, ".mlxkv"), 25);
    store = test_world_open(world);
    assert_int_equal(test_stats(store).entries, 0);
    assert_int_equal(test_stats(store).set_aside, 1);
    assert_int_equal(test_world_count(world, BASE, ".mlxkv"), 0);
    assert_int_equal(test_world_count(world, BASE, ".bad"), 1);
    assert_int_equal(test_world_count(world, "other-fp/base", ".mlxkv"), 1);
    assert_int_equal(test_log_count(&world->log, "store.set_aside"), 1);
    assert_true(test_log_contains(&world->log, "store.set_aside", ".mlxkv"));
    ckv_store_close(store);
    test_log_clear(&world->log);
    open_and_close(world);
    assert_int_equal(test_log_count(&world->log, "store.set_aside"), 0);
}

static void a_truncated_file_is_set_aside(void **state)
{
    struct test_world *world = *state;
    struct ckv_store *store;
    struct ckv_io_dir dir;
    struct ckv_io_file file;
    make_store(world);
    dir = test_world_dir(world, BASE);
    assert_ok(ckv_io_open_file(disk(world), dir, test_world_only(world, BASE, ".mlxkv"),
                               CKV_IO_READ_WRITE, &file, &world->error),
              world->error);
    assert_ok(disk(world)->truncate(disk(world)->ctx, file, 20000, &world->error),
              world->error);
    ckv_io_close_file(disk(world), &file);
    test_world_close_dir(world, &dir);
    store = test_world_open(world);
    assert_int_equal(test_stats(store).entries, 0);
    assert_int_equal(test_world_count(world, BASE, ".bad"), 1);
    ckv_store_close(store);
}

/* Opens; the file must be there as it was, not indexed, counted as foreign once. */
static void expect_foreign(struct test_world *world, const char *name)
{
    struct ckv_store *store = test_world_open(world);
    assert_int_equal(test_stats(store).entries, 1);
    assert_int_equal(test_stats(store).foreign, 1);
    assert_int_equal(test_stats(store).set_aside, 0);
    assert_int_equal(test_log_count(&world->log, "store.foreign"), 1);
    assert_true(test_log_contains(&world->log, "store.foreign", name));
    assert_ok(ckv_store_refresh(store, &world->error), world->error);
    assert_int_equal(test_stats(store).foreign, 1);
    assert_int_equal(test_log_count(&world->log, "store.foreign"), 1);
    assert_int_equal(test_world_count(world, BASE, name), 1);
    ckv_store_close(store);
}

static void another_version_is_left_alone(void **state)
{
    struct test_world *world = *state;
    struct ckv_io_dir dir;
    struct ckv_prefix prefix;
    uint8_t *bytes;
    size_t size;
    char *version;
    make_store(world);
    dir = test_world_dir(world, BASE);
    bytes = test_io_read_file(disk(world), dir, test_world_only(world, BASE, ".mlxkv"),
                              &size);
    assert_ok(ckv_prefix_decode(bytes, size, &prefix, &world->error), world->error);
    version = strstr((char *)bytes + CKV_PREFIX_BYTES, "\"formatVersion\":3");
    version[strlen("\"formatVersion\":")] = '4';
    prefix.header_hash = ckv_wyhash(bytes + CKV_PREFIX_BYTES, prefix.header_bytes, 0);
    ckv_prefix_encode(&prefix, bytes);
    test_io_write_file(disk(world), dir, UUID ".mlxkv", bytes, size);
    free(bytes);
    test_world_close_dir(world, &dir);
    expect_foreign(world, UUID ".mlxkv");
}

static void another_magic_is_left_alone(void **state)
{
    struct test_world *world = *state;
    char bytes[100] = "something else entirely, with more than twenty-six bytes";
    make_store(world);
    test_world_write(world, BASE, UUID ".mlxkv", bytes, sizeof bytes);
    expect_foreign(world, UUID ".mlxkv");
}

static void another_fingerprint_is_left_alone(void **state)
{
    struct test_world *world = *state;
    make_store(world);
    save(world, BASE, UUID ".mlxkv", &(struct test_entry_options){.fingerprint = "fp-x"});
    expect_foreign(world, UUID ".mlxkv");
}

static void another_tokenizer_is_left_alone(void **state)
{
    struct test_world *world = *state;
    make_store(world);
    save(world, BASE, UUID ".mlxkv",
         &(struct test_entry_options){.tokenizer_hash = "tok-x"});
    expect_foreign(world, UUID ".mlxkv");
}

static void an_entry_without_metadata_is_left_alone(void **state)
{
    struct test_world *world = *state;
    make_store(world);
    save(world, BASE, UUID ".mlxkv", &(struct test_entry_options){.no_meta = true});
    expect_foreign(world, UUID ".mlxkv");
}

static void an_entry_in_the_wrong_folder_is_left_alone(void **state)
{
    struct test_world *world = *state;
    make_store(world);
    save(world, BASE, UUID ".mlxkv", &(struct test_entry_options){.ns = "alice"});
    expect_foreign(world, UUID ".mlxkv");
}

static void offsets_that_differ_from_the_tokens_are_left_alone(void **state)
{
    struct test_world *world = *state;
    struct test_entry *made;
    struct ckv_io_dir dir;
    make_store(world);
    made = test_entry_create(&(struct test_entry_options){.token_count = 3});
    made->entry.token_count = 2;
    dir = test_world_dir(world, BASE);
    assert_ok(ckv_save(disk(world), dir, UUID ".mlxkv", &made->entry, &made->source, NULL,
                       &world->error),
              world->error);
    test_world_close_dir(world, &dir);
    test_entry_destroy(made);
    expect_foreign(world, UUID ".mlxkv");
}

static void another_model_id_is_ours(void **state)
{
    struct test_world *world = *state;
    struct ckv_store *store;
    make_store(world);
    save(world, BASE, UUID ".mlxkv",
         &(struct test_entry_options){.model_id = "renamed", .token_count = 2});
    store = test_world_open(world);
    assert_int_equal(test_stats(store).entries, 2);
    ckv_store_close(store);
}

static void what_is_no_regular_file_is_left_alone(void **state)
{
    struct test_world *world = *state;
    struct ckv_io_dir dir;
    make_store(world);
    dir = test_world_dir(world, BASE);
    test_memory_io_make_other(world->memory, dir, UUID ".mlxkv");
    test_world_close_dir(world, &dir);
    expect_foreign(world, UUID ".mlxkv");
}

static void a_folder_with_an_entrys_name_is_left_alone(void **state)
{
    struct test_world *world = *state;
    make_store(world);
    test_world_make_dir(world, BASE, UUID ".mlxkv");
    expect_foreign(world, UUID ".mlxkv");
}

static void an_entry_of_another_user_is_left_alone(void **state)
{
    struct test_world *world = *state;
    struct ckv_io_dir dir;
    make_store(world);
    save(world, BASE, UUID ".mlxkv", &(struct test_entry_options){0});
    dir = test_world_dir(world, BASE);
    test_memory_io_set_owner(world->memory, dir, UUID ".mlxkv", 7, 0644);
    test_world_close_dir(world, &dir);
    expect_foreign(world, UUID ".mlxkv");
}

static void an_entry_with_two_links_is_left_alone(void **state)
{
    struct test_world *world = *state;
    struct ckv_io_dir dir;
    make_store(world);
    save(world, BASE, UUID ".mlxkv", &(struct test_entry_options){0});
    dir = test_world_dir(world, BASE);
    assert_ok(ckv_io_link(disk(world), dir, UUID ".mlxkv", dir, "second", &world->error),
              world->error);
    test_world_close_dir(world, &dir);
    expect_foreign(world, UUID ".mlxkv");
}

static void untrusted_bad_and_temporary_files_are_not_removed(void **state)
{
    struct test_world *world = *state;
    struct ckv_io_dir dir;
    make_store(world);
    test_world_write(world, BASE, UUID ".bad", "x", 1);
    test_world_write(world, BASE, "." UUID ".part", "x", 1);
    dir = test_world_dir(world, BASE);
    test_memory_io_set_owner(world->memory, dir, UUID ".bad", 7, 0666);
    assert_ok(
        ckv_io_link(disk(world), dir, "." UUID ".part", dir, "second", &world->error),
        world->error);
    test_memory_io_make_other(world->memory, dir, "." UUID2 ".part");
    test_world_close_dir(world, &dir);
    test_clock_advance(&world->clock, 1000 * 24 * HOUR_NS);
    world->options.cap_bytes = 0;
    open_and_close(world);
    assert_int_equal(test_world_count(world, BASE, ""), 4);
}

static void s34_unreadable_entries_are_left_alone(void **state)
{
    struct test_world *world = *state;
    struct ckv_store *store;
    struct ckv_io_dir dir;
    make_store(world);
    save(world, BASE, UUID ".mlxkv", &(struct test_entry_options){.token_count = 2});
    dir = test_world_dir(world, BASE);
    test_memory_io_set_owner(world->memory, dir, UUID ".mlxkv", TEST_MEMORY_UID, 0200);
    store = test_world_open(world);
    assert_int_equal(test_stats(store).entries, 1);
    assert_int_equal(test_stats(store).set_aside, 0);
    assert_true(test_log_contains(&world->log, "store.unreadable", UUID));
    /* Once it can be read and the folder changes, it is seen. */
    test_memory_io_set_owner(world->memory, dir, UUID ".mlxkv", TEST_MEMORY_UID, 0600);
    test_world_write(world, BASE, "touch", "", 0);
    assert_ok(ckv_store_refresh(store, &world->error), world->error);
    assert_int_equal(test_stats(store).entries, 2);
    ckv_store_close(store);
    test_world_close_dir(world, &dir);
}

static void s34_read_errors_leave_the_file(void **state)
{
    static const int errors[] = {5 /* EIO */, 12 /* ENOMEM */, 24 /* EMFILE */};
    struct test_world *world = *state;
    make_store(world);
    for (size_t i = 0; i < TEST_COUNT_OF(errors); i++) {
        struct ckv_store *store;
        test_faulty_io_reset(&world->faulty);
        test_faulty_io_fail(&world->faulty, &(struct test_fault){.call = TEST_CALL_READ,
                                                                 .nth = 1,
                                                                 .os_errno = errors[i]});
        if (test_world_try_open(world, &store) == CKV_OK) {
            assert_int_equal(test_stats(store).entries, 0);
            ckv_store_close(store);
        }
        assert_int_equal(test_world_count(world, BASE, ".mlxkv"), 1);
        assert_int_equal(test_world_count(world, BASE, ""), 1);
        store = test_world_open(world);
        assert_int_equal(test_stats(store).entries, 1);
        ckv_store_close(store);
    }
}

static void emfile_is_tried_again_at_the_next_refresh(void **state)
{
    struct test_world *world = *state;
    struct ckv_store *store;
    make_store(world);
    test_clock_advance(&world->clock, HOUR_NS);
    test_faulty_io_fail(
        &world->faulty,
        &(struct test_fault){.call = TEST_CALL_READ, .nth = 1, .os_errno = 24});
    store = test_world_open(world);
    assert_int_equal(test_stats(store).entries, 0);
    assert_ok(ckv_store_refresh(store, &world->error), world->error);
    assert_int_equal(test_stats(store).entries, 1);
    ckv_store_close(store);
}

static void a_short_read_leaves_the_file(void **state)
{
    struct test_world *world = *state;
    struct ckv_store *store;
    make_store(world);
    test_faulty_io_fail(
        &world->faulty,
        &(struct test_fault){.call = TEST_CALL_READ, .nth = 2, .partial_bytes = 10});
    store = test_world_open(world);
    assert_int_equal(test_stats(store).entries, 0);
    assert_int_equal(test_world_count(world, BASE, ".mlxkv"), 1);
    ckv_store_close(store);
}

static void folders_that_may_not_be_read_do_not_stop_open(void **state)
{
    struct test_world *world = *state;
    struct ckv_store *store;
    struct ckv_io_dir root;
    make_store(world);
    test_world_make_dir(world, "", "other-fp");
    root = test_world_dir(world, "");
    test_memory_io_set_owner(world->memory, root, "other-fp", 7, 0700);
    test_world_close_dir(world, &root);
    store = test_world_open(world);
    assert_int_equal(test_stats(store).entries, 1);
    assert_true(test_log_contains(&world->log, "store.unreadable", "other-fp"));
    test_put(world, store, "", CKV_CACHE_KV, T(7, 8));
    ckv_store_close(store);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(m29_corrupt_header_is_set_aside),
        TEST(a_truncated_file_is_set_aside),
        TEST(another_version_is_left_alone),
        TEST(another_magic_is_left_alone),
        TEST(another_fingerprint_is_left_alone),
        TEST(another_tokenizer_is_left_alone),
        TEST(an_entry_without_metadata_is_left_alone),
        TEST(an_entry_in_the_wrong_folder_is_left_alone),
        TEST(offsets_that_differ_from_the_tokens_are_left_alone),
        TEST(another_model_id_is_ours),
        TEST(what_is_no_regular_file_is_left_alone),
        TEST(a_folder_with_an_entrys_name_is_left_alone),
        TEST(an_entry_of_another_user_is_left_alone),
        TEST(an_entry_with_two_links_is_left_alone),
        TEST(untrusted_bad_and_temporary_files_are_not_removed),
        TEST(s34_unreadable_entries_are_left_alone),
        TEST(s34_read_errors_leave_the_file),
        TEST(emfile_is_tried_again_at_the_next_refresh),
        TEST(a_short_read_leaves_the_file),
        TEST(folders_that_may_not_be_read_do_not_stop_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

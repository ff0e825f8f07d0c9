/*
 * What every io table has to do, run on the POSIX table, on the disk in memory and on the
 * faulty table around it without a fault. What only one table can show has its own
 * program.
 */
#include "lib/faulty_io.h"
#include "lib/files.h"
#include "lib/memory_io.h"
#include "lib/temp_dir.h"
#include "lib/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    const struct ckv_io *io;
    struct ckv_io_dir dir;
    struct test_dir temp;
    struct test_memory_io *memory;
    struct test_faulty_io faulty;
    bool uses_faulty;
    int fds;
};

static struct fixture fixture;

static int open_fixture(void **state, const char *path)
{
    struct ckv_error error;
    bool made = false;
    assert_ok(ckv_io_open_root(fixture.io, path, true, &made, &fixture.dir, &error),
              error);
    assert_true(made);
    *state = &fixture;
    return 0;
}

static int set_up_posix(void **state)
{
    memset(&fixture, 0, sizeof fixture);
    fixture.io = ckv_io_posix();
    fixture.fds = test_count_fds();
    test_dir_init(&fixture.temp);
    return open_fixture(state, test_dir_path(&fixture.temp, "store"));
}

static int tear_down_posix(void **state)
{
    (void)state;
    ckv_io_close_dir(fixture.io, &fixture.dir);
    test_dir_deinit(&fixture.temp);
    return test_count_fds() == fixture.fds ? 0 : -1;
}

static int set_up_memory(void **state)
{
    memset(&fixture, 0, sizeof fixture);
    fixture.memory = test_memory_io_create(NULL);
    fixture.io = test_memory_io_table(fixture.memory);
    return open_fixture(state, "/store");
}

static int tear_down_memory(void **state)
{
    bool clean;
    (void)state;
    ckv_io_close_dir(fixture.io, &fixture.dir);
    clean = test_memory_io_clean(fixture.memory);
    if (fixture.uses_faulty) {
        clean = test_faulty_io_clean(&fixture.faulty) && clean;
        test_faulty_io_deinit(&fixture.faulty);
    }
    test_memory_io_destroy(fixture.memory);
    return clean ? 0 : -1;
}

static int set_up_faulty(void **state)
{
    memset(&fixture, 0, sizeof fixture);
    fixture.memory = test_memory_io_create(NULL);
    test_faulty_io_init(&fixture.faulty, test_memory_io_table(fixture.memory));
    fixture.uses_faulty = true;
    fixture.io = &fixture.faulty.io;
    return open_fixture(state, "/store");
}

/* Shorthands: expected success, and the fixture's table. */
static struct ckv_io_file open_ok(struct ckv_io_dir dir, const char *name,
                                  enum ckv_io_open_mode mode)
{
    struct ckv_io_file file;
    struct ckv_error error;
    assert_ok(ckv_io_open_file(fixture.io, dir, name, mode, &file, &error), error);
    return file;
}

static struct ckv_io_dir make_dir(struct ckv_io_dir parent, const char *name)
{
    struct ckv_io_dir dir;
    struct ckv_error error;
    assert_ok(ckv_io_open_dir(fixture.io, parent, name, true, NULL, &dir, &error), error);
    return dir;
}

static struct ckv_io_stat stat_ok(struct ckv_io_file file)
{
    struct ckv_io_stat found;
    struct ckv_error error;
    assert_ok(ckv_io_stat_file(fixture.io, file, &found, &error), error);
    return found;
}

static void write_ok(struct ckv_io_file file, const void *data, size_t size,
                     uint64_t offset)
{
    struct ckv_error error;
    assert_ok(ckv_io_write(fixture.io, file, data, size, offset, &error), error);
}

static void expect_bytes(struct ckv_io_file file, uint64_t offset, const void *expected,
                         size_t size)
{
    struct ckv_error error;
    size_t done;
    char *data = malloc(size + 1);
    assert_non_null(data);
    assert_ok(ckv_io_read(fixture.io, file, data, size, offset, &done, &error), error);
    assert_int_equal(done, size);
    assert_memory_equal(data, expected, size);
    free(data);
}

static void put_file(const char *name, const char *text)
{
    test_io_write_file(fixture.io, fixture.dir, name, text, strlen(text));
}

static void expect_file(const char *name, const char *text)
{
    size_t size;
    char *data = test_io_read_file(fixture.io, fixture.dir, name, &size);
    assert_string_equal(data, text);
    free(data);
}

static void the_table_is_complete(void **state)
{
    const struct ckv_io *io = fixture.io;
    (void)state;
    assert_true(strlen(io->name) > 0);
    assert_true(io->open_root && io->open_dir && io->close_dir && io->list);
    assert_true(io->sync_dir && io->space && io->stat_dir && io->stat_name);
    assert_true(io->rename && io->link && io->remove && io->remove_dir);
    assert_true(io->open_file && io->close_file && io->stat_file && io->set_mtime);
    assert_true(io->truncate && io->allocate && io->sync_file && io->lock);
    assert_true(io->unlock && io->advise && io->submit && io->wait && io->random);
    assert_non_null(io->effective_uid);
}

static void folders_are_made_once(void **state)
{
    struct ckv_io_dir first;
    struct ckv_io_dir second;
    struct ckv_io_stat found;
    struct ckv_error error;
    bool made = false;
    (void)state;
    assert_status(
        ckv_io_open_dir(fixture.io, fixture.dir, "sub", false, &made, &first, &error),
        CKV_NOTFOUND);
    assert_int_equal(error.os_errno, ENOENT);
    assert_int_equal(first.handle, -1);
    assert_ok(
        ckv_io_open_dir(fixture.io, fixture.dir, "sub", true, &made, &first, &error),
        error);
    assert_true(made);
    assert_ok(
        ckv_io_open_dir(fixture.io, fixture.dir, "sub", true, &made, &second, &error),
        error);
    assert_false(made);
    assert_ok(ckv_io_stat_dir(fixture.io, first, &found, &error), error);
    assert_int_equal(found.type, CKV_IO_TYPE_DIR);
    assert_int_equal(found.mode & 0777, 0700);
    assert_int_equal(found.owner_uid, fixture.io->effective_uid(fixture.io->ctx));
    ckv_io_close_dir(fixture.io, &first);
    ckv_io_close_dir(fixture.io, &second);
}

static void a_file_is_no_folder_and_a_folder_no_file(void **state)
{
    static const enum ckv_io_open_mode modes[] = {CKV_IO_READ, CKV_IO_READ_WRITE,
                                                  CKV_IO_CREATE_OR_OPEN};
    struct ckv_io_dir dir = make_dir(fixture.dir, "folder");
    struct ckv_io_dir wrong;
    struct ckv_io_file file;
    struct ckv_error error;
    (void)state;
    put_file("file", "x");
    assert_status(
        ckv_io_open_dir(fixture.io, fixture.dir, "file", false, NULL, &wrong, &error),
        CKV_DENIED);
    assert_status(
        ckv_io_open_dir(fixture.io, fixture.dir, "file", true, NULL, &wrong, &error),
        CKV_DENIED);
    for (size_t i = 0; i < TEST_COUNT_OF(modes); i++) {
        assert_status(
            ckv_io_open_file(fixture.io, fixture.dir, "folder", modes[i], &file, &error),
            CKV_DENIED);
        assert_int_not_equal(error.os_errno, 0);
        assert_int_equal(file.handle, -1);
    }
    assert_status(ckv_io_remove(fixture.io, fixture.dir, "folder", &error), CKV_DENIED);
    assert_status(ckv_io_remove_dir(fixture.io, fixture.dir, "file", &error), CKV_DENIED);
    ckv_io_close_dir(fixture.io, &dir);
}

static void open_modes(void **state)
{
    struct ckv_io_file file;
    struct ckv_error error;
    (void)state;
    assert_status(
        ckv_io_open_file(fixture.io, fixture.dir, "f", CKV_IO_READ, &file, &error),
        CKV_NOTFOUND);
    assert_int_equal(error.os_errno, ENOENT);
    assert_status(
        ckv_io_open_file(fixture.io, fixture.dir, "f", CKV_IO_READ_WRITE, &file, &error),
        CKV_NOTFOUND);
    file = open_ok(fixture.dir, "f", CKV_IO_CREATE_NEW);
    assert_int_equal(stat_ok(file).mode, 0600);
    assert_int_equal(stat_ok(file).size_bytes, 0);
    write_ok(file, "abc", 3, 0);
    ckv_io_close_file(fixture.io, &file);
    assert_status(
        ckv_io_open_file(fixture.io, fixture.dir, "f", CKV_IO_CREATE_NEW, &file, &error),
        CKV_EXISTS);
    file = open_ok(fixture.dir, "f", CKV_IO_CREATE_OR_OPEN);
    expect_bytes(file, 0, "abc", 3);
    ckv_io_close_file(fixture.io, &file);
    file = open_ok(fixture.dir, "g", CKV_IO_CREATE_OR_OPEN);
    assert_int_equal(stat_ok(file).mode, 0600);
    ckv_io_close_file(fixture.io, &file);
    file = open_ok(fixture.dir, "f", CKV_IO_READ);
    expect_bytes(file, 0, "abc", 3);
    assert_status(ckv_io_write(fixture.io, file, "x", 1, 0, &error), CKV_IO);
    assert_int_equal(error.os_errno, EBADF);
    ckv_io_close_file(fixture.io, &file);
    file = open_ok(fixture.dir, "f", CKV_IO_READ_WRITE);
    write_ok(file, "X", 1, 1);
    expect_bytes(file, 0, "aXc", 3);
    ckv_io_close_file(fixture.io, &file);
}

static void reads_end_at_the_end_of_the_file(void **state)
{
    struct ckv_io_file file = open_ok(fixture.dir, "f", CKV_IO_CREATE_NEW);
    struct ckv_error error;
    char data[20];
    size_t done = 99;
    (void)state;
    write_ok(file, "0123456789", 10, 0);
    assert_ok(ckv_io_read(fixture.io, file, data, 20, 4, &done, &error), error);
    assert_int_equal(done, 6);
    assert_memory_equal(data, "456789", 6);
    assert_ok(ckv_io_read(fixture.io, file, data, 20, 10, &done, &error), error);
    assert_int_equal(done, 0);
    assert_ok(ckv_io_read(fixture.io, file, data, 20, UINT64_C(1) << 40, &done, &error),
              error);
    assert_int_equal(done, 0);
    ckv_io_close_file(fixture.io, &file);
}

static void impossible_offsets_are_refused(void **state)
{
    struct ckv_io_file file = open_ok(fixture.dir, "f", CKV_IO_CREATE_NEW);
    struct ckv_error error;
    char data[4] = "abc";
    size_t done = 99;
    (void)state;
    assert_status(ckv_io_read(fixture.io, file, data, 4, UINT64_MAX, &done, &error),
                  CKV_INVALID);
    assert_int_equal(done, 0);
    assert_status(ckv_io_write(fixture.io, file, data, 4, INT64_MAX, &error),
                  CKV_INVALID);
    assert_int_equal(stat_ok(file).size_bytes, 0);
    ckv_io_close_file(fixture.io, &file);
}

static void holes_read_as_zero_and_take_no_space(void **state)
{
    static const char zeros[64];
    struct ckv_io_file file = open_ok(fixture.dir, "f", CKV_IO_CREATE_NEW);
    uint64_t far = UINT64_C(64) << 20;
    (void)state;
    write_ok(file, "end", 3, far);
    assert_int_equal(stat_ok(file).size_bytes, far + 3);
    assert_in_range(stat_ok(file).allocated_bytes, 1, far / 2);
    expect_bytes(file, 1000, zeros, 64);
    expect_bytes(file, far - 64, zeros, 64);
    expect_bytes(file, far, "end", 3);
    ckv_io_close_file(fixture.io, &file);
}

static void lengths_grow_with_zeros_and_shrink(void **state)
{
    static const char expected[12] = "abc";
    struct ckv_io_file file = open_ok(fixture.dir, "f", CKV_IO_CREATE_NEW);
    const struct ckv_io *io = fixture.io;
    struct ckv_error error;
    (void)state;
    write_ok(file, "abcdefgh", 8, 0);
    assert_ok(io->truncate(io->ctx, file, 3, &error), error);
    assert_int_equal(stat_ok(file).size_bytes, 3);
    assert_ok(io->truncate(io->ctx, file, 12, &error), error);
    expect_bytes(file, 0, expected, 12);
    assert_ok(io->truncate(io->ctx, file, UINT64_C(1) << 32, &error), error);
    assert_int_equal(stat_ok(file).size_bytes, UINT64_C(1) << 32);
    assert_in_range(stat_ok(file).allocated_bytes, 0, 1 << 20);
    assert_ok(io->truncate(io->ctx, file, 0, &error), error);
    assert_int_equal(stat_ok(file).size_bytes, 0);
    assert_int_equal(stat_ok(file).allocated_bytes, 0);
    assert_status(io->truncate(io->ctx, file, UINT64_MAX, &error), CKV_IO);
    assert_int_equal(error.os_errno, EFBIG);
    ckv_io_close_file(io, &file);
}

static void reserved_blocks_count_and_read_as_zero(void **state)
{
    static const char zeros[100];
    struct ckv_io_file file = open_ok(fixture.dir, "f", CKV_IO_CREATE_NEW);
    const struct ckv_io *io = fixture.io;
    struct ckv_error error;
    enum ckv_status status;
    (void)state;
    assert_ok(io->allocate(io->ctx, file, 0, &error), error);
    assert_int_equal(stat_ok(file).size_bytes, 0);
    status = io->allocate(io->ctx, file, 1 << 20, &error);
    if (status == CKV_UNSUPPORTED) {
        ckv_io_close_file(io, &file);
        skip();
    }
    assert_ok(status, error);
    assert_int_equal(stat_ok(file).size_bytes, 1 << 20);
    assert_in_range(stat_ok(file).allocated_bytes, 1 << 20, 2 << 20);
    expect_bytes(file, (1 << 20) - 100, zeros, 100);
    ckv_io_close_file(io, &file);
}

static void times_are_set_to_the_nanosecond_we_ask_for(void **state)
{
    static const int64_t times[] = {0, 1, INT64_C(1700000000123456789),
                                    -INT64_C(1500000000)};
    struct ckv_io_file file = open_ok(fixture.dir, "f", CKV_IO_CREATE_NEW);
    const struct ckv_io *io = fixture.io;
    struct ckv_error error;
    struct ckv_io_stat found;
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(times); i++) {
        assert_ok(io->set_mtime(io->ctx, file, times[i], &error), error);
        assert_true(stat_ok(file).mtime_ns == times[i]);
    }
    assert_ok(ckv_io_stat_name(io, fixture.dir, "f", &found, &error), error);
    assert_true(found.mtime_ns == times[TEST_COUNT_OF(times) - 1]);
    assert_true(found.ctime_ns > INT64_C(1700000000000000000));
    ckv_io_close_file(io, &file);
}

static void stat_tells_one_file_from_another(void **state)
{
    struct ckv_io_file file = open_ok(fixture.dir, "a", CKV_IO_CREATE_NEW);
    struct ckv_io_stat by_handle;
    struct ckv_io_stat by_name;
    struct ckv_io_stat other;
    struct ckv_error error;
    (void)state;
    write_ok(file, "12345", 5, 0);
    put_file("b", "12345");
    by_handle = stat_ok(file);
    assert_ok(ckv_io_stat_name(fixture.io, fixture.dir, "a", &by_name, &error), error);
    assert_ok(ckv_io_stat_name(fixture.io, fixture.dir, "b", &other, &error), error);
    assert_int_equal(by_handle.type, CKV_IO_TYPE_FILE);
    assert_int_equal(by_handle.size_bytes, 5);
    assert_int_equal(by_handle.link_count, 1);
    assert_int_equal(by_handle.owner_uid, fixture.io->effective_uid(fixture.io->ctx));
    assert_true(by_handle.device == by_name.device && by_handle.inode == by_name.inode);
    assert_true(other.device == by_handle.device && other.inode != by_handle.inode);
    assert_status(ckv_io_stat_name(fixture.io, fixture.dir, "c", &other, &error),
                  CKV_NOTFOUND);
    ckv_io_close_file(fixture.io, &file);
}

static void a_listing_gives_every_name_once(void **state)
{
    struct ckv_io_dir dir = make_dir(fixture.dir, "sub");
    struct test_names names;
    (void)state;
    for (int i = 0; i < 300; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "n%03d", i);
        test_io_write_file(fixture.io, dir, name, "", 0);
    }
    for (int round = 0; round < 2; round++) {
        test_names_init(&names, fixture.io, dir);
        assert_int_equal(names.count, 300);
        assert_string_equal(names.names[0], "n000");
        assert_string_equal(names.names[299], "n299");
        test_names_deinit(&names);
    }
    test_names_init(&names, fixture.io, fixture.dir);
    assert_int_equal(names.count, 1);
    assert_string_equal(names.names[0], "sub");
    test_names_deinit(&names);
    ckv_io_close_dir(fixture.io, &dir);
}

static enum ckv_status stop_at_second(void *ctx, const char *name)
{
    int *seen = ctx;
    (void)name;
    return ++*seen == 2 ? CKV_CANCELLED : CKV_OK;
}

static void a_listing_can_be_stopped(void **state)
{
    struct ckv_error error;
    int seen = 0;
    (void)state;
    put_file("a", "");
    put_file("b", "");
    put_file("c", "");
    assert_status(ckv_io_list(fixture.io, fixture.dir, stop_at_second, &seen, &error),
                  CKV_CANCELLED);
    assert_int_equal(seen, 2);
}

/* A listing inside a listing of the same handle: neither disturbs the other. */
static enum ckv_status list_again(void *ctx, const char *name)
{
    int *total = ctx;
    struct test_names names;
    (void)name;
    test_names_init(&names, fixture.io, fixture.dir);
    *total += (int)names.count;
    test_names_deinit(&names);
    return CKV_OK;
}

static void listings_share_no_position(void **state)
{
    struct ckv_error error;
    int total = 0;
    (void)state;
    for (int i = 0; i < 5; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "n%d", i);
        put_file(name, "");
    }
    assert_ok(ckv_io_list(fixture.io, fixture.dir, list_again, &total, &error), error);
    assert_int_equal(total, 25);
}

static void renames_move_and_replace(void **state)
{
    struct ckv_io_dir sub = make_dir(fixture.dir, "sub");
    struct ckv_error error;
    (void)state;
    put_file("a", "from a");
    put_file("b", "from b");
    assert_ok(ckv_io_rename(fixture.io, fixture.dir, "a", fixture.dir, "b", &error),
              error);
    assert_false(test_io_exists(fixture.io, fixture.dir, "a"));
    expect_file("b", "from a");
    assert_ok(ckv_io_rename(fixture.io, fixture.dir, "b", sub, "c", &error), error);
    assert_false(test_io_exists(fixture.io, fixture.dir, "b"));
    assert_true(test_io_exists(fixture.io, sub, "c"));
    assert_status(ckv_io_rename(fixture.io, fixture.dir, "gone", sub, "c", &error),
                  CKV_NOTFOUND);
    assert_true(test_io_exists(fixture.io, sub, "c"));
    assert_ok(ckv_io_rename(fixture.io, sub, "c", sub, "c", &error), error);
    assert_true(test_io_exists(fixture.io, sub, "c"));
    put_file("d", "d");
    assert_status(ckv_io_rename(fixture.io, fixture.dir, "d", fixture.dir, "sub", &error),
                  CKV_IO);
    assert_int_equal(error.os_errno, EISDIR);
    ckv_io_close_dir(fixture.io, &sub);
}

static void an_open_reader_keeps_what_was_replaced(void **state)
{
    struct ckv_io_file reader;
    struct ckv_error error;
    (void)state;
    put_file("old", "old text");
    put_file("new", "new text");
    reader = open_ok(fixture.dir, "old", CKV_IO_READ);
    assert_ok(ckv_io_rename(fixture.io, fixture.dir, "new", fixture.dir, "old", &error),
              error);
    expect_bytes(reader, 0, "old text", 8);
    assert_int_equal(stat_ok(reader).link_count, 0);
    expect_file("old", "new text");
    ckv_io_close_file(fixture.io, &reader);
}

static void a_removed_file_lives_while_it_is_open(void **state)
{
    struct ckv_io_file file = open_ok(fixture.dir, "f", CKV_IO_CREATE_NEW);
    struct ckv_error error;
    (void)state;
    write_ok(file, "abc", 3, 0);
    assert_ok(ckv_io_remove(fixture.io, fixture.dir, "f", &error), error);
    assert_false(test_io_exists(fixture.io, fixture.dir, "f"));
    assert_status(ckv_io_remove(fixture.io, fixture.dir, "f", &error), CKV_NOTFOUND);
    assert_int_equal(stat_ok(file).link_count, 0);
    write_ok(file, "def", 3, 3);
    expect_bytes(file, 0, "abcdef", 6);
    ckv_io_close_file(fixture.io, &file);
}

static void links_are_second_names(void **state)
{
    struct ckv_io_file file = open_ok(fixture.dir, "a", CKV_IO_CREATE_NEW);
    struct ckv_error error;
    (void)state;
    write_ok(file, "shared", 6, 0);
    assert_ok(ckv_io_link(fixture.io, fixture.dir, "a", fixture.dir, "b", &error), error);
    assert_int_equal(stat_ok(file).link_count, 2);
    expect_file("b", "shared");
    assert_status(ckv_io_link(fixture.io, fixture.dir, "a", fixture.dir, "b", &error),
                  CKV_EXISTS);
    assert_status(ckv_io_link(fixture.io, fixture.dir, "x", fixture.dir, "y", &error),
                  CKV_NOTFOUND);
    /* Renaming one name of a file over another name of it does nothing. */
    assert_ok(ckv_io_rename(fixture.io, fixture.dir, "a", fixture.dir, "b", &error),
              error);
    assert_true(test_io_exists(fixture.io, fixture.dir, "a"));
    assert_ok(ckv_io_remove(fixture.io, fixture.dir, "a", &error), error);
    assert_int_equal(stat_ok(file).link_count, 1);
    expect_file("b", "shared");
    ckv_io_close_file(fixture.io, &file);
}

static void only_empty_folders_are_removed(void **state)
{
    struct ckv_io_dir sub = make_dir(fixture.dir, "sub");
    struct ckv_error error;
    (void)state;
    test_io_write_file(fixture.io, sub, "f", "x", 1);
    assert_status(ckv_io_remove_dir(fixture.io, fixture.dir, "sub", &error), CKV_EXISTS);
    assert_ok(ckv_io_remove(fixture.io, sub, "f", &error), error);
    assert_ok(ckv_io_remove_dir(fixture.io, fixture.dir, "sub", &error), error);
    assert_status(ckv_io_remove_dir(fixture.io, fixture.dir, "sub", &error),
                  CKV_NOTFOUND);
    ckv_io_close_dir(fixture.io, &sub);
}

static void a_removed_folder_takes_no_new_files(void **state)
{
    struct ckv_io_dir sub = make_dir(fixture.dir, "sub");
    struct ckv_io_file file;
    struct ckv_error error;
    (void)state;
    assert_ok(ckv_io_remove_dir(fixture.io, fixture.dir, "sub", &error), error);
    assert_status(
        ckv_io_open_file(fixture.io, sub, "f", CKV_IO_CREATE_NEW, &file, &error),
        CKV_NOTFOUND);
    ckv_io_close_dir(fixture.io, &sub);
}

static void syncs_succeed(void **state)
{
    struct ckv_io_file file = open_ok(fixture.dir, "f", CKV_IO_CREATE_NEW);
    const struct ckv_io *io = fixture.io;
    struct ckv_error error;
    (void)state;
    write_ok(file, "abc", 3, 0);
    assert_ok(io->sync_file(io->ctx, file, &error), error);
    assert_ok(ckv_io_sync_dir(io, fixture.dir, &error), error);
    io->advise(io->ctx, file, 0, 0, CKV_IO_ADVICE_SEQUENTIAL);
    io->advise(io->ctx, file, 0, 3, CKV_IO_ADVICE_WILLNEED);
    io->advise(io->ctx, file, 0, 0, CKV_IO_ADVICE_DONTNEED);
    expect_bytes(file, 0, "abc", 3);
    ckv_io_close_file(io, &file);
}

static void an_exclusive_lock_keeps_others_out(void **state)
{
    const struct ckv_io *io = fixture.io;
    struct ckv_io_file one = open_ok(fixture.dir, "f", CKV_IO_CREATE_NEW);
    struct ckv_io_file two = open_ok(fixture.dir, "f", CKV_IO_READ);
    struct ckv_error error;
    (void)state;
    assert_ok(io->lock(io->ctx, one, CKV_IO_LOCK_EXCLUSIVE, &error), error);
    assert_status(io->lock(io->ctx, two, CKV_IO_LOCK_EXCLUSIVE, &error), CKV_AGAIN);
    assert_status(io->lock(io->ctx, two, CKV_IO_LOCK_SHARED, &error), CKV_AGAIN);
    assert_ok(io->lock(io->ctx, one, CKV_IO_LOCK_EXCLUSIVE, &error), error);
    assert_ok(io->unlock(io->ctx, one, &error), error);
    assert_ok(io->lock(io->ctx, two, CKV_IO_LOCK_EXCLUSIVE, &error), error);
    assert_status(io->lock(io->ctx, one, CKV_IO_LOCK_SHARED, &error), CKV_AGAIN);
    ckv_io_close_file(io, &two);
    assert_ok(io->lock(io->ctx, one, CKV_IO_LOCK_EXCLUSIVE, &error), error);
    ckv_io_close_file(io, &one);
}

static void shared_locks_share(void **state)
{
    const struct ckv_io *io = fixture.io;
    struct ckv_io_file one = open_ok(fixture.dir, "f", CKV_IO_CREATE_NEW);
    struct ckv_io_file two = open_ok(fixture.dir, "f", CKV_IO_READ_WRITE);
    struct ckv_error error;
    (void)state;
    assert_ok(io->lock(io->ctx, one, CKV_IO_LOCK_SHARED, &error), error);
    assert_ok(io->lock(io->ctx, two, CKV_IO_LOCK_SHARED, &error), error);
    ckv_io_close_file(io, &two);
    assert_ok(io->lock(io->ctx, one, CKV_IO_LOCK_EXCLUSIVE, &error), error);
    two = open_ok(fixture.dir, "f", CKV_IO_READ_WRITE);
    assert_status(io->lock(io->ctx, two, CKV_IO_LOCK_SHARED, &error), CKV_AGAIN);
    assert_ok(io->lock(io->ctx, one, CKV_IO_LOCK_SHARED, &error), error);
    assert_ok(io->lock(io->ctx, two, CKV_IO_LOCK_SHARED, &error), error);
    ckv_io_close_file(io, &one);
    ckv_io_close_file(io, &two);
}

static void many_transfers_at_once(void **state)
{
    const struct ckv_io *io = fixture.io;
    struct ckv_io_file file = open_ok(fixture.dir, "f", CKV_IO_CREATE_NEW);
    struct ckv_io_request requests[8];
    char data[8][1000];
    struct ckv_error error;
    (void)state;
    for (int i = 0; i < 8; i++) {
        memset(data[i], 'a' + i, sizeof data[i]);
        requests[i] = (struct ckv_io_request){.op = CKV_IO_OP_WRITE,
                                              .file = file,
                                              .data = data[i],
                                              .size_bytes = 1000,
                                              .offset = (uint64_t)(7 - i) * 1000};
    }
    assert_ok(io->submit(io->ctx, requests, 8, &error), error);
    assert_ok(io->wait(io->ctx, requests, 8, &error), error);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(requests[i].done_bytes, 1000);
        assert_status(requests[i].status, CKV_OK);
        requests[i].op = CKV_IO_OP_READ;
        requests[i].offset = (uint64_t)i * 1000;
    }
    requests[7].offset = 7500;
    assert_ok(io->submit(io->ctx, requests, 8, &error), error);
    assert_ok(io->wait(io->ctx, requests, 8, &error), error);
    for (int i = 0; i < 8; i++)
        assert_int_equal(data[i][0], 'a' + 7 - i);
    assert_int_equal(requests[7].done_bytes, 500);
    assert_ok(io->submit(io->ctx, requests, 0, &error), error);
    assert_ok(io->wait(io->ctx, requests, 0, &error), error);
    ckv_io_close_file(io, &file);
}

static void one_failed_transfer_leaves_the_others(void **state)
{
    const struct ckv_io *io = fixture.io;
    struct ckv_io_file good = open_ok(fixture.dir, "f", CKV_IO_CREATE_NEW);
    struct ckv_io_file readonly = open_ok(fixture.dir, "f", CKV_IO_READ);
    char text[] = "abc";
    struct ckv_io_request requests[2] = {
        {.op = CKV_IO_OP_WRITE, .file = readonly, .data = text, .size_bytes = 3},
        {.op = CKV_IO_OP_WRITE, .file = good, .data = text, .size_bytes = 3, .offset = 3},
    };
    struct ckv_error error;
    (void)state;
    assert_ok(io->submit(io->ctx, requests, 2, &error), error);
    assert_status(io->wait(io->ctx, requests, 2, &error), CKV_IO);
    assert_status(requests[0].status, CKV_IO);
    assert_int_equal(requests[0].os_errno, EBADF);
    assert_int_equal(requests[0].done_bytes, 0);
    assert_status(requests[1].status, CKV_OK);
    assert_int_equal(requests[1].done_bytes, 3);
    assert_int_equal(error.os_errno, EBADF);
    expect_bytes(good, 3, "abc", 3);
    ckv_io_close_file(io, &good);
    ckv_io_close_file(io, &readonly);
}

static void space_is_reported(void **state)
{
    struct ckv_io_space space;
    struct ckv_error error;
    (void)state;
    assert_ok(ckv_io_get_space(fixture.io, fixture.dir, &space, &error), error);
    assert_true(space.total_bytes > 0);
    assert_true(space.free_bytes <= space.total_bytes);
}

static void random_bytes_are_not_constant(void **state)
{
    const struct ckv_io *io = fixture.io;
    unsigned char one[1000] = {0};
    unsigned char two[1000] = {0};
    struct ckv_error error;
    size_t zeros = 0;
    (void)state;
    assert_ok(io->random(io->ctx, one, sizeof one, &error), error);
    assert_ok(io->random(io->ctx, two, sizeof two, &error), error);
    assert_memory_not_equal(one, two, sizeof one);
    for (size_t i = 0; i < sizeof one; i++)
        zeros += one[i] == 0;
    assert_in_range(zeros, 0, 60);
    assert_ok(io->random(io->ctx, one, 0, &error), error);
}

static void adding_a_name_changes_the_folders_time(void **state)
{
    struct ckv_io_stat before;
    struct ckv_io_stat after;
    struct ckv_error error;
    (void)state;
    assert_ok(ckv_io_stat_dir(fixture.io, fixture.dir, &before, &error), error);
    put_file("f", "x");
    assert_ok(ckv_io_stat_dir(fixture.io, fixture.dir, &after, &error), error);
    assert_true(after.mtime_ns >= before.mtime_ns);
    assert_int_equal(after.type, CKV_IO_TYPE_DIR);
}

static void errors_name_operation_and_name(void **state)
{
    struct ckv_io_file file;
    struct ckv_error error;
    (void)state;
    assert_status(
        ckv_io_open_file(fixture.io, fixture.dir, "missing", CKV_IO_READ, &file, &error),
        CKV_NOTFOUND);
    assert_non_null(strstr(error.text, "open"));
    if (!fixture.uses_faulty)
        assert_non_null(strstr(error.text, "\"missing\""));
    assert_status(error.status, CKV_NOTFOUND);
}

#define ON(table, function)                                                              \
    {                                                                                    \
#table ": " #function, function, set_up_##table, tear_down_##table, NULL         \
    }
#define tear_down_faulty tear_down_memory
#define TEST(function) ON(posix, function), ON(memory, function), ON(faulty, function)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_table_is_complete),
        TEST(folders_are_made_once),
        TEST(a_file_is_no_folder_and_a_folder_no_file),
        TEST(open_modes),
        TEST(reads_end_at_the_end_of_the_file),
        TEST(impossible_offsets_are_refused),
        TEST(holes_read_as_zero_and_take_no_space),
        TEST(lengths_grow_with_zeros_and_shrink),
        TEST(reserved_blocks_count_and_read_as_zero),
        TEST(times_are_set_to_the_nanosecond_we_ask_for),
        TEST(stat_tells_one_file_from_another),
        TEST(a_listing_gives_every_name_once),
        TEST(a_listing_can_be_stopped),
        TEST(listings_share_no_position),
        TEST(renames_move_and_replace),
        TEST(an_open_reader_keeps_what_was_replaced),
        TEST(a_removed_file_lives_while_it_is_open),
        TEST(links_are_second_names),
        TEST(only_empty_folders_are_removed),
        TEST(a_removed_folder_takes_no_new_files),
        TEST(syncs_succeed),
        TEST(an_exclusive_lock_keeps_others_out),
        TEST(shared_locks_share),
        TEST(many_transfers_at_once),
        TEST(one_failed_transfer_leaves_the_others),
        TEST(space_is_reported),
        TEST(random_bytes_are_not_constant),
        TEST(adding_a_name_changes_the_folders_time),
        TEST(errors_name_operation_and_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

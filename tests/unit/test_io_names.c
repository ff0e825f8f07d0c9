/* The checked entrance to io tables: names, handles that are none, out parameters. */
#include "lib/faulty_io.h"
#include "lib/memory_io.h"
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

struct fixture {
    struct test_memory_io *memory;
    struct test_faulty_io faulty;
    const struct ckv_io *io;
    struct ckv_io_dir dir;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    struct ckv_error error;
    fixture.memory = test_memory_io_create(NULL);
    test_faulty_io_init(&fixture.faulty, test_memory_io_table(fixture.memory));
    fixture.io = &fixture.faulty.io;
    assert_ok(ckv_io_open_root(fixture.io, "/store", true, NULL, &fixture.dir, &error),
              error);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    bool clean;
    ckv_io_close_dir(fixture->io, &fixture->dir);
    clean =
        test_faulty_io_clean(&fixture->faulty) && test_memory_io_clean(fixture->memory);
    test_faulty_io_deinit(&fixture->faulty);
    test_memory_io_destroy(fixture->memory);
    return clean ? 0 : -1;
}

/* Names that must never reach a table. The last is filled in by fill_bad_names. */
static char too_long[CKV_IO_NAME_MAX + 2];
static const char *bad_names[] = {"",   ".",    "..",  "/",  "a/b",    "/a",
                                  "a/", "../a", "./a", "//", too_long, NULL};

static void fill_bad_names(void)
{
    memset(too_long, 'n', sizeof too_long - 1);
}

static void names_are_judged(void **state)
{
    static const char *good[] = {"a", "...",  "..a",  ".a",  "a.",  " ",
                                 "-", "\x01", "\xff", "a b", "a\\b"};
    char longest[CKV_IO_NAME_MAX + 1];
    (void)state;
    fill_bad_names();
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_true(ckv_io_name_valid(longest));
    for (size_t i = 0; i < TEST_COUNT_OF(good); i++)
        assert_true(ckv_io_name_valid(good[i]));
    for (size_t i = 0; i < TEST_COUNT_OF(bad_names); i++)
        assert_false(ckv_io_name_valid(bad_names[i]));
}

/* Each call with this name must be INVALID and not reach the table. */
static void refuse_everywhere(struct fixture *f, const char *name)
{
    const struct ckv_io *io = f->io;
    struct ckv_error error;
    struct ckv_io_dir dir;
    struct ckv_io_file file;
    struct ckv_io_stat found;
    bool made = true;
    size_t before = f->faulty.counts[TEST_CALL_ANY];
    assert_status(ckv_io_open_dir(io, f->dir, name, true, &made, &dir, &error),
                  CKV_INVALID);
    assert_false(made);
    assert_int_equal(dir.handle, -1);
    assert_status(ckv_io_open_file(io, f->dir, name, CKV_IO_CREATE_NEW, &file, &error),
                  CKV_INVALID);
    assert_int_equal(file.handle, -1);
    assert_status(ckv_io_stat_name(io, f->dir, name, &found, &error), CKV_INVALID);
    assert_status(ckv_io_rename(io, f->dir, name, f->dir, "good", &error), CKV_INVALID);
    assert_status(ckv_io_rename(io, f->dir, "good", f->dir, name, &error), CKV_INVALID);
    assert_status(ckv_io_link(io, f->dir, name, f->dir, "good", &error), CKV_INVALID);
    assert_status(ckv_io_link(io, f->dir, "good", f->dir, name, &error), CKV_INVALID);
    assert_status(ckv_io_remove(io, f->dir, name, &error), CKV_INVALID);
    assert_status(ckv_io_remove_dir(io, f->dir, name, &error), CKV_INVALID);
    assert_true(strlen(error.text) > 0);
    assert_status(error.status, CKV_INVALID);
    assert_int_equal(f->faulty.counts[TEST_CALL_ANY], before);
}

static void bad_names_never_reach_the_table(void **state)
{
    fill_bad_names();
    for (size_t i = 0; i < TEST_COUNT_OF(bad_names); i++)
        refuse_everywhere(*state, bad_names[i]);
}

static void the_message_shows_the_name_escaped(void **state)
{
    struct fixture *f = *state;
    struct ckv_error error;
    assert_status(ckv_io_remove(f->io, f->dir, "a/\x1b[2J", &error), CKV_INVALID);
    assert_non_null(strstr(error.text, "a/\\x1b[2J"));
    assert_null(strchr(error.text, '\x1b'));
}

static void a_root_needs_a_path(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_dir dir;
    bool made = true;
    assert_status(ckv_io_open_root(f->io, "", true, &made, &dir, NULL), CKV_INVALID);
    assert_false(made);
    assert_int_equal(dir.handle, -1);
    assert_status(ckv_io_open_root(f->io, NULL, false, NULL, &dir, NULL), CKV_INVALID);
}

static enum ckv_status never(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
    return CKV_ENGINE;
}

static void handles_that_are_none_are_refused(void **state)
{
    struct fixture *f = *state;
    const struct ckv_io *io = f->io;
    struct ckv_io_dir none = CKV_IO_DIR_NONE;
    struct ckv_io_file no_file = CKV_IO_FILE_NONE;
    struct ckv_io_dir dir;
    struct ckv_io_file file;
    struct ckv_io_stat found;
    struct ckv_io_space space;
    size_t done = 99;
    char byte = 0;
    size_t before = f->faulty.counts[TEST_CALL_ANY];
    assert_status(ckv_io_open_dir(io, none, "a", false, NULL, &dir, NULL), CKV_INVALID);
    assert_status(ckv_io_open_file(io, none, "a", CKV_IO_READ, &file, NULL), CKV_INVALID);
    assert_status(ckv_io_list(io, none, never, NULL, NULL), CKV_INVALID);
    assert_status(ckv_io_sync_dir(io, none, NULL), CKV_INVALID);
    assert_status(ckv_io_get_space(io, none, &space, NULL), CKV_INVALID);
    assert_status(ckv_io_stat_dir(io, none, &found, NULL), CKV_INVALID);
    assert_status(ckv_io_stat_name(io, none, "a", &found, NULL), CKV_INVALID);
    assert_status(ckv_io_rename(io, f->dir, "a", none, "b", NULL), CKV_INVALID);
    assert_status(ckv_io_link(io, none, "a", f->dir, "b", NULL), CKV_INVALID);
    assert_status(ckv_io_remove(io, none, "a", NULL), CKV_INVALID);
    assert_status(ckv_io_remove_dir(io, none, "a", NULL), CKV_INVALID);
    assert_status(ckv_io_stat_file(io, no_file, &found, NULL), CKV_INVALID);
    assert_status(ckv_io_read(io, no_file, &byte, 1, 0, &done, NULL), CKV_INVALID);
    assert_int_equal(done, 0);
    assert_status(ckv_io_write(io, no_file, &byte, 1, 0, NULL), CKV_INVALID);
    ckv_io_close_dir(io, &none);
    ckv_io_close_file(io, &no_file);
    assert_int_equal(f->faulty.counts[TEST_CALL_ANY], before);
}

static void closing_sets_the_handle_to_none(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_dir dir;
    struct ckv_io_file file;
    struct ckv_error error;
    assert_ok(ckv_io_open_dir(f->io, f->dir, "sub", true, NULL, &dir, &error), error);
    assert_ok(ckv_io_open_file(f->io, dir, "x", CKV_IO_CREATE_NEW, &file, &error), error);
    assert_int_equal(f->faulty.open_files, 1);
    ckv_io_close_file(f->io, &file);
    ckv_io_close_dir(f->io, &dir);
    assert_int_equal(file.handle, -1);
    assert_int_equal(dir.handle, -1);
    assert_int_equal(f->faulty.open_files, 0);
    ckv_io_close_file(f->io, &file);
    ckv_io_close_dir(f->io, &dir);
}

static void failures_of_the_table_come_through_with_errno(void **state)
{
    struct fixture *f = *state;
    struct test_fault fault = {.call = TEST_CALL_STAT_NAME, .nth = 1, .os_errno = EIO};
    struct ckv_error error;
    struct ckv_io_stat found;
    test_faulty_io_fail(&f->faulty, &fault);
    memset(&found, 0x55, sizeof found);
    assert_status(ckv_io_stat_name(f->io, f->dir, "x", &found, &error), CKV_IO);
    assert_int_equal(error.os_errno, EIO);
    assert_int_equal(found.size_bytes, 0);
}

static void nothing_to_transfer_calls_nothing(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_file file;
    struct ckv_error error;
    size_t done = 99;
    assert_ok(ckv_io_open_file(f->io, f->dir, "x", CKV_IO_CREATE_NEW, &file, &error),
              error);
    assert_ok(ckv_io_read(f->io, file, NULL, 0, 5, &done, &error), error);
    assert_int_equal(done, 0);
    assert_ok(ckv_io_write(f->io, file, NULL, 0, 5, &error), error);
    assert_int_equal(f->faulty.counts[TEST_CALL_READ], 0);
    assert_int_equal(f->faulty.counts[TEST_CALL_WRITE], 0);
    ckv_io_close_file(f->io, &file);
}

static void a_write_that_the_table_cut_short_is_a_failure(void **state)
{
    struct fixture *f = *state;
    struct test_fault fault = {.call = TEST_CALL_WRITE, .nth = 1, .partial_bytes = 3};
    struct ckv_io_file file;
    struct ckv_error error;
    test_faulty_io_fail(&f->faulty, &fault);
    assert_ok(ckv_io_open_file(f->io, f->dir, "x", CKV_IO_CREATE_NEW, &file, &error),
              error);
    assert_status(ckv_io_write(f->io, file, "abcdef", 6, 0, &error), CKV_IO);
    ckv_io_close_file(f->io, &file);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_judged),
        TEST(bad_names_never_reach_the_table),
        TEST(the_message_shows_the_name_escaped),
        TEST(a_root_needs_a_path),
        TEST(handles_that_are_none_are_refused),
        TEST(closing_sets_the_handle_to_none),
        TEST(failures_of_the_table_come_through_with_errno),
        TEST(nothing_to_transfer_calls_nothing),
        TEST(a_write_that_the_table_cut_short_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The faulty io: it fails exactly what it is told to, and sees everything. */
#include "lib/faulty_io.h"
#include "lib/files.h"
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
    test_io_write_file(fixture.io, fixture.dir, "f", "0123456789", 10);
    test_faulty_io_reset(&fixture.faulty);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    bool clean;
    ckv_io_close_dir(f->io, &f->dir);
    clean = test_faulty_io_clean(&f->faulty) && test_memory_io_clean(f->memory);
    test_faulty_io_deinit(&f->faulty);
    test_memory_io_destroy(f->memory);
    return clean ? 0 : -1;
}

static enum ckv_status stat_f(struct fixture *f, struct ckv_error *error)
{
    struct ckv_io_stat found;
    return ckv_io_stat_name(f->io, f->dir, "f", &found, error);
}

static struct ckv_io_file open_f(struct fixture *f)
{
    struct ckv_io_file file;
    struct ckv_error error;
    assert_ok(ckv_io_open_file(f->io, f->dir, "f", CKV_IO_READ_WRITE, &file, &error),
              error);
    return file;
}

static void the_nth_call_of_a_kind_fails_once(void **state)
{
    struct fixture *f = *state;
    struct test_fault fault = {.call = TEST_CALL_STAT_NAME, .nth = 2, .os_errno = EACCES};
    struct ckv_error error;
    test_faulty_io_fail(&f->faulty, &fault);
    assert_ok(stat_f(f, &error), error);
    assert_status(stat_f(f, &error), CKV_DENIED);
    assert_int_equal(error.os_errno, EACCES);
    assert_int_equal(f->faulty.fired, 1);
    assert_ok(stat_f(f, &error), error);
    assert_int_equal(f->faulty.counts[TEST_CALL_STAT_NAME], 3);
    assert_int_equal(f->faulty.counts[TEST_CALL_ANY], 3);
}

static void counting_starts_when_the_fault_is_added(void **state)
{
    struct fixture *f = *state;
    struct test_fault fault = {.call = TEST_CALL_STAT_NAME, .nth = 1, .os_errno = EIO};
    struct ckv_error error;
    assert_ok(stat_f(f, &error), error);
    assert_ok(stat_f(f, &error), error);
    test_faulty_io_fail(&f->faulty, &fault);
    assert_status(stat_f(f, &error), CKV_IO);
    assert_ok(stat_f(f, &error), error);
    test_faulty_io_fail_nth(&f->faulty, 2, EACCES, false);
    assert_ok(stat_f(f, &error), error);
    assert_status(stat_f(f, &error), CKV_DENIED);
}

static void or_from_then_on(void **state)
{
    struct fixture *f = *state;
    struct test_fault fault = {
        .call = TEST_CALL_STAT_NAME, .nth = 2, .os_errno = EIO, .from_then_on = true};
    struct ckv_io_stat found;
    struct ckv_error error;
    test_faulty_io_fail(&f->faulty, &fault);
    assert_ok(stat_f(f, &error), error);
    assert_status(stat_f(f, &error), CKV_IO);
    assert_status(stat_f(f, &error), CKV_IO);
    assert_ok(ckv_io_stat_dir(f->io, f->dir, &found, &error), error);
}

/* A sweep: each call of a scenario fails once, and the sweep knows when it is through. */
static void a_sweep_meets_every_call(void **state)
{
    struct fixture *f = *state;
    size_t nth;
    for (nth = 1;; nth++) {
        struct ckv_io_stat found;
        int failed = 0;
        test_faulty_io_reset(&f->faulty);
        test_faulty_io_fail_nth(&f->faulty, nth, EIO, false);
        failed += stat_f(f, NULL) != CKV_OK;
        failed += ckv_io_stat_dir(f->io, f->dir, &found, NULL) != CKV_OK;
        failed += ckv_io_sync_dir(f->io, f->dir, NULL) != CKV_OK;
        if (f->faulty.fired == 0) {
            assert_int_equal(failed, 0);
            break;
        }
        assert_int_equal(failed, 1);
    }
    assert_int_equal(nth, 4);
}

static void a_status_can_be_given(void **state)
{
    struct fixture *f = *state;
    struct test_fault fault = {
        .call = TEST_CALL_LOCK, .nth = 1, .os_errno = ENOLCK, .status = CKV_UNSUPPORTED};
    struct ckv_io_file file = open_f(f);
    struct ckv_error error;
    test_faulty_io_fail(&f->faulty, &fault);
    assert_status(f->io->lock(f->io->ctx, file, CKV_IO_LOCK_SHARED, &error),
                  CKV_UNSUPPORTED);
    assert_int_equal(error.os_errno, ENOLCK);
    ckv_io_close_file(f->io, &file);
}

static void an_answer_can_be_lost(void **state)
{
    struct fixture *f = *state;
    struct test_fault rename = {
        .call = TEST_CALL_RENAME, .nth = 1, .os_errno = EIO, .after = true};
    struct test_fault open = {
        .call = TEST_CALL_OPEN_FILE, .nth = 1, .os_errno = EIO, .after = true};
    struct ckv_io_file file;
    struct ckv_error error;
    test_faulty_io_fail(&f->faulty, &rename);
    test_faulty_io_fail(&f->faulty, &open);
    assert_status(ckv_io_rename(f->io, f->dir, "f", f->dir, "g", &error), CKV_IO);
    assert_true(test_io_exists(f->io, f->dir, "g"));
    assert_status(
        ckv_io_open_file(f->io, f->dir, "new", CKV_IO_CREATE_NEW, &file, &error), CKV_IO);
    assert_int_equal(file.handle, -1);
    assert_int_equal(f->faulty.open_files, 0);
    assert_true(test_io_exists(f->io, f->dir, "new"));
}

static void a_read_can_be_cut_short(void **state)
{
    struct fixture *f = *state;
    struct test_fault fault = {
        .call = TEST_CALL_READ, .nth = 2, .from_then_on = true, .partial_bytes = 4};
    struct ckv_io_file file = open_f(f);
    struct ckv_error error;
    char data[11] = "..........";
    size_t done;
    test_faulty_io_fail(&f->faulty, &fault);
    assert_ok(ckv_io_read(f->io, file, data, 10, 0, &done, &error), error);
    assert_int_equal(done, 10);
    memset(data, '.', 10);
    assert_ok(ckv_io_read(f->io, file, data, 10, 0, &done, &error), error);
    assert_int_equal(done, 4);
    assert_string_equal(data, "0123......");
    assert_int_equal(f->faulty.read_bytes, 14);
    ckv_io_close_file(f->io, &file);
}

static void a_file_can_look_empty(void **state)
{
    struct fixture *f = *state;
    struct test_fault fault = {.call = TEST_CALL_READ, .nth = 1};
    struct ckv_io_file file = open_f(f);
    struct ckv_error error;
    char data[10];
    size_t done = 99;
    test_faulty_io_fail(&f->faulty, &fault);
    assert_ok(ckv_io_read(f->io, file, data, 10, 0, &done, &error), error);
    assert_int_equal(done, 0);
    ckv_io_close_file(f->io, &file);
}

static void a_write_can_get_halfway(void **state)
{
    struct fixture *f = *state;
    struct test_fault fault = {
        .call = TEST_CALL_WRITE, .nth = 1, .os_errno = ENOSPC, .partial_bytes = 3};
    struct ckv_io_file file = open_f(f);
    struct ckv_error error;
    char text[] = "abcdef";
    char data[11] = "";
    struct ckv_io_request request = {
        .op = CKV_IO_OP_WRITE, .file = file, .data = text, .size_bytes = 6};
    size_t done;
    test_faulty_io_fail(&f->faulty, &fault);
    assert_ok(f->io->submit(f->io->ctx, &request, 1, &error), error);
    assert_status(f->io->wait(f->io->ctx, &request, 1, &error), CKV_NOSPACE);
    assert_status(request.status, CKV_NOSPACE);
    assert_int_equal(request.os_errno, ENOSPC);
    assert_int_equal(request.done_bytes, 3);
    assert_ok(ckv_io_read(f->io, file, data, 10, 0, &done, &error), error);
    assert_string_equal(data, "abc3456789");
    ckv_io_close_file(f->io, &file);
}

static void one_request_of_many_can_fail(void **state)
{
    struct fixture *f = *state;
    struct test_fault fault = {.call = TEST_CALL_READ, .nth = 2, .os_errno = EIO};
    struct ckv_io_file file = open_f(f);
    struct ckv_io_request requests[3];
    struct ckv_error error;
    char data[3][2];
    memset(data, '.', sizeof data);
    for (size_t i = 0; i < 3; i++)
        requests[i] = (struct ckv_io_request){.op = CKV_IO_OP_READ,
                                              .file = file,
                                              .data = data[i],
                                              .size_bytes = 2,
                                              .offset = 2 * i};
    test_faulty_io_fail(&f->faulty, &fault);
    assert_ok(f->io->submit(f->io->ctx, requests, 3, &error), error);
    assert_false(test_faulty_io_clean(&f->faulty));
    assert_status(f->io->wait(f->io->ctx, requests, 3, &error), CKV_IO);
    assert_status(requests[0].status, CKV_OK);
    assert_status(requests[1].status, CKV_IO);
    assert_status(requests[2].status, CKV_OK);
    assert_memory_equal(data, "01..45", 6);
    ckv_io_close_file(f->io, &file);
}

/* Removes "f" just before it is opened. */
static void remove_f(void *ctx, const struct test_call_event *event, size_t nth)
{
    struct fixture *f = ctx;
    const struct ckv_io *inner = f->faulty.inner;
    assert_int_equal(event->call, TEST_CALL_OPEN_FILE);
    assert_string_equal(event->name, "f");
    if (nth == 2)
        assert_status(ckv_io_remove(inner, f->dir, "f", NULL), CKV_OK);
}

static void a_hook_acts_just_before_a_call(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_file file;
    struct ckv_error error;
    f->faulty.hook = remove_f;
    f->faulty.hook_ctx = f;
    f->faulty.hook_call = TEST_CALL_OPEN_FILE;
    assert_ok(stat_f(f, &error), error);
    file = open_f(f);
    ckv_io_close_file(f->io, &file);
    assert_status(ckv_io_open_file(f->io, f->dir, "f", CKV_IO_READ, &file, &error),
                  CKV_NOTFOUND);
}

static void the_trace_shows_the_order(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_file file;
    struct ckv_error error;
    long written;
    long renamed;
    f->faulty.tracing = true;
    file = open_f(f);
    assert_ok(ckv_io_write(f->io, file, "x", 1, 0, &error), error);
    assert_ok(f->io->sync_file(f->io->ctx, file, &error), error);
    assert_ok(ckv_io_rename(f->io, f->dir, "f", f->dir, "g", &error), error);
    assert_ok(ckv_io_sync_dir(f->io, f->dir, &error), error);
    ckv_io_close_file(f->io, &file);
    written = test_faulty_io_find(&f->faulty, TEST_CALL_WRITE, NULL, 0);
    renamed = test_faulty_io_find(&f->faulty, TEST_CALL_RENAME, "g", 0);
    assert_true(written >= 0);
    assert_true(test_faulty_io_find(&f->faulty, TEST_CALL_SYNC_FILE, NULL, 0) > written);
    assert_true(renamed > written);
    assert_true(test_faulty_io_find(&f->faulty, TEST_CALL_SYNC_DIR, NULL,
                                    (size_t)renamed) > renamed);
    assert_int_equal(test_faulty_io_find(&f->faulty, TEST_CALL_REMOVE, NULL, 0), -1);
    assert_int_equal(test_faulty_io_find(&f->faulty, TEST_CALL_RENAME, "other", 0), -1);
}

static void open_things_are_counted(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_dir dir;
    struct ckv_io_file file;
    struct ckv_io_file none;
    struct ckv_error error;
    assert_ok(ckv_io_open_dir(f->io, f->dir, "sub", true, NULL, &dir, &error), error);
    assert_int_equal(f->faulty.open_dirs, 2);
    file = open_f(f);
    assert_int_equal(f->faulty.open_files, 1);
    assert_false(test_faulty_io_clean(&f->faulty));
    assert_status(ckv_io_open_file(f->io, dir, "none", CKV_IO_READ, &none, &error),
                  CKV_NOTFOUND);
    assert_int_equal(f->faulty.open_files, 1);
    ckv_io_close_file(f->io, &file);
    ckv_io_close_dir(f->io, &dir);
    assert_int_equal(f->faulty.open_files, 0);
    assert_int_equal(f->faulty.open_dirs, 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_nth_call_of_a_kind_fails_once),
        TEST(counting_starts_when_the_fault_is_added),
        TEST(or_from_then_on),
        TEST(a_sweep_meets_every_call),
        TEST(a_status_can_be_given),
        TEST(an_answer_can_be_lost),
        TEST(a_read_can_be_cut_short),
        TEST(a_file_can_look_empty),
        TEST(a_write_can_get_halfway),
        TEST(one_request_of_many_can_fail),
        TEST(a_hook_acts_just_before_a_call),
        TEST(the_trace_shows_the_order),
        TEST(open_things_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

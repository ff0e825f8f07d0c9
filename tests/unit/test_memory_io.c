/*
 * The disk in memory, where it can do more than a real one: owners, space, clocks, the
 * log. What it has in common with the POSIX table is in test_io_contract.c.
 */
#include "lib/fake_clock.h"
#include "lib/files.h"
#include "lib/memory_io.h"
#include "lib/unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    struct test_memory_io *memory;
    const struct ckv_io *io;
    struct test_clock clock;
    struct ckv_io_dir dir;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    struct ckv_error error;
    test_clock_init(&fixture.clock);
    fixture.memory = test_memory_io_create(&fixture.clock.clock);
    fixture.io = test_memory_io_table(fixture.memory);
    assert_ok(ckv_io_open_root(fixture.io, "/store", true, NULL, &fixture.dir, &error),
              error);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    bool clean;
    ckv_io_close_dir(f->io, &f->dir);
    clean = test_memory_io_clean(f->memory);
    test_memory_io_destroy(f->memory);
    test_clock_deinit(&f->clock);
    return clean ? 0 : -1;
}

static struct ckv_io_file create(struct fixture *f, const char *name)
{
    struct ckv_io_file file;
    struct ckv_error error;
    assert_ok(ckv_io_open_file(f->io, f->dir, name, CKV_IO_CREATE_NEW, &file, &error),
              error);
    return file;
}

static struct ckv_io_stat stat_of(struct fixture *f, const char *name)
{
    struct ckv_io_stat found;
    struct ckv_error error;
    assert_ok(ckv_io_stat_name(f->io, f->dir, name, &found, &error), error);
    return found;
}

static void paths_lead_from_the_root(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_dir dir;
    struct ckv_error error;
    bool made;
    assert_ok(ckv_io_open_root(f->io, "/store/sub/", true, &made, &dir, &error), error);
    assert_true(made);
    ckv_io_close_dir(f->io, &dir);
    assert_ok(ckv_io_open_dir(f->io, f->dir, "sub", false, NULL, &dir, &error), error);
    ckv_io_close_dir(f->io, &dir);
    assert_ok(ckv_io_open_root(f->io, "/", false, NULL, &dir, &error), error);
    ckv_io_close_dir(f->io, &dir);
    assert_status(ckv_io_open_root(f->io, "/a/b", true, &made, &dir, &error),
                  CKV_NOTFOUND);
    assert_false(made);
}

static void times_come_from_the_clock(void **state)
{
    struct fixture *f = *state;
    const int64_t start = TEST_CLOCK_START_NS;
    struct ckv_io_file file = create(f, "f");
    struct ckv_io_stat dir;
    struct ckv_error error;
    assert_true(stat_of(f, "f").mtime_ns == start);
    test_clock_advance(&f->clock, 10);
    assert_ok(ckv_io_write(f->io, file, "x", 1, 0, &error), error);
    assert_true(stat_of(f, "f").mtime_ns == start + 10);
    test_clock_advance(&f->clock, 10);
    assert_ok(f->io->set_mtime(f->io->ctx, file, 5, &error), error);
    assert_true(stat_of(f, "f").mtime_ns == 5);
    assert_true(stat_of(f, "f").ctime_ns == start + 20);
    assert_ok(ckv_io_stat_dir(f->io, f->dir, &dir, &error), error);
    assert_true(dir.mtime_ns == start);
    test_clock_advance(&f->clock, 10);
    assert_ok(ckv_io_rename(f->io, f->dir, "f", f->dir, "g", &error), error);
    assert_ok(ckv_io_stat_dir(f->io, f->dir, &dir, &error), error);
    assert_true(dir.mtime_ns == start + 30);
    assert_true(stat_of(f, "g").ctime_ns == start + 30);
    assert_true(stat_of(f, "g").mtime_ns == 5);
    ckv_io_close_file(f->io, &file);
}

static void space_runs_out_and_comes_back(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_file file = create(f, "f");
    struct ckv_io_space space;
    struct ckv_error error;
    char *data = calloc(1, 100000);
    struct ckv_io_request request = {
        .op = CKV_IO_OP_WRITE, .file = file, .data = data, .size_bytes = 100000};
    test_memory_io_set_space(f->memory, 1 << 20, 3 * TEST_MEMORY_BLOCK);
    assert_ok(f->io->submit(f->io->ctx, &request, 1, &error), error);
    assert_status(f->io->wait(f->io->ctx, &request, 1, &error), CKV_NOSPACE);
    assert_int_equal(request.os_errno, ENOSPC);
    assert_int_equal(request.done_bytes, 3 * TEST_MEMORY_BLOCK);
    assert_ok(ckv_io_get_space(f->io, f->dir, &space, &error), error);
    assert_int_equal(space.total_bytes, 1 << 20);
    assert_int_equal(space.free_bytes, 0);
    /* What is there can be written over without new blocks. */
    assert_ok(ckv_io_write(f->io, file, data, 3 * TEST_MEMORY_BLOCK, 0, &error), error);
    assert_ok(ckv_io_remove(f->io, f->dir, "f", &error), error);
    assert_ok(ckv_io_get_space(f->io, f->dir, &space, &error), error);
    assert_int_equal(space.free_bytes, 0);
    ckv_io_close_file(f->io, &file);
    assert_ok(ckv_io_get_space(f->io, f->dir, &space, &error), error);
    assert_int_equal(space.free_bytes, 3 * TEST_MEMORY_BLOCK);
    assert_int_equal(test_memory_io_used_bytes(f->memory), 0);
    free(data);
}

static void a_reservation_takes_all_or_nothing(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_file file = create(f, "f");
    struct ckv_error error;
    test_memory_io_set_space(f->memory, 1 << 20, 10 * TEST_MEMORY_BLOCK);
    assert_status(f->io->allocate(f->io->ctx, file, 10 * TEST_MEMORY_BLOCK + 1, &error),
                  CKV_NOSPACE);
    assert_int_equal(stat_of(f, "f").allocated_bytes, 0);
    assert_ok(f->io->allocate(f->io->ctx, file, 10 * TEST_MEMORY_BLOCK, &error), error);
    assert_int_equal(stat_of(f, "f").allocated_bytes, 10 * TEST_MEMORY_BLOCK);
    ckv_io_close_file(f->io, &file);
}

static void owners_and_modes_are_obeyed(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_file file = create(f, "f");
    struct ckv_error error;
    ckv_io_close_file(f->io, &file);
    test_memory_io_set_owner(f->memory, f->dir, "f", 7, 0640);
    assert_int_equal(stat_of(f, "f").owner_uid, 7);
    assert_int_equal(stat_of(f, "f").mode, 0640);
    assert_status(ckv_io_open_file(f->io, f->dir, "f", CKV_IO_READ, &file, &error),
                  CKV_DENIED);
    assert_int_equal(error.os_errno, EACCES);
    test_memory_io_set_owner(f->memory, f->dir, "f", 7, 0644);
    assert_ok(ckv_io_open_file(f->io, f->dir, "f", CKV_IO_READ, &file, &error), error);
    ckv_io_close_file(f->io, &file);
    assert_status(ckv_io_open_file(f->io, f->dir, "f", CKV_IO_READ_WRITE, &file, &error),
                  CKV_DENIED);
    test_memory_io_set_uid(f->memory, 0);
    assert_int_equal(f->io->effective_uid(f->io->ctx), 0);
    assert_ok(ckv_io_open_file(f->io, f->dir, "f", CKV_IO_READ_WRITE, &file, &error),
              error);
    ckv_io_close_file(f->io, &file);
}

static void a_folder_without_write_permission_keeps_its_names(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_file file = create(f, "f");
    struct ckv_error error;
    ckv_io_close_file(f->io, &file);
    test_memory_io_set_owner(f->memory, f->dir, NULL, TEST_MEMORY_UID, 0500);
    assert_status(ckv_io_open_file(f->io, f->dir, "g", CKV_IO_CREATE_NEW, &file, &error),
                  CKV_DENIED);
    assert_status(ckv_io_remove(f->io, f->dir, "f", &error), CKV_DENIED);
    assert_status(ckv_io_rename(f->io, f->dir, "f", f->dir, "g", &error), CKV_DENIED);
    assert_ok(ckv_io_open_file(f->io, f->dir, "f", CKV_IO_READ_WRITE, &file, &error),
              error);
    ckv_io_close_file(f->io, &file);
    test_memory_io_set_owner(f->memory, f->dir, NULL, TEST_MEMORY_UID, 0000);
    assert_status(ckv_io_open_file(f->io, f->dir, "f", CKV_IO_READ, &file, &error),
                  CKV_DENIED);
}

static void other_things_are_denied(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_file file;
    struct ckv_io_dir dir;
    struct ckv_error error;
    test_memory_io_make_other(f->memory, f->dir, "link");
    assert_int_equal(stat_of(f, "link").type, CKV_IO_TYPE_OTHER);
    assert_status(ckv_io_open_file(f->io, f->dir, "link", CKV_IO_READ, &file, &error),
                  CKV_DENIED);
    assert_status(ckv_io_open_dir(f->io, f->dir, "link", true, NULL, &dir, &error),
                  CKV_DENIED);
    assert_ok(ckv_io_remove(f->io, f->dir, "link", &error), error);
}

static void what_the_platform_cannot_do_is_unsupported(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_file file = create(f, "f");
    struct ckv_error error;
    test_memory_io_set_unsupported(f->memory, true, true);
    assert_status(f->io->lock(f->io->ctx, file, CKV_IO_LOCK_SHARED, &error),
                  CKV_UNSUPPORTED);
    assert_status(f->io->allocate(f->io->ctx, file, 5, &error), CKV_UNSUPPORTED);
    ckv_io_close_file(f->io, &file);
}

/* Memory may not be looked at before wait: here it is not filled until then. */
static void transfers_happen_in_wait(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_file file = create(f, "f");
    struct ckv_error error;
    char data[4] = "old";
    struct ckv_io_request request = {
        .op = CKV_IO_OP_READ, .file = file, .data = data, .size_bytes = 3};
    assert_ok(ckv_io_write(f->io, file, "new", 3, 0, &error), error);
    assert_ok(f->io->submit(f->io->ctx, &request, 1, &error), error);
    assert_string_equal(data, "old");
    assert_false(test_memory_io_clean(f->memory));
    assert_ok(f->io->wait(f->io->ctx, &request, 1, &error), error);
    assert_string_equal(data, "new");
    ckv_io_close_file(f->io, &file);
}

static void what_is_open_is_found_out(void **state)
{
    struct fixture *f = *state;
    struct test_memory_io *memory = test_memory_io_create(NULL);
    const struct ckv_io *io = test_memory_io_table(memory);
    struct ckv_io_dir dir;
    struct ckv_io_file file;
    struct ckv_error error;
    (void)f;
    assert_true(test_memory_io_clean(memory));
    assert_ok(ckv_io_open_root(io, "/", false, NULL, &dir, &error), error);
    assert_ok(ckv_io_open_file(io, dir, "f", CKV_IO_CREATE_NEW, &file, &error), error);
    assert_ok(ckv_io_remove(io, dir, "f", &error), error);
    assert_false(test_memory_io_clean(memory));
    /* Destroying it as it is leaks nothing. */
    test_memory_io_destroy(memory);
}

static void expect_op(const struct test_memory_op *op, enum test_memory_op_kind kind,
                      const char *name, const char *to)
{
    assert_int_equal(op->kind, kind);
    if (name)
        assert_string_equal(op->name, name);
    else
        assert_null(op->name);
    if (to)
        assert_string_equal(op->to, to);
    else
        assert_null(op->to);
}

static void the_log_tells_what_changed_the_disk(void **state)
{
    struct fixture *f = *state;
    const struct test_memory_op *ops;
    struct ckv_io_file file;
    struct ckv_error error;
    size_t count;
    test_memory_io_record(f->memory, true);
    file = create(f, "part");
    assert_ok(f->io->truncate(f->io->ctx, file, 100, &error), error);
    assert_ok(ckv_io_write(f->io, file, "abc", 3, 7, &error), error);
    assert_ok(f->io->sync_file(f->io->ctx, file, &error), error);
    assert_ok(ckv_io_rename(f->io, f->dir, "part", f->dir, "final", &error), error);
    assert_ok(ckv_io_sync_dir(f->io, f->dir, &error), error);
    assert_ok(ckv_io_remove(f->io, f->dir, "final", &error), error);
    assert_status(ckv_io_remove(f->io, f->dir, "final", &error), CKV_NOTFOUND);
    ops = test_memory_io_ops(f->memory, &count);
    assert_int_equal(count, 7);
    expect_op(&ops[0], TEST_OP_CREATE, "part", NULL);
    expect_op(&ops[1], TEST_OP_TRUNCATE, NULL, NULL);
    expect_op(&ops[2], TEST_OP_WRITE, NULL, NULL);
    assert_int_equal(ops[2].offset, 7);
    assert_int_equal(ops[2].size_bytes, 3);
    assert_memory_equal(ops[2].data, "abc", 3);
    assert_true(ops[2].node == ops[0].node && ops[0].node != ops[0].dir);
    expect_op(&ops[3], TEST_OP_SYNC_FILE, NULL, NULL);
    expect_op(&ops[4], TEST_OP_RENAME, "part", "final");
    assert_true(ops[4].dir == ops[0].dir && ops[4].to_dir == ops[0].dir);
    expect_op(&ops[5], TEST_OP_SYNC_DIR, NULL, NULL);
    assert_true(ops[5].node == ops[0].dir);
    expect_op(&ops[6], TEST_OP_REMOVE, "final", NULL);
    ckv_io_close_file(f->io, &file);
}

struct worker {
    struct fixture *fixture;
    int number;
    int failures;
};

static bool make_one(struct fixture *f, const char *name, const char *final)
{
    struct ckv_io_file file;
    char back[8] = "";
    size_t done = 0;
    bool good;
    if (ckv_io_open_file(f->io, f->dir, name, CKV_IO_CREATE_NEW, &file, NULL))
        return false;
    good = !ckv_io_write(f->io, file, "payload", 7, 4090, NULL) &&
           !ckv_io_read(f->io, file, back, 7, 4090, &done, NULL) && done == 7 &&
           memcmp(back, "payload", 7) == 0 &&
           !ckv_io_rename(f->io, f->dir, name, f->dir, final, NULL);
    ckv_io_close_file(f->io, &file);
    return good && !ckv_io_remove(f->io, f->dir, final, NULL);
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    for (int i = 0; i < 200; i++) {
        char name[32];
        char final[32];
        (void)snprintf(name, sizeof name, "%d-%d.part", worker->number, i);
        (void)snprintf(final, sizeof final, "%d-%d", worker->number, i);
        worker->failures += !make_one(worker->fixture, name, final);
    }
    return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[4];
    struct worker workers[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (struct worker){f, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].failures, 0);
    }
    assert_int_equal(test_io_count(f->io, f->dir, ""), 0);
    assert_int_equal(test_memory_io_used_bytes(f->memory), 0);
}

static void folders_move_but_not_into_themselves(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_dir a;
    struct ckv_io_dir b;
    struct ckv_io_stat found;
    struct ckv_error error;
    assert_ok(ckv_io_open_dir(f->io, f->dir, "a", true, NULL, &a, &error), error);
    assert_ok(ckv_io_open_dir(f->io, a, "b", true, NULL, &b, &error), error);
    assert_ok(ckv_io_stat_dir(f->io, a, &found, &error), error);
    assert_int_equal(found.link_count, 3);
    assert_status(ckv_io_rename(f->io, f->dir, "a", b, "c", &error), CKV_IO);
    assert_int_equal(error.os_errno, EINVAL);
    assert_ok(ckv_io_rename(f->io, a, "b", f->dir, "b", &error), error);
    assert_ok(ckv_io_rename(f->io, f->dir, "a", b, "c", &error), error);
    assert_true(test_io_exists(f->io, b, "c"));
    ckv_io_close_dir(f->io, &a);
    ckv_io_close_dir(f->io, &b);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(paths_lead_from_the_root),
        TEST(times_come_from_the_clock),
        TEST(space_runs_out_and_comes_back),
        TEST(a_reservation_takes_all_or_nothing),
        TEST(owners_and_modes_are_obeyed),
        TEST(a_folder_without_write_permission_keeps_its_names),
        TEST(other_things_are_denied),
        TEST(what_the_platform_cannot_do_is_unsupported),
        TEST(transfers_happen_in_wait),
        TEST(what_is_open_is_found_out),
        TEST(the_log_tells_what_changed_the_disk),
        TEST(threads_do_not_disturb_each_other),
        TEST(folders_move_but_not_into_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

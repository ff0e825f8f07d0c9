/* What only the POSIX table can show: links, FIFOs, descriptors, other processes, limits.
 */
#include "lib/files.h"
#include "lib/temp_dir.h"
#include "lib/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    const struct ckv_io *io;
    struct ckv_io_dir dir;
    struct test_dir temp;
    int fds;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    struct ckv_error error;
    memset(&fixture, 0, sizeof fixture);
    fixture.io = ckv_io_posix();
    fixture.fds = test_count_fds();
    test_dir_init(&fixture.temp);
    assert_ok(ckv_io_open_root(fixture.io, fixture.temp.path, false, NULL, &fixture.dir,
                               &error),
              error);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    ckv_io_close_dir(f->io, &f->dir);
    test_dir_deinit(&f->temp);
    return test_count_fds() == f->fds ? 0 : -1;
}

static void the_root_may_be_a_link_and_is_made_once(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_dir dir;
    struct ckv_io_stat found;
    struct ckv_error error;
    bool made = false;
    const char *real = test_dir_path(&f->temp, "real");
    assert_ok(ckv_io_open_root(f->io, real, true, &made, &dir, &error), error);
    assert_true(made);
    assert_ok(ckv_io_stat_dir(f->io, dir, &found, &error), error);
    assert_int_equal(found.mode, 0700);
    ckv_io_close_dir(f->io, &dir);
    assert_int_equal(symlink("real", test_dir_path(&f->temp, "link")), 0);
    assert_ok(ckv_io_open_root(f->io, test_dir_path(&f->temp, "link"), true, &made, &dir,
                               &error),
              error);
    assert_false(made);
    ckv_io_close_dir(f->io, &dir);
}

static void only_the_last_component_is_made(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_dir dir;
    struct ckv_error error;
    assert_status(
        ckv_io_open_root(f->io, test_dir_path(&f->temp, "a/b"), true, NULL, &dir, &error),
        CKV_NOTFOUND);
    assert_int_equal(error.os_errno, ENOENT);
    assert_false(test_file_exists(test_dir_path(&f->temp, "a")));
    test_write_file(test_dir_path(&f->temp, "f"), "x", 1);
    assert_status(
        ckv_io_open_root(f->io, test_dir_path(&f->temp, "f"), true, NULL, &dir, &error),
        CKV_DENIED);
    assert_status(
        ckv_io_open_root(f->io, test_dir_path(&f->temp, "f/g"), true, NULL, &dir, &error),
        CKV_DENIED);
}

static void links_below_the_root_are_not_followed(void **state)
{
    static const enum ckv_io_open_mode modes[] = {CKV_IO_READ, CKV_IO_READ_WRITE,
                                                  CKV_IO_CREATE_OR_OPEN};
    struct fixture *f = *state;
    struct ckv_io_dir dir;
    struct ckv_io_file file;
    struct ckv_io_stat found;
    struct ckv_error error;
    test_write_file(test_dir_path(&f->temp, "target"), "secret", 6);
    assert_int_equal(mkdir(test_dir_path(&f->temp, "folder"), 0700), 0);
    assert_int_equal(symlink("target", test_dir_path(&f->temp, "to-file")), 0);
    assert_int_equal(symlink("folder", test_dir_path(&f->temp, "to-folder")), 0);
    assert_int_equal(symlink("nowhere", test_dir_path(&f->temp, "dangling")), 0);
    for (size_t i = 0; i < TEST_COUNT_OF(modes); i++) {
        assert_status(ckv_io_open_file(f->io, f->dir, "to-file", modes[i], &file, &error),
                      CKV_DENIED);
        assert_status(
            ckv_io_open_file(f->io, f->dir, "dangling", modes[i], &file, &error),
            CKV_DENIED);
    }
    assert_status(
        ckv_io_open_file(f->io, f->dir, "dangling", CKV_IO_CREATE_NEW, &file, &error),
        CKV_EXISTS);
    assert_false(test_file_exists(test_dir_path(&f->temp, "nowhere")));
    assert_status(ckv_io_open_dir(f->io, f->dir, "to-folder", false, NULL, &dir, &error),
                  CKV_DENIED);
    assert_status(ckv_io_open_dir(f->io, f->dir, "to-folder", true, NULL, &dir, &error),
                  CKV_DENIED);
    assert_ok(ckv_io_stat_name(f->io, f->dir, "to-file", &found, &error), error);
    assert_int_equal(found.type, CKV_IO_TYPE_OTHER);
}

static void fifos_sockets_and_devices_are_denied_without_waiting(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ckv_io_file file;
    struct ckv_io_stat found;
    struct ckv_error error;
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(server >= 0);
    assert_int_equal(mkfifo(test_dir_path(&f->temp, "fifo"), 0600), 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.90s/socket",
                   f->temp.path);
    assert_int_equal(
        bind(server, (const struct sockaddr *)(const void *)&address, sizeof address), 0);
    assert_status(ckv_io_open_file(f->io, f->dir, "fifo", CKV_IO_READ, &file, &error),
                  CKV_DENIED);
    assert_int_not_equal(error.os_errno, 0);
    assert_status(
        ckv_io_open_file(f->io, f->dir, "fifo", CKV_IO_READ_WRITE, &file, &error),
        CKV_DENIED);
    assert_status(ckv_io_open_file(f->io, f->dir, "socket", CKV_IO_READ, &file, &error),
                  CKV_DENIED);
    assert_ok(ckv_io_stat_name(f->io, f->dir, "fifo", &found, &error), error);
    assert_int_equal(found.type, CKV_IO_TYPE_OTHER);
    close(server);
}

static void a_device_is_denied(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_dir dev;
    struct ckv_io_file file;
    struct ckv_error error;
    assert_ok(ckv_io_open_root(f->io, "/dev", false, NULL, &dev, &error), error);
    assert_status(ckv_io_open_file(f->io, dev, "null", CKV_IO_READ, &file, &error),
                  CKV_DENIED);
    ckv_io_close_dir(f->io, &dev);
}

static void descriptors_are_not_inherited(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_file file;
    struct ckv_error error;
    assert_ok(ckv_io_open_file(f->io, f->dir, "f", CKV_IO_CREATE_NEW, &file, &error),
              error);
    assert_true(fcntl((int)file.handle, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl((int)f->dir.handle, F_GETFD) & FD_CLOEXEC);
    ckv_io_close_file(f->io, &file);
}

static void modes_are_ours_whatever_the_umask(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_dir dir;
    struct ckv_io_file file;
    struct ckv_io_stat found;
    struct ckv_error error;
    mode_t old = umask(0);
    assert_ok(ckv_io_open_file(f->io, f->dir, "f", CKV_IO_CREATE_NEW, &file, &error),
              error);
    assert_ok(ckv_io_open_dir(f->io, f->dir, "d", true, NULL, &dir, &error), error);
    umask(old);
    assert_ok(ckv_io_stat_file(f->io, file, &found, &error), error);
    assert_int_equal(found.mode, 0600);
    assert_ok(ckv_io_stat_dir(f->io, dir, &found, &error), error);
    assert_int_equal(found.mode, 0700);
    ckv_io_close_file(f->io, &file);
    ckv_io_close_dir(f->io, &dir);
}

/* Runs in a child: exit code 0 when the lock is busy there. */
static void try_lock_elsewhere(struct fixture *f)
{
    struct ckv_io_file file;
    enum ckv_status status =
        ckv_io_open_file(f->io, f->dir, "f", CKV_IO_READ_WRITE, &file, NULL);
    if (status)
        _exit(10);
    status = f->io->lock(f->io->ctx, file, CKV_IO_LOCK_EXCLUSIVE, NULL);
    _exit(status == CKV_AGAIN ? 0 : status == CKV_OK ? 1 : 11);
}

static int locked_elsewhere(struct fixture *f)
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        try_lock_elsewhere(f);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void locks_hold_between_processes(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_file file;
    struct ckv_error error;
    assert_ok(ckv_io_open_file(f->io, f->dir, "f", CKV_IO_CREATE_NEW, &file, &error),
              error);
    assert_int_equal(locked_elsewhere(f), 1);
    assert_ok(f->io->lock(f->io->ctx, file, CKV_IO_LOCK_EXCLUSIVE, &error), error);
    assert_int_equal(locked_elsewhere(f), 0);
    ckv_io_close_file(f->io, &file);
    assert_int_equal(locked_elsewhere(f), 1);
}

/* A system call that moves only part is continued; what then fails keeps how far it got.
 */
static void a_partial_write_is_continued_until_it_fails(void **state)
{
    struct fixture *f = *state;
    struct rlimit old;
    struct rlimit small;
    struct ckv_io_file file;
    struct ckv_error error;
    char data[5000];
    struct ckv_io_request request = {
        .op = CKV_IO_OP_WRITE, .data = data, .size_bytes = sizeof data, .offset = 100};
    void (*old_handler)(int) = signal(SIGXFSZ, SIG_IGN);
    memset(data, 'd', sizeof data);
    assert_ok(ckv_io_open_file(f->io, f->dir, "f", CKV_IO_CREATE_NEW, &file, &error),
              error);
    request.file = file;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 3000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_ok(f->io->submit(f->io->ctx, &request, 1, &error), error);
    assert_status(f->io->wait(f->io->ctx, &request, 1, &error), CKV_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    (void)signal(SIGXFSZ, old_handler);
    assert_int_equal(request.os_errno, EFBIG);
    assert_int_equal(request.done_bytes, 2900);
    assert_int_equal(error.os_errno, EFBIG);
    assert_true(error.file_offset == 3000);
    ckv_io_close_file(f->io, &file);
    assert_int_equal(test_file_size(test_dir_path(&f->temp, "f")), 3000);
}

static void out_of_descriptors_is_an_io_failure(void **state)
{
    struct fixture *f = *state;
    struct rlimit old;
    struct rlimit none;
    struct ckv_io_dir dir;
    struct ckv_io_file file;
    struct ckv_error error;
    struct ckv_error list_error;
    enum ckv_status opened_file;
    enum ckv_status opened_dir;
    enum ckv_status listed;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    opened_file = ckv_io_open_file(f->io, f->dir, "f", CKV_IO_CREATE_NEW, &file, &error);
    opened_dir = ckv_io_open_dir(f->io, f->dir, "d", true, NULL, &dir, NULL);
    listed = ckv_io_list(f->io, f->dir, NULL, NULL, &list_error);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_status(opened_file, CKV_IO);
    assert_int_equal(error.os_errno, EMFILE);
    assert_status(opened_dir, CKV_IO);
    assert_status(listed, CKV_IO);
    assert_int_equal(list_error.os_errno, EMFILE);
}

/* The superuser may open everything, so it steps down for the call. */
static void no_permission_is_denied(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_file file;
    struct ckv_error error;
    enum ckv_status status;
    uid_t self = geteuid();
    test_write_file(test_dir_path(&f->temp, "f"), "x", 1);
    assert_int_equal(chmod(test_dir_path(&f->temp, "f"), 0), 0);
    if (self == 0)
        assert_int_equal(seteuid(1), 0);
    status = ckv_io_open_file(f->io, f->dir, "f", CKV_IO_READ, &file, &error);
    if (self == 0)
        assert_int_equal(seteuid(self), 0);
    assert_status(status, CKV_DENIED);
    assert_int_equal(error.os_errno, EACCES);
}

static void names_in_messages_are_escaped(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_file file;
    struct ckv_error error;
    assert_status(
        ckv_io_open_file(f->io, f->dir, "\x1b]0;x\n", CKV_IO_READ, &file, &error),
        CKV_NOTFOUND);
    assert_non_null(strstr(error.text, "\"\\x1b]0;x\\x0a\""));
    assert_null(strchr(error.text, '\n'));
}

static void strange_names_are_listed_as_they_are(void **state)
{
    static const char name[] = "\xff\n\x01 name";
    struct fixture *f = *state;
    struct test_names names;
    test_io_write_file(f->io, f->dir, name, "x", 1);
    test_names_init(&names, f->io, f->dir);
    assert_int_equal(names.count, 1);
    assert_string_equal(names.names[0], name);
    test_names_deinit(&names);
}

static void a_folder_that_is_gone_lists_as_notfound_or_empty(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_dir dir;
    struct ckv_error error;
    enum ckv_status status;
    assert_ok(ckv_io_open_dir(f->io, f->dir, "d", true, NULL, &dir, &error), error);
    assert_ok(ckv_io_remove_dir(f->io, f->dir, "d", &error), error);
    status = ckv_io_list(f->io, dir, NULL, NULL, &error);
    assert_true(status == CKV_NOTFOUND || status == CKV_OK);
    ckv_io_close_dir(f->io, &dir);
}

static void closed_descriptors_fail_with_errno(void **state)
{
    struct fixture *f = *state;
    const struct ckv_io *io = f->io;
    struct ckv_io_file bad = {100000};
    struct ckv_io_dir bad_dir = {100000};
    struct ckv_io_stat found;
    struct ckv_io_space space;
    struct ckv_error error;
    assert_status(ckv_io_stat_file(io, bad, &found, &error), CKV_IO);
    assert_int_equal(error.os_errno, EBADF);
    assert_status(ckv_io_stat_dir(io, bad_dir, &found, NULL), CKV_IO);
    assert_status(ckv_io_get_space(io, bad_dir, &space, NULL), CKV_IO);
    assert_status(ckv_io_sync_dir(io, bad_dir, NULL), CKV_IO);
    assert_status(io->sync_file(io->ctx, bad, NULL), CKV_IO);
    assert_status(io->set_mtime(io->ctx, bad, 0, NULL), CKV_IO);
    assert_status(io->truncate(io->ctx, bad, 5, NULL), CKV_IO);
    assert_status(io->allocate(io->ctx, bad, 5, NULL), CKV_IO);
    assert_status(io->lock(io->ctx, bad, CKV_IO_LOCK_SHARED, &error), CKV_IO);
    assert_int_equal(error.os_errno, EBADF);
    assert_status(io->unlock(io->ctx, bad, NULL), CKV_IO);
    io->advise(io->ctx, bad, 0, 0, CKV_IO_ADVICE_WILLNEED);
}

static void requests_that_make_no_sense_are_refused_as_a_whole(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_file file;
    struct ckv_error error;
    char text[] = "abc";
    struct ckv_io_request requests[2] = {
        {.op = CKV_IO_OP_WRITE, .data = text, .size_bytes = 3},
        {.op = CKV_IO_OP_WRITE, .data = NULL, .size_bytes = 3},
    };
    assert_ok(ckv_io_open_file(f->io, f->dir, "f", CKV_IO_CREATE_NEW, &file, &error),
              error);
    requests[0].file = requests[1].file = file;
    assert_status(f->io->submit(f->io->ctx, requests, 2, &error), CKV_INVALID);
    requests[1].data = text;
    requests[1].op = (enum ckv_io_op)7;
    assert_status(f->io->submit(f->io->ctx, requests, 2, &error), CKV_INVALID);
    ckv_io_close_file(f->io, &file);
    assert_int_equal(test_file_size(test_dir_path(&f->temp, "f")), 0);
    assert_status(
        ckv_io_open_file(f->io, f->dir, "f", (enum ckv_io_open_mode)9, &file, &error),
        CKV_INVALID);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_root_may_be_a_link_and_is_made_once),
        TEST(only_the_last_component_is_made),
        TEST(links_below_the_root_are_not_followed),
        TEST(fifos_sockets_and_devices_are_denied_without_waiting),
        TEST(a_device_is_denied),
        TEST(descriptors_are_not_inherited),
        TEST(modes_are_ours_whatever_the_umask),
        TEST(locks_hold_between_processes),
        TEST(a_partial_write_is_continued_until_it_fails),
        TEST(out_of_descriptors_is_an_io_failure),
        TEST(no_permission_is_denied),
        TEST(names_in_messages_are_escaped),
        TEST(strange_names_are_listed_as_they_are),
        TEST(a_folder_that_is_gone_lists_as_notfound_or_empty),
        TEST(closed_descriptors_fail_with_errno),
        TEST(requests_that_make_no_sense_are_refused_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The POSIX table when system calls fail, are interrupted or do only part. The linker
 * puts the functions below in the place of the C library's (--wrap); they behave like
 * these until a test arms them.
 */
#include "lib/files.h"
#include "lib/temp_dir.h"
#include "lib/unit.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/types.h>

/* What the next calls of one function do. */
struct arm {
    int os_errno; /* they fail with it, so many times */
    int times;
    size_t most;  /* transfers: bytes per call; 0 = all */
    bool nothing; /* transfers: 0 bytes, no error */
    int calls;
};

static struct {
    struct arm pread, pwrite, fdatasync, fsync, flock, fallocate, fstatvfs, getrandom,
        openat, ftruncate, futimens, readdir, fdopendir, fstat;
    struct statvfs space;
    bool own_space;
} armed;

static bool fails(struct arm *arm)
{
    arm->calls++;
    if (arm->times == 0)
        return false;
    arm->times--;
    errno = arm->os_errno;
    return true;
}

static size_t limit(const struct arm *arm, size_t size)
{
    return arm->most && arm->most < size ? arm->most : size;
}

ssize_t __real_pread64(int fd, void *data, size_t size, off64_t offset);
ssize_t __wrap_pread64(int fd, void *data, size_t size, off64_t offset);
ssize_t __wrap_pread64(int fd, void *data, size_t size, off64_t offset)
{
    if (fails(&armed.pread))
        return -1;
    return __real_pread64(fd, data, limit(&armed.pread, size), offset);
}

ssize_t __real_pwrite64(int fd, const void *data, size_t size, off64_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off64_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    if (fails(&armed.pwrite))
        return -1;
    if (armed.pwrite.nothing)
        return 0;
    return __real_pwrite64(fd, data, limit(&armed.pwrite, size), offset);
}

ssize_t __real_getrandom(void *data, size_t size, unsigned int flags);
ssize_t __wrap_getrandom(void *data, size_t size, unsigned int flags);
ssize_t __wrap_getrandom(void *data, size_t size, unsigned int flags)
{
    if (fails(&armed.getrandom))
        return -1;
    return __real_getrandom(data, limit(&armed.getrandom, size), flags);
}

/* A function that returns int, and -1 when it fails. */
#define WRAP(name, member, parameters, arguments)                                        \
    int __real_##name parameters;                                                        \
    int __wrap_##name parameters;                                                        \
    int __wrap_##name parameters                                                         \
    {                                                                                    \
        return fails(&armed.member) ? -1 : __real_##name arguments;                      \
    }

WRAP(fdatasync, fdatasync, (int fd), (fd))
WRAP(fsync, fsync, (int fd), (fd))
WRAP(flock, flock, (int fd, int operation), (fd, operation))
WRAP(fallocate64, fallocate, (int fd, int mode, off64_t at, off64_t size),
     (fd, mode, at, size))
WRAP(ftruncate64, ftruncate, (int fd, off64_t size), (fd, size))
WRAP(futimens, futimens, (int fd, const struct timespec times[2]), (fd, times))
WRAP(fstat64, fstat, (int fd, void *found), (fd, found))

int __real_openat64(int dir, const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, mode_t mode);
int __wrap_openat64(int dir, const char *path, int flags, mode_t mode)
{
    return fails(&armed.openat) ? -1 : __real_openat64(dir, path, flags, mode);
}

int __real_fstatvfs64(int fd, void *found);
int __wrap_fstatvfs64(int fd, void *found);
int __wrap_fstatvfs64(int fd, void *found)
{
    if (fails(&armed.fstatvfs))
        return -1;
    if (!armed.own_space)
        return __real_fstatvfs64(fd, found);
    memcpy(found, &armed.space, sizeof armed.space);
    return 0;
}

DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd)
{
    return fails(&armed.fdopendir) ? NULL : __real_fdopendir(fd);
}

struct dirent *__real_readdir64(DIR *stream);
struct dirent *__wrap_readdir64(DIR *stream);
struct dirent *__wrap_readdir64(DIR *stream)
{
    return fails(&armed.readdir) ? NULL : __real_readdir64(stream);
}

struct fixture {
    const struct ckv_io *io;
    struct ckv_io_dir dir;
    struct ckv_io_file file;
    struct test_dir temp;
    struct ckv_error error;
    int fds;
};

static int set_up(void **state)
{
    static struct fixture f;
    memset(&f, 0, sizeof f);
    memset(&armed, 0, sizeof armed);
    f.io = ckv_io_posix();
    f.fds = test_count_fds();
    test_dir_init(&f.temp);
    assert_ok(ckv_io_open_root(f.io, f.temp.path, false, NULL, &f.dir, &f.error),
              f.error);
    assert_ok(ckv_io_open_file(f.io, f.dir, "f", CKV_IO_CREATE_NEW, &f.file, &f.error),
              f.error);
    assert_ok(ckv_io_write(f.io, f.file, "0123456789", 10, 0, &f.error), f.error);
    memset(&armed, 0, sizeof armed);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    memset(&armed, 0, sizeof armed);
    ckv_io_close_file(f->io, &f->file);
    ckv_io_close_dir(f->io, &f->dir);
    test_dir_deinit(&f->temp);
    return test_count_fds() == f->fds ? 0 : -1;
}

static void interrupted_and_partial_reads_go_on(void **state)
{
    struct fixture *f = *state;
    char data[11] = "";
    size_t done = 0;
    armed.pread = (struct arm){.os_errno = EINTR, .times = 2, .most = 3};
    assert_ok(ckv_io_read(f->io, f->file, data, 10, 0, &done, &f->error), f->error);
    assert_int_equal(done, 10);
    assert_string_equal(data, "0123456789");
    assert_int_equal(armed.pread.calls, 2 + 4);
}

static void interrupted_and_partial_writes_go_on(void **state)
{
    struct fixture *f = *state;
    char data[11] = "";
    size_t done = 0;
    armed.pwrite = (struct arm){.os_errno = EINTR, .times = 2, .most = 4};
    assert_ok(ckv_io_write(f->io, f->file, "abcdefghij", 10, 0, &f->error), f->error);
    assert_ok(ckv_io_read(f->io, f->file, data, 10, 0, &done, &f->error), f->error);
    assert_string_equal(data, "abcdefghij");
    assert_int_equal(armed.pwrite.calls, 2 + 3);
}

static void failed_reads_and_writes_say_where(void **state)
{
    struct fixture *f = *state;
    char data[10];
    size_t done = 99;
    armed.pread = (struct arm){.os_errno = EIO, .times = 1};
    assert_status(ckv_io_read(f->io, f->file, data, 10, 4, &done, &f->error), CKV_IO);
    assert_int_equal(done, 0);
    assert_int_equal(f->error.os_errno, EIO);
    assert_int_equal(f->error.file_offset, 4);
    assert_non_null(strstr(f->error.text, "read of 10 bytes at 4"));
    armed.pwrite = (struct arm){.os_errno = EDQUOT, .times = 1};
    assert_status(ckv_io_write(f->io, f->file, data, 10, 0, &f->error), CKV_NOSPACE);
    assert_int_equal(f->error.os_errno, EDQUOT);
    armed.pread = (struct arm){.os_errno = ESTALE, .times = 1};
    assert_status(ckv_io_read(f->io, f->file, data, 10, 0, &done, &f->error),
                  CKV_VANISHED);
}

static void a_write_that_moves_nothing_does_not_loop(void **state)
{
    struct fixture *f = *state;
    armed.pwrite.nothing = true;
    assert_status(ckv_io_write(f->io, f->file, "x", 1, 0, &f->error), CKV_IO);
    assert_int_equal(f->error.os_errno, EIO);
    assert_int_equal(armed.pwrite.calls, 1);
}

/* Only an interruption is tried again: a failed sync may have lost the data. */
static void a_failed_sync_is_not_repeated(void **state)
{
    struct fixture *f = *state;
    armed.fdatasync = (struct arm){.os_errno = EIO, .times = 1};
    assert_status(f->io->sync_file(f->io->ctx, f->file, &f->error), CKV_IO);
    assert_int_equal(armed.fdatasync.calls, 1);
    armed.fdatasync = (struct arm){.os_errno = EINTR, .times = 3};
    assert_ok(f->io->sync_file(f->io->ctx, f->file, &f->error), f->error);
    assert_int_equal(armed.fdatasync.calls, 4);
    armed.fsync = (struct arm){.os_errno = EIO, .times = 1};
    assert_status(ckv_io_sync_dir(f->io, f->dir, &f->error), CKV_IO);
    assert_int_equal(armed.fsync.calls, 1);
    armed.fsync = (struct arm){.os_errno = EINTR, .times = 1};
    assert_ok(ckv_io_sync_dir(f->io, f->dir, &f->error), f->error);
    armed.fsync = (struct arm){.os_errno = EINVAL, .times = 1};
    assert_status(ckv_io_sync_dir(f->io, f->dir, &f->error), CKV_UNSUPPORTED);
}

static void locks_that_are_not_there_are_unsupported(void **state)
{
    static const int missing[] = {ENOLCK, EOPNOTSUPP, EINVAL, ENOSYS};
    struct fixture *f = *state;
    for (size_t i = 0; i < TEST_COUNT_OF(missing); i++) {
        armed.flock = (struct arm){.os_errno = missing[i], .times = 1};
        assert_status(f->io->lock(f->io->ctx, f->file, CKV_IO_LOCK_EXCLUSIVE, &f->error),
                      CKV_UNSUPPORTED);
        assert_int_equal(f->error.os_errno, missing[i]);
    }
    armed.flock = (struct arm){.os_errno = EINTR, .times = 2};
    assert_ok(f->io->lock(f->io->ctx, f->file, CKV_IO_LOCK_SHARED, &f->error), f->error);
    armed.flock = (struct arm){.os_errno = EIO, .times = 1};
    assert_status(f->io->unlock(f->io->ctx, f->file, &f->error), CKV_IO);
}

/* What cannot be reserved is said, never written out block by block. */
static void reservations_that_are_not_there_are_unsupported(void **state)
{
    static const int missing[] = {EOPNOTSUPP, EINVAL, ENOSYS, ENODEV};
    struct fixture *f = *state;
    for (size_t i = 0; i < TEST_COUNT_OF(missing); i++) {
        armed.fallocate = (struct arm){.os_errno = missing[i], .times = 1};
        assert_status(f->io->allocate(f->io->ctx, f->file, 1 << 20, &f->error),
                      CKV_UNSUPPORTED);
    }
    assert_int_equal(armed.pwrite.calls, 0);
    assert_int_equal(test_file_size(test_dir_path(&f->temp, "f")), 10);
    armed.fallocate = (struct arm){.os_errno = ENOSPC, .times = 1};
    assert_status(f->io->allocate(f->io->ctx, f->file, 1 << 20, &f->error), CKV_NOSPACE);
    armed.fallocate = (struct arm){.os_errno = EINTR, .times = 1};
    (void)f->io->allocate(f->io->ctx, f->file, 100, &f->error);
    assert_int_equal(armed.fallocate.calls, 2);
    assert_status(f->io->allocate(f->io->ctx, f->file, UINT64_MAX, &f->error), CKV_IO);
    assert_int_equal(f->error.os_errno, EFBIG);
}

static void lengths_and_times_fail_with_errno(void **state)
{
    struct fixture *f = *state;
    armed.ftruncate = (struct arm){.os_errno = EINTR, .times = 1};
    assert_ok(f->io->truncate(f->io->ctx, f->file, 5, &f->error), f->error);
    armed.ftruncate = (struct arm){.os_errno = EROFS, .times = 1};
    assert_status(f->io->truncate(f->io->ctx, f->file, 5, &f->error), CKV_DENIED);
    armed.futimens = (struct arm){.os_errno = EPERM, .times = 1};
    assert_status(f->io->set_mtime(f->io->ctx, f->file, 5, &f->error), CKV_DENIED);
    assert_int_equal(f->error.os_errno, EPERM);
}

static void opening_goes_on_after_interruptions_and_leaks_nothing(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_file file;
    struct ckv_io_dir dir;
    armed.openat = (struct arm){.os_errno = EINTR, .times = 2};
    assert_ok(ckv_io_open_file(f->io, f->dir, "f", CKV_IO_READ, &file, &f->error),
              f->error);
    ckv_io_close_file(f->io, &file);
    armed.openat = (struct arm){.os_errno = EINTR, .times = 2};
    assert_ok(ckv_io_open_dir(f->io, f->dir, "d", true, NULL, &dir, &f->error), f->error);
    ckv_io_close_dir(f->io, &dir);
    armed.openat = (struct arm){.os_errno = ENFILE, .times = 1};
    assert_status(ckv_io_open_file(f->io, f->dir, "f", CKV_IO_READ, &file, &f->error),
                  CKV_IO);
    assert_int_equal(f->error.os_errno, ENFILE);
    /* The descriptor is open already when its type cannot be told: teardown counts. */
    armed.fstat = (struct arm){.os_errno = EIO, .times = 1};
    assert_status(ckv_io_open_file(f->io, f->dir, "f", CKV_IO_READ, &file, &f->error),
                  CKV_IO);
    assert_int_equal(file.handle, -1);
}

static enum ckv_status count_name(void *ctx, const char *name)
{
    (void)name;
    ++*(int *)ctx;
    return CKV_OK;
}

static void a_listing_that_breaks_off_is_a_failure(void **state)
{
    struct fixture *f = *state;
    int count = 0;
    armed.readdir = (struct arm){.os_errno = EIO, .times = 1};
    assert_status(ckv_io_list(f->io, f->dir, count_name, &count, &f->error), CKV_IO);
    assert_int_equal(f->error.os_errno, EIO);
    armed.fdopendir = (struct arm){.os_errno = ENOMEM, .times = 1};
    assert_status(ckv_io_list(f->io, f->dir, count_name, &count, &f->error), CKV_NOMEM);
    armed.openat = (struct arm){.os_errno = EMFILE, .times = 1};
    assert_status(ckv_io_list(f->io, f->dir, count_name, &count, &f->error), CKV_IO);
    assert_int_equal(count, 0);
    assert_ok(ckv_io_list(f->io, f->dir, count_name, &count, &f->error), f->error);
    assert_int_equal(count, 1);
}

static void space_is_for_this_user_and_never_overflows(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_space space;
    armed.own_space = true;
    armed.space.f_bsize = 1 << 20;
    armed.space.f_frsize = 4096;
    armed.space.f_blocks = 1000;
    armed.space.f_bfree = 500;
    armed.space.f_bavail = 400;
    assert_ok(ckv_io_get_space(f->io, f->dir, &space, &f->error), f->error);
    assert_int_equal(space.total_bytes, 1000 * 4096);
    assert_int_equal(space.free_bytes, 400 * 4096);
    armed.space.f_frsize = 0;
    assert_ok(ckv_io_get_space(f->io, f->dir, &space, &f->error), f->error);
    assert_true(space.free_bytes == UINT64_C(400) << 20);
    armed.space.f_blocks = UINT64_MAX / 2;
    assert_ok(ckv_io_get_space(f->io, f->dir, &space, &f->error), f->error);
    assert_true(space.total_bytes == UINT64_MAX);
    armed.fstatvfs = (struct arm){.os_errno = EINTR, .times = 1};
    assert_ok(ckv_io_get_space(f->io, f->dir, &space, &f->error), f->error);
    armed.fstatvfs = (struct arm){.os_errno = EIO, .times = 1};
    assert_status(ckv_io_get_space(f->io, f->dir, &space, &f->error), CKV_IO);
    assert_int_equal(space.free_bytes, 0);
}

static void random_bytes_come_in_pieces_or_from_the_device(void **state)
{
    struct fixture *f = *state;
    unsigned char data[64] = {0};
    unsigned char zeros[64] = {0};
    armed.getrandom = (struct arm){.os_errno = EINTR, .times = 1, .most = 10};
    assert_ok(f->io->random(f->io->ctx, data, sizeof data, &f->error), f->error);
    assert_int_equal(armed.getrandom.calls, 1 + 7);
    assert_memory_not_equal(data + 54, zeros, 10);
    memset(data, 0, sizeof data);
    armed.getrandom = (struct arm){.os_errno = ENOSYS, .times = 1};
    assert_ok(f->io->random(f->io->ctx, data, sizeof data, &f->error), f->error);
    assert_int_equal(armed.getrandom.calls, 1);
    assert_memory_not_equal(data, zeros, 32);
    assert_memory_not_equal(data + 32, zeros, 32);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(interrupted_and_partial_reads_go_on),
        TEST(interrupted_and_partial_writes_go_on),
        TEST(failed_reads_and_writes_say_where),
        TEST(a_write_that_moves_nothing_does_not_loop),
        TEST(a_failed_sync_is_not_repeated),
        TEST(locks_that_are_not_there_are_unsupported),
        TEST(reservations_that_are_not_there_are_unsupported),
        TEST(lengths_and_times_fail_with_errno),
        TEST(opening_goes_on_after_interruptions_and_leaks_nothing),
        TEST(a_listing_that_breaks_off_is_a_failure),
        TEST(space_is_for_this_user_and_never_overflows),
        TEST(random_bytes_come_in_pieces_or_from_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

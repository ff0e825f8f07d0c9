/*
 * Owns open files of the POSIX table.
 *
 * Invariant: a handle that was given out is a regular file, reached through no link.
 * Failure story: what a platform or file system cannot do (locks, reservations) is
 * UNSUPPORTED, never imitated: an imitation would cost what the caller wanted to save, or
 * promise what it does not hold.
 */
#include "io/posix.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/types.h>
#include <unistd.h>

#define NS_PER_S 1000000000

static int file_fd(struct ckv_io_file file)
{
    return (int)file.handle;
}

static int open_flags(enum ckv_io_open_mode mode)
{
    switch (mode) {
    case CKV_IO_READ:
        return O_RDONLY;
    case CKV_IO_READ_WRITE:
        return O_RDWR;
    case CKV_IO_CREATE_NEW:
        return O_RDWR | O_CREAT | O_EXCL;
    case CKV_IO_CREATE_OR_OPEN:
        return O_RDWR | O_CREAT;
    }
    return -1;
}

/* A name that is no regular file: a link (ELOOP, FreeBSD EMLINK), a folder opened for
 * writing, a socket or a device without driver. */
static bool is_irregular(int os_errno)
{
    return os_errno == ELOOP || os_errno == EMLINK || os_errno == EISDIR ||
           os_errno == ENXIO || os_errno == ENODEV;
}

enum ckv_status ckvi_posix_open_file(void *ctx, struct ckv_io_dir dir, const char *name,
                                     enum ckv_io_open_mode mode, struct ckv_io_file *out,
                                     struct ckv_error *error)
{
    struct stat found;
    enum ckv_status status;
    int flags = open_flags(mode);
    int fd;
    (void)ctx;
    *out = CKV_IO_FILE_NONE;
    if (flags < 0)
        return ckvi_posix_fail_as(error, CKV_INVALID, EINVAL, "open", name);
    do {
        /* NONBLOCK: a FIFO must not make us wait for its other end. */
        fd = openat((int)dir.handle, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                    0600);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0 && is_irregular(errno))
        return ckvi_posix_fail_as(error, CKV_DENIED, errno, "open", name);
    if (fd < 0)
        return ckvi_posix_fail(error, errno, "open", name);
    if (fstat(fd, &found) != 0) {
        status = ckvi_posix_fail(error, errno, "open", name);
    } else if (!S_ISREG(found.st_mode)) {
        status = ckvi_posix_fail_as(error, CKV_DENIED,
                                    S_ISDIR(found.st_mode) ? EISDIR : EINVAL,
                                    "not a regular file: open", name);
    } else {
        out->handle = fd;
        return CKV_OK;
    }
    (void)close(fd);
    return status;
}

void ckvi_posix_close_file(void *ctx, struct ckv_io_file file)
{
    (void)ctx;
    /* Whatever close says, the descriptor is gone; durability comes from sync alone. */
    (void)close(file_fd(file));
}

enum ckv_status ckvi_posix_stat_file(void *ctx, struct ckv_io_file file,
                                     struct ckv_io_stat *out, struct ckv_error *error)
{
    struct stat found;
    (void)ctx;
    if (fstat(file_fd(file), &found) != 0)
        return ckvi_posix_fail(error, errno, "stat file", NULL);
    ckvi_posix_convert_stat(&found, out);
    return CKV_OK;
}

enum ckv_status ckvi_posix_set_mtime(void *ctx, struct ckv_io_file file, int64_t mtime_ns,
                                     struct ckv_error *error)
{
    struct timespec times[2] = {{0, UTIME_OMIT}, {0, 0}};
    int64_t seconds = mtime_ns / NS_PER_S;
    int64_t rest = mtime_ns % NS_PER_S;
    (void)ctx;
    if (rest < 0) {
        rest += NS_PER_S;
        seconds--;
    }
    times[1].tv_sec = (time_t)seconds;
    times[1].tv_nsec = (long)rest;
    if (futimens(file_fd(file), times) != 0)
        return ckvi_posix_fail(error, errno, "set the file's time", NULL);
    return CKV_OK;
}

/* The size as the system's type; false when it does not fit. */
static bool to_off(uint64_t size, off_t *out)
{
    *out = (off_t)size;
    return *out >= 0 && (uint64_t)*out == size;
}

static int set_length(int fd, off_t size)
{
    int result;
    do {
        result = ftruncate(fd, size);
    } while (result != 0 && errno == EINTR);
    return result;
}

enum ckv_status ckvi_posix_truncate(void *ctx, struct ckv_io_file file,
                                    uint64_t size_bytes, struct ckv_error *error)
{
    off_t size;
    (void)ctx;
    if (!to_off(size_bytes, &size))
        return ckvi_posix_fail(error, EFBIG, "set the file's length", NULL);
    if (set_length(file_fd(file), size) != 0)
        return ckvi_posix_fail(error, errno, "set the file's length", NULL);
    return CKV_OK;
}

/* Returns 0 or an errno value. The file is at least `size` long afterwards. */
static int reserve(int fd, off_t size)
{
#if defined(__linux__)
    /* Not posix_fallocate: glibc's writes every block where the file system cannot. */
    return fallocate(fd, 0, 0, size) == 0 ? 0 : errno;
#elif defined(__APPLE__)
    struct stat found;
    fstore_t request = {F_ALLOCATEALL, F_PEOFPOSMODE, 0, 0, 0};
    if (fstat(fd, &found) != 0)
        return errno;
    request.fst_length = size - (off_t)found.st_blocks * 512;
    if (request.fst_length > 0 && fcntl(fd, F_PREALLOCATE, &request) != 0)
        return errno;
    if (found.st_size < size && set_length(fd, size) != 0)
        return errno;
    return 0;
#elif defined(__FreeBSD__)
    return posix_fallocate(fd, 0, size);
#else
    (void)fd;
    (void)size;
    return EOPNOTSUPP;
#endif
}

static bool means_unsupported(int os_errno)
{
    return os_errno == EOPNOTSUPP || os_errno == ENOTSUP || os_errno == EINVAL ||
           os_errno == ENOSYS || os_errno == ENODEV || os_errno == ENOTTY;
}

enum ckv_status ckvi_posix_allocate(void *ctx, struct ckv_io_file file,
                                    uint64_t size_bytes, struct ckv_error *error)
{
    off_t size;
    int result;
    (void)ctx;
    if (size_bytes == 0)
        return CKV_OK;
    if (!to_off(size_bytes, &size))
        return ckvi_posix_fail(error, EFBIG, "reserve blocks", NULL);
    do {
        result = reserve(file_fd(file), size);
    } while (result == EINTR);
    if (result == 0)
        return CKV_OK;
    if (means_unsupported(result))
        return ckvi_posix_fail_as(error, CKV_UNSUPPORTED, result, "reserve blocks", NULL);
    return ckvi_posix_fail(error, result, "reserve blocks", NULL);
}

enum ckv_status ckvi_posix_sync_file(void *ctx, struct ckv_io_file file,
                                     struct ckv_error *error)
{
    (void)ctx;
    if (ckvi_posix_sync(file_fd(file)) != 0)
        return ckvi_posix_fail(error, errno, "sync file", NULL);
    return CKV_OK;
}

/* flock, not fcntl: the lock belongs to the open file, not to the process, and another
 * close of the same file does not drop it. */
static enum ckv_status change_lock(int fd, int operation, const char *what,
                                   struct ckv_error *error)
{
    int result;
    do {
        result = flock(fd, operation | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    if (result == 0)
        return CKV_OK;
    if (errno == EWOULDBLOCK)
        return ckvi_posix_fail_as(error, CKV_AGAIN, errno, what, NULL);
    if (errno == ENOLCK || means_unsupported(errno))
        return ckvi_posix_fail_as(error, CKV_UNSUPPORTED, errno, what, NULL);
    return ckvi_posix_fail(error, errno, what, NULL);
}

enum ckv_status ckvi_posix_lock(void *ctx, struct ckv_io_file file,
                                enum ckv_io_lock_mode mode, struct ckv_error *error)
{
    (void)ctx;
    return change_lock(file_fd(file), mode == CKV_IO_LOCK_SHARED ? LOCK_SH : LOCK_EX,
                       "lock file", error);
}

enum ckv_status ckvi_posix_unlock(void *ctx, struct ckv_io_file file,
                                  struct ckv_error *error)
{
    (void)ctx;
    return change_lock(file_fd(file), LOCK_UN, "unlock file", error);
}

void ckvi_posix_advise(void *ctx, struct ckv_io_file file, uint64_t offset,
                       uint64_t size_bytes, enum ckv_io_advice advice)
{
#ifdef POSIX_FADV_SEQUENTIAL
    off_t start;
    off_t size;
    int value = POSIX_FADV_SEQUENTIAL;
    if (!to_off(offset, &start) || !to_off(size_bytes, &size))
        return;
    if (advice == CKV_IO_ADVICE_WILLNEED)
        value = POSIX_FADV_WILLNEED;
    else if (advice == CKV_IO_ADVICE_DONTNEED)
        value = POSIX_FADV_DONTNEED;
    (void)posix_fadvise(file_fd(file), start, size, value);
#else
    (void)file;
    (void)offset;
    (void)size_bytes;
    (void)advice;
#endif
    (void)ctx;
}

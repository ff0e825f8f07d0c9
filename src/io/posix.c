/*
 * Owns the POSIX table itself, and what its parts share: how an errno becomes an error,
 * how a struct stat becomes ours, how data is made durable.
 *
 * Invariant: the table has no state; every handle is a file descriptor that exec does not
 * inherit. Failure story: a failing call is reported with its errno, its operation and
 * the escaped name; nothing is retried except what a signal interrupted.
 */
#include "io/posix.h"

#include "base/escape.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define NS_PER_S 1000000000

enum ckv_status ckvi_posix_fail_as(struct ckv_error *error, enum ckv_status status,
                                   int os_errno, const char *operation, const char *name)
{
    char shown[2 * CKVI_ESCAPE_SIZE];
    if (!name)
        return ckv_error_set_errno(error, status, os_errno, "%s", operation);
    return ckv_error_set_errno(error, status, os_errno, "%s \"%s\"", operation,
                               ckvi_escape_string(name, shown, sizeof shown));
}

enum ckv_status ckvi_posix_fail(struct ckv_error *error, int os_errno,
                                const char *operation, const char *name)
{
    return ckvi_posix_fail_as(error, ckv_status_from_errno(os_errno), os_errno, operation,
                              name);
}

/* Times outside the years 1677 to 2262 do not fit and become the nearest that does. */
static int64_t convert_time(const struct timespec *time)
{
    const int64_t limit = INT64_MAX / NS_PER_S - 1;
    int64_t seconds = (int64_t)time->tv_sec;
    if (seconds > limit)
        return INT64_MAX;
    if (seconds < -limit)
        return INT64_MIN;
    return seconds * NS_PER_S + time->tv_nsec;
}

static enum ckv_io_type convert_type(mode_t mode)
{
    if (S_ISREG(mode))
        return CKV_IO_TYPE_FILE;
    return S_ISDIR(mode) ? CKV_IO_TYPE_DIR : CKV_IO_TYPE_OTHER;
}

void ckvi_posix_convert_stat(const struct stat *from, struct ckv_io_stat *to)
{
    to->type = convert_type(from->st_mode);
    to->size_bytes = (uint64_t)from->st_size;
    /* st_blocks counts 512 bytes whatever st_blksize says. */
    to->allocated_bytes = (uint64_t)from->st_blocks * 512;
    to->device = (uint64_t)from->st_dev;
    to->inode = (uint64_t)from->st_ino;
    to->link_count = (uint64_t)from->st_nlink;
    to->owner_uid = (uint32_t)from->st_uid;
    to->mode = (uint32_t)from->st_mode & 07777;
#ifdef __APPLE__
    to->mtime_ns = convert_time(&from->st_mtimespec);
    to->ctime_ns = convert_time(&from->st_ctimespec);
#else
    to->mtime_ns = convert_time(&from->st_mtim);
    to->ctime_ns = convert_time(&from->st_ctim);
#endif
}

static int sync_once(int fd)
{
#if defined(__APPLE__)
    /* fsync there stops at the drive's cache. Only where F_FULLFSYNC does not exist is
     * fsync the answer: after a real failure it would claim a success. */
    if (fcntl(fd, F_FULLFSYNC) == 0)
        return 0;
    if (errno != ENOTSUP && errno != EINVAL && errno != ENOTTY)
        return -1;
    return fsync(fd);
#elif defined(__linux__)
    return fdatasync(fd);
#else
    return fsync(fd);
#endif
}

int ckvi_posix_sync(int fd)
{
    int result;
    do {
        result = sync_once(fd);
    } while (result != 0 && errno == EINTR);
    return result;
}

static uint32_t effective_uid(void *ctx)
{
    (void)ctx;
    return (uint32_t)geteuid();
}

static const struct ckv_io posix_io = {
    .ctx = NULL,
    .name = "posix",
    .open_root = ckvi_posix_open_root,
    .open_dir = ckvi_posix_open_dir,
    .close_dir = ckvi_posix_close_dir,
    .list = ckvi_posix_list,
    .sync_dir = ckvi_posix_sync_dir,
    .space = ckvi_posix_space,
    .stat_dir = ckvi_posix_stat_dir,
    .stat_name = ckvi_posix_stat_name,
    .rename = ckvi_posix_rename,
    .link = ckvi_posix_link,
    .remove = ckvi_posix_remove,
    .remove_dir = ckvi_posix_remove_dir,
    .open_file = ckvi_posix_open_file,
    .close_file = ckvi_posix_close_file,
    .stat_file = ckvi_posix_stat_file,
    .set_mtime = ckvi_posix_set_mtime,
    .truncate = ckvi_posix_truncate,
    .allocate = ckvi_posix_allocate,
    .sync_file = ckvi_posix_sync_file,
    .lock = ckvi_posix_lock,
    .unlock = ckvi_posix_unlock,
    .advise = ckvi_posix_advise,
    .submit = ckvi_posix_submit,
    .wait = ckvi_posix_wait,
    .random = ckvi_posix_random,
    .effective_uid = effective_uid,
};

const struct ckv_io *ckv_io_posix(void)
{
    return &posix_io;
}

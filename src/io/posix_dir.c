/*
 * Owns folders and names of the POSIX table.
 *
 * Invariant: below the root no link is ever followed; the root's own path may be a link,
 * because the user named it. Failure story: an open that fails leaves no descriptor; a
 * folder that was made before the failure stays, empty.
 */
#include "io/posix.h"

#include "base/checked.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int dir_fd(struct ckv_io_dir dir)
{
    return (int)dir.handle;
}

/* What stands where a folder should be: a file, or a link that is not followed (Linux
 * says ENOTDIR, others ELOOP, FreeBSD EMLINK). */
static bool is_no_folder(int os_errno)
{
    return os_errno == ENOTDIR || os_errno == ELOOP || os_errno == EMLINK;
}

static enum ckv_status fail_folder(struct ckv_error *error, int os_errno,
                                   const char *operation, const char *path)
{
    if (is_no_folder(os_errno))
        return ckvi_posix_fail_as(error, CKV_DENIED, os_errno, operation, path);
    return ckvi_posix_fail(error, os_errno, operation, path);
}

static int open_folder(int parent, const char *path, int flags)
{
    int fd;
    do {
        fd = openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

static enum ckv_status make_and_open(int parent, const char *path, int flags, bool create,
                                     bool *made, struct ckv_io_dir *out,
                                     struct ckv_error *error)
{
    int fd;
    *out = CKV_IO_DIR_NONE;
    if (made)
        *made = false;
    if (create && mkdirat(parent, path, 0700) == 0) {
        if (made)
            *made = true;
    } else if (create && errno != EEXIST) {
        return fail_folder(error, errno, "make folder", path);
    }
    fd = open_folder(parent, path, flags);
    if (fd < 0)
        return fail_folder(error, errno, "open folder", path);
    out->handle = fd;
    return CKV_OK;
}

enum ckv_status ckvi_posix_open_root(void *ctx, const char *path, bool create, bool *made,
                                     struct ckv_io_dir *out, struct ckv_error *error)
{
    (void)ctx;
    return make_and_open(AT_FDCWD, path, 0, create, made, out, error);
}

enum ckv_status ckvi_posix_open_dir(void *ctx, struct ckv_io_dir parent, const char *name,
                                    bool create, bool *made, struct ckv_io_dir *out,
                                    struct ckv_error *error)
{
    (void)ctx;
    return make_and_open(dir_fd(parent), name, O_NOFOLLOW, create, made, out, error);
}

void ckvi_posix_close_dir(void *ctx, struct ckv_io_dir dir)
{
    (void)ctx;
    (void)close(dir_fd(dir));
}

static enum ckv_status list_stream(DIR *stream, ckv_io_list_fn fn, void *fn_ctx,
                                   struct ckv_error *error)
{
    enum ckv_status status = CKV_OK;
    while (!status) {
        const struct dirent *item;
        errno = 0;
        item = readdir(stream);
        if (!item && errno != 0)
            return ckvi_posix_fail(error, errno, "list folder", NULL);
        if (!item)
            return CKV_OK;
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0)
            continue;
        status = fn(fn_ctx, item->d_name);
    }
    return ckv_error_set(error, status, "the listing was stopped by its caller");
}

enum ckv_status ckvi_posix_list(void *ctx, struct ckv_io_dir dir, ckv_io_list_fn fn,
                                void *fn_ctx, struct ckv_error *error)
{
    enum ckv_status status;
    DIR *stream;
    int fd;
    (void)ctx;
    /* A descriptor of its own: a dup would share its position with other listings. */
    fd = open_folder(dir_fd(dir), ".", 0);
    if (fd < 0)
        return ckvi_posix_fail(error, errno, "list folder", NULL);
    stream = fdopendir(fd);
    if (!stream) {
        status = ckvi_posix_fail(error, errno, "list folder", NULL);
        (void)close(fd);
        return status;
    }
    status = list_stream(stream, fn, fn_ctx, error);
    (void)closedir(stream);
    return status;
}

enum ckv_status ckvi_posix_sync_dir(void *ctx, struct ckv_io_dir dir,
                                    struct ckv_error *error)
{
    (void)ctx;
#ifdef __APPLE__
    if (ckvi_posix_sync(dir_fd(dir)) == 0)
        return CKV_OK;
#else
    int result;
    do {
        result = fsync(dir_fd(dir));
    } while (result != 0 && errno == EINTR);
    if (result == 0)
        return CKV_OK;
#endif
    /* Some network file systems know no sync of folders. */
    if (errno == EINVAL || errno == ENOTSUP)
        return ckvi_posix_fail_as(error, CKV_UNSUPPORTED, errno, "sync folder", NULL);
    return ckvi_posix_fail(error, errno, "sync folder", NULL);
}

/* Sizes that do not fit (file systems that say "no limit") count as the largest. */
static uint64_t block_bytes(uint64_t count, uint64_t size)
{
    uint64_t bytes;
    return ckvi_mul_u64(count, size, &bytes) ? bytes : UINT64_MAX;
}

enum ckv_status ckvi_posix_space(void *ctx, struct ckv_io_dir dir,
                                 struct ckv_io_space *out, struct ckv_error *error)
{
    struct statvfs found;
    uint64_t size;
    int result;
    (void)ctx;
    do {
        result = fstatvfs(dir_fd(dir), &found);
    } while (result != 0 && errno == EINTR);
    if (result != 0)
        return ckvi_posix_fail(error, errno, "read free space", NULL);
    size = found.f_frsize ? found.f_frsize : found.f_bsize;
    out->total_bytes = block_bytes(found.f_blocks, size);
    out->free_bytes = block_bytes(found.f_bavail, size);
    return CKV_OK;
}

enum ckv_status ckvi_posix_stat_dir(void *ctx, struct ckv_io_dir dir,
                                    struct ckv_io_stat *out, struct ckv_error *error)
{
    struct stat found;
    (void)ctx;
    if (fstat(dir_fd(dir), &found) != 0)
        return ckvi_posix_fail(error, errno, "stat folder", NULL);
    ckvi_posix_convert_stat(&found, out);
    return CKV_OK;
}

enum ckv_status ckvi_posix_stat_name(void *ctx, struct ckv_io_dir dir, const char *name,
                                     struct ckv_io_stat *out, struct ckv_error *error)
{
    struct stat found;
    (void)ctx;
    if (fstatat(dir_fd(dir), name, &found, AT_SYMLINK_NOFOLLOW) != 0)
        return ckvi_posix_fail(error, errno, "stat", name);
    ckvi_posix_convert_stat(&found, out);
    return CKV_OK;
}

enum ckv_status ckvi_posix_rename(void *ctx, struct ckv_io_dir from_dir, const char *from,
                                  struct ckv_io_dir to_dir, const char *to,
                                  struct ckv_error *error)
{
    (void)ctx;
    if (renameat(dir_fd(from_dir), from, dir_fd(to_dir), to) == 0)
        return CKV_OK;
    return ckvi_posix_fail(error, errno, "rename", from);
}

enum ckv_status ckvi_posix_link(void *ctx, struct ckv_io_dir from_dir, const char *from,
                                struct ckv_io_dir to_dir, const char *to,
                                struct ckv_error *error)
{
    (void)ctx;
    if (linkat(dir_fd(from_dir), from, dir_fd(to_dir), to, 0) == 0)
        return CKV_OK;
    return ckvi_posix_fail(error, errno, "link", from);
}

enum ckv_status ckvi_posix_remove(void *ctx, struct ckv_io_dir dir, const char *name,
                                  struct ckv_error *error)
{
    (void)ctx;
    if (unlinkat(dir_fd(dir), name, 0) == 0)
        return CKV_OK;
    if (errno == EISDIR)
        return ckvi_posix_fail_as(error, CKV_DENIED, errno, "remove", name);
    return ckvi_posix_fail(error, errno, "remove", name);
}

enum ckv_status ckvi_posix_remove_dir(void *ctx, struct ckv_io_dir dir, const char *name,
                                      struct ckv_error *error)
{
    (void)ctx;
    if (unlinkat(dir_fd(dir), name, AT_REMOVEDIR) == 0)
        return CKV_OK;
    /* POSIX allows EEXIST and ENOTEMPTY for a folder that holds something. */
    if (errno == ENOTEMPTY)
        return ckvi_posix_fail_as(error, CKV_EXISTS, errno, "remove folder", name);
    if (is_no_folder(errno))
        return ckvi_posix_fail_as(error, CKV_DENIED, errno, "remove folder", name);
    return ckvi_posix_fail(error, errno, "remove folder", name);
}

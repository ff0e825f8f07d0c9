/*
 * Owns the checked entrance to every io table: names are judged here and nowhere else, so
 * that no table and no caller has to.
 *
 * Invariant: a table never sees a name with a '/', an empty one, "." or "..", nor a
 * handle that is none. Failure story: out parameters are none, false or zero on every
 * failure; the table's own error detail is passed on as it is.
 */
#include <coldkv/io.h>

#include "base/escape.h"
#include <errno.h>
#include <string.h>

bool ckv_io_name_valid(const char *name)
{
    size_t size;
    if (!name)
        return false;
    size = strnlen(name, CKV_IO_NAME_MAX + 1);
    if (size == 0 || size > CKV_IO_NAME_MAX || memchr(name, '/', size))
        return false;
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static enum ckv_status check_name(const char *name, struct ckv_error *error)
{
    char shown[CKVI_ESCAPE_SIZE];
    if (ckv_io_name_valid(name))
        return CKV_OK;
    if (!name)
        return ckv_error_set(error, CKV_INVALID, "no name was given");
    return ckv_error_set(
        error, CKV_INVALID, "expected a single name of 1 to %d bytes, found \"%s\"",
        CKV_IO_NAME_MAX,
        ckvi_escape(name, strnlen(name, CKV_IO_NAME_MAX + 1), shown, sizeof shown));
}

static enum ckv_status check_dir(struct ckv_io_dir dir, struct ckv_error *error)
{
    if (dir.handle != CKV_IO_DIR_NONE.handle)
        return CKV_OK;
    return ckv_error_set(error, CKV_INVALID, "the folder is not open");
}

static enum ckv_status check_file(struct ckv_io_file file, struct ckv_error *error)
{
    if (file.handle != CKV_IO_FILE_NONE.handle)
        return CKV_OK;
    return ckv_error_set(error, CKV_INVALID, "the file is not open");
}

static enum ckv_status check_dir_name(struct ckv_io_dir dir, const char *name,
                                      struct ckv_error *error)
{
    enum ckv_status status = check_dir(dir, error);
    return status ? status : check_name(name, error);
}

enum ckv_status ckv_io_open_root(const struct ckv_io *io, const char *path, bool create,
                                 bool *made, struct ckv_io_dir *out,
                                 struct ckv_error *error)
{
    bool made_here = false;
    enum ckv_status status;
    *out = CKV_IO_DIR_NONE;
    if (!path || !*path)
        status = ckv_error_set(error, CKV_INVALID, "no path was given");
    else
        status = io->open_root(io->ctx, path, create, &made_here, out, error);
    if (made)
        *made = made_here;
    if (status)
        *out = CKV_IO_DIR_NONE;
    return status;
}

enum ckv_status ckv_io_open_dir(const struct ckv_io *io, struct ckv_io_dir parent,
                                const char *name, bool create, bool *made,
                                struct ckv_io_dir *out, struct ckv_error *error)
{
    bool made_here = false;
    enum ckv_status status;
    *out = CKV_IO_DIR_NONE;
    status = check_dir_name(parent, name, error);
    if (!status)
        status = io->open_dir(io->ctx, parent, name, create, &made_here, out, error);
    if (made)
        *made = made_here;
    if (status)
        *out = CKV_IO_DIR_NONE;
    return status;
}

void ckv_io_close_dir(const struct ckv_io *io, struct ckv_io_dir *dir)
{
    if (dir->handle == CKV_IO_DIR_NONE.handle)
        return;
    io->close_dir(io->ctx, *dir);
    *dir = CKV_IO_DIR_NONE;
}

enum ckv_status ckv_io_list(const struct ckv_io *io, struct ckv_io_dir dir,
                            ckv_io_list_fn fn, void *fn_ctx, struct ckv_error *error)
{
    enum ckv_status status = check_dir(dir, error);
    return status ? status : io->list(io->ctx, dir, fn, fn_ctx, error);
}

enum ckv_status ckv_io_sync_dir(const struct ckv_io *io, struct ckv_io_dir dir,
                                struct ckv_error *error)
{
    enum ckv_status status = check_dir(dir, error);
    return status ? status : io->sync_dir(io->ctx, dir, error);
}

enum ckv_status ckv_io_get_space(const struct ckv_io *io, struct ckv_io_dir dir,
                                 struct ckv_io_space *out, struct ckv_error *error)
{
    enum ckv_status status = check_dir(dir, error);
    *out = (struct ckv_io_space){0, 0};
    return status ? status : io->space(io->ctx, dir, out, error);
}

enum ckv_status ckv_io_stat_dir(const struct ckv_io *io, struct ckv_io_dir dir,
                                struct ckv_io_stat *out, struct ckv_error *error)
{
    enum ckv_status status = check_dir(dir, error);
    memset(out, 0, sizeof *out);
    return status ? status : io->stat_dir(io->ctx, dir, out, error);
}

enum ckv_status ckv_io_stat_name(const struct ckv_io *io, struct ckv_io_dir dir,
                                 const char *name, struct ckv_io_stat *out,
                                 struct ckv_error *error)
{
    enum ckv_status status = check_dir_name(dir, name, error);
    memset(out, 0, sizeof *out);
    return status ? status : io->stat_name(io->ctx, dir, name, out, error);
}

enum ckv_status ckv_io_rename(const struct ckv_io *io, struct ckv_io_dir from_dir,
                              const char *from, struct ckv_io_dir to_dir, const char *to,
                              struct ckv_error *error)
{
    enum ckv_status status = check_dir_name(from_dir, from, error);
    if (!status)
        status = check_dir_name(to_dir, to, error);
    return status ? status : io->rename(io->ctx, from_dir, from, to_dir, to, error);
}

enum ckv_status ckv_io_link(const struct ckv_io *io, struct ckv_io_dir from_dir,
                            const char *from, struct ckv_io_dir to_dir, const char *to,
                            struct ckv_error *error)
{
    enum ckv_status status = check_dir_name(from_dir, from, error);
    if (!status)
        status = check_dir_name(to_dir, to, error);
    return status ? status : io->link(io->ctx, from_dir, from, to_dir, to, error);
}

enum ckv_status ckv_io_remove(const struct ckv_io *io, struct ckv_io_dir dir,
                              const char *name, struct ckv_error *error)
{
    enum ckv_status status = check_dir_name(dir, name, error);
    return status ? status : io->remove(io->ctx, dir, name, error);
}

enum ckv_status ckv_io_remove_dir(const struct ckv_io *io, struct ckv_io_dir dir,
                                  const char *name, struct ckv_error *error)
{
    enum ckv_status status = check_dir_name(dir, name, error);
    return status ? status : io->remove_dir(io->ctx, dir, name, error);
}

enum ckv_status ckv_io_open_file(const struct ckv_io *io, struct ckv_io_dir dir,
                                 const char *name, enum ckv_io_open_mode mode,
                                 struct ckv_io_file *out, struct ckv_error *error)
{
    enum ckv_status status;
    *out = CKV_IO_FILE_NONE;
    status = check_dir_name(dir, name, error);
    if (!status)
        status = io->open_file(io->ctx, dir, name, mode, out, error);
    if (status)
        *out = CKV_IO_FILE_NONE;
    return status;
}

void ckv_io_close_file(const struct ckv_io *io, struct ckv_io_file *file)
{
    if (file->handle == CKV_IO_FILE_NONE.handle)
        return;
    io->close_file(io->ctx, *file);
    *file = CKV_IO_FILE_NONE;
}

enum ckv_status ckv_io_stat_file(const struct ckv_io *io, struct ckv_io_file file,
                                 struct ckv_io_stat *out, struct ckv_error *error)
{
    enum ckv_status status = check_file(file, error);
    memset(out, 0, sizeof *out);
    return status ? status : io->stat_file(io->ctx, file, out, error);
}

static enum ckv_status transfer(const struct ckv_io *io, struct ckv_io_request *request,
                                struct ckv_error *error)
{
    enum ckv_status status = check_file(request->file, error);
    if (status || request->size_bytes == 0)
        return status;
    status = io->submit(io->ctx, request, 1, error);
    if (status)
        return status;
    status = io->wait(io->ctx, request, 1, error);
    /* A table may report a failure in the request alone. */
    if (!status && request->status)
        status = ckv_error_set_errno(
            error, request->status, request->os_errno, "%s of %zu bytes",
            request->op == CKV_IO_OP_READ ? "read" : "write", request->size_bytes);
    return status;
}

enum ckv_status ckv_io_read(const struct ckv_io *io, struct ckv_io_file file, void *data,
                            size_t size, uint64_t offset, size_t *done_bytes,
                            struct ckv_error *error)
{
    struct ckv_io_request request = {.op = CKV_IO_OP_READ,
                                     .file = file,
                                     .data = data,
                                     .size_bytes = size,
                                     .offset = offset};
    enum ckv_status status = transfer(io, &request, error);
    *done_bytes = request.done_bytes;
    return status;
}

enum ckv_status ckv_io_write(const struct ckv_io *io, struct ckv_io_file file,
                             const void *data, size_t size, uint64_t offset,
                             struct ckv_error *error)
{
    /* A write only reads from `data`; the request has one pointer for both ways. */
    struct ckv_io_request request = {.op = CKV_IO_OP_WRITE,
                                     .file = file,
                                     .data = (void *)data,
                                     .size_bytes = size,
                                     .offset = offset};
    enum ckv_status status = transfer(io, &request, error);
    if (!status && request.done_bytes != size)
        status = ckv_error_set_errno(error, CKV_IO, EIO,
                                     "write: expected %zu bytes, the table wrote %zu",
                                     size, request.done_bytes);
    return status;
}

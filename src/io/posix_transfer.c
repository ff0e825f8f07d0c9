/*
 * Owns transfers of the POSIX table.
 *
 * Transfers are done inside submit, one after the other, on the calling thread: simple
 * first. One request in flight already keeps a page-cached read or a buffered write at
 * memory speed; callers are written against submit and wait, so that a thread pool or a
 * kernel ring can come behind them without a change.
 *
 * Invariant: after submit said OK, every request has its result and wait only reports.
 * Failure story: a failed request keeps how far it got; the others are still tried.
 */
#include "io/posix.h"

#include <errno.h>
#include <sys/types.h>
#include <unistd.h>

/* Linux moves at most 0x7ffff000 bytes per call, macOS refuses 2 GiB and more. */
#define CALL_BYTES_MAX ((size_t)1 << 30)

static const char *op_name(const struct ckv_io_request *request)
{
    return request->op == CKV_IO_OP_READ ? "read" : "write";
}

/* Whether offset + size fits the system's off_t, and the request is one at all. */
static bool is_possible(const struct ckv_io_request *request)
{
    const uint64_t limit = sizeof(off_t) >= 8 ? INT64_MAX : INT32_MAX;
    if (request->op != CKV_IO_OP_READ && request->op != CKV_IO_OP_WRITE)
        return false;
    if (!request->data && request->size_bytes > 0)
        return false;
    return request->offset <= limit && request->size_bytes <= limit - request->offset;
}

/* Moves the next part; returns what the system call returns. */
static ssize_t move_part(const struct ckv_io_request *request)
{
    int fd = (int)request->file.handle;
    char *data = (char *)request->data + request->done_bytes;
    size_t size = request->size_bytes - request->done_bytes;
    off_t offset = (off_t)(request->offset + request->done_bytes);
    if (size > CALL_BYTES_MAX)
        size = CALL_BYTES_MAX;
    if (request->op == CKV_IO_OP_READ)
        return pread(fd, data, size, offset);
    return pwrite(fd, data, size, offset);
}

static void move_all(struct ckv_io_request *request)
{
    request->done_bytes = 0;
    request->status = CKV_OK;
    request->os_errno = 0;
    while (request->done_bytes < request->size_bytes) {
        ssize_t moved = move_part(request);
        if (moved > 0) {
            request->done_bytes += (size_t)moved;
            continue;
        }
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved == 0 && request->op == CKV_IO_OP_READ)
            return;
        /* A write that moves nothing and gives no reason would loop for ever. */
        request->os_errno = moved < 0 ? errno : EIO;
        request->status = ckv_status_from_errno(request->os_errno);
        return;
    }
}

enum ckv_status ckvi_posix_submit(void *ctx, struct ckv_io_request *requests,
                                  size_t count, struct ckv_error *error)
{
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        if (!is_possible(&requests[i]))
            return ckv_error_set(error, CKV_INVALID,
                                 "transfer %zu of %zu: not a possible operation, memory, "
                                 "offset and size",
                                 i, count);
    }
    for (size_t i = 0; i < count; i++)
        move_all(&requests[i]);
    return CKV_OK;
}

enum ckv_status ckvi_posix_wait(void *ctx, struct ckv_io_request *requests, size_t count,
                                struct ckv_error *error)
{
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        const struct ckv_io_request *request = &requests[i];
        if (!request->status)
            continue;
        (void)ckv_error_set_errno(
            error, request->status, request->os_errno,
            "%s of %zu bytes at %llu, %zu done", op_name(request), request->size_bytes,
            (unsigned long long)request->offset, request->done_bytes);
        if (error)
            error->file_offset = (int64_t)(request->offset + request->done_bytes);
        return request->status;
    }
    return CKV_OK;
}

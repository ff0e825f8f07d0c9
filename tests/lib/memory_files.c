/*
 * Owns the part of the memory table that is about open files: transfers, lengths, times,
 * locks. Transfers are carried out in wait; a request that was submitted and never waited
 * for shows up when the disk is checked or destroyed.
 */
#include "lib/memory_disk.h"

#include "lib/require.h"
#include <errno.h>
#include <string.h>

/* Enough for any test, and no block table grows beyond reason. */
#define FILE_BYTES_MAX (UINT64_C(1) << 40)

static struct memory_handle *lock_file(struct test_memory_io *memory,
                                       struct ckv_io_file file)
{
    pthread_mutex_lock(&memory->mutex);
    return memory_handle_get(memory, file.handle, CKV_IO_TYPE_FILE);
}

static enum ckv_status unlock_with(struct test_memory_io *memory, enum ckv_status status)
{
    pthread_mutex_unlock(&memory->mutex);
    return status;
}

static void close_file(void *ctx, struct ckv_io_file file)
{
    struct test_memory_io *memory = ctx;
    pthread_mutex_lock(&memory->mutex);
    memory_handle_close(memory, file.handle, CKV_IO_TYPE_FILE);
    pthread_mutex_unlock(&memory->mutex);
}

static enum ckv_status stat_file(void *ctx, struct ckv_io_file file,
                                 struct ckv_io_stat *out, struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    (void)error;
    memory_node_stat(lock_file(memory, file)->node, out);
    return unlock_with(memory, CKV_OK);
}

static enum ckv_status set_mtime(void *ctx, struct ckv_io_file file, int64_t mtime_ns,
                                 struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    struct memory_node *node = lock_file(memory, file)->node;
    if (memory->uid != 0 && memory->uid != node->uid)
        return unlock_with(memory,
                           memory_fail(error, EPERM, "set the file's time", NULL));
    memory_node_touch(memory, node, false);
    node->mtime_ns = mtime_ns;
    memory_record(memory, &(struct test_memory_op){.kind = TEST_OP_SET_MTIME,
                                                   .node = node->inode,
                                                   .mtime_ns = mtime_ns});
    return unlock_with(memory, CKV_OK);
}

static enum ckv_status truncate_file(void *ctx, struct ckv_io_file file,
                                     uint64_t size_bytes, struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    struct memory_handle *handle = lock_file(memory, file);
    struct memory_node *node = handle->node;
    if (!handle->writable)
        return unlock_with(memory, memory_fail(error, EINVAL, "set the length", NULL));
    if (size_bytes > INT64_MAX)
        return unlock_with(memory, memory_fail(error, EFBIG, "set the length", NULL));
    memory_blocks_set_length(memory, node, size_bytes);
    memory_node_touch(memory, node, true);
    memory_record(memory, &(struct test_memory_op){.kind = TEST_OP_TRUNCATE,
                                                   .node = node->inode,
                                                   .size_bytes = size_bytes});
    return unlock_with(memory, CKV_OK);
}

static enum ckv_status allocate_file(void *ctx, struct ckv_io_file file,
                                     uint64_t size_bytes, struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    struct memory_handle *handle = lock_file(memory, file);
    struct memory_node *node = handle->node;
    if (memory->no_allocation)
        return unlock_with(memory, memory_fail_as(error, CKV_UNSUPPORTED, EOPNOTSUPP,
                                                  "reserve blocks", NULL));
    if (!handle->writable)
        return unlock_with(memory, memory_fail(error, EBADF, "reserve blocks", NULL));
    if (size_bytes > FILE_BYTES_MAX)
        return unlock_with(memory, memory_fail(error, EFBIG, "reserve blocks", NULL));
    if (!memory_blocks_reserve(memory, node, size_bytes))
        return unlock_with(memory, memory_fail(error, ENOSPC, "reserve blocks", NULL));
    memory_node_touch(memory, node, true);
    memory_record(memory, &(struct test_memory_op){.kind = TEST_OP_ALLOCATE,
                                                   .node = node->inode,
                                                   .size_bytes = size_bytes});
    return unlock_with(memory, CKV_OK);
}

static enum ckv_status sync_file(void *ctx, struct ckv_io_file file,
                                 struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    const struct memory_node *node = lock_file(memory, file)->node;
    (void)error;
    memory_record(
        memory, &(struct test_memory_op){.kind = TEST_OP_SYNC_FILE, .node = node->inode});
    return unlock_with(memory, CKV_OK);
}

static enum ckv_status lock(void *ctx, struct ckv_io_file file,
                            enum ckv_io_lock_mode mode, struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    struct memory_handle *handle = lock_file(memory, file);
    struct memory_node *node = handle->node;
    if (memory->no_locks)
        return unlock_with(
            memory, memory_fail_as(error, CKV_UNSUPPORTED, ENOLCK, "lock file", NULL));
    /* As flock does: a change of mode gives the old lock up first. */
    memory_handle_unlock(handle);
    if (node->exclusive_locks > 0 ||
        (mode == CKV_IO_LOCK_EXCLUSIVE && node->shared_locks > 0))
        return unlock_with(memory, memory_fail(error, EWOULDBLOCK, "lock file", NULL));
    handle->lock = mode;
    if (mode == CKV_IO_LOCK_SHARED)
        node->shared_locks++;
    else
        node->exclusive_locks++;
    return unlock_with(memory, CKV_OK);
}

static enum ckv_status unlock(void *ctx, struct ckv_io_file file, struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    struct memory_handle *handle = lock_file(memory, file);
    if (memory->no_locks)
        return unlock_with(
            memory, memory_fail_as(error, CKV_UNSUPPORTED, ENOLCK, "unlock file", NULL));
    memory_handle_unlock(handle);
    return unlock_with(memory, CKV_OK);
}

static void advise(void *ctx, struct ckv_io_file file, uint64_t offset,
                   uint64_t size_bytes, enum ckv_io_advice advice)
{
    struct test_memory_io *memory = ctx;
    (void)offset;
    (void)size_bytes;
    (void)advice;
    (void)lock_file(memory, file);
    pthread_mutex_unlock(&memory->mutex);
}

static void fail_request(struct ckv_io_request *request, int os_errno)
{
    request->os_errno = os_errno;
    request->status = ckv_status_from_errno(os_errno);
}

static void write_request(struct test_memory_io *memory, struct memory_handle *handle,
                          struct ckv_io_request *request)
{
    struct memory_node *node = handle->node;
    if (!handle->writable) {
        fail_request(request, EBADF);
        return;
    }
    if (request->offset > FILE_BYTES_MAX ||
        request->size_bytes > FILE_BYTES_MAX - request->offset) {
        fail_request(request, EFBIG);
        return;
    }
    request->done_bytes = memory_blocks_write(memory, node, request->data,
                                              request->size_bytes, request->offset);
    memory_node_touch(memory, node, true);
    if (request->done_bytes > 0)
        memory_record(memory, &(struct test_memory_op){.kind = TEST_OP_WRITE,
                                                       .node = node->inode,
                                                       .offset = request->offset,
                                                       .size_bytes = request->done_bytes,
                                                       .data = request->data});
    if (request->done_bytes < request->size_bytes)
        fail_request(request, ENOSPC);
}

static void carry_out(struct test_memory_io *memory, struct ckv_io_request *request)
{
    struct memory_handle *handle =
        memory_handle_get(memory, request->file.handle, CKV_IO_TYPE_FILE);
    request->done_bytes = 0;
    request->status = CKV_OK;
    request->os_errno = 0;
    if (request->op == CKV_IO_OP_WRITE)
        write_request(memory, handle, request);
    else
        request->done_bytes = memory_blocks_read(handle->node, request->data,
                                                 request->size_bytes, request->offset);
}

static enum ckv_status submit(void *ctx, struct ckv_io_request *requests, size_t count,
                              struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    for (size_t i = 0; i < count; i++) {
        const struct ckv_io_request *request = &requests[i];
        TEST_REQUIRE(request->op == CKV_IO_OP_READ || request->op == CKV_IO_OP_WRITE);
        TEST_REQUIRE(request->data || request->size_bytes == 0);
        if (request->offset > INT64_MAX ||
            request->size_bytes > INT64_MAX - request->offset)
            return ckv_error_set(error, CKV_INVALID, "transfer beyond any file");
    }
    pthread_mutex_lock(&memory->mutex);
    memory->waiting_requests += count;
    pthread_mutex_unlock(&memory->mutex);
    return CKV_OK;
}

static enum ckv_status wait_for(void *ctx, struct ckv_io_request *requests, size_t count,
                                struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    enum ckv_status status = CKV_OK;
    pthread_mutex_lock(&memory->mutex);
    TEST_REQUIRE(memory->waiting_requests >= count);
    memory->waiting_requests -= count;
    for (size_t i = 0; i < count; i++) {
        carry_out(memory, &requests[i]);
        if (requests[i].status && !status)
            status = ckv_error_set_errno(
                error, requests[i].status, requests[i].os_errno, "%s of %zu bytes",
                requests[i].op == CKV_IO_OP_READ ? "read" : "write",
                requests[i].size_bytes);
    }
    return unlock_with(memory, status);
}

void memory_files_fill_table(struct ckv_io *table)
{
    table->close_file = close_file;
    table->stat_file = stat_file;
    table->set_mtime = set_mtime;
    table->truncate = truncate_file;
    table->allocate = allocate_file;
    table->sync_file = sync_file;
    table->lock = lock;
    table->unlock = unlock;
    table->advise = advise;
    table->submit = submit;
    table->wait = wait_for;
}

/*
 * Owns handles, error texts and the log of the disk in memory. Handle numbers are never
 * used again: a handle that was closed is found out at its next use.
 */
#include "lib/memory_disk.h"

#include "lib/require.h"
#include <string.h>

/* Handles start above 0, so that a zeroed struct is not a valid one. */
#define FIRST_HANDLE 100

intptr_t memory_handle_open(struct test_memory_io *memory, struct memory_node *node,
                            bool writable)
{
    size_t count = memory->handle_count;
    if ((count & (count - 1)) == 0) {
        size_t capacity = count ? 2 * count : 1;
        memory->handles = realloc(memory->handles, capacity * sizeof *memory->handles);
        TEST_REQUIRE(memory->handles);
    }
    memory->handles[count] = (struct memory_handle){node, writable, 0};
    memory->handle_count++;
    memory->open_handles++;
    node->open_count++;
    return (intptr_t)(count + FIRST_HANDLE);
}

struct memory_handle *memory_handle_get(struct test_memory_io *memory, intptr_t handle,
                                        enum ckv_io_type type)
{
    struct memory_handle *found;
    TEST_REQUIRE(handle >= FIRST_HANDLE);
    TEST_REQUIRE((size_t)(handle - FIRST_HANDLE) < memory->handle_count);
    found = &memory->handles[handle - FIRST_HANDLE];
    TEST_REQUIRE(found->node && found->node->type == type);
    return found;
}

void memory_handle_unlock(struct memory_handle *handle)
{
    if (handle->lock == CKV_IO_LOCK_SHARED)
        handle->node->shared_locks--;
    if (handle->lock == CKV_IO_LOCK_EXCLUSIVE)
        handle->node->exclusive_locks--;
    handle->lock = 0;
}

void memory_handle_close(struct test_memory_io *memory, intptr_t handle,
                         enum ckv_io_type type)
{
    struct memory_handle *found = memory_handle_get(memory, handle, type);
    struct memory_node *node = found->node;
    memory_handle_unlock(found);
    found->node = NULL;
    memory->open_handles--;
    node->open_count--;
    memory_node_settle(memory, node);
}

enum ckv_status memory_fail_as(struct ckv_error *error, enum ckv_status status,
                               int os_errno, const char *operation, const char *name)
{
    if (!name)
        return ckv_error_set_errno(error, status, os_errno, "%s", operation);
    return ckv_error_set_errno(error, status, os_errno, "%s \"%s\"", operation, name);
}

enum ckv_status memory_fail(struct ckv_error *error, int os_errno, const char *operation,
                            const char *name)
{
    return memory_fail_as(error, ckv_status_from_errno(os_errno), os_errno, operation,
                          name);
}

static char *copy_name(const char *name)
{
    char *copy = name ? strdup(name) : NULL;
    TEST_REQUIRE(copy || !name);
    return copy;
}

void memory_record(struct test_memory_io *memory, const struct test_memory_op *op)
{
    struct test_memory_op *copy;
    if (!memory->recording)
        return;
    if (memory->op_count == memory->op_capacity) {
        memory->op_capacity = memory->op_capacity ? 2 * memory->op_capacity : 64;
        memory->ops = realloc(memory->ops, memory->op_capacity * sizeof *memory->ops);
        TEST_REQUIRE(memory->ops);
    }
    copy = &memory->ops[memory->op_count++];
    *copy = *op;
    copy->name = copy_name(op->name);
    copy->to = copy_name(op->to);
    if (op->data) {
        copy->data = malloc((size_t)op->size_bytes + 1);
        TEST_REQUIRE(copy->data);
        memcpy(copy->data, op->data, (size_t)op->size_bytes);
    }
}

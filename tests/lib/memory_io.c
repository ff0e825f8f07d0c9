/* Owns the life of a disk in memory and the knobs that tests turn on it. */
#include "lib/memory_io.h"

#include "lib/memory_disk.h"
#include "lib/require.h"
#include <string.h>

static enum ckv_status make_random(void *ctx, void *data, size_t size,
                                   struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    (void)error;
    pthread_mutex_lock(&memory->mutex);
    test_random_fill(&memory->random, data, size);
    pthread_mutex_unlock(&memory->mutex);
    return CKV_OK;
}

static uint32_t effective_uid(void *ctx)
{
    struct test_memory_io *memory = ctx;
    uint32_t uid;
    pthread_mutex_lock(&memory->mutex);
    uid = memory->uid;
    pthread_mutex_unlock(&memory->mutex);
    return uid;
}

struct test_memory_io *test_memory_io_create(const struct ckv_clock *clock)
{
    struct test_memory_io *memory = calloc(1, sizeof *memory);
    TEST_REQUIRE(memory);
    TEST_REQUIRE(pthread_mutex_init(&memory->mutex, NULL) == 0);
    memory->clock = clock ? clock : ckv_clock_system();
    memory->uid = TEST_MEMORY_UID;
    memory->total_bytes = UINT64_C(1) << 40;
    memory->next_inode = 2;
    test_random_init(&memory->random, 1);
    memory->root = memory_node_create(memory, CKV_IO_TYPE_DIR, 0755);
    memory->root->link_count = 1;
    memory->table.ctx = memory;
    memory->table.name = "memory";
    memory->table.random = make_random;
    memory->table.effective_uid = effective_uid;
    memory_names_fill_table(&memory->table);
    memory_files_fill_table(&memory->table);
    return memory;
}

static void drop_ops(struct test_memory_io *memory)
{
    for (size_t i = 0; i < memory->op_count; i++) {
        free(memory->ops[i].name);
        free(memory->ops[i].to);
        free(memory->ops[i].data);
    }
    free(memory->ops);
    memory->ops = NULL;
    memory->op_count = 0;
    memory->op_capacity = 0;
}

void test_memory_io_destroy(struct test_memory_io *memory)
{
    if (!memory)
        return;
    /* Handles of removed nodes keep these alive; close what a failed test left open. */
    for (size_t i = 0; i < memory->handle_count; i++) {
        struct memory_node *node = memory->handles[i].node;
        if (!node)
            continue;
        node->open_count--;
        memory_node_settle(memory, node);
    }
    memory_node_destroy_tree(memory, memory->root);
    drop_ops(memory);
    free(memory->handles);
    pthread_mutex_destroy(&memory->mutex);
    free(memory);
}

const struct ckv_io *test_memory_io_table(struct test_memory_io *memory)
{
    return &memory->table;
}

bool test_memory_io_clean(struct test_memory_io *memory)
{
    bool clean;
    pthread_mutex_lock(&memory->mutex);
    clean = memory->open_handles == 0 && memory->waiting_requests == 0;
    if (!clean)
        fprintf(stderr, "left open: %zu handles; not waited for: %zu transfers\n",
                memory->open_handles, memory->waiting_requests);
    pthread_mutex_unlock(&memory->mutex);
    return clean;
}

void test_memory_io_set_space(struct test_memory_io *memory, uint64_t total_bytes,
                              uint64_t free_bytes)
{
    uint64_t used;
    pthread_mutex_lock(&memory->mutex);
    used = memory->used_blocks * TEST_MEMORY_BLOCK;
    TEST_REQUIRE(free_bytes <= total_bytes && used <= total_bytes - free_bytes);
    memory->total_bytes = total_bytes;
    memory->other_bytes = total_bytes - free_bytes - used;
    pthread_mutex_unlock(&memory->mutex);
}

uint64_t test_memory_io_used_bytes(struct test_memory_io *memory)
{
    uint64_t used;
    pthread_mutex_lock(&memory->mutex);
    used = memory->used_blocks * TEST_MEMORY_BLOCK;
    pthread_mutex_unlock(&memory->mutex);
    return used;
}

void test_memory_io_set_uid(struct test_memory_io *memory, uint32_t uid)
{
    pthread_mutex_lock(&memory->mutex);
    memory->uid = uid;
    pthread_mutex_unlock(&memory->mutex);
}

void test_memory_io_set_owner(struct test_memory_io *memory, struct ckv_io_dir dir,
                              const char *name, uint32_t uid, uint32_t mode)
{
    struct memory_node *node;
    pthread_mutex_lock(&memory->mutex);
    node = memory_handle_get(memory, dir.handle, CKV_IO_TYPE_DIR)->node;
    if (name)
        node = memory_node_find(node, name);
    TEST_REQUIRE(node);
    node->uid = uid;
    node->mode = mode;
    memory_node_touch(memory, node, false);
    pthread_mutex_unlock(&memory->mutex);
}

void test_memory_io_make_other(struct test_memory_io *memory, struct ckv_io_dir dir,
                               const char *name)
{
    struct memory_node *parent;
    pthread_mutex_lock(&memory->mutex);
    parent = memory_handle_get(memory, dir.handle, CKV_IO_TYPE_DIR)->node;
    memory_node_add(memory, parent, name,
                    memory_node_create(memory, CKV_IO_TYPE_OTHER, 0777));
    pthread_mutex_unlock(&memory->mutex);
}

void test_memory_io_set_unsupported(struct test_memory_io *memory, bool locks,
                                    bool allocation)
{
    pthread_mutex_lock(&memory->mutex);
    memory->no_locks = locks;
    memory->no_allocation = allocation;
    pthread_mutex_unlock(&memory->mutex);
}

void test_memory_io_record(struct test_memory_io *memory, bool on)
{
    pthread_mutex_lock(&memory->mutex);
    memory->recording = on;
    pthread_mutex_unlock(&memory->mutex);
}

const struct test_memory_op *test_memory_io_ops(struct test_memory_io *memory,
                                                size_t *count)
{
    *count = memory->op_count;
    return memory->ops;
}

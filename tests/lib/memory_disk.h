/* The inside of the disk in memory: nodes, handles, the log. All under `mutex`. */
#ifndef COLDKV_TESTS_MEMORY_DISK_H
#define COLDKV_TESTS_MEMORY_DISK_H

#include "lib/memory_io.h"
#include "lib/random.h"
#include <pthread.h>

struct memory_name {
    char *name;
    struct memory_node *node;
};

struct memory_node {
    enum ckv_io_type type;
    uint64_t inode;
    uint64_t link_count; /* names; a folder: 1 while it is in the tree */
    size_t open_count;
    uint32_t uid;
    uint32_t mode;
    int64_t mtime_ns;
    int64_t ctime_ns;
    /* file */
    uint64_t size_bytes;
    unsigned char **blocks; /* NULL = hole; beyond block_slots: holes */
    size_t block_slots;
    size_t blocks_used;
    size_t shared_locks;
    size_t exclusive_locks;
    /* folder */
    struct memory_name *names;
    size_t name_count;
    struct memory_node *parent;
};

struct memory_handle {
    struct memory_node *node; /* NULL = closed; numbers are never used again */
    bool writable;
    enum ckv_io_lock_mode lock; /* 0 = none */
};

struct test_memory_io {
    struct ckv_io table;
    const struct ckv_clock *clock;
    pthread_mutex_t mutex;
    struct memory_node *root;
    struct memory_handle *handles;
    size_t handle_count;
    size_t open_handles;
    size_t waiting_requests;
    uint64_t next_inode;
    uint64_t total_bytes;
    uint64_t other_bytes; /* in use by others */
    uint64_t used_blocks;
    uint32_t uid;
    bool no_locks;
    bool no_allocation;
    struct test_random random;
    bool recording;
    struct test_memory_op *ops;
    size_t op_count;
    size_t op_capacity;
};

/* memory_node.c */
struct memory_node *memory_node_create(struct test_memory_io *memory,
                                       enum ckv_io_type type, uint32_t mode);
/* Frees the node when no name and no handle is left. */
void memory_node_settle(struct test_memory_io *memory, struct memory_node *node);
void memory_node_touch(struct test_memory_io *memory, struct memory_node *node,
                       bool content);
void memory_node_stat(const struct memory_node *node, struct ckv_io_stat *out);
/* want: 4 read, 2 write, 1 search. */
bool memory_node_may(const struct test_memory_io *memory, const struct memory_node *node,
                     unsigned int want);
struct memory_node *memory_node_find(const struct memory_node *dir, const char *name);
void memory_node_add(struct test_memory_io *memory, struct memory_node *dir,
                     const char *name, struct memory_node *node);
void memory_node_take(struct test_memory_io *memory, struct memory_node *dir,
                      const char *name);
void memory_node_destroy_tree(struct test_memory_io *memory, struct memory_node *node);

/* memory_blocks.c: contents of files */
size_t memory_blocks_read(const struct memory_node *node, void *data, size_t size,
                          uint64_t offset);
/* Returns what fitted on the disk. */
size_t memory_blocks_write(struct test_memory_io *memory, struct memory_node *node,
                           const void *data, size_t size, uint64_t offset);
void memory_blocks_set_length(struct test_memory_io *memory, struct memory_node *node,
                              uint64_t size);
/* False when the disk is full; then nothing was reserved. */
bool memory_blocks_reserve(struct test_memory_io *memory, struct memory_node *node,
                           uint64_t size);
uint64_t memory_free_bytes(const struct test_memory_io *memory);

/* memory_handle.c */
intptr_t memory_handle_open(struct test_memory_io *memory, struct memory_node *node,
                            bool writable);
struct memory_handle *memory_handle_get(struct test_memory_io *memory, intptr_t handle,
                                        enum ckv_io_type type);
void memory_handle_close(struct test_memory_io *memory, intptr_t handle,
                         enum ckv_io_type type);
void memory_handle_unlock(struct memory_handle *handle);
enum ckv_status memory_fail(struct ckv_error *error, int os_errno, const char *operation,
                            const char *name);
enum ckv_status memory_fail_as(struct ckv_error *error, enum ckv_status status,
                               int os_errno, const char *operation, const char *name);
/* Adds to the log when it is on; strings and data are copied. */
void memory_record(struct test_memory_io *memory, const struct test_memory_op *op);

/* memory_names.c and memory_files.c: each fills its members of the table. */
void memory_names_fill_table(struct ckv_io *table);
void memory_files_fill_table(struct ckv_io *table);

#endif

/*
 * Owns the fate of what was not synced when the power failed.
 *
 * Invariant: one walk over the log, in order; each change is applied whole when it is
 * safe, and otherwise as chance has it. Only what can be reached from the root is made
 * anew.
 */
#include "lib/crash_disk.h"

#include "lib/memory_disk.h"
#include "lib/require.h"
#include <string.h>

#define BLOCK TEST_MEMORY_BLOCK
#define ROOT_INODE 2

struct entry {
    char *name; /* borrowed from the log; NULL = gone */
    uint64_t inode;
};

/* A file or folder of the old disk, as far as it survived. */
struct survivor {
    bool is_folder;
    bool has_mtime;
    int64_t mtime_ns;
    unsigned char *data;
    uint64_t size;
    struct entry *entries;
    size_t entry_count;
    size_t synced_before; /* changes with smaller numbers are safe */
};

struct replay {
    const struct test_crash *crash;
    const struct test_memory_op *ops;
    size_t op_count;
    struct survivor *nodes; /* by inode */
    size_t node_count;
    struct test_random random;
};

static struct survivor *node_of(struct replay *replay, uint64_t inode)
{
    TEST_REQUIRE(inode < replay->node_count);
    return &replay->nodes[inode];
}

static void make_nodes(struct replay *replay)
{
    uint64_t last = ROOT_INODE;
    for (size_t i = 0; i < replay->op_count; i++) {
        if (replay->ops[i].node > last)
            last = replay->ops[i].node;
    }
    replay->node_count = (size_t)last + 1;
    replay->nodes = calloc(replay->node_count, sizeof *replay->nodes);
    TEST_REQUIRE(replay->nodes);
    replay->nodes[ROOT_INODE].is_folder = true;
}

static void find_syncs(struct replay *replay)
{
    for (size_t i = 0; i < replay->op_count; i++) {
        const struct test_memory_op *op = &replay->ops[i];
        if ((op->kind == TEST_OP_SYNC_FILE && !replay->crash->data_syncs_lie) ||
            (op->kind == TEST_OP_SYNC_DIR && !replay->crash->folder_syncs_lie))
            node_of(replay, op->node)->synced_before = i;
    }
}

/* Whether something that is not safe happened all the same. */
static bool is_lucky(struct replay *replay)
{
    return !replay->crash->forget && test_random_below(&replay->random, 2) == 0;
}

/* --- contents --- */

static void set_size(struct survivor *node, uint64_t size)
{
    if (size > node->size) {
        node->data = realloc(node->data, (size_t)size);
        TEST_REQUIRE(node->data);
        memset(node->data + node->size, 0, (size_t)(size - node->size));
    }
    node->size = size;
}

static void copy_part(struct survivor *node, const struct test_memory_op *op,
                      uint64_t from, uint64_t size)
{
    if (op->offset + from + size > node->size)
        set_size(node, op->offset + from + size);
    memcpy(node->data + op->offset + from, op->data + from, (size_t)size);
}

/* Block by block: new, old, or the first half new. */
static void tear_write(struct replay *replay, struct survivor *node,
                       const struct test_memory_op *op)
{
    uint64_t from = 0;
    while (from < op->size_bytes) {
        uint64_t left = BLOCK - (op->offset + from) % BLOCK;
        uint64_t size = op->size_bytes - from < left ? op->size_bytes - from : left;
        uint64_t fate = test_random_below(&replay->random, 4);
        if (fate < 2)
            copy_part(node, op, from, fate == 0 ? size : (size + 1) / 2);
        from += size;
    }
}

static void change_file(struct replay *replay, const struct test_memory_op *op, bool safe)
{
    struct survivor *node = node_of(replay, op->node);
    if (op->kind == TEST_OP_WRITE && !safe && !replay->crash->forget) {
        tear_write(replay, node, op);
        return;
    }
    if (!safe && !is_lucky(replay))
        return;
    if (op->kind == TEST_OP_WRITE) {
        copy_part(node, op, 0, op->size_bytes);
    } else if (op->kind == TEST_OP_TRUNCATE) {
        set_size(node, op->size_bytes);
    } else if (op->kind == TEST_OP_ALLOCATE && op->size_bytes > node->size) {
        set_size(node, op->size_bytes);
    } else if (op->kind == TEST_OP_SET_MTIME) {
        node->has_mtime = true;
        node->mtime_ns = op->mtime_ns;
    }
}

/* --- names --- */

static struct entry *find_entry(struct survivor *folder, const char *name)
{
    for (size_t i = 0; i < folder->entry_count; i++) {
        struct entry *entry = &folder->entries[i];
        if (entry->name && strcmp(entry->name, name) == 0)
            return entry;
    }
    return NULL;
}

static void set_name(struct survivor *folder, char *name, uint64_t inode)
{
    struct entry *entry = find_entry(folder, name);
    if (!entry) {
        folder->entries =
            realloc(folder->entries, (folder->entry_count + 1) * sizeof *folder->entries);
        TEST_REQUIRE(folder->entries);
        entry = &folder->entries[folder->entry_count++];
    }
    *entry = (struct entry){name, inode};
}

static void take_name(struct survivor *folder, const char *name, uint64_t inode)
{
    struct entry *entry = find_entry(folder, name);
    if (entry && entry->inode == inode)
        entry->name = NULL;
}

static void change_names(struct replay *replay, const struct test_memory_op *op)
{
    struct survivor *folder = node_of(replay, op->dir);
    switch (op->kind) {
    case TEST_OP_MAKE_DIR:
        node_of(replay, op->node)->is_folder = true;
        set_name(folder, op->name, op->node);
        break;
    case TEST_OP_CREATE:
        set_name(folder, op->name, op->node);
        break;
    case TEST_OP_LINK:
        set_name(node_of(replay, op->to_dir), op->to, op->node);
        break;
    case TEST_OP_RENAME:
        take_name(folder, op->name, op->node);
        set_name(node_of(replay, op->to_dir), op->to, op->node);
        break;
    case TEST_OP_REMOVE:
    case TEST_OP_REMOVE_DIR:
        take_name(folder, op->name, op->node);
        break;
    default:
        break;
    }
}

static bool is_about_names(const struct test_memory_op *op)
{
    switch (op->kind) {
    case TEST_OP_MAKE_DIR:
    case TEST_OP_REMOVE_DIR:
    case TEST_OP_CREATE:
    case TEST_OP_RENAME:
    case TEST_OP_LINK:
    case TEST_OP_REMOVE:
        return true;
    default:
        return false;
    }
}

static bool is_name_safe(struct replay *replay, const struct test_memory_op *op, size_t i)
{
    bool two = op->kind == TEST_OP_RENAME || op->kind == TEST_OP_LINK;
    return i < node_of(replay, op->dir)->synced_before &&
           (!two || i < node_of(replay, op->to_dir)->synced_before);
}

static void replay_log(struct replay *replay)
{
    for (size_t i = 0; i < replay->op_count; i++) {
        const struct test_memory_op *op = &replay->ops[i];
        if (op->kind == TEST_OP_SYNC_FILE || op->kind == TEST_OP_SYNC_DIR)
            continue;
        if (!is_about_names(op))
            change_file(replay, op, i < node_of(replay, op->node)->synced_before);
        else if (is_name_safe(replay, op, i) || is_lucky(replay))
            change_names(replay, op);
    }
}

/* --- the disk afterwards --- */

static struct memory_node *build(struct test_memory_io *disk, struct replay *replay,
                                 uint64_t inode);

static void build_folder(struct test_memory_io *disk, struct replay *replay,
                         const struct survivor *from, struct memory_node *folder)
{
    for (size_t i = 0; i < from->entry_count; i++) {
        const struct entry *entry = &from->entries[i];
        if (entry->name)
            memory_node_add(disk, folder, entry->name, build(disk, replay, entry->inode));
    }
}

static struct memory_node *build(struct test_memory_io *disk, struct replay *replay,
                                 uint64_t inode)
{
    const struct survivor *from = node_of(replay, inode);
    struct memory_node *node;
    if (from->is_folder) {
        node = memory_node_create(disk, CKV_IO_TYPE_DIR, 0700);
        build_folder(disk, replay, from, node);
        return node;
    }
    node = memory_node_create(disk, CKV_IO_TYPE_FILE, 0600);
    TEST_REQUIRE(memory_blocks_write(disk, node, from->data, (size_t)from->size, 0) ==
                 from->size);
    memory_blocks_set_length(disk, node, from->size);
    if (from->has_mtime)
        node->mtime_ns = from->mtime_ns;
    return node;
}

struct test_memory_io *test_crash_disk(struct test_memory_io *memory,
                                       const struct test_crash *crash,
                                       const struct ckv_clock *clock)
{
    struct replay replay = {.crash = crash};
    struct test_memory_io *disk = test_memory_io_create(clock);
    TEST_REQUIRE(memory->root->inode == ROOT_INODE);
    replay.ops = test_memory_io_ops(memory, &replay.op_count);
    if (crash->op_count > 0 && crash->op_count < replay.op_count)
        replay.op_count = crash->op_count;
    test_random_init(&replay.random, crash->seed);
    make_nodes(&replay);
    find_syncs(&replay);
    replay_log(&replay);
    build_folder(disk, &replay, &replay.nodes[ROOT_INODE], disk->root);
    disk->total_bytes = memory->total_bytes;
    test_memory_io_record(disk, true);
    for (size_t i = 0; i < replay.node_count; i++) {
        free(replay.nodes[i].data);
        free(replay.nodes[i].entries);
    }
    free(replay.nodes);
    return disk;
}

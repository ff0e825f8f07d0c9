/*
 * Owns the nodes of the disk in memory: files, folders and their names.
 *
 * Invariant: a node lives as long as it has a name or an open handle, like an inode.
 */
#include "lib/memory_disk.h"

#include "lib/require.h"
#include <string.h>

struct memory_node *memory_node_create(struct test_memory_io *memory,
                                       enum ckv_io_type type, uint32_t mode)
{
    struct memory_node *node = calloc(1, sizeof *node);
    TEST_REQUIRE(node);
    node->type = type;
    node->inode = memory->next_inode++;
    node->uid = memory->uid;
    node->mode = mode;
    memory_node_touch(memory, node, true);
    return node;
}

void memory_node_settle(struct test_memory_io *memory, struct memory_node *node)
{
    if (node->link_count > 0 || node->open_count > 0)
        return;
    TEST_REQUIRE(node->name_count == 0);
    memory_blocks_set_length(memory, node, 0);
    free(node->names);
    free(node);
}

void memory_node_touch(struct test_memory_io *memory, struct memory_node *node,
                       bool content)
{
    node->ctime_ns = memory->clock->realtime_ns(memory->clock->ctx);
    if (content)
        node->mtime_ns = node->ctime_ns;
}

static uint64_t count_links(const struct memory_node *node)
{
    uint64_t count = node->link_count;
    if (node->type != CKV_IO_TYPE_DIR || count == 0)
        return count;
    /* Its name, its "." and the ".." of each folder in it. */
    count = 2;
    for (size_t i = 0; i < node->name_count; i++) {
        if (node->names[i].node->type == CKV_IO_TYPE_DIR)
            count++;
    }
    return count;
}

void memory_node_stat(const struct memory_node *node, struct ckv_io_stat *out)
{
    *out = (struct ckv_io_stat){
        .type = node->type,
        .size_bytes = node->size_bytes,
        .allocated_bytes = (uint64_t)node->blocks_used * TEST_MEMORY_BLOCK,
        .device = 77,
        .inode = node->inode,
        .link_count = count_links(node),
        .owner_uid = node->uid,
        .mode = node->mode,
        .mtime_ns = node->mtime_ns,
        .ctime_ns = node->ctime_ns,
    };
}

bool memory_node_may(const struct test_memory_io *memory, const struct memory_node *node,
                     unsigned int want)
{
    unsigned int granted = node->mode & 7;
    if (memory->uid == 0)
        return true;
    if (memory->uid == node->uid)
        granted = node->mode >> 6 & 7;
    return (granted & want) == want;
}

static struct memory_name *find_name(const struct memory_node *dir, const char *name)
{
    for (size_t i = 0; i < dir->name_count; i++) {
        if (strcmp(dir->names[i].name, name) == 0)
            return &dir->names[i];
    }
    return NULL;
}

struct memory_node *memory_node_find(const struct memory_node *dir, const char *name)
{
    const struct memory_name *found = find_name(dir, name);
    return found ? found->node : NULL;
}

void memory_node_add(struct test_memory_io *memory, struct memory_node *dir,
                     const char *name, struct memory_node *node)
{
    char *copy = strdup(name);
    TEST_REQUIRE(copy && !find_name(dir, name));
    dir->names = realloc(dir->names, (dir->name_count + 1) * sizeof *dir->names);
    TEST_REQUIRE(dir->names);
    dir->names[dir->name_count++] = (struct memory_name){copy, node};
    node->link_count++;
    if (node->type == CKV_IO_TYPE_DIR)
        node->parent = dir;
    memory_node_touch(memory, dir, true);
    memory_node_touch(memory, node, false);
}

void memory_node_take(struct test_memory_io *memory, struct memory_node *dir,
                      const char *name)
{
    struct memory_name *found = find_name(dir, name);
    struct memory_node *node;
    TEST_REQUIRE(found);
    node = found->node;
    free(found->name);
    *found = dir->names[--dir->name_count];
    node->link_count--;
    if (node->type == CKV_IO_TYPE_DIR)
        node->parent = NULL;
    memory_node_touch(memory, dir, true);
    memory_node_touch(memory, node, false);
}

void memory_node_destroy_tree(struct test_memory_io *memory, struct memory_node *node)
{
    while (node->name_count > 0) {
        struct memory_name *last = &node->names[node->name_count - 1];
        struct memory_node *child = last->node;
        free(last->name);
        node->name_count--;
        child->link_count--;
        if (child->type == CKV_IO_TYPE_DIR)
            memory_node_destroy_tree(memory, child);
        else
            memory_node_settle(memory, child);
    }
    node->link_count = 0;
    memory_node_settle(memory, node);
}

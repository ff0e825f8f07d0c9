/*
 * Owns the contents of files on the disk in memory: blocks of 4 KiB, holes where nothing
 * was written. Invariant: bytes behind the end of a file are zero in its last block, so
 * that a file that grows again reads as zero there.
 */
#include "lib/memory_disk.h"

#include "lib/require.h"
#include <string.h>

#define BLOCK TEST_MEMORY_BLOCK

uint64_t memory_free_bytes(const struct test_memory_io *memory)
{
    uint64_t used = memory->used_blocks * BLOCK + memory->other_bytes;
    return used < memory->total_bytes ? memory->total_bytes - used : 0;
}

static size_t part_of(uint64_t offset, size_t size)
{
    size_t left = (size_t)(BLOCK - offset % BLOCK);
    return size < left ? size : left;
}

size_t memory_blocks_read(const struct memory_node *node, void *data, size_t size,
                          uint64_t offset)
{
    size_t done = 0;
    if (offset >= node->size_bytes)
        return 0;
    if (size > node->size_bytes - offset)
        size = (size_t)(node->size_bytes - offset);
    while (done < size) {
        uint64_t at = offset + done;
        size_t part = part_of(at, size - done);
        size_t slot = (size_t)(at / BLOCK);
        char *to = (char *)data + done;
        if (slot < node->block_slots && node->blocks[slot])
            memcpy(to, node->blocks[slot] + at % BLOCK, part);
        else
            memset(to, 0, part);
        done += part;
    }
    return done;
}

static void make_slots(struct memory_node *node, size_t count)
{
    if (count <= node->block_slots)
        return;
    node->blocks = realloc(node->blocks, count * sizeof *node->blocks);
    TEST_REQUIRE(node->blocks);
    memset(node->blocks + node->block_slots, 0,
           (count - node->block_slots) * sizeof *node->blocks);
    node->block_slots = count;
}

/* Makes the block exist; false when the disk is full. */
static bool make_block(struct test_memory_io *memory, struct memory_node *node,
                       size_t slot)
{
    if (slot < node->block_slots && node->blocks[slot])
        return true;
    if (memory_free_bytes(memory) < BLOCK)
        return false;
    make_slots(node, slot + 1);
    node->blocks[slot] = calloc(1, BLOCK);
    TEST_REQUIRE(node->blocks[slot]);
    node->blocks_used++;
    memory->used_blocks++;
    return true;
}

static void drop_block(struct test_memory_io *memory, struct memory_node *node,
                       size_t slot)
{
    if (!node->blocks[slot])
        return;
    free(node->blocks[slot]);
    node->blocks[slot] = NULL;
    node->blocks_used--;
    memory->used_blocks--;
}

size_t memory_blocks_write(struct test_memory_io *memory, struct memory_node *node,
                           const void *data, size_t size, uint64_t offset)
{
    size_t done = 0;
    while (done < size) {
        uint64_t at = offset + done;
        size_t part = part_of(at, size - done);
        size_t slot = (size_t)(at / BLOCK);
        if (!make_block(memory, node, slot))
            break;
        memcpy(node->blocks[slot] + at % BLOCK, (const char *)data + done, part);
        done += part;
    }
    if (done > 0 && offset + done > node->size_bytes)
        node->size_bytes = offset + done;
    return done;
}

void memory_blocks_set_length(struct test_memory_io *memory, struct memory_node *node,
                              uint64_t size)
{
    size_t keep = (size_t)(size / BLOCK + (size % BLOCK != 0));
    for (size_t slot = keep; slot < node->block_slots; slot++)
        drop_block(memory, node, slot);
    if (size % BLOCK != 0 && keep <= node->block_slots && node->blocks[keep - 1])
        memset(node->blocks[keep - 1] + size % BLOCK, 0, (size_t)(BLOCK - size % BLOCK));
    if (keep == 0) {
        free(node->blocks);
        node->blocks = NULL;
        node->block_slots = 0;
    }
    node->size_bytes = size;
}

bool memory_blocks_reserve(struct test_memory_io *memory, struct memory_node *node,
                           uint64_t size)
{
    size_t count = (size_t)(size / BLOCK + (size % BLOCK != 0));
    uint64_t missing = 0;
    for (size_t slot = 0; slot < count; slot++) {
        if (slot >= node->block_slots || !node->blocks[slot])
            missing++;
    }
    if (missing * BLOCK > memory_free_bytes(memory))
        return false;
    for (size_t slot = 0; slot < count; slot++)
        TEST_REQUIRE(make_block(memory, node, slot));
    if (node->size_bytes < size)
        node->size_bytes = size;
    return true;
}

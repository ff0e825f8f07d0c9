/*
 * Owns the counting allocator. In front of each block stands a label with what was asked
 * for; a release that says otherwise, a block that is not ours and a byte written before
 * the block end the program at once, with the place in the backtrace.
 */
#include "lib/counting_alloc.h"

#include "lib/require.h"
#include <stdint.h>
#include <string.h>

#define LIVE UINT64_C(0x1e5ab10c5a11ce55)
#define GONE UINT64_C(0xdeadb10cdeadb10c)
#define FRESH 0xcd
#define FREED 0xdd

struct label {
    void *raw;
    size_t size;
    size_t align;
    uint64_t mark;
};

static struct label *label_of(void *block)
{
    return (struct label *)(void *)((char *)block - sizeof(struct label));
}

static void check_label(const struct label *label, size_t size, size_t align)
{
    TEST_REQUIRE(label->mark == LIVE);
    TEST_REQUIRE(label->size == size);
    TEST_REQUIRE(label->align == align);
}

/* Counts the call; false when it has to fail. */
static bool admit(struct test_alloc *alloc, size_t new_size, size_t old_size)
{
    size_t live;
    bool fails;
    pthread_mutex_lock(&alloc->mutex);
    live = alloc->live_bytes - old_size + new_size;
    alloc->call_count++;
    fails = alloc->fail_at && (alloc->call_count == alloc->fail_at ||
                               (alloc->fail_on && alloc->call_count > alloc->fail_at));
    if (alloc->bytes_max && live > alloc->bytes_max)
        fails = true;
    if (fails)
        alloc->failed_count++;
    pthread_mutex_unlock(&alloc->mutex);
    return !fails;
}

static void count(struct test_alloc *alloc, size_t added, size_t dropped, int blocks)
{
    pthread_mutex_lock(&alloc->mutex);
    alloc->live_bytes = alloc->live_bytes + added - dropped;
    alloc->live_blocks = (size_t)((ptrdiff_t)alloc->live_blocks + blocks);
    if (alloc->live_bytes > alloc->peak_bytes)
        alloc->peak_bytes = alloc->live_bytes;
    pthread_mutex_unlock(&alloc->mutex);
}

static void *make_block(size_t size, size_t align)
{
    size_t unit = align < sizeof(struct label) ? sizeof(struct label) : align;
    struct label *label;
    char *block;
    void *raw = NULL;
    TEST_REQUIRE(size > 0 && align > 0 && (align & (align - 1)) == 0);
    if (size > SIZE_MAX - unit || posix_memalign(&raw, unit, unit + size) != 0)
        return NULL;
    block = (char *)raw + unit;
    label = label_of(block);
    *label = (struct label){raw, size, align, LIVE};
    memset(block, FRESH, size);
    return block;
}

static void drop_block(void *block, size_t size)
{
    struct label *label = label_of(block);
    label->mark = GONE;
    memset(block, FREED, size);
    free(label->raw);
}

static void *allocate(void *ctx, size_t size, size_t align)
{
    struct test_alloc *alloc = ctx;
    void *block = admit(alloc, size, 0) ? make_block(size, align) : NULL;
    if (block)
        count(alloc, size, 0, 1);
    return block;
}

static void *resize(void *ctx, void *block, size_t old_size, size_t new_size,
                    size_t align)
{
    struct test_alloc *alloc = ctx;
    void *moved;
    TEST_REQUIRE(block);
    check_label(label_of(block), old_size, align);
    if (!admit(alloc, new_size, old_size))
        return NULL;
    moved = make_block(new_size, align);
    if (!moved)
        return NULL;
    memcpy(moved, block, old_size < new_size ? old_size : new_size);
    drop_block(block, old_size);
    count(alloc, new_size, old_size, 0);
    return moved;
}

static void release(void *ctx, void *block, size_t size, size_t align)
{
    struct test_alloc *alloc = ctx;
    if (!block) {
        TEST_REQUIRE(size == 0);
        return;
    }
    check_label(label_of(block), size, align);
    drop_block(block, size);
    count(alloc, 0, size, -1);
}

void test_alloc_init(struct test_alloc *alloc)
{
    memset(alloc, 0, sizeof *alloc);
    alloc->alloc = (struct ckv_alloc){alloc, allocate, resize, release};
    TEST_REQUIRE(pthread_mutex_init(&alloc->mutex, NULL) == 0);
}

bool test_alloc_clean(struct test_alloc *alloc)
{
    bool clean;
    pthread_mutex_lock(&alloc->mutex);
    clean = alloc->live_blocks == 0 && alloc->live_bytes == 0;
    if (!clean)
        fprintf(stderr, "leaked: %zu bytes in %zu blocks\n", alloc->live_bytes,
                alloc->live_blocks);
    pthread_mutex_unlock(&alloc->mutex);
    return clean;
}

void test_alloc_reset(struct test_alloc *alloc)
{
    pthread_mutex_lock(&alloc->mutex);
    alloc->peak_bytes = alloc->live_bytes;
    alloc->call_count = 0;
    alloc->fail_at = 0;
    alloc->fail_on = false;
    alloc->failed_count = 0;
    alloc->bytes_max = 0;
    pthread_mutex_unlock(&alloc->mutex);
}

void test_alloc_deinit(struct test_alloc *alloc)
{
    pthread_mutex_destroy(&alloc->mutex);
}

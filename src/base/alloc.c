/*
 * Owns the default allocator and the helpers around the hook.
 *
 * Invariant: a helper passes the hook exactly the size that it asked for, also on
 * release. Failure story: out of memory is NULL, never an abort; the caller turns it into
 * a status.
 */
#include "base/alloc.h"

#include "base/checked.h"
#include <stdlib.h>
#include <string.h>

#define ALIGN_ANY _Alignof(max_align_t)

static void *libc_allocate(void *ctx, size_t size, size_t align)
{
    void *block = NULL;
    (void)ctx;
    if (align <= ALIGN_ANY)
        return malloc(size);
    if (posix_memalign(&block, align, size) != 0)
        return NULL;
    return block;
}

static void *libc_resize(void *ctx, void *block, size_t old_size, size_t new_size,
                         size_t align)
{
    void *moved;
    if (align <= ALIGN_ANY)
        return realloc(block, new_size);
    moved = libc_allocate(ctx, new_size, align);
    if (!moved)
        return NULL;
    memcpy(moved, block, old_size < new_size ? old_size : new_size);
    free(block);
    return moved;
}

static void libc_release(void *ctx, void *block, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
    free(block);
}

static const struct ckv_alloc libc_alloc = {NULL, libc_allocate, libc_resize,
                                            libc_release};

const struct ckv_alloc *ckv_alloc_default(void)
{
    return &libc_alloc;
}

const struct ckv_alloc *ckvi_alloc_or_default(const struct ckv_alloc *alloc)
{
    return alloc ? alloc : &libc_alloc;
}

/* The size of a block; 0 and overflow are told apart by the return value. */
static bool block_size(size_t count, size_t size, size_t *out)
{
    if (!ckvi_mul_size(count, size, out))
        return false;
    if (*out == 0)
        *out = 1;
    return true;
}

void *ckvi_zalloc(const struct ckv_alloc *alloc, size_t count, size_t size)
{
    size_t total;
    void *block;
    if (!block_size(count, size, &total))
        return NULL;
    block = alloc->allocate(alloc->ctx, total, ALIGN_ANY);
    if (block)
        memset(block, 0, total);
    return block;
}

void ckvi_free(const struct ckv_alloc *alloc, void *block, size_t count, size_t size)
{
    size_t total;
    if (!block || !block_size(count, size, &total))
        return;
    alloc->release(alloc->ctx, block, total, ALIGN_ANY);
}

void *ckvi_regrow(const struct ckv_alloc *alloc, void *block, size_t old_count,
                  size_t new_count, size_t size)
{
    size_t old_total;
    size_t new_total;
    char *moved;
    if (!block)
        return ckvi_zalloc(alloc, new_count, size);
    if (!block_size(old_count, size, &old_total))
        return NULL;
    if (!block_size(new_count, size, &new_total))
        return NULL;
    moved = alloc->resize(alloc->ctx, block, old_total, new_total, ALIGN_ANY);
    if (moved && new_count > old_count) {
        size_t kept = old_count * size;
        memset(moved + kept, 0, new_total - kept);
    }
    return moved;
}

char *ckvi_strdup(const struct ckv_alloc *alloc, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = ckvi_zalloc(alloc, size, 1);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

void ckvi_strfree(const struct ckv_alloc *alloc, char *text)
{
    if (text)
        ckvi_free(alloc, text, strlen(text) + 1, 1);
}

void *ckvi_alloc_aligned(const struct ckv_alloc *alloc, size_t size, size_t align)
{
    return alloc->allocate(alloc->ctx, size ? size : 1, align);
}

void ckvi_free_aligned(const struct ckv_alloc *alloc, void *block, size_t size,
                       size_t align)
{
    if (block)
        alloc->release(alloc->ctx, block, size ? size : 1, align);
}

enum ckv_status ckvi_nomem(struct ckv_error *error, size_t size, const char *what)
{
    return ckv_error_set(error, CKV_NOMEM, "out of memory (%zu bytes for %s)", size,
                         what);
}

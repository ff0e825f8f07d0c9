/*
 * The allocator hook. All memory of the library comes through one of these, named in the
 * options of the object that needs it and kept by that object.
 */
#ifndef COLDKV_ALLOC_H
#define COLDKV_ALLOC_H

#include <coldkv/export.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A table of allocation functions. They may be called from any thread that calls the
 * library. `size` given to release and resize is the size that was asked for.
 */
struct ckv_alloc {
    void *ctx;
    /** Returns size bytes aligned to `align` (a power of two), or NULL. size > 0. */
    void *(*allocate)(void *ctx, size_t size, size_t align);
    /** Grows or shrinks; contents up to the smaller size kept; NULL leaves the old block.
     */
    void *(*resize)(void *ctx, void *block, size_t old_size, size_t new_size,
                    size_t align);
    /** Gives a block back; block may be NULL (then size is 0). */
    void (*release)(void *ctx, void *block, size_t size, size_t align);
};

/** The process's own allocator (aligned libc). Static storage, thread safe. */
CKV_API const struct ckv_alloc *ckv_alloc_default(void);

#ifdef __cplusplus
}
#endif

#endif

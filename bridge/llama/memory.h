/* Memory of the bridge through the caller's hook. */
#ifndef COLDKV_BRIDGE_LLAMA_MEMORY_H
#define COLDKV_BRIDGE_LLAMA_MEMORY_H

#include <coldkv/alloc.h>
#include <coldkv/status.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Enough for every object of ours and for copies with wide registers. */
#define CKVI_LLAMA_ALIGN 64u

/* count x size bytes, zeroed; NULL when that overflows or memory is out. */
static inline void *ckvi_llama_allocate(const struct ckv_alloc *alloc, size_t count,
                                        size_t size)
{
    void *block;
    if (count == 0 || size == 0 || count > SIZE_MAX / size)
        return NULL;
    block = alloc->allocate(alloc->ctx, count * size, CKVI_LLAMA_ALIGN);
    if (block)
        memset(block, 0, count * size);
    return block;
}

/* Uninitialised, for payloads that are filled at once. */
static inline void *ckvi_llama_allocate_payload(const struct ckv_alloc *alloc,
                                                size_t size)
{
    return size == 0 ? NULL : alloc->allocate(alloc->ctx, size, CKVI_LLAMA_ALIGN);
}

/* NULL is fine. */
static inline void ckvi_llama_release(const struct ckv_alloc *alloc, void *block,
                                      size_t count, size_t size)
{
    if (block)
        alloc->release(alloc->ctx, block, count * size, CKVI_LLAMA_ALIGN);
}

static inline enum ckv_status ckvi_llama_nomem(struct ckv_error *error, const char *what)
{
    return ckv_error_set(error, CKV_NOMEM, "out of memory for %s", what);
}

#endif

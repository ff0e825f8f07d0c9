/* Allocation through the hook, with sizes multiplied safely. */
#ifndef COLDKV_BASE_ALLOC_H
#define COLDKV_BASE_ALLOC_H

#include <coldkv/alloc.h>
#include <coldkv/status.h>
#include <stddef.h>

/* The hook that an option names: NULL means the default one. */
const struct ckv_alloc *ckvi_alloc_or_default(const struct ckv_alloc *alloc);

/* count x size bytes, zeroed; NULL when it overflows or memory is out. A count or size of
 * 0 gives a block of one byte, so that NULL always means failure. */
void *ckvi_zalloc(const struct ckv_alloc *alloc, size_t count, size_t size);
/* The same block back; NULL is fine. */
void ckvi_free(const struct ckv_alloc *alloc, void *block, size_t count, size_t size);
/* Grows or shrinks an array of `size` byte elements; new elements are zeroed. On failure
 * NULL and the old block stays. block NULL allocates. */
void *ckvi_regrow(const struct ckv_alloc *alloc, void *block, size_t old_count,
                  size_t new_count, size_t size);
/* A copy of a string with its terminator; ckvi_strfree gives it back (NULL is fine). */
char *ckvi_strdup(const struct ckv_alloc *alloc, const char *text);
void ckvi_strfree(const struct ckv_alloc *alloc, char *text);

/* Uninitialised, aligned memory for payloads. */
void *ckvi_alloc_aligned(const struct ckv_alloc *alloc, size_t size, size_t align);
void ckvi_free_aligned(const struct ckv_alloc *alloc, void *block, size_t size,
                       size_t align);

#define CKVI_NEW(alloc, type) ((type *)ckvi_zalloc((alloc), 1, sizeof(type)))
#define CKVI_DELETE(alloc, pointer) ckvi_free((alloc), (pointer), 1, sizeof(*(pointer)))

/* "out of memory (N bytes for WHAT)". */
enum ckv_status ckvi_nomem(struct ckv_error *error, size_t size, const char *what);

#endif

/*
 * Owns held entries: the reference count around what an engine provides.
 *
 * Invariant: the engine is asked for entry, source and buffers once, at create, so that
 * later no callback runs while somebody holds a lock; each buffer is listed once. Failure
 * story: an entry that breaks a rule is refused before anything is taken over.
 */
#include <coldkv/held.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include <stdatomic.h>
#include <stdlib.h>

struct buffer {
    const void *id;
    uint64_t bytes;
};

struct ckv_held {
    const struct ckv_alloc *alloc;
    const struct ckv_held_methods *methods;
    void *ctx;
    const struct ckv_entry *entry;
    const struct ckv_source *source;
    uint64_t floor;
    uint64_t bytes;
    struct buffer *buffers; /* sorted by id */
    size_t buffer_count;
    size_t buffer_capacity;
    bool failed; /* no memory for a buffer */
    _Atomic size_t references;
};

static void take_buffer(void *ctx, const void *id, uint64_t bytes)
{
    struct ckv_held *held = ctx;
    if (held->failed)
        return;
    if (held->buffer_count == held->buffer_capacity) {
        size_t capacity = held->buffer_capacity ? held->buffer_capacity * 2 : 8;
        struct buffer *moved = ckvi_regrow(
            held->alloc, held->buffers, held->buffer_capacity, capacity, sizeof *moved);
        held->failed = !moved;
        if (!moved)
            return;
        held->buffers = moved;
        held->buffer_capacity = capacity;
    }
    held->buffers[held->buffer_count++] = (struct buffer){id, bytes};
}

static int compare_buffers(const void *left, const void *right)
{
    uintptr_t a = (uintptr_t)((const struct buffer *)left)->id;
    uintptr_t b = (uintptr_t)((const struct buffer *)right)->id;
    return a < b ? -1 : a > b;
}

/* Each buffer once, and their sum. */
static enum ckv_status count_buffers(struct ckv_held *held, struct ckv_error *error)
{
    size_t kept = 0;
    held->methods->visit_buffers(held->ctx, take_buffer, held);
    if (held->failed)
        return ckvi_nomem(error, sizeof(struct buffer), "the buffers of an entry");
    if (held->buffer_count > 0)
        qsort(held->buffers, held->buffer_count, sizeof *held->buffers, compare_buffers);
    for (size_t i = 0; i < held->buffer_count; i++) {
        struct buffer buffer = held->buffers[i];
        if (kept > 0 && held->buffers[kept - 1].id == buffer.id)
            continue;
        held->buffers[kept++] = buffer;
        if (!ckvi_add_u64(held->bytes, buffer.bytes, &held->bytes))
            return ckv_error_set(error, CKV_INVALID, "more bytes than can be counted");
    }
    held->buffer_count = kept;
    return CKV_OK;
}

static enum ckv_status check_entry(const struct ckv_held *held, struct ckv_error *error)
{
    enum ckv_status status;
    if (!held->entry || !held->source || !held->source->view)
        return ckv_error_set(error, CKV_INVALID,
                             "a held entry needs an entry and a source");
    if (!held->source->any_thread)
        return ckv_error_set(error, CKV_INVALID,
                             "the source of a held entry is read on another thread");
    status = ckv_entry_validate(held->entry, error);
    if (status == CKV_OK)
        status = ckv_entry_check_offsets(held->entry, error);
    if (status == CKV_OK)
        return CKV_OK;
    if (error)
        error->status = CKV_INVALID;
    return CKV_INVALID;
}

static void destroy(struct ckv_held *held)
{
    if (held->buffers)
        ckvi_free(held->alloc, held->buffers, held->buffer_capacity,
                  sizeof *held->buffers);
    CKVI_DELETE(held->alloc, held);
}

enum ckv_status ckv_held_create(const struct ckv_alloc *alloc,
                                const struct ckv_held_methods *methods, void *ctx,
                                struct ckv_held **out, struct ckv_error *error)
{
    struct ckv_held *held;
    enum ckv_status status;
    if (!out)
        return ckv_error_set(error, CKV_INVALID, "no place for the held entry was given");
    *out = NULL;
    if (!methods || !methods->entry || !methods->source || !methods->visit_buffers ||
        !methods->release)
        return ckv_error_set(error, CKV_INVALID, "a method of the held entry is missing");
    alloc = ckvi_alloc_or_default(alloc);
    held = CKVI_NEW(alloc, struct ckv_held);
    if (!held)
        return ckvi_nomem(error, sizeof *held, "a held entry");
    held->alloc = alloc;
    held->methods = methods;
    held->ctx = ctx;
    held->entry = methods->entry(ctx);
    held->source = methods->source(ctx);
    status = check_entry(held, error);
    if (status == CKV_OK)
        status = count_buffers(held, error);
    if (status != CKV_OK) {
        destroy(held);
        return status;
    }
    held->floor = ckv_entry_floor(held->entry);
    atomic_init(&held->references, 1);
    *out = held;
    return CKV_OK;
}

struct ckv_held *ckv_held_ref(struct ckv_held *held)
{
    /* Relaxed: whoever refs has a reference already, so nothing can end meanwhile. */
    size_t before = atomic_fetch_add_explicit(&held->references, 1, memory_order_relaxed);
    CKV_ASSERT(before > 0);
    return held;
}

void ckv_held_unref(struct ckv_held *held)
{
    size_t before;
    if (!held)
        return;
    /* Release: what this thread did with the entry comes before its end; acquire: the
     * last one sees what all others did. */
    before = atomic_fetch_sub_explicit(&held->references, 1, memory_order_acq_rel);
    CKV_ASSERT(before > 0);
    if (before > 1)
        return;
    held->methods->release(held->ctx);
    destroy(held);
}

const struct ckv_entry *ckv_held_entry(const struct ckv_held *held)
{
    return held->entry;
}

const struct ckv_source *ckv_held_source(const struct ckv_held *held)
{
    return held->source;
}

void *ckv_held_context(const struct ckv_held *held)
{
    return held->ctx;
}

uint64_t ckv_held_floor(const struct ckv_held *held)
{
    return held->floor;
}

uint64_t ckv_held_bytes(const struct ckv_held *held)
{
    return held->bytes;
}

void ckv_held_visit_buffers(const struct ckv_held *held, ckv_buffer_fn fn, void *fn_ctx)
{
    for (size_t i = 0; i < held->buffer_count; i++)
        fn(fn_ctx, held->buffers[i].id, held->buffers[i].bytes);
}

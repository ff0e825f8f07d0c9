/*
 * Owns the count of distinct buffers. Invariant: a buffer is in the map iff an added
 * entry names it, with as many holders as there are such entries; `bytes` is the sum over
 * the map. Failure story: an add that runs out of memory undoes itself.
 */
#include "tier/buffers.h"

#include "base/alloc.h"
#include "base/assert.h"

struct buffer {
    struct ckvi_node node;
    const void *id;
    uint64_t bytes;
    size_t holders;
};

enum ckv_status ckvi_buffers_init(struct ckvi_buffers *buffers,
                                  const struct ckv_alloc *alloc, struct ckv_error *error)
{
    buffers->bytes = 0;
    return ckvi_map_init(&buffers->map, alloc, error);
}

static uint64_t hash_id(const void *id)
{
    return ckvi_map_hash_u64((uint64_t)(uintptr_t)id);
}

static struct buffer *find_buffer(const struct ckvi_buffers *buffers, const void *id)
{
    struct ckvi_node *node = ckvi_map_first(&buffers->map, hash_id(id));
    for (; node; node = ckvi_map_same(node)) {
        struct buffer *buffer = CKVI_CONTAINER(node, struct buffer, node);
        if (buffer->id == id)
            return buffer;
    }
    return NULL;
}

static void forget_buffer(struct ckvi_buffers *buffers, struct buffer *buffer)
{
    ckvi_map_remove(&buffers->map, &buffer->node);
    buffers->bytes -= buffer->bytes;
    CKVI_DELETE(buffers->map.alloc, buffer);
}

void ckvi_buffers_deinit(struct ckvi_buffers *buffers)
{
    struct ckvi_node *node;
    if (!buffers->map.buckets)
        return;
    while ((node = ckvi_map_any(&buffers->map)))
        forget_buffer(buffers, CKVI_CONTAINER(node, struct buffer, node));
    ckvi_map_deinit(&buffers->map);
}

struct adding {
    struct ckvi_buffers *buffers;
    size_t added;
    size_t undone;
    bool failed;
};

static void add_buffer(void *ctx, const void *id, uint64_t bytes)
{
    struct adding *adding = ctx;
    struct ckvi_buffers *buffers = adding->buffers;
    struct buffer *buffer;
    if (adding->failed)
        return;
    buffer = find_buffer(buffers, id);
    if (!buffer) {
        buffer = CKVI_NEW(buffers->map.alloc, struct buffer);
        adding->failed = !buffer;
        if (!buffer)
            return;
        buffer->id = id;
        buffer->bytes = bytes;
        ckvi_map_insert(&buffers->map, &buffer->node, hash_id(id));
        buffers->bytes += bytes;
    }
    buffer->holders++;
    adding->added++;
}

static void drop_holder(struct ckvi_buffers *buffers, const void *id)
{
    struct buffer *buffer = find_buffer(buffers, id);
    CKV_ASSERT(buffer && buffer->holders > 0);
    if (--buffer->holders == 0)
        forget_buffer(buffers, buffer);
}

/* The buffers come in the same order as before. */
static void undo_buffer(void *ctx, const void *id, uint64_t bytes)
{
    struct adding *adding = ctx;
    (void)bytes;
    if (adding->undone < adding->added) {
        adding->undone++;
        drop_holder(adding->buffers, id);
    }
}

enum ckv_status ckvi_buffers_add(struct ckvi_buffers *buffers,
                                 const struct ckv_held *held, struct ckv_error *error)
{
    struct adding adding = {.buffers = buffers};
    ckv_held_visit_buffers(held, add_buffer, &adding);
    if (!adding.failed)
        return CKV_OK;
    ckv_held_visit_buffers(held, undo_buffer, &adding);
    return ckvi_nomem(error, sizeof(struct buffer), "the account of a buffer");
}

static void remove_buffer(void *ctx, const void *id, uint64_t bytes)
{
    (void)bytes;
    drop_holder(ctx, id);
}

void ckvi_buffers_remove(struct ckvi_buffers *buffers, const struct ckv_held *held)
{
    ckv_held_visit_buffers(held, remove_buffer, buffers);
}

/*
 * Owns the two ready-made ends of a transfer, plain memory as source and as sink, and the
 * careful way to call foreign ones: an engine's callback may answer nonsense, which must
 * end the transfer and nothing else.
 */
#include "file/transfer.h"

static enum ckv_status check_answer(enum ckv_status status, const char *side,
                                    struct ckvi_window window, struct ckv_error *error)
{
    if (status == CKV_OK)
        return CKV_OK;
    if (error && error->status != status)
        ckv_error_set(error, status, "the %s answered \"%s\"", side,
                      ckv_status_text(status));
    ckv_error_prefix(error, "caches[%zu].tensors[%zu]", window.cache, window.tensor);
    return status;
}

static enum ckv_status check_lent(const void *data, size_t size, size_t wanted,
                                  const char *side, struct ckvi_window window,
                                  struct ckv_error *error)
{
    if (data && size > 0 && size <= wanted)
        return CKV_OK;
    return ckv_error_set(
        error, CKV_ENGINE,
        "caches[%zu].tensors[%zu]: the %s lent %zu bytes, expected 1 to %zu",
        window.cache, window.tensor, side, size, wanted);
}

enum ckv_status ckvi_source_view(const struct ckv_source *source,
                                 struct ckvi_window window, size_t wanted,
                                 const void **data, size_t *size, struct ckv_error *error)
{
    enum ckv_status status;
    *data = NULL;
    *size = 0;
    ckv_error_clear(error);
    status = source->view(source->ctx, window.cache, window.tensor, window.offset, wanted,
                          data, size, error);
    if (status)
        return check_answer(status, "source", window, error);
    return check_lent(*data, *size, wanted, "source", window, error);
}

enum ckv_status ckvi_source_done(const struct ckv_source *source,
                                 struct ckvi_window window, size_t size,
                                 struct ckv_error *error)
{
    if (!source->done)
        return CKV_OK;
    ckv_error_clear(error);
    return check_answer(source->done(source->ctx, window.cache, window.tensor,
                                     window.offset, size, error),
                        "source", window, error);
}

enum ckv_status ckvi_sink_lend(const struct ckv_sink *sink, struct ckvi_window window,
                               size_t wanted, void **data, size_t *size,
                               struct ckv_error *error)
{
    enum ckv_status status;
    *data = NULL;
    *size = 0;
    ckv_error_clear(error);
    status = sink->lend(sink->ctx, window.cache, window.tensor, window.offset, wanted,
                        data, size, error);
    if (status)
        return check_answer(status, "sink", window, error);
    return check_lent(*data, *size, wanted, "sink", window, error);
}

enum ckv_status ckvi_sink_took(const struct ckv_sink *sink, struct ckvi_window window,
                               size_t size, struct ckv_error *error)
{
    if (!sink->took)
        return CKV_OK;
    ckv_error_clear(error);
    return check_answer(
        sink->took(sink->ctx, window.cache, window.tensor, window.offset, size, error),
        "sink", window, error);
}

size_t ckvi_tensor_number(const struct ckv_entry *entry, size_t cache, size_t tensor)
{
    size_t number = tensor;
    for (size_t i = 0; i < cache; i++)
        number += entry->caches[i].tensor_count;
    return number;
}

static enum ckv_status view_memory(void *ctx, size_t cache, size_t tensor,
                                   uint64_t offset, size_t wanted, const void **data,
                                   size_t *size, struct ckv_error *error)
{
    const struct ckv_memory_source *memory = ctx;
    const unsigned char *base =
        memory->tensors[ckvi_tensor_number(memory->entry, cache, tensor)];
    (void)error;
    *data = base + offset;
    *size = wanted;
    return CKV_OK;
}

void ckv_source_from_memory(const struct ckv_memory_source *memory,
                            struct ckv_source *out)
{
    out->ctx = (void *)(uintptr_t)memory; /* the callbacks only read it */
    out->any_thread = true;
    out->view = view_memory;
    out->done = NULL;
}

static enum ckv_status lend_memory(void *ctx, size_t cache, size_t tensor,
                                   uint64_t offset, size_t wanted, void **data,
                                   size_t *size, struct ckv_error *error)
{
    const struct ckv_memory_sink *memory = ctx;
    unsigned char *base =
        memory->tensors[ckvi_tensor_number(memory->entry, cache, tensor)];
    (void)error;
    *data = base + offset;
    *size = wanted;
    return CKV_OK;
}

void ckv_sink_to_memory(const struct ckv_memory_sink *memory, struct ckv_sink *out)
{
    out->ctx = (void *)(uintptr_t)memory; /* the callbacks only read it */
    out->lend = lend_memory;
    out->took = NULL;
    out->drop = NULL;
}

/*
 * Owns the way of a chunk from source to file.
 *
 * Invariant: a chunk is hashed exactly as it is written, from the same memory. A source
 * that lends whole chunks is written from directly; one that lends less (rows scattered
 * in a buffer) is gathered first, so that the file sees few large writes. Failure story:
 * every window that was lent is given back, also when the write failed.
 */
#include "file/writer.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "file/transfer.h"
#include <string.h>

static struct ckv_tensor *tensor_at(struct ckv_writer *writer)
{
    return &writer->entry.caches[writer->at_cache].tensors[writer->at_tensor];
}

bool ckvi_writer_more(struct ckv_writer *writer)
{
    while (writer->at_cache < writer->entry.cache_count) {
        struct ckv_tensor *tensor;
        if (writer->at_tensor == writer->entry.caches[writer->at_cache].tensor_count) {
            writer->at_cache++;
            writer->at_tensor = 0;
            continue;
        }
        tensor = tensor_at(writer);
        if (writer->tensor_done < tensor->bytes)
            return true;
        tensor->hash = ckv_wyhash_digest(&writer->hash);
        ckv_wyhash_init(&writer->hash, 0);
        writer->tensor_done = 0;
        writer->at_tensor++;
    }
    return false;
}

static enum ckv_status write_chunk(struct ckv_writer *writer, const void *data,
                                   size_t size, struct ckv_error *error)
{
    uint64_t offset =
        writer->prefix.data_start + tensor_at(writer)->offset + writer->tensor_done;
    enum ckv_status status;
    ckv_wyhash_update(&writer->hash, data, size);
    status = ckv_io_write(writer->io, writer->temporary.file, data, size, offset, error);
    if (status)
        return status;
    writer->tensor_done += size;
    writer->done_bytes += size;
    writer->unsynced_bytes += size;
    return CKV_OK;
}

static enum ckv_status need_chunk(struct ckv_writer *writer, struct ckv_error *error)
{
    if (writer->chunk)
        return CKV_OK;
    writer->chunk = ckvi_alloc_aligned(writer->alloc, writer->chunk_size, 4096);
    return writer->chunk ? CKV_OK : ckvi_nomem(error, writer->chunk_size, "a chunk");
}

/* Takes one window: written at once when it is the whole chunk, else gathered. */
static enum ckv_status take_window(struct ckv_writer *writer, size_t filled, size_t size,
                                   size_t *taken, struct ckv_error *error)
{
    struct ckvi_window window = {writer->at_cache, writer->at_tensor,
                                 writer->tensor_done + filled};
    const void *data = NULL;
    enum ckv_status given_back;
    enum ckv_status status =
        ckvi_source_view(writer->source, window, size - filled, &data, taken, error);
    if (status)
        return status;
    if (*taken == size) {
        status = write_chunk(writer, data, size, error);
    } else {
        status = need_chunk(writer, error);
        if (!status)
            memcpy(writer->chunk + filled, data, *taken);
    }
    given_back = ckvi_source_done(writer->source, window, *taken, status ? NULL : error);
    return status ? status : given_back;
}

enum ckv_status ckvi_writer_copy(struct ckv_writer *writer, struct ckv_error *error)
{
    uint64_t left = tensor_at(writer)->bytes - writer->tensor_done;
    size_t size = (size_t)ckvi_min_u64(left, writer->chunk_size);
    size_t filled = 0;
    while (filled < size) {
        size_t taken = 0;
        enum ckv_status status = take_window(writer, filled, size, &taken, error);
        if (status)
            return status;
        if (taken == size)
            return CKV_OK;
        filled += taken;
    }
    return write_chunk(writer, writer->chunk, size, error);
}

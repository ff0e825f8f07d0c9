/*
 * Owns an open file and its header.
 *
 * Invariant: nothing of the file is believed before its header was decoded; from then on
 * every offset and size in it lies inside the file as it was when it was opened.
 * Failure story: a file that ends before the size that stat told has been cut while it
 * was open. That is IO: it says nothing about what was written.
 */
#include "file/reader.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/escape.h"
#include <inttypes.h>
#include <string.h>

enum ckv_status ckvi_reader_name_error(const struct ckv_reader *reader,
                                       enum ckv_status status, struct ckv_error *error)
{
    char name[CKVI_ESCAPE_SIZE];
    if (status)
        ckv_error_prefix(error, "%s",
                         ckvi_escape_string(reader->name, name, sizeof name));
    return status;
}

enum ckv_status ckvi_reader_read(struct ckv_reader *reader, void *data, size_t size,
                                 uint64_t offset, struct ckv_error *error)
{
    size_t done = 0;
    enum ckv_status status =
        ckv_io_read(reader->io, reader->file, data, size, offset, &done, error);
    if (status || done == size)
        return status;
    ckv_error_set(error, CKV_IO,
                  "the file ends at byte %" PRIu64 ", it had %" PRIu64
                  " when it was opened",
                  offset + done, reader->stat.size_bytes);
    if (error)
        error->file_offset = (int64_t)(offset + done);
    return CKV_IO;
}

uint64_t ckvi_reader_tensor_start(const struct ckv_reader *reader,
                                  const struct ckv_tensor *tensor)
{
    return reader->header->prefix.data_start + tensor->offset;
}

enum ckv_status ckvi_reader_check_hash(const struct ckv_reader *reader, size_t cache,
                                       size_t tensor, uint64_t found,
                                       struct ckv_error *error)
{
    const struct ckv_cache *owner = &reader->header->entry.caches[cache];
    const struct ckv_tensor *slot = &owner->tensors[tensor];
    if (slot->hash == found)
        return CKV_OK;
    ckv_error_set(error, CKV_CORRUPT,
                  "caches[%zu] (%s).tensors[%zu].hash: expected %016" PRIx64
                  " by the header, found %016" PRIx64 " in its bytes",
                  cache, ckv_cache_kind_name(owner->kind), tensor, slot->hash, found);
    if (error)
        error->file_offset = (int64_t)ckvi_reader_tensor_start(reader, slot);
    return CKV_CORRUPT;
}

static enum ckv_status read_header(struct ckv_reader *reader, struct ckv_error *error)
{
    uint64_t file_size = reader->stat.size_bytes;
    uint8_t bytes[CKV_PREFIX_BYTES] = {0};
    struct ckv_prefix prefix;
    uint8_t *text;
    enum ckv_status status;
    status = ckvi_reader_read(reader, bytes,
                              (size_t)ckvi_min_u64(file_size, sizeof bytes), 0, error);
    if (!status)
        status = ckv_prefix_decode(bytes, file_size, &prefix, error);
    if (status)
        return status;
    /* Not larger than the file, nor than the limit: the prefix was checked for that. */
    text = ckvi_alloc_aligned(reader->alloc, prefix.header_bytes, 1);
    if (!text)
        return ckvi_nomem(error, prefix.header_bytes, "the header's text");
    status = ckvi_reader_read(reader, text, prefix.header_bytes, CKV_PREFIX_BYTES, error);
    if (!status)
        status = ckv_header_decode(reader->alloc, &prefix, text, file_size,
                                   &reader->header, error);
    ckvi_free_aligned(reader->alloc, text, prefix.header_bytes, 1);
    return status;
}

enum ckv_status ckv_reader_open(const struct ckv_io *io, struct ckv_io_dir dir,
                                const char *name, const struct ckv_alloc *alloc,
                                struct ckv_reader **out, struct ckv_error *error)
{
    struct ckv_reader *reader;
    enum ckv_status status;
    *out = NULL;
    ckv_error_clear(error);
    if (!ckv_io_name_valid(name))
        return ckv_error_set(error, CKV_INVALID, "the file's name is not a plain name");
    alloc = ckvi_alloc_or_default(alloc);
    reader = CKVI_NEW(alloc, struct ckv_reader);
    if (!reader)
        return ckvi_nomem(error, sizeof *reader, "a reader");
    reader->io = io;
    reader->alloc = alloc;
    reader->file = CKV_IO_FILE_NONE;
    memcpy(reader->name, name, strlen(name) + 1);
    status = ckv_io_open_file(io, dir, name, CKV_IO_READ, &reader->file, error);
    if (!status)
        status = ckv_io_stat_file(io, reader->file, &reader->stat, error);
    if (!status)
        status = read_header(reader, error);
    if (status) {
        ckvi_reader_name_error(reader, status, error);
        ckv_reader_close(reader);
        return status;
    }
    *out = reader;
    return CKV_OK;
}

void ckv_reader_close(struct ckv_reader *reader)
{
    if (!reader)
        return;
    ckv_io_close_file(reader->io, &reader->file);
    ckv_header_destroy(reader->header);
    CKVI_DELETE(reader->alloc, reader);
}

const struct ckv_header *ckv_reader_header(const struct ckv_reader *reader)
{
    return reader->header;
}

const struct ckv_io_stat *ckv_reader_stat(const struct ckv_reader *reader)
{
    return &reader->stat;
}

enum ckv_status ckv_reader_touch(struct ckv_reader *reader, int64_t mtime_ns,
                                 struct ckv_error *error)
{
    enum ckv_status status =
        reader->io->set_mtime(reader->io->ctx, reader->file, mtime_ns, error);
    return ckvi_reader_name_error(reader, status, error);
}

static enum ckv_status view_reader(void *ctx, size_t cache, size_t tensor,
                                   uint64_t offset, size_t wanted, const void **data,
                                   size_t *size, struct ckv_error *error)
{
    struct ckv_reader_source *storage = ctx;
    struct ckv_reader *reader = storage->reader;
    const struct ckv_tensor *slot = &reader->header->entry.caches[cache].tensors[tensor];
    uint64_t start = ckvi_reader_tensor_start(reader, slot) + offset;
    enum ckv_status status;
    *size = wanted < storage->size ? wanted : storage->size;
    *data = storage->buffer;
    status = ckvi_reader_read(reader, storage->buffer, *size, start, error);
    return ckvi_reader_name_error(reader, status, error);
}

void ckv_source_from_reader(struct ckv_reader_source *storage, struct ckv_source *out)
{
    out->ctx = storage;
    out->any_thread = false;
    out->view = view_reader;
    out->done = NULL;
}

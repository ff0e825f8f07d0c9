/*
 * Owns a restore: the transaction that moves all tensors of a file into a sink.
 *
 * Invariant: bytes are hashed in file order, each exactly once, and a tensor's hash is
 * compared before the next one begins; finish says OK only after the last comparison.
 * Failure story: the first failure is final; the sink's drop is called once, by the abort
 * that ends a failed restore, and never after a finish that said OK.
 */
#include "file/reader.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "file/options.h"
#include "file/transfer.h"
#include <coldkv/hash.h>
#include <coldkv/writer.h>
#include <string.h>

/* Windows smaller than this are filled from a buffer: one read for many rows. */
#define DIRECT_BYTES ((size_t)64 * 1024)

struct ckv_restore {
    struct ckv_reader *reader;
    const struct ckv_sink *sink;
    size_t step_size;
    bool verify;
    bool failed;
    size_t at_cache; /* the tensor being read */
    size_t at_tensor;
    uint64_t tensor_done; /* bytes of it given to the sink */
    uint64_t tensor_read; /* bytes of it read and hashed: what lies between is staged */
    struct ckv_wyhash_state hash;
    uint64_t prefix_rows; /* 0 = whole tensors */
    uint64_t done_bytes;
    uint8_t *stage; /* CKVI_PIECE_BYTES; only for sinks that lend small windows */
    size_t stage_at;
};

void ckv_restore_options_init(struct ckv_restore_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
    options->verify = true;
}

/* What an engine parses itself must be what was written: a flipped bit could crash it. */
static bool has_state(const struct ckv_entry *entry)
{
    for (size_t i = 0; i < entry->cache_count; i++)
        if (entry->caches[i].kind == CKV_CACHE_STATE)
            return true;
    return false;
}

enum ckv_status ckv_restore_begin(struct ckv_reader *reader, const struct ckv_sink *sink,
                                  const struct ckv_restore_options *options,
                                  struct ckv_restore **out, struct ckv_error *error)
{
    struct ckv_restore_options chosen;
    struct ckv_restore *restore;
    enum ckv_status status;
    *out = NULL;
    ckv_restore_options_init(&chosen);
    status = ckvi_options_copy(&chosen, sizeof chosen, options, "restore options", error);
    if (status)
        return status;
    restore = CKVI_NEW(reader->alloc, struct ckv_restore);
    if (!restore)
        return ckvi_nomem(error, sizeof *restore, "a restore");
    restore->reader = reader;
    restore->sink = sink;
    restore->step_size =
        chosen.chunk_bytes ? chosen.chunk_bytes : (size_t)CKV_CHUNK_BYTES_DEFAULT;
    restore->verify = chosen.verify || has_state(&reader->header->entry);
    restore->prefix_rows = restore->verify ? 0 : chosen.prefix_rows;
    ckv_wyhash_init(&restore->hash, 0);
    reader->io->advise(reader->io->ctx, reader->file, reader->header->prefix.data_start,
                       0, CKV_IO_ADVICE_SEQUENTIAL);
    *out = restore;
    return CKV_OK;
}

uint64_t ckv_restore_done_bytes(const struct ckv_restore *restore)
{
    return restore->done_bytes;
}

static const struct ckv_tensor *tensor_at(const struct ckv_restore *restore)
{
    const struct ckv_entry *entry = &restore->reader->header->entry;
    return &entry->caches[restore->at_cache].tensors[restore->at_tensor];
}

/* Reads the next bytes of the tensor, in pieces that are hashed at once. */
static enum ckv_status read_pieces(struct ckv_restore *restore, void *data, size_t size,
                                   struct ckv_error *error)
{
    uint64_t start = ckvi_reader_tensor_start(restore->reader, tensor_at(restore));
    unsigned char *to = data;
    while (size > 0) {
        size_t piece = size < CKVI_PIECE_BYTES ? size : CKVI_PIECE_BYTES;
        enum ckv_status status = ckvi_reader_read(restore->reader, to, piece,
                                                  start + restore->tensor_read, error);
        if (status)
            return status;
        if (restore->verify)
            ckv_wyhash_update(&restore->hash, to, piece);
        restore->tensor_read += piece;
        to += piece;
        size -= piece;
    }
    return CKV_OK;
}

/* Reads the next piece of at most `limit` bytes ahead. */
static enum ckv_status fill_stage(struct ckv_restore *restore, size_t limit,
                                  struct ckv_error *error)
{
    if (!restore->stage) {
        restore->stage =
            ckvi_alloc_aligned(restore->reader->alloc, CKVI_PIECE_BYTES, 4096);
        if (!restore->stage)
            return ckvi_nomem(error, CKVI_PIECE_BYTES, "a reading buffer");
    }
    restore->stage_at = 0;
    return read_pieces(restore, restore->stage,
                       limit < CKVI_PIECE_BYTES ? limit : CKVI_PIECE_BYTES, error);
}

/* Fills a lent window; `left` bytes of the step remain, the window included. */
static enum ckv_status fill_window(struct ckv_restore *restore, void *data, size_t size,
                                   size_t left, struct ckv_error *error)
{
    unsigned char *to = data;
    size_t filled = 0;
    while (filled < size) {
        size_t staged = (size_t)(restore->tensor_read - restore->tensor_done - filled);
        size_t wanted = size - filled;
        enum ckv_status status;
        if (staged > 0) {
            size_t count = wanted < staged ? wanted : staged;
            memcpy(to + filled, restore->stage + restore->stage_at, count);
            restore->stage_at += count;
            filled += count;
            continue;
        }
        if (wanted >= DIRECT_BYTES || wanted == left - filled)
            return read_pieces(restore, to + filled, wanted, error);
        status = fill_stage(restore, left - filled, error);
        if (status)
            return status;
    }
    return CKV_OK;
}

/* Bytes of one KV head, and how many of them a prefix-only read wants; false when the
 * tensor at hand is read whole. */
static bool prefix_of_head(const struct ckv_restore *restore, uint64_t *head_bytes,
                           uint64_t *wanted_bytes)
{
    const struct ckv_entry *entry = &restore->reader->header->entry;
    const struct ckv_cache *cache = &entry->caches[restore->at_cache];
    const struct ckv_tensor *tensor = tensor_at(restore);
    uint64_t row_bytes;
    if (restore->prefix_rows == 0 || ckv_cache_floor(cache) != 0)
        return false;
    if (cache->kind != CKV_CACHE_KV && cache->kind != CKV_CACHE_QKV &&
        cache->kind != CKV_CACHE_TURBOQUANT)
        return false;
    if (restore->prefix_rows >= tensor->shape[2])
        return false;
    row_bytes = tensor->shape[3] * ckv_dtype_size(tensor->dtype);
    *head_bytes = row_bytes * tensor->shape[2];
    *wanted_bytes = row_bytes * restore->prefix_rows;
    return *wanted_bytes > 0;
}

/* Passes the rows behind the prefix. */
static void skip_unwanted(struct ckv_restore *restore)
{
    uint64_t head_bytes;
    uint64_t wanted_bytes;
    if (!prefix_of_head(restore, &head_bytes, &wanted_bytes))
        return;
    if (restore->tensor_done % head_bytes < wanted_bytes)
        return;
    restore->tensor_done = (restore->tensor_done / head_bytes + 1) * head_bytes;
    restore->tensor_read = restore->tensor_done;
}

/* How far the bytes at hand are wanted without a gap. */
static uint64_t wanted_run(const struct ckv_restore *restore)
{
    uint64_t left = tensor_at(restore)->bytes - restore->tensor_done;
    uint64_t head_bytes;
    uint64_t wanted_bytes;
    if (!prefix_of_head(restore, &head_bytes, &wanted_bytes))
        return left;
    return wanted_bytes - restore->tensor_done % head_bytes;
}

/* Moves at most one step's worth of the tensor at hand. */
static enum ckv_status move_chunk(struct ckv_restore *restore, struct ckv_error *error)
{
    size_t left = (size_t)ckvi_min_u64(wanted_run(restore), restore->step_size);
    while (left > 0) {
        struct ckvi_window window = {restore->at_cache, restore->at_tensor,
                                     restore->tensor_done};
        void *data = NULL;
        size_t size = 0;
        enum ckv_status status =
            ckvi_sink_lend(restore->sink, window, left, &data, &size, error);
        if (!status)
            status = fill_window(restore, data, size, left, error);
        if (!status)
            status = ckvi_sink_took(restore->sink, window, size, error);
        if (status)
            return status;
        restore->tensor_done += size;
        restore->done_bytes += size;
        left -= size;
    }
    return CKV_OK;
}

/* Passes finished tensors, comparing their hashes. */
static enum ckv_status pass_finished(struct ckv_restore *restore, bool *more,
                                     struct ckv_error *error)
{
    const struct ckv_entry *entry = &restore->reader->header->entry;
    *more = true;
    while (restore->at_cache < entry->cache_count) {
        enum ckv_status status = CKV_OK;
        if (restore->at_tensor == entry->caches[restore->at_cache].tensor_count) {
            restore->at_cache++;
            restore->at_tensor = 0;
            continue;
        }
        skip_unwanted(restore);
        if (restore->tensor_done < tensor_at(restore)->bytes)
            return CKV_OK;
        if (restore->verify)
            status = ckvi_reader_check_hash(restore->reader, restore->at_cache,
                                            restore->at_tensor,
                                            ckv_wyhash_digest(&restore->hash), error);
        if (status)
            return status;
        ckv_wyhash_init(&restore->hash, 0);
        restore->tensor_done = 0;
        restore->tensor_read = 0;
        restore->at_tensor++;
    }
    *more = false;
    return CKV_OK;
}

enum ckv_status ckv_restore_step(struct ckv_restore *restore, bool *more,
                                 struct ckv_error *error)
{
    enum ckv_status status;
    *more = false;
    ckv_error_clear(error);
    if (restore->failed)
        return ckv_error_set(error, CKV_INVALID, "a step after one that failed");
    status = pass_finished(restore, more, error);
    if (!status && *more) {
        status = move_chunk(restore, error);
        if (!status)
            status = pass_finished(restore, more, error);
    }
    if (status) {
        restore->failed = true;
        *more = false;
    }
    return ckvi_reader_name_error(restore->reader, status, error);
}

static void destroy(struct ckv_restore *restore)
{
    const struct ckv_alloc *alloc = restore->reader->alloc;
    ckvi_free_aligned(alloc, restore->stage, CKVI_PIECE_BYTES, 4096);
    CKVI_DELETE(alloc, restore);
}

enum ckv_status ckv_restore_finish(struct ckv_restore *restore, struct ckv_error *error)
{
    enum ckv_status status = CKV_OK;
    bool more = true;
    while (!status && more)
        status = ckv_restore_step(restore, &more, error);
    if (status)
        ckv_restore_abort(restore);
    else
        destroy(restore);
    return status;
}

void ckv_restore_abort(struct ckv_restore *restore)
{
    if (!restore)
        return;
    if (restore->sink->drop)
        restore->sink->drop(restore->sink->ctx);
    destroy(restore);
}

/*
 * Owns the reading of a whole file for its own sake: every tensor against its hash, and
 * whether the bytes between them are the zeros that every writer leaves there.
 *
 * Invariant: every byte behind the header's text is read once, in file order.
 * Failure story: the first difference ends it, naming the tensor. Odd padding is no
 * failure, it is told.
 */
#include "file/reader.h"

#include "base/alloc.h"
#include "base/checked.h"
#include <coldkv/hash.h>

struct verification {
    struct ckv_reader *reader;
    ckv_progress_fn progress;
    void *progress_ctx;
    uint8_t *piece; /* CKVI_PIECE_BYTES */
    uint64_t done_bytes;
    uint64_t total_bytes;
    bool nonzero;
};

/* The bytes from `from` to `to`, which hold nothing. Shorter than one alignment. */
static enum ckv_status check_gap(struct verification *at, uint64_t from, uint64_t to,
                                 struct ckv_error *error)
{
    size_t size = (size_t)(to - from);
    enum ckv_status status = ckvi_reader_read(at->reader, at->piece, size, from, error);
    for (size_t i = 0; i < size && !status; i++)
        at->nonzero = at->nonzero || at->piece[i] != 0;
    return status;
}

static enum ckv_status check_tensor(struct verification *at, size_t cache, size_t tensor,
                                    struct ckv_error *error)
{
    const struct ckv_tensor *slot =
        &at->reader->header->entry.caches[cache].tensors[tensor];
    uint64_t start = ckvi_reader_tensor_start(at->reader, slot);
    struct ckv_wyhash_state hash;
    uint64_t done = 0;
    ckv_wyhash_init(&hash, 0);
    while (done < slot->bytes) {
        size_t size = (size_t)ckvi_min_u64(slot->bytes - done, CKVI_PIECE_BYTES);
        enum ckv_status status =
            ckvi_reader_read(at->reader, at->piece, size, start + done, error);
        if (status)
            return status;
        ckv_wyhash_update(&hash, at->piece, size);
        done += size;
        at->done_bytes += size;
        if (!at->progress)
            continue;
        status = at->progress(at->progress_ctx, at->done_bytes, at->total_bytes);
        if (status)
            return ckv_error_set(error, status, "the verification was ended");
    }
    return ckvi_reader_check_hash(at->reader, cache, tensor, ckv_wyhash_digest(&hash),
                                  error);
}

static enum ckv_status check_all(struct verification *at, struct ckv_error *error)
{
    const struct ckv_header *header = at->reader->header;
    uint64_t end = CKV_PREFIX_BYTES + (uint64_t)header->prefix.header_bytes;
    enum ckv_status status = CKV_OK;
    for (size_t i = 0; i < header->entry.cache_count; i++) {
        const struct ckv_cache *cache = &header->entry.caches[i];
        for (size_t j = 0; j < cache->tensor_count && !status; j++) {
            uint64_t start = ckvi_reader_tensor_start(at->reader, &cache->tensors[j]);
            status = check_gap(at, end, start, error);
            if (!status)
                status = check_tensor(at, i, j, error);
            end = start + cache->tensors[j].bytes;
        }
    }
    return status ? status : check_gap(at, end, header->file_size, error);
}

enum ckv_status ckv_reader_verify(struct ckv_reader *reader, ckv_progress_fn progress,
                                  void *progress_ctx, bool *nonzero_padding,
                                  struct ckv_error *error)
{
    struct verification at = {.reader = reader,
                              .progress = progress,
                              .progress_ctx = progress_ctx,
                              .total_bytes =
                                  ckv_entry_tensor_bytes(&reader->header->entry)};
    enum ckv_status status;
    ckv_error_clear(error);
    if (nonzero_padding)
        *nonzero_padding = false;
    at.piece = ckvi_alloc_aligned(reader->alloc, CKVI_PIECE_BYTES, 4096);
    if (!at.piece)
        return ckvi_nomem(error, CKVI_PIECE_BYTES, "a reading buffer");
    status = check_all(&at, error);
    ckvi_free_aligned(reader->alloc, at.piece, CKVI_PIECE_BYTES, 4096);
    if (nonzero_padding)
        *nonzero_padding = at.nonzero;
    return ckvi_reader_name_error(reader, status, error);
}

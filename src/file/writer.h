/* Inside of the writer. */
#ifndef COLDKV_FILE_WRITER_H
#define COLDKV_FILE_WRITER_H

#include <coldkv/hash.h>
#include <coldkv/header.h>
#include <coldkv/writer.h>

struct ckv_writer {
    const struct ckv_io *io;
    struct ckv_io_dir dir;
    const struct ckv_source *source;
    const struct ckv_alloc *alloc;
    struct ckv_writer_options options;
    char name[CKV_IO_NAME_MAX + 1];

    /* The plan. Caches and tensors are copies, for offsets and hashes; tokens and
     * metadata are the caller's. */
    struct ckv_entry entry;
    struct ckv_tensor *tensors;
    size_t tensor_count;
    struct ckv_prefix prefix;
    uint64_t file_size;

    uint8_t
        *header; /* data_start bytes, taken at begin: a write never fails late for it */
    uint8_t *chunk;    /* only for sources that lend less than a chunk */
    size_t chunk_size; /* a step's, or less when no tensor is that large */
    size_t step_size;

    struct ckv_temporary temporary;
    struct ckv_io_stat identity; /* of the temporary, to know it again */
    bool opened;
    bool published;

    enum ckv_writer_step next;
    bool failed;
    size_t at_cache; /* the tensor being copied */
    size_t at_tensor;
    uint64_t tensor_done;
    struct ckv_wyhash_state hash;
    uint64_t done_bytes;
    uint64_t unsynced_bytes;
    uint64_t header_done;
};

/* One COPY step. */
enum ckv_status ckvi_writer_copy(struct ckv_writer *writer, struct ckv_error *error);
/* Passes finished tensors (keeping their hashes); false when none is left to copy. */
bool ckvi_writer_more(struct ckv_writer *writer);

#endif

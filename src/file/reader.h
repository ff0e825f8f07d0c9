/* Inside of the reader. */
#ifndef COLDKV_FILE_READER_H
#define COLDKV_FILE_READER_H

#include <coldkv/reader.h>

/* Bytes are hashed in pieces of this size right after they were read, while the
 * processor's cache still holds them. */
#define CKVI_PIECE_BYTES ((size_t)256 * 1024)

struct ckv_reader {
    const struct ckv_io *io;
    const struct ckv_alloc *alloc;
    struct ckv_io_file file;
    struct ckv_io_stat stat;
    struct ckv_header *header;
    char name[CKV_IO_NAME_MAX + 1];
};

/* Reads exactly `size` bytes; IO when the file ends before. */
enum ckv_status ckvi_reader_read(struct ckv_reader *reader, void *data, size_t size,
                                 uint64_t offset, struct ckv_error *error);
/* The place of a tensor in the file. */
uint64_t ckvi_reader_tensor_start(const struct ckv_reader *reader,
                                  const struct ckv_tensor *tensor);
/* CORRUPT, naming the tensor, when its hash is another. */
enum ckv_status ckvi_reader_check_hash(const struct ckv_reader *reader, size_t cache,
                                       size_t tensor, uint64_t found,
                                       struct ckv_error *error);
/* Puts the file's name before the text; returns status. */
enum ckv_status ckvi_reader_name_error(const struct ckv_reader *reader,
                                       enum ckv_status status, struct ckv_error *error);

#endif

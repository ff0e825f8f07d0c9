/* What the tests of layers 3 and 4 share: a disk with one folder, and headers made from
 * text. Broken set-up ends the program. */
#ifndef COLDKV_TESTS_FILE_SUPPORT_H
#define COLDKV_TESTS_FILE_SUPPORT_H

#include "lib/unit.h"

#include "lib/entry_builder.h"
#include "lib/files.h"
#include "lib/memory_io.h"
#include "lib/require.h"
#include <coldkv/coldkv.h>
#include <stdlib.h>
#include <string.h>

/* A disk in memory and its root. */
struct disk {
    struct test_memory_io *memory;
    const struct ckv_io *io;
    struct ckv_io_dir dir;
};

static inline void disk_init(struct disk *disk)
{
    disk->memory = test_memory_io_create(NULL);
    disk->io = test_memory_io_table(disk->memory);
    TEST_REQUIRE(!ckv_io_open_root(disk->io, "/", false, NULL, &disk->dir, NULL));
}

/* Everything must have been closed. */
static inline void disk_deinit(struct disk *disk)
{
    ckv_io_close_dir(disk->io, &disk->dir);
    assert_true(test_memory_io_clean(disk->memory));
    test_memory_io_destroy(disk->memory);
}

/* Saves an entry under a name. */
static inline void disk_save(struct disk *disk, const char *name, struct test_entry *made)
{
    struct ckv_error error;
    assert_ok(
        ckv_save(disk->io, disk->dir, name, &made->entry, &made->source, NULL, &error),
        error);
}

/* A JSON text with the prefix that belongs to it. */
struct text_header {
    const uint8_t *json;
    struct ckv_prefix prefix;
};

static inline struct text_header text_header(const void *json, size_t size)
{
    struct text_header header = {.json = json};
    header.prefix.header_bytes = (uint32_t)size;
    header.prefix.data_start = (uint32_t)ckv_file_align(CKV_PREFIX_BYTES + size);
    header.prefix.header_hash = ckv_wyhash(json, size, 0);
    return header;
}

/* Decodes a text as the header of a file of `file_size` bytes. */
static inline enum ckv_status decode_bytes(const void *json, size_t size,
                                           uint64_t file_size, struct ckv_header **out,
                                           struct ckv_error *error)
{
    struct text_header header = text_header(json, size);
    return ckv_header_decode(NULL, &header.prefix, header.json, file_size, out, error);
}

static inline enum ckv_status decode_text(const char *json, uint64_t file_size,
                                          struct ckv_header **out,
                                          struct ckv_error *error)
{
    return decode_bytes(json, strlen(json), file_size, out, error);
}

#endif

/*
 * Owns the first 26 bytes of a file.
 *
 * Invariant: after OK the header lies inside the file and below the limit, and data_start
 * is what the format's formula gives: neither is covered by a hash, so nothing else
 * vouches for them.
 */
#include <coldkv/header.h>

#include "base/bytes.h"
#include "base/escape.h"
#include <inttypes.h>
#include <string.h>

#define MAGIC_BYTES 10u
#define MAGIC_FAMILY 8u /* "MLXBUNKV", then the version of the container */

static const uint8_t magic[MAGIC_BYTES + 1] = "MLXBUNKV2\n";

_Static_assert(MAGIC_BYTES + 4 + 4 + 8 == CKV_PREFIX_BYTES, "prefix layout");

uint64_t ckv_file_align(uint64_t size)
{
    uint64_t rest = size % CKV_FILE_ALIGN;
    if (rest == 0)
        return size;
    if (size - rest > UINT64_MAX - CKV_FILE_ALIGN)
        return UINT64_MAX;
    return size - rest + CKV_FILE_ALIGN;
}

/* Adds the byte position to what was just reported. */
static enum ckv_status at(int64_t offset, struct ckv_error *error, enum ckv_status status)
{
    if (error)
        error->file_offset = offset;
    return status;
}

static enum ckv_status check_magic(const uint8_t *bytes, uint64_t file_size,
                                   struct ckv_error *error)
{
    size_t size = file_size < MAGIC_BYTES ? (size_t)file_size : MAGIC_BYTES;
    bool kin = size == MAGIC_BYTES && memcmp(bytes, magic, MAGIC_FAMILY) == 0;
    char found[CKVI_ESCAPE_SIZE];
    if (memcmp(bytes, magic, size) == 0)
        return CKV_OK;
    ckvi_escape(bytes, size, found, sizeof found);
    return at(0, error,
              ckv_error_set(error, CKV_FOREIGN,
                            "magic: expected MLXBUNKV2\\x0a, found %s%s", found,
                            kin ? " (another container version)" : ""));
}

static enum ckv_status check_header_bytes(uint32_t header_bytes, uint64_t room,
                                          struct ckv_error *error)
{
    if (header_bytes > room)
        return ckv_error_set(error, CKV_CORRUPT,
                             "headerLen: %" PRIu32 " bytes, but the file has %" PRIu64
                             " after the prefix",
                             header_bytes, room);
    if (header_bytes == 0)
        return ckv_error_set(error, CKV_CORRUPT,
                             "headerLen: expected at least 2, found 0");
    if (header_bytes > CKV_HEADER_BYTES_MAX)
        return ckv_error_set(error, CKV_TOOBIG,
                             "headerLen: %" PRIu32 " is over the limit of %u",
                             header_bytes, CKV_HEADER_BYTES_MAX);
    return CKV_OK;
}

enum ckv_status ckv_prefix_decode(const uint8_t bytes[CKV_PREFIX_BYTES],
                                  uint64_t file_size, struct ckv_prefix *out,
                                  struct ckv_error *error)
{
    struct ckv_prefix prefix;
    uint64_t data_start;
    enum ckv_status status;
    memset(out, 0, sizeof *out);
    status = check_magic(bytes, file_size, error);
    if (status)
        return status;
    if (file_size < CKV_PREFIX_BYTES)
        return at((int64_t)file_size, error,
                  ckv_error_set(error, CKV_CORRUPT,
                                "prefix: expected %u bytes, the file has %" PRIu64,
                                CKV_PREFIX_BYTES, file_size));
    prefix.header_bytes = ckvi_get_le32(bytes + MAGIC_BYTES);
    prefix.data_start = ckvi_get_le32(bytes + MAGIC_BYTES + 4);
    prefix.header_hash = ckvi_get_le64(bytes + MAGIC_BYTES + 8);
    status = check_header_bytes(prefix.header_bytes, file_size - CKV_PREFIX_BYTES, error);
    if (status)
        return at(MAGIC_BYTES, error, status);
    data_start = ckv_file_align((uint64_t)CKV_PREFIX_BYTES + prefix.header_bytes);
    if (prefix.data_start != data_start)
        return at(MAGIC_BYTES + 4, error,
                  ckv_error_set(error, CKV_CORRUPT,
                                "dataStart: expected %" PRIu64 ", found %" PRIu32,
                                data_start, prefix.data_start));
    if (data_start > file_size)
        return at((int64_t)file_size, error,
                  ckv_error_set(error, CKV_CORRUPT,
                                "dataStart: %" PRIu64 ", but the file has %" PRIu64
                                " bytes",
                                data_start, file_size));
    *out = prefix;
    return CKV_OK;
}

void ckv_prefix_encode(const struct ckv_prefix *prefix, uint8_t bytes[CKV_PREFIX_BYTES])
{
    memcpy(bytes, magic, MAGIC_BYTES);
    ckvi_put_le32(bytes + MAGIC_BYTES, prefix->header_bytes);
    ckvi_put_le32(bytes + MAGIC_BYTES + 4, prefix->data_start);
    ckvi_put_le64(bytes + MAGIC_BYTES + 8, prefix->header_hash);
}

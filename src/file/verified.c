/*
 * Owns the memory of a verified file. A file has one hash per tensor, so a part of a
 * tensor cannot be verified by itself; but bytes that were verified whole, in a file that
 * did not change since, need not be again.
 *
 * Failure story: whatever is in doubt is not remembered; the price is one full read.
 */
#include "file/reader.h"

#include <string.h>

static void remember(struct ckv_verified *verified, const struct ckv_io_stat *stat)
{
    verified->device = stat->device;
    verified->inode = stat->inode;
    verified->size_bytes = stat->size_bytes;
    verified->ctime_ns = stat->ctime_ns;
}

static bool holds(const struct ckv_verified *verified, const struct ckv_io_stat *stat)
{
    return verified->inode != 0 && verified->device == stat->device &&
           verified->inode == stat->inode && verified->size_bytes == stat->size_bytes &&
           verified->ctime_ns == stat->ctime_ns;
}

bool ckv_verified_holds(const struct ckv_verified *verified,
                        const struct ckv_reader *reader)
{
    return verified && holds(verified, &reader->stat);
}

void ckv_verified_set(struct ckv_verified *verified, const struct ckv_reader *reader)
{
    struct ckv_io_stat now;
    struct ckv_verified opened;
    memset(verified, 0, sizeof *verified);
    remember(&opened, &reader->stat);
    if (ckv_io_stat_file(reader->io, reader->file, &now, NULL) == CKV_OK &&
        holds(&opened, &now))
        *verified = opened;
}

enum ckv_status ckv_verified_touch(struct ckv_verified *verified,
                                   struct ckv_reader *reader, int64_t mtime_ns,
                                   struct ckv_error *error)
{
    struct ckv_io_stat before;
    struct ckv_io_stat after;
    bool held = ckv_io_stat_file(reader->io, reader->file, &before, NULL) == CKV_OK &&
                holds(verified, &before);
    enum ckv_status status = ckv_reader_touch(reader, mtime_ns, error);
    if (!held)
        return status;
    if (ckv_io_stat_file(reader->io, reader->file, &after, NULL) == CKV_OK &&
        after.size_bytes == before.size_bytes && after.inode == before.inode) {
        remember(verified, &after);
        /* The reader's own picture of the file follows: it is still the same file. */
        reader->stat = after;
    } else {
        memset(verified, 0, sizeof *verified);
    }
    return status;
}

/*
 * Owns the making of temporaries.
 *
 * Invariant: a temporary that was handed out is locked by its open file (where locks
 * exist) and still has its name: a sweeper, which locks before it unlinks, can have had
 * it only between the two calls here, and then its link count tells. Failure story:
 * whatever was created is removed again; what a sweeper holds is left to it.
 */
#include "file/temporary.h"

#include <stdio.h>
#include <string.h>

/* A taken name or a sweeper's grip is a new try; so many of them mean something else. */
#define TRIES_MAX 16

enum ckv_status ckv_uuid_create(const struct ckv_io *io, char text[CKV_UUID_TEXT_SIZE],
                                struct ckv_error *error)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[16];
    size_t at = 0;
    enum ckv_status status = io->random(io->ctx, bytes, sizeof bytes, error);
    text[0] = '\0';
    if (status)
        return status;
    bytes[6] = (unsigned char)((bytes[6] & 0x0f) | 0x40); /* version 4: random */
    bytes[8] = (unsigned char)((bytes[8] & 0x3f) | 0x80); /* the RFC's variant */
    for (size_t i = 0; i < sizeof bytes; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            text[at++] = '-';
        text[at++] = digits[bytes[i] >> 4];
        text[at++] = digits[bytes[i] & 15];
    }
    text[at] = '\0';
    return CKV_OK;
}

void ckvi_discard_name(const struct ckv_io *io, struct ckv_io_dir dir, const char *name)
{
    enum ckv_status status = ckv_io_remove(io, dir, name, NULL);
    (void)status;
}

/* Locks the new file. *again: another holds it, or it lost its name meanwhile. */
static enum ckv_status secure(const struct ckv_io *io, struct ckv_io_file file,
                              bool *again, struct ckv_error *error)
{
    struct ckv_io_stat stat;
    enum ckv_status status = io->lock(io->ctx, file, CKV_IO_LOCK_EXCLUSIVE, error);
    *again = status == CKV_AGAIN;
    if (status && status != CKV_UNSUPPORTED)
        return status;
    ckv_error_clear(error);
    status = ckv_io_stat_file(io, file, &stat, error);
    if (!status && stat.link_count == 0) {
        *again = true;
        return ckv_error_set(error, CKV_AGAIN, "the temporary was swept");
    }
    return status;
}

enum ckv_status ckv_temporary_create(const struct ckv_io *io, struct ckv_io_dir dir,
                                     struct ckv_temporary *out, struct ckv_error *error)
{
    enum ckv_status status = CKV_OK;
    out->file = CKV_IO_FILE_NONE;
    out->name[0] = '\0';
    for (int i = 0; i < TRIES_MAX; i++) {
        char uuid[CKV_UUID_TEXT_SIZE];
        bool again = false;
        status = ckv_uuid_create(io, uuid, error);
        if (status)
            return status;
        (void)snprintf(out->name, sizeof out->name, ".%s.part", uuid);
        status =
            ckv_io_open_file(io, dir, out->name, CKV_IO_CREATE_NEW, &out->file, error);
        if (status == CKV_EXISTS)
            continue;
        if (status)
            break;
        status = secure(io, out->file, &again, error);
        if (!status)
            return CKV_OK;
        if (!again)
            ckvi_discard_name(io, dir, out->name);
        ckv_io_close_file(io, &out->file);
        if (!again)
            break;
    }
    out->name[0] = '\0';
    return status;
}

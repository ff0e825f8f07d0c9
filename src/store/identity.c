/*
 * Owns identity: what makes an entry ours, and the text that explains a fingerprint.
 * Failure story: identity.json is there completely or not at all; entries do not need it.
 */
#include "store/identity.h"

#include "store/files.h"
#include "store/names.h"

#include "base/escape.h"
#include <string.h>

static enum ckv_status check_field(const struct ckv_entry *entry, enum ckv_meta_key key,
                                   const char *expected, struct ckv_error *error)
{
    char shown[CKVI_ESCAPE_SIZE];
    char wanted[CKVI_ESCAPE_SIZE];
    const char *found = ckv_entry_meta(entry, key);
    if (found && (!expected || strcmp(found, expected) == 0))
        return CKV_OK;
    if (!found)
        return ckv_error_set(error, CKV_FOREIGN, "%s is missing", ckv_meta_key_name(key));
    return ckv_error_set(error, CKV_FOREIGN, "%s: expected \"%s\", found \"%s\"",
                         ckv_meta_key_name(key),
                         ckvi_escape_string(expected, wanted, sizeof wanted),
                         ckvi_escape_string(found, shown, sizeof shown));
}

enum ckv_status ckvi_identity_check(const struct ckv_store *store, const char *ns,
                                    const struct ckv_entry *entry,
                                    struct ckv_error *error)
{
    enum ckv_status status =
        check_field(entry, CKV_META_FINGERPRINT, store->fingerprint, error);
    if (status == CKV_OK)
        status =
            check_field(entry, CKV_META_TOKENIZER_HASH, store->tokenizer_hash, error);
    if (status == CKV_OK)
        status = check_field(entry, CKV_META_NAMESPACE, ns, error);
    if (status == CKV_OK)
        status = ckv_entry_check_offsets(entry, error);
    return status;
}

static enum ckv_status write_text(const struct ckv_store *store, struct ckv_io_dir dir,
                                  struct ckv_error *error)
{
    const struct ckv_io *io = store->io;
    struct ckv_temporary temporary = {.file = CKV_IO_FILE_NONE};
    enum ckv_status status = ckv_temporary_create(io, dir, &temporary, error);
    if (status != CKV_OK)
        return status;
    status = ckv_io_write(io, temporary.file, store->description,
                          strlen(store->description), 0, error);
    if (status == CKV_OK)
        status = io->sync_file(io->ctx, temporary.file, error);
    if (status == CKV_OK)
        status = ckv_io_rename(io, dir, temporary.name, dir, CKVI_IDENTITY_NAME, error);
    if (status == CKV_OK)
        status = ckv_io_sync_dir(io, dir, error);
    else
        (void)io->remove(io->ctx, dir, temporary.name, NULL);
    ckv_io_close_file(io, &temporary.file);
    return status == CKV_UNSUPPORTED ? CKV_OK : status;
}

void ckvi_identity_write(const struct ckv_store *store, struct ckv_io_dir dir,
                         struct ckvi_events *events)
{
    struct ckv_io_stat there;
    struct ckv_error error;
    enum ckv_status status;
    if (!store->description)
        return;
    status = ckv_io_stat_name(store->io, dir, CKVI_IDENTITY_NAME, &there, &error);
    if (status == CKV_OK)
        return;
    if (status == CKV_NOTFOUND)
        status = write_text(store, dir, &error);
    if (status != CKV_OK)
        ckvi_events_add(events, CKV_LOG_WARN, "store.identity",
                        "%s/%s/%s not written: %s", store->path, store->fingerprint,
                        CKVI_IDENTITY_NAME, error.text);
}

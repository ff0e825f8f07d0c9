/*
 * Owns the way to single files of a store.
 *
 * Invariant: handles to folders are held only for one operation, so that a folder that
 * another process removed and made again is found again. Failure story: a folder whose
 * name could not be made durable is removed again, or the next try would take it for
 * durable.
 */
#include "store/files.h"

#include "store/identity.h"
#include "store/names.h"

#include "base/log.h"

enum ckv_status ckvi_open_fingerprint(const struct ckv_store *store,
                                      struct ckv_io_dir *out, struct ckv_error *error)
{
    return ckv_io_open_dir(store->io, store->root, store->fingerprint, false, NULL, out,
                           error);
}

enum ckv_status ckvi_open_folder(const struct ckv_store *store, const char *folder_name,
                                 struct ckv_io_dir *out, struct ckv_error *error)
{
    struct ckv_io_dir parent;
    enum ckv_status status;
    *out = CKV_IO_DIR_NONE;
    status = ckvi_open_fingerprint(store, &parent, error);
    if (status != CKV_OK)
        return status;
    status = ckv_io_open_dir(store->io, parent, folder_name, false, NULL, out, error);
    ckv_io_close_dir(store->io, &parent);
    return status;
}

/* Opens or makes a folder. `durable`: its name is known to be on the medium; a folder
 * that somebody else made may not be there yet, so the first use always syncs. */
static enum ckv_status make_durable(const struct ckv_store *store,
                                    struct ckv_io_dir parent, const char *name,
                                    bool durable, bool *made, struct ckv_io_dir *out,
                                    struct ckv_error *error)
{
    enum ckv_status status =
        ckv_io_open_dir(store->io, parent, name, true, made, out, error);
    if (status != CKV_OK)
        return status;
    if (durable && !*made)
        return CKV_OK;
    status = ckv_io_sync_dir(store->io, parent, error);
    if (status == CKV_OK || status == CKV_UNSUPPORTED)
        return CKV_OK;
    ckv_io_close_dir(store->io, out);
    if (*made)
        (void)store->io->remove_dir(store->io->ctx, parent, name, NULL);
    return status;
}

enum ckv_status ckvi_make_fingerprint(struct ckv_store *store, struct ckvi_events *events,
                                      struct ckv_io_dir *out, struct ckv_error *error)
{
    bool made = false;
    enum ckv_status status = make_durable(store, store->root, store->fingerprint,
                                          store->fingerprint_durable, &made, out, error);
    if (status != CKV_OK)
        return status;
    if (made || !store->fingerprint_durable)
        ckvi_identity_write(store, *out, events);
    store->fingerprint_durable = true;
    return CKV_OK;
}

enum ckv_status ckvi_make_folder(struct ckv_store *store, const char *folder_name,
                                 struct ckvi_events *events, struct ckv_io_dir *out,
                                 struct ckv_error *error)
{
    struct ckv_io_dir parent;
    bool made = false;
    enum ckv_status status;
    *out = CKV_IO_DIR_NONE;
    status = ckvi_catalog_add_folder(&store->catalog, folder_name, error);
    if (status != CKV_OK)
        return status;
    status = ckvi_make_fingerprint(store, events, &parent, error);
    if (status != CKV_OK)
        return status;
    status = make_durable(store, parent, folder_name,
                          ckvi_catalog_folder_durable(&store->catalog, folder_name),
                          &made, out, error);
    if (status == CKV_OK)
        ckvi_catalog_set_folder_durable(&store->catalog, folder_name);
    ckv_io_close_dir(store->io, &parent);
    return status;
}

bool ckvi_file_trusted(const struct ckv_store *store, const struct ckv_io_stat *stat)
{
    return stat->type == CKV_IO_TYPE_FILE && stat->owner_uid == store->uid &&
           stat->link_count == 1;
}

/* The file's age as .bad counts from now. */
static void set_time_to_now(const struct ckv_store *store, struct ckv_io_dir dir,
                            const char *name)
{
    struct ckv_io_file file;
    if (ckv_io_open_file(store->io, dir, name, CKV_IO_READ_WRITE, &file, NULL) != CKV_OK)
        return;
    (void)store->io->set_mtime(store->io->ctx, file, ckvi_now_ns(store), NULL);
    ckv_io_close_file(store->io, &file);
}

enum ckv_status ckvi_set_aside_file(struct ckv_store *store, struct ckv_io_dir dir,
                                    const char *folder_name, const char *uuid,
                                    const struct ckv_io_stat *seen, const char *reason,
                                    struct ckv_error *error)
{
    char name[CKVI_FILE_NAME_SIZE];
    char bad[CKVI_FILE_NAME_SIZE];
    struct ckv_io_stat now;
    enum ckv_status status;
    ckvi_name_entry(uuid, name);
    ckvi_name_bad(uuid, bad);
    status = ckv_io_stat_name(store->io, dir, name, &now, error);
    if (status == CKV_OK && seen &&
        (now.inode != seen->inode || now.device != seen->device))
        return ckv_error_set(error, CKV_VANISHED, "%s is another file now", name);
    if (status == CKV_OK)
        status = ckv_io_rename(store->io, dir, name, dir, bad, error);
    if (status != CKV_OK)
        return status;
    set_time_to_now(store, dir, bad);
    ckvi_count(&store->counters.set_aside, 1);
    ckvi_log(&store->log, CKV_LOG_WARN, "store.set_aside", "%s/%s/%s set aside as %s: %s",
             store->fingerprint, folder_name, name, bad, reason);
    return CKV_OK;
}

/*
 * Owns the touch of an entry that was used without being read. Failure story: an entry
 * that cannot be touched is merely evicted earlier.
 */
#include "store/files.h"
#include "store/names.h"
#include "store/state.h"

#include "base/log.h"

static enum ckv_status touch_file(struct ckv_store *store,
                                  const struct ckvi_record *record, int64_t mtime_ns,
                                  struct ckv_error *error)
{
    const struct ckv_io *io = store->io;
    char name[CKVI_FILE_NAME_SIZE];
    struct ckv_io_file file = CKV_IO_FILE_NONE;
    struct ckv_io_dir dir;
    enum ckv_status status = ckvi_open_folder(store, record->folder_name, &dir, error);
    ckvi_name_entry(record->uuid, name);
    if (status == CKV_OK)
        status = ckv_io_open_file(io, dir, name, CKV_IO_READ, &file, error);
    if (status == CKV_OK)
        status = io->set_mtime(io->ctx, file, mtime_ns, error);
    ckv_io_close_file(io, &file);
    ckv_io_close_dir(io, &dir);
    return status;
}

void ckv_store_touch(struct ckv_store *store, const char *ns, const uint32_t *tokens,
                     size_t token_count)
{
    struct ckvi_record *record = NULL;
    struct ckv_error error;
    enum ckv_status status;
    int64_t mtime_ns;
    uint64_t id;
    if (!store || !tokens || token_count == 0)
        return;
    if (ckvi_catalog_covers(&store->catalog, ckvi_ns_text(ns), tokens, token_count, &id))
        record = ckvi_catalog_pin(&store->catalog, id);
    if (!record)
        return;
    mtime_ns = ckvi_catalog_next_mtime(&store->catalog, ckvi_now_ns(store));
    status = touch_file(store, record, mtime_ns, &error);
    if (status == CKV_OK)
        ckvi_catalog_touch(&store->catalog, id, mtime_ns);
    else if (status == CKV_NOTFOUND || status == CKV_VANISHED)
        (void)ckvi_catalog_drop(&store->catalog, id);
    else
        ckvi_log(&store->log, CKV_LOG_WARN, "store.touch_failed", "%s/%s: %s",
                 store->fingerprint, record->folder_name, error.text);
    ckvi_catalog_unpin(&store->catalog, record);
}

/*
 * Owns the removal of single entries. No lock between processes: a removal only makes
 * room, and whoever lists at the same time merely counts a file that is gone.
 *
 * Invariant: an entry is forgotten only when its file is gone, or renamed, or must never
 * be offered again. Failure story: a file that cannot be unlinked stays indexed and
 * counted.
 */
#include "store/discard.h"

#include "store/files.h"
#include "store/names.h"

static enum ckv_status unknown_id(uint64_t id, struct ckv_error *error)
{
    return ckv_error_set(error, CKV_NOTFOUND, "there is no entry %llu",
                         (unsigned long long)id);
}

static bool is_gone(enum ckv_status status)
{
    return status == CKV_NOTFOUND || status == CKV_VANISHED;
}

bool ckvi_file_exists(struct ckv_store *store, uint64_t id, enum ckv_status *found)
{
    struct ckvi_record *record = ckvi_catalog_pin(&store->catalog, id);
    char name[CKVI_FILE_NAME_SIZE];
    struct ckv_io_stat stat = {0};
    struct ckv_io_dir dir;
    *found = CKV_NOTFOUND;
    if (!record)
        return false;
    ckvi_name_entry(record->uuid, name);
    *found = ckvi_open_folder(store, record->folder_name, &dir, NULL);
    if (*found == CKV_OK)
        *found = ckv_io_stat_name(store->io, dir, name, &stat, NULL);
    ckv_io_close_dir(store->io, &dir);
    ckvi_catalog_unpin(&store->catalog, record);
    return *found == CKV_OK && stat.type == CKV_IO_TYPE_FILE;
}

enum ckv_status ckvi_discard(struct ckv_store *store, uint64_t id,
                             struct ckv_error *error)
{
    struct ckvi_record *record = ckvi_catalog_pin(&store->catalog, id);
    char name[CKVI_FILE_NAME_SIZE];
    struct ckv_io_dir dir;
    enum ckv_status status;
    if (!record)
        return unknown_id(id, error);
    ckvi_name_entry(record->uuid, name);
    status = ckvi_open_folder(store, record->folder_name, &dir, error);
    if (status == CKV_OK)
        status = ckv_io_remove(store->io, dir, name, error);
    ckv_io_close_dir(store->io, &dir);
    if (status == CKV_OK || is_gone(status)) {
        ckvi_uncount(&store->counters.used_bytes, ckvi_catalog_drop(&store->catalog, id));
        status = CKV_OK;
    }
    ckvi_catalog_unpin(&store->catalog, record);
    return status;
}

enum ckv_status ckvi_discard_bad(struct ckv_store *store, uint64_t id,
                                 const struct ckv_io_stat *seen, const char *reason,
                                 struct ckv_error *error)
{
    struct ckvi_record *record = ckvi_catalog_pin(&store->catalog, id);
    struct ckv_io_dir dir;
    enum ckv_status status;
    if (!record)
        return unknown_id(id, error);
    status = ckvi_open_folder(store, record->folder_name, &dir, error);
    if (status == CKV_OK)
        status = ckvi_set_aside_file(store, dir, record->folder_name, record->uuid, seen,
                                     reason, error);
    ckv_io_close_dir(store->io, &dir);
    if (status == CKV_OK || is_gone(status)) {
        (void)ckvi_catalog_drop(&store->catalog, id);
        status = CKV_OK;
    } else {
        ckvi_catalog_demote(&store->catalog, id, CKVI_RECORD_ASIDE);
    }
    ckvi_catalog_unpin(&store->catalog, record);
    return status;
}

enum ckv_status ckv_store_set_aside(struct ckv_store *store, uint64_t id,
                                    const char *reason, struct ckv_error *error)
{
    if (!store)
        return ckv_error_set(error, CKV_INVALID, "no store was given");
    return ckvi_discard_bad(store, id, NULL, reason ? reason : "no reason given", error);
}

enum ckv_status ckv_store_remove(struct ckv_store *store, uint64_t id,
                                 struct ckv_error *error)
{
    if (!store)
        return ckv_error_set(error, CKV_INVALID, "no store was given");
    return ckvi_discard(store, id, error);
}

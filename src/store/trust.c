/*
 * Owns the two rules by which open refuses a directory: one that others control, and one
 * that holds something else. Nothing is changed before both are passed.
 */
#include "store/trust.h"

#include "store/listing.h"
#include "store/names.h"

#define MODE_OTHERS_WRITE 022u

enum ckv_status ckvi_trust_check(const struct ckv_store *store,
                                 const struct ckv_store_options *options,
                                 struct ckv_error *error)
{
    struct ckv_io_stat stat;
    enum ckv_status status = ckv_io_stat_dir(store->io, store->root, &stat, error);
    if (status != CKV_OK || options->allow_shared_dir)
        return status;
    if (stat.owner_uid != store->uid)
        return ckv_error_set(error, CKV_DENIED,
                             "%s belongs to user %u, not to user %u who runs this: use a "
                             "directory of your own (option allow_shared_dir accepts it)",
                             store->path, stat.owner_uid, store->uid);
    if (stat.mode & MODE_OTHERS_WRITE)
        return ckv_error_set(error, CKV_DENIED,
                             "%s has mode %04o, others may write to it: chmod go-w it "
                             "(option allow_shared_dir accepts it)",
                             store->path, stat.mode);
    return CKV_OK;
}

/* Lists a folder below `parent`; one that cannot be read shows nothing. */
static void peek(const struct ckv_store *store, struct ckv_io_dir parent,
                 const char *name, struct ckv_io_dir *dir, struct ckvi_listing *listing)
{
    if (ckv_io_open_dir(store->io, parent, name, false, NULL, dir, NULL) != CKV_OK)
        return;
    if (ckvi_listing_read(listing, store->alloc, store->io, *dir, NULL) != CKV_OK)
        ckv_io_close_dir(store->io, dir);
}

static bool folder_has_entry(const struct ckv_store *store, struct ckv_io_dir parent,
                             const char *name)
{
    struct ckvi_listing listing = {0};
    struct ckv_io_dir dir = CKV_IO_DIR_NONE;
    bool found = false;
    if (!ckvi_folder_name_valid(name))
        return false;
    peek(store, parent, name, &dir, &listing);
    for (size_t i = 0; i < listing.count && !found; i++)
        found = ckvi_name_classify(listing.names[i], NULL) == CKVI_NAME_ENTRY;
    ckvi_listing_deinit(&listing);
    ckv_io_close_dir(store->io, &dir);
    return found;
}

static bool fingerprint_has_entry(const struct ckv_store *store, const char *name)
{
    struct ckvi_listing listing = {0};
    struct ckv_io_dir dir = CKV_IO_DIR_NONE;
    bool found = false;
    if (!ckvi_fingerprint_valid(name))
        return false;
    peek(store, store->root, name, &dir, &listing);
    for (size_t i = 0; i < listing.count && !found; i++)
        found = folder_has_entry(store, dir, listing.names[i]);
    ckvi_listing_deinit(&listing);
    ckv_io_close_dir(store->io, &dir);
    return found;
}

enum ckv_status ckvi_init_check(const struct ckv_store *store,
                                const struct ckv_store_options *options,
                                struct ckv_error *error)
{
    struct ckvi_listing listing = {0};
    enum ckv_status status =
        ckvi_listing_read(&listing, store->alloc, store->io, store->root, error);
    bool accepted =
        options->init || listing.count == 0 || ckvi_listing_has(&listing, CKVI_LOCK_NAME);
    for (size_t i = 0; i < listing.count && !accepted; i++)
        accepted = fingerprint_has_entry(store, listing.names[i]);
    ckvi_listing_deinit(&listing);
    if (status == CKV_OK && !accepted)
        status = ckv_error_set(error, CKV_REFUSED,
                               "%s is neither empty nor a store: name another directory, "
                               "or say that it shall become one (option init)",
                               store->path);
    return status;
}

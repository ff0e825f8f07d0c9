/*
 * Owns the removal of what dead writers left and of bad files past their time.
 *
 * Invariant: a temporary is removed only under its own lock and only when the name still
 * leads to the file that is locked; whoever writes one holds that lock. Failure story:
 * what cannot be removed stays and counts; the next look tries again.
 */
#include "store/walk.h"

#include "store/files.h"

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_HOUR (NS_PER_S * 3600)
#define FOREIGN_TEMPORARY_AGE_NS NS_PER_HOUR
#define BAD_AGE_NS (NS_PER_HOUR * 24 * 7)

static bool older_than(const struct ckv_store *store, const struct ckv_io_stat *stat,
                       int64_t age_ns)
{
    int64_t now_ns = ckvi_now_ns(store);
    return now_ns > age_ns && stat->mtime_ns < now_ns - age_ns;
}

/* Whether nobody writes the open file. Without locks a store that is alone may judge at
 * open, when it writes nothing itself. */
static bool is_dead(const struct ckvi_walk *walk, struct ckv_io_file file)
{
    const struct ckv_io *io = walk->store->io;
    enum ckv_status status = io->lock(io->ctx, file, CKV_IO_LOCK_EXCLUSIVE, NULL);
    if (status == CKV_UNSUPPORTED)
        return walk->store->single_process && walk->opening;
    return status == CKV_OK;
}

static bool same_file(const struct ckv_store *store, struct ckv_io_dir dir,
                      const char *name, struct ckv_io_file file)
{
    struct ckv_io_stat opened;
    struct ckv_io_stat named;
    if (ckv_io_stat_file(store->io, file, &opened, NULL) != CKV_OK)
        return false;
    if (ckv_io_stat_name(store->io, dir, name, &named, NULL) != CKV_OK)
        return false;
    return opened.inode == named.inode && opened.device == named.device;
}

static bool remove_file(struct ckvi_walk *walk, struct ckv_io_dir dir, const char *name,
                        const char *why)
{
    struct ckv_error error;
    enum ckv_status status = ckv_io_remove(walk->store->io, dir, name, &error);
    if (status != CKV_OK) {
        ckvi_events_add(walk->events, CKV_LOG_WARN, "store.sweep", "%s stays: %s", name,
                        error.text);
        return false;
    }
    ckvi_events_add(walk->events, CKV_LOG_INFO, "store.sweep", "%s removed: %s", name,
                    why);
    return true;
}

bool ckvi_sweep_temporary(struct ckvi_walk *walk, struct ckv_io_dir dir, const char *name,
                          enum ckvi_name_kind kind, const struct ckv_io_stat *stat)
{
    const struct ckv_store *store = walk->store;
    struct ckv_io_file file;
    bool removed = false;
    if (!ckvi_file_trusted(store, stat))
        return false;
    if (kind == CKVI_NAME_TMP && !older_than(store, stat, FOREIGN_TEMPORARY_AGE_NS))
        return false;
    if (ckv_io_open_file(store->io, dir, name, CKV_IO_READ_WRITE, &file, NULL) != CKV_OK)
        return false;
    if (is_dead(walk, file) && same_file(store, dir, name, file))
        removed = remove_file(walk, dir, name, "its writer is gone");
    if (removed)
        ckvi_count(&walk->store->counters.swept, 1);
    ckv_io_close_file(store->io, &file);
    return removed;
}

bool ckvi_sweep_bad(struct ckvi_walk *walk, struct ckv_io_dir dir, const char *name,
                    const struct ckv_io_stat *stat)
{
    if (!ckvi_file_trusted(walk->store, stat) ||
        !older_than(walk->store, stat, BAD_AGE_NS))
        return false;
    return remove_file(walk, dir, name, "set aside 7 days ago");
}

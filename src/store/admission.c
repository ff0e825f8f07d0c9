/*
 * Owns admission: listing, evicting and creating the temporary as one step between all
 * processes.
 *
 * Invariant: while the lock is held, the bytes under the directory only shrink by others
 * (removals need no lock) and only grow by us; a temporary has its full length before the
 * lock is gone, so the next one to look counts it. Failure story: refused or failed,
 * nothing new is on the disk, except folders.
 */
#include "store/admission.h"

#include "store/evict.h"
#include "store/files.h"
#include "store/lock.h"
#include "store/walk.h"

#include "base/checked.h"

#define GIB (UINT64_C(1) << 30)
#define CAP_DEFAULT_MAX (32 * GIB)
#define CAP_DEFAULT_PERCENT 20
#define FLOOR_DEFAULT_MIN (2 * GIB)
#define FLOOR_DEFAULT_PERCENT 5

static uint64_t percent(uint64_t value, uint64_t share)
{
    return value / 100 * share + value % 100 * share / 100;
}

static void set_limits(struct ckv_store *store, const struct ckv_store_options *wanted,
                       const struct ckvi_walk *walk, const struct ckv_io_space *space)
{
    uint64_t ours;
    if (!ckvi_add_u64(space->free_bytes, walk->used_bytes, &ours))
        ours = UINT64_MAX;
    store->cap_bytes = wanted->cap_bytes;
    if (wanted->cap_bytes == CKV_DEFAULT)
        store->cap_bytes =
            ckvi_min_u64(CAP_DEFAULT_MAX, percent(ours, CAP_DEFAULT_PERCENT));
    store->free_floor_bytes = wanted->free_floor_bytes;
    if (wanted->free_floor_bytes == CKV_DEFAULT)
        store->free_floor_bytes = ckvi_max_u64(
            FLOOR_DEFAULT_MIN, percent(space->total_bytes, FLOOR_DEFAULT_PERCENT));
}

static enum ckv_status open_locked(struct ckv_store *store,
                                   const struct ckv_store_options *wanted,
                                   struct ckvi_events *events, struct ckv_error *error)
{
    struct ckvi_walk walk = {0};
    struct ckv_io_space space;
    struct ckv_io_dir dir;
    enum ckv_status status = ckvi_make_fingerprint(store, events, &dir, error);
    if (status != CKV_OK)
        return status;
    ckv_io_close_dir(store->io, &dir);
    status = ckvi_walk_run(&walk, store, events, true, error);
    if (status == CKV_OK)
        status = ckv_io_get_space(store->io, store->root, &space, error);
    if (status == CKV_OK) {
        set_limits(store, wanted, &walk, &space);
        ckvi_evict_excess(&walk);
        atomic_store_explicit(&store->counters.used_bytes, walk.used_bytes,
                              memory_order_relaxed);
    }
    ckvi_walk_deinit(&walk);
    return status;
}

enum ckv_status ckvi_admission_open(struct ckv_store *store,
                                    const struct ckv_store_options *wanted,
                                    struct ckv_error *error)
{
    struct ckvi_events events;
    struct ckv_io_file held;
    enum ckv_status status = ckvi_admission_lock(store, &held, error);
    if (status != CKV_OK)
        return status;
    ckvi_events_init(&events, &store->log, store->alloc);
    status = open_locked(store, wanted, &events, error);
    ckvi_admission_unlock(store, &held);
    ckvi_events_flush(&events);
    return status;
}

static enum ckv_status make_room(struct ckvi_walk *walk, uint64_t need_bytes,
                                 const struct ckvi_ids *covered, struct ckv_error *error)
{
    const struct ckv_store *store = walk->store;
    struct ckv_io_space space;
    enum ckv_status status;
    if (walk->unmeasured.status != CKV_OK) {
        if (error)
            *error = walk->unmeasured;
        ckv_error_prefix(error, "%s cannot be measured", store->path);
        return walk->unmeasured.status;
    }
    status = ckv_io_get_space(store->io, store->root, &space, error);
    if (status != CKV_OK)
        return status;
    return ckvi_evict_for(walk, need_bytes, covered, space.free_bytes, error);
}

/* Creates the temporary with its full length. */
static enum ckv_status reserve(struct ckv_store *store,
                               const struct ckvi_applicant *applicant,
                               struct ckvi_events *events, struct ckv_io_dir *dir,
                               struct ckv_temporary *temporary, struct ckv_error *error)
{
    const struct ckv_io *io = store->io;
    enum ckv_status status =
        ckvi_make_folder(store, applicant->folder_name, events, dir, error);
    if (status != CKV_OK)
        return status;
    status = ckv_temporary_create(io, *dir, temporary, error);
    if (status == CKV_OK) {
        status = io->truncate(io->ctx, temporary->file, applicant->file_bytes, error);
        if (status == CKV_OK)
            return CKV_OK;
        (void)io->remove(io->ctx, *dir, temporary->name, NULL);
        ckv_io_close_file(io, &temporary->file);
    }
    ckv_io_close_dir(io, dir);
    return status;
}

static enum ckv_status admit_locked(struct ckv_store *store,
                                    const struct ckvi_applicant *applicant,
                                    const struct ckvi_ids *covered,
                                    struct ckvi_events *events, struct ckv_io_dir *dir,
                                    struct ckv_temporary *temporary,
                                    struct ckv_error *error)
{
    struct ckvi_walk walk = {0};
    uint64_t need_bytes = ckvi_disk_bytes(applicant->file_bytes);
    enum ckv_status status = ckvi_walk_run(&walk, store, events, false, error);
    bool measured = status == CKV_OK && walk.unmeasured.status == CKV_OK;
    if (status == CKV_OK)
        status = make_room(&walk, need_bytes, covered, error);
    if (status == CKV_OK)
        status = reserve(store, applicant, events, dir, temporary, error);
    if (measured)
        atomic_store_explicit(&store->counters.used_bytes,
                              walk.used_bytes + (status == CKV_OK ? need_bytes : 0),
                              memory_order_relaxed);
    ckvi_walk_deinit(&walk);
    return status;
}

enum ckv_status ckvi_admit(struct ckv_store *store,
                           const struct ckvi_applicant *applicant, struct ckv_io_dir *dir,
                           struct ckv_temporary *temporary, struct ckv_error *error)
{
    struct ckvi_ids covered = {0};
    struct ckvi_events events;
    struct ckv_io_file held;
    enum ckv_status status;
    *dir = CKV_IO_DIR_NONE;
    *temporary = (struct ckv_temporary){.file = CKV_IO_FILE_NONE};
    status = ckvi_catalog_covered(&store->catalog, applicant->ns, applicant->tokens,
                                  applicant->token_count, applicant->floor, 0, &covered,
                                  error);
    if (status != CKV_OK)
        return status;
    ckvi_events_init(&events, &store->log, store->alloc);
    status = ckvi_admission_lock(store, &held, error);
    if (status == CKV_OK) {
        status = admit_locked(store, applicant, &covered, &events, dir, temporary, error);
        ckvi_admission_unlock(store, &held);
    }
    ckvi_events_flush(&events);
    ckvi_ids_deinit(&covered, store->alloc);
    return status;
}

void ckvi_admission_settle(struct ckv_store *store, uint64_t file_bytes,
                           uint64_t disk_bytes)
{
    ckvi_count(&store->counters.used_bytes, disk_bytes);
    ckvi_uncount(&store->counters.used_bytes, ckvi_disk_bytes(file_bytes));
}

/*
 * Owns the measuring of a store's directory. The names at the three levels of the layout
 * are looked at, and nothing deeper; every regular file there counts, also those that are
 * not ours.
 *
 * Invariant: used_bytes is what the files take (temporaries: what they will take), and
 * every victim is a trusted file with a name of our own. Failure story: a folder that
 * cannot be listed fails the walk unless we may not read it; a file that cannot be
 * measured is remembered, so that nothing is admitted on a wrong sum.
 */
#include "store/walk.h"

#include "store/files.h"
#include "store/listing.h"
#include "store/names.h"

#include "base/alloc.h"
#include "base/checked.h"
#include <string.h>

/* Blocks of nearly all file systems; a length counts as whole blocks. */
#define DISK_BLOCK 4096u

uint64_t ckvi_disk_bytes(uint64_t size_bytes)
{
    uint64_t rounded;
    if (!ckvi_add_u64(size_bytes, DISK_BLOCK - 1, &rounded))
        return UINT64_MAX;
    return rounded - rounded % DISK_BLOCK;
}

static void add_saturated(uint64_t *sum, uint64_t value)
{
    if (!ckvi_add_u64(*sum, value, sum))
        *sum = UINT64_MAX;
}

static void count_temporary(struct ckvi_walk *walk, const struct ckv_io_stat *stat)
{
    uint64_t planned = ckvi_disk_bytes(stat->size_bytes);
    if (planned > stat->allocated_bytes)
        add_saturated(&walk->reserved_bytes, planned - stat->allocated_bytes);
    add_saturated(&walk->used_bytes, ckvi_max_u64(planned, stat->allocated_bytes));
}

static enum ckv_status add_victim(struct ckvi_walk *walk, size_t place, const char *uuid,
                                  bool bad, const struct ckv_io_stat *stat,
                                  struct ckv_error *error)
{
    struct ckvi_victim *victim;
    if (walk->victim_count == walk->victim_capacity) {
        size_t capacity = walk->victim_capacity ? walk->victim_capacity * 2 : 64;
        struct ckvi_victim *moved =
            ckvi_regrow(walk->store->alloc, walk->victims, walk->victim_capacity,
                        capacity, sizeof *moved);
        if (!moved)
            return ckvi_nomem(error, capacity * sizeof *moved, "the list of files");
        walk->victims = moved;
        walk->victim_capacity = capacity;
    }
    victim = &walk->victims[walk->victim_count++];
    *victim = (struct ckvi_victim){
        .place = place,
        .rank = bad ? CKVI_RANK_BAD : CKVI_RANK_ENTRY,
        .bad = bad,
        .mtime_ns = stat->mtime_ns,
        .bytes = stat->allocated_bytes,
        .device = stat->device,
        .inode = stat->inode,
    };
    memcpy(victim->uuid, uuid, sizeof victim->uuid);
    return CKV_OK;
}

/* One name in a namespace's folder; `place` is that folder. */
static enum ckv_status walk_file(struct ckvi_walk *walk, struct ckv_io_dir dir,
                                 size_t place, const char *name,
                                 const struct ckv_io_stat *stat, struct ckv_error *error)
{
    char uuid[CKVI_UUID_SIZE];
    enum ckvi_name_kind kind = ckvi_name_classify(name, uuid);
    if (kind == CKVI_NAME_PART || kind == CKVI_NAME_TMP) {
        if (!ckvi_sweep_temporary(walk, dir, name, kind, stat))
            count_temporary(walk, stat);
        return CKV_OK;
    }
    if (kind == CKVI_NAME_BAD && ckvi_sweep_bad(walk, dir, name, stat))
        return CKV_OK;
    add_saturated(&walk->used_bytes, stat->allocated_bytes);
    if (kind == CKVI_NAME_OTHER || !ckvi_file_trusted(walk->store, stat))
        return CKV_OK;
    if (kind == CKVI_NAME_ENTRY)
        ckvi_catalog_saw_mtime(&walk->store->catalog, stat->mtime_ns);
    return add_victim(walk, place, uuid, kind == CKVI_NAME_BAD, stat, error);
}

/* Stats a name. false: it is gone or cannot be measured (then the walk knows). */
static bool measure(struct ckvi_walk *walk, struct ckv_io_dir dir, const char *name,
                    struct ckv_io_stat *stat)
{
    struct ckv_error error;
    enum ckv_status status = ckv_io_stat_name(walk->store->io, dir, name, stat, &error);
    if (status == CKV_OK)
        return true;
    if (status != CKV_NOTFOUND && walk->unmeasured.status == CKV_OK)
        walk->unmeasured = error;
    return false;
}

static enum ckv_status add_place(struct ckvi_walk *walk, const char *fingerprint,
                                 const char *folder_name, struct ckv_error *error)
{
    struct ckvi_place *place;
    if (walk->place_count == walk->place_capacity) {
        size_t capacity = walk->place_capacity ? walk->place_capacity * 2 : 16;
        struct ckvi_place *moved =
            ckvi_regrow(walk->store->alloc, walk->places, walk->place_capacity, capacity,
                        sizeof *moved);
        if (!moved)
            return ckvi_nomem(error, capacity * sizeof *moved, "the list of folders");
        walk->places = moved;
        walk->place_capacity = capacity;
    }
    place = &walk->places[walk->place_count++];
    memcpy(place->fingerprint, fingerprint, strlen(fingerprint) + 1);
    memcpy(place->folder_name, folder_name, strlen(folder_name) + 1);
    return CKV_OK;
}

/* What vanished is nothing. A folder of another user that we may not read is left out of
 * the sum, visibly; one of our own leaves the sum unknown. */
static enum ckv_status forgive(struct ckvi_walk *walk, const char *name,
                               const struct ckv_io_stat *stat, enum ckv_status status,
                               struct ckv_error *error)
{
    if (status == CKV_NOTFOUND || status == CKV_VANISHED)
        return CKV_OK;
    if (status != CKV_DENIED)
        return status;
    ckvi_events_add(walk->events, walk->opening ? CKV_LOG_WARN : CKV_LOG_DEBUG,
                    "store.unreadable", "%s/%s is not counted: %s", walk->store->path,
                    name, error->text);
    if (stat->owner_uid == walk->store->uid && walk->unmeasured.status == CKV_OK)
        walk->unmeasured = *error;
    return CKV_OK;
}

/* Opens and lists a folder. *there = false with OK: forgiven, nothing to do. */
static enum ckv_status enter(struct ckvi_walk *walk, struct ckv_io_dir parent,
                             const char *name, const struct ckv_io_stat *stat,
                             struct ckv_io_dir *dir, struct ckvi_listing *listing,
                             bool *there, struct ckv_error *error)
{
    const struct ckv_io *io = walk->store->io;
    enum ckv_status status = ckv_io_open_dir(io, parent, name, false, NULL, dir, error);
    if (status == CKV_OK)
        status = ckvi_listing_read(listing, walk->store->alloc, io, *dir, error);
    *there = status == CKV_OK;
    if (*there)
        return CKV_OK;
    ckv_io_close_dir(io, dir);
    return forgive(walk, name, stat, status, error);
}

static enum ckv_status walk_folder(struct ckvi_walk *walk, struct ckv_io_dir parent,
                                   const char *fingerprint, const char *folder_name,
                                   const struct ckv_io_stat *folder,
                                   struct ckv_error *error)
{
    struct ckvi_listing listing = {0};
    struct ckv_io_dir dir = CKV_IO_DIR_NONE;
    size_t place = walk->place_count;
    bool there;
    enum ckv_status status =
        enter(walk, parent, folder_name, folder, &dir, &listing, &there, error);
    if (status != CKV_OK || !there)
        return status;
    status = add_place(walk, fingerprint, folder_name, error);
    for (size_t i = 0; i < listing.count && status == CKV_OK; i++) {
        struct ckv_io_stat stat;
        if (measure(walk, dir, listing.names[i], &stat) && stat.type == CKV_IO_TYPE_FILE)
            status = walk_file(walk, dir, place, listing.names[i], &stat, error);
    }
    ckvi_listing_deinit(&listing);
    ckv_io_close_dir(walk->store->io, &dir);
    return status;
}

/* One name beside the namespaces' folders. */
static enum ckv_status walk_beside(struct ckvi_walk *walk, struct ckv_io_dir dir,
                                   const char *fingerprint, const char *name,
                                   struct ckv_error *error)
{
    struct ckv_io_stat stat;
    if (!measure(walk, dir, name, &stat))
        return CKV_OK;
    if (stat.type == CKV_IO_TYPE_DIR && ckvi_folder_name_valid(name))
        return walk_folder(walk, dir, fingerprint, name, &stat, error);
    if (stat.type != CKV_IO_TYPE_FILE)
        return CKV_OK;
    if (ckvi_name_classify(name, NULL) != CKVI_NAME_PART)
        add_saturated(&walk->used_bytes, stat.allocated_bytes);
    else if (!ckvi_sweep_temporary(walk, dir, name, CKVI_NAME_PART, &stat))
        count_temporary(walk, &stat);
    return CKV_OK;
}

static enum ckv_status walk_fingerprint(struct ckvi_walk *walk, const char *fingerprint,
                                        const struct ckv_io_stat *folder,
                                        struct ckv_error *error)
{
    struct ckvi_listing listing = {0};
    struct ckv_io_dir dir = CKV_IO_DIR_NONE;
    bool there;
    enum ckv_status status = enter(walk, walk->store->root, fingerprint, folder, &dir,
                                   &listing, &there, error);
    if (status != CKV_OK || !there)
        return status;
    for (size_t i = 0; i < listing.count && status == CKV_OK; i++)
        status = walk_beside(walk, dir, fingerprint, listing.names[i], error);
    ckvi_listing_deinit(&listing);
    ckv_io_close_dir(walk->store->io, &dir);
    return status;
}

enum ckv_status ckvi_walk_run(struct ckvi_walk *walk, struct ckv_store *store,
                              struct ckvi_events *events, bool opening,
                              struct ckv_error *error)
{
    struct ckvi_listing listing = {0};
    struct ckv_error own;
    enum ckv_status status;
    walk->store = store;
    walk->events = events;
    walk->opening = opening;
    ckv_error_clear(&walk->unmeasured);
    status = ckvi_listing_read(&listing, store->alloc, store->io, store->root, &own);
    for (size_t i = 0; i < listing.count && status == CKV_OK; i++) {
        const char *name = listing.names[i];
        struct ckv_io_stat stat;
        if (!measure(walk, store->root, name, &stat))
            continue;
        if (stat.type == CKV_IO_TYPE_DIR && ckvi_fingerprint_valid(name))
            status = walk_fingerprint(walk, name, &stat, &own);
        else if (stat.type == CKV_IO_TYPE_FILE)
            add_saturated(&walk->used_bytes, stat.allocated_bytes);
    }
    ckvi_listing_deinit(&listing);
    if (status != CKV_OK && error)
        *error = own;
    return status;
}

void ckvi_walk_deinit(struct ckvi_walk *walk)
{
    if (!walk->store)
        return;
    if (walk->places)
        ckvi_free(walk->store->alloc, walk->places, walk->place_capacity,
                  sizeof *walk->places);
    if (walk->victims)
        ckvi_free(walk->store->alloc, walk->victims, walk->victim_capacity,
                  sizeof *walk->victims);
    *walk = (struct ckvi_walk){0};
}

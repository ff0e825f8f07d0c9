/*
 * Owns eviction: who goes, in which order, and what is spared.
 *
 * Invariant: nothing goes that this process is restoring, nor what was used since the
 * list was made: a file is looked at once more right before its name is removed. Nothing
 * at all goes when it would not be enough. Failure story: a file that cannot be removed
 * stays, counted, and the next one goes instead.
 */
#include "store/evict.h"

#include "store/files.h"
#include "store/listing.h"
#include "store/names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int compare_victims(const void *a, const void *b)
{
    const struct ckvi_victim *left = a;
    const struct ckvi_victim *right = b;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    if (left->mtime_ns != right->mtime_ns)
        return left->mtime_ns < right->mtime_ns ? -1 : 1;
    return strcmp(left->uuid, right->uuid);
}

static bool is_own(const struct ckvi_walk *walk, const struct ckvi_victim *victim)
{
    return strcmp(walk->places[victim->place].fingerprint, walk->store->fingerprint) == 0;
}

static bool is_covered(const struct ckvi_walk *walk, const struct ckvi_victim *victim,
                       const struct ckvi_ids *covered)
{
    uint64_t id;
    if (covered->count == 0 || victim->bad || !is_own(walk, victim))
        return false;
    id = ckvi_catalog_id(&walk->store->catalog, walk->places[victim->place].folder_name,
                         victim->uuid);
    for (size_t i = 0; i < covered->count; i++) {
        if (covered->items[i] == id)
            return true;
    }
    return false;
}

static void order_victims(struct ckvi_walk *walk, const struct ckvi_ids *covered)
{
    for (size_t i = 0; covered && i < walk->victim_count; i++) {
        if (is_covered(walk, &walk->victims[i], covered))
            walk->victims[i].rank = CKVI_RANK_COVERED;
    }
    if (walk->victim_count > 0)
        qsort(walk->victims, walk->victim_count, sizeof *walk->victims, compare_victims);
}

static bool is_spared(const struct ckvi_walk *walk, const struct ckvi_victim *victim)
{
    return !victim->bad && is_own(walk, victim) &&
           ckvi_catalog_pinned(&walk->store->catalog,
                               walk->places[victim->place].folder_name, victim->uuid);
}

/* How much more than the cap there is with `need_bytes` added. */
static uint64_t excess_bytes(const struct ckvi_walk *walk, uint64_t need_bytes)
{
    uint64_t cap = walk->store->cap_bytes;
    uint64_t room = cap > walk->used_bytes ? cap - walk->used_bytes : 0;
    uint64_t over = walk->used_bytes > cap ? walk->used_bytes - cap : 0;
    if (need_bytes <= room)
        return over;
    return need_bytes - room > UINT64_MAX - over ? UINT64_MAX : need_bytes - room + over;
}

/* What the victims that are needed for `wanted` bytes give back, at least that much when
 * it can be had. */
static uint64_t plan_bytes(const struct ckvi_walk *walk, uint64_t wanted)
{
    uint64_t freed = 0;
    for (size_t i = 0; i < walk->victim_count && freed < wanted; i++) {
        if (!is_spared(walk, &walk->victims[i]))
            freed += walk->victims[i].bytes;
    }
    return freed;
}

/* Whether the name still leads to the listed file, not used since. */
static enum ckv_status look_again(const struct ckvi_walk *walk, struct ckv_io_dir dir,
                                  const char *name, const struct ckvi_victim *victim,
                                  struct ckv_error *error)
{
    struct ckv_io_stat now;
    enum ckv_status status = ckv_io_stat_name(walk->store->io, dir, name, &now, error);
    if (status != CKV_OK)
        return status;
    if (now.inode != victim->inode || now.device != victim->device ||
        now.mtime_ns > victim->mtime_ns)
        return ckv_error_set(error, CKV_AGAIN, "%s was used meanwhile", name);
    return CKV_OK;
}

static enum ckv_status remove_victim(const struct ckvi_walk *walk,
                                     const struct ckvi_victim *victim, const char *name,
                                     struct ckv_error *error)
{
    const struct ckv_io *io = walk->store->io;
    const struct ckvi_place *place = &walk->places[victim->place];
    struct ckv_io_dir parent;
    struct ckv_io_dir dir;
    enum ckv_status status = ckv_io_open_dir(io, walk->store->root, place->fingerprint,
                                             false, NULL, &parent, error);
    if (status != CKV_OK)
        return status;
    status = ckv_io_open_dir(io, parent, place->folder_name, false, NULL, &dir, error);
    ckv_io_close_dir(io, &parent);
    if (status != CKV_OK)
        return status;
    status = look_again(walk, dir, name, victim, error);
    if (status == CKV_OK)
        status = ckv_io_remove(io, dir, name, error);
    ckv_io_close_dir(io, &dir);
    return status;
}

static void report_evicted(const struct ckvi_walk *walk, const struct ckvi_victim *victim,
                           const char *name)
{
    static const char *const reasons[] = {
        [CKVI_RANK_BAD] = "set aside before",
        [CKVI_RANK_COVERED] = ("covered by the entry that needs its room; until that "
                               "one is durable its prefix is not"),
        [CKVI_RANK_ENTRY] = "least recently used",
    };
    const struct ckvi_place *place = &walk->places[victim->place];
    ckvi_events_add(walk->events, CKV_LOG_INFO, "store.evict",
                    "%s/%s/%s evicted, %" PRIu64 " bytes: %s", place->fingerprint,
                    place->folder_name, name, victim->bytes, reasons[victim->rank]);
}

static void evict_one(struct ckvi_walk *walk, const struct ckvi_victim *victim)
{
    struct ckvi_place *place = &walk->places[victim->place];
    struct ckv_store *store = walk->store;
    char name[CKVI_FILE_NAME_SIZE];
    struct ckv_error error;
    enum ckv_status status;
    if (victim->bad)
        ckvi_name_bad(victim->uuid, name);
    else
        ckvi_name_entry(victim->uuid, name);
    status = remove_victim(walk, victim, name, &error);
    if (status != CKV_OK && status != CKV_NOTFOUND) {
        ckvi_events_add(walk->events, status == CKV_AGAIN ? CKV_LOG_DEBUG : CKV_LOG_WARN,
                        "store.evict", "%s/%s/%s stays: %s", place->fingerprint,
                        place->folder_name, name, error.text);
        return;
    }
    walk->used_bytes -=
        victim->bytes < walk->used_bytes ? victim->bytes : walk->used_bytes;
    if (!victim->bad && is_own(walk, victim))
        (void)ckvi_catalog_drop_file(&store->catalog, place->folder_name, victim->uuid);
    if (status == CKV_NOTFOUND)
        return;
    place->emptied = true;
    ckvi_count(&store->counters.evicted, 1);
    report_evicted(walk, victim, name);
}

/* Whether a foreign fingerprint's folder holds nothing but its identity.json. */
static bool is_left_over(const struct ckvi_walk *walk, struct ckv_io_dir dir)
{
    struct ckvi_listing listing = {0};
    bool left_over;
    if (ckvi_listing_read(&listing, walk->store->alloc, walk->store->io, dir, NULL) !=
        CKV_OK)
        return false;
    left_over = listing.count == 0 ||
                (listing.count == 1 && ckvi_listing_has(&listing, CKVI_IDENTITY_NAME));
    ckvi_listing_deinit(&listing);
    return left_over;
}

/* Removes a place's folder, and another fingerprint's folder with it, when they are
 * empty now. Best effort: remove_dir refuses what holds something. */
static void tidy_place(const struct ckvi_walk *walk, const struct ckvi_place *place)
{
    const struct ckv_io *io = walk->store->io;
    struct ckv_io_dir dir;
    bool left_over;
    if (ckv_io_open_dir(io, walk->store->root, place->fingerprint, false, NULL, &dir,
                        NULL) != CKV_OK)
        return;
    (void)io->remove_dir(io->ctx, dir, place->folder_name, NULL);
    left_over = strcmp(place->fingerprint, walk->store->fingerprint) != 0 &&
                is_left_over(walk, dir);
    if (left_over)
        (void)io->remove(io->ctx, dir, CKVI_IDENTITY_NAME, NULL);
    ckv_io_close_dir(io, &dir);
    if (left_over)
        (void)io->remove_dir(io->ctx, walk->store->root, place->fingerprint, NULL);
}

/* Evicts in order until nothing is in excess any more. */
static void evict_until(struct ckvi_walk *walk, uint64_t need_bytes)
{
    for (size_t i = 0; i < walk->victim_count; i++) {
        if (excess_bytes(walk, need_bytes) == 0)
            break;
        if (!is_spared(walk, &walk->victims[i]))
            evict_one(walk, &walk->victims[i]);
    }
    for (size_t i = 0; i < walk->place_count; i++) {
        if (walk->places[i].emptied)
            tidy_place(walk, &walk->places[i]);
    }
}

static enum ckv_status refuse_full(const struct ckvi_walk *walk, uint64_t need_bytes,
                                   struct ckv_error *error)
{
    return ckv_error_set(error, CKV_FULL,
                         "the entry needs %" PRIu64 " bytes, %" PRIu64 " of %" PRIu64
                         " under the cap are in use and not enough of them may go",
                         need_bytes, walk->used_bytes, walk->store->cap_bytes);
}

/* The free-space floor, as it will be once the entry and every temporary is written. */
static enum ckv_status check_floor(const struct ckvi_walk *walk, uint64_t need_bytes,
                                   uint64_t freed_bytes, uint64_t free_bytes,
                                   struct ckv_error *error)
{
    uint64_t floor = walk->store->free_floor_bytes;
    uint64_t free_then =
        free_bytes > UINT64_MAX - freed_bytes ? UINT64_MAX : free_bytes + freed_bytes;
    bool fits = free_then >= floor && free_then - floor >= walk->reserved_bytes &&
                free_then - floor - walk->reserved_bytes >= need_bytes;
    if (fits)
        return CKV_OK;
    return ckv_error_set(error, CKV_FULL,
                         "the entry needs %" PRIu64 " bytes, the disk has %" PRIu64
                         " free (%" PRIu64 " of them promised to running writes) and "
                         "%" PRIu64 " have to stay free",
                         need_bytes, free_bytes, walk->reserved_bytes, floor);
}

enum ckv_status ckvi_evict_for(struct ckvi_walk *walk, uint64_t need_bytes,
                               const struct ckvi_ids *covered, uint64_t free_bytes,
                               struct ckv_error *error)
{
    uint64_t wanted = excess_bytes(walk, need_bytes);
    uint64_t freed;
    enum ckv_status status;
    order_victims(walk, covered);
    freed = plan_bytes(walk, wanted);
    if (freed < wanted)
        return refuse_full(walk, need_bytes, error);
    status = check_floor(walk, need_bytes, freed, free_bytes, error);
    if (status != CKV_OK)
        return status;
    evict_until(walk, need_bytes);
    if (excess_bytes(walk, need_bytes) > 0)
        return refuse_full(walk, need_bytes, error);
    return CKV_OK;
}

void ckvi_evict_excess(struct ckvi_walk *walk)
{
    order_victims(walk, NULL);
    evict_until(walk, 0);
}

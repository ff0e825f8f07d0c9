/*
 * Owns the way from files to the index: listing folders, reading headers, judging each
 * file once.
 *
 * Invariant: an entry is indexed only if its file is trusted, its header is sound and its
 * identity is ours. Only proven corruption changes a file. Failure story: what cannot be
 * read now is left alone and tried again at the next listing; several scans may run at
 * once, each forgets only what was known before it began.
 */
#include "store/scan.h"

#include "store/files.h"
#include "store/identity.h"
#include "store/listing.h"
#include "store/names.h"

#include "base/log.h"
#include <coldkv/reader.h>
#include <errno.h>
#include <string.h>

/* A folder that changed this shortly before it was listed may change again without a new
 * time: file systems count in ticks. */
#define RACY_NS INT64_C(2000000000)

/* How long a renamed name may stay in memory only; systems write it out much sooner. */
#define DOUBT_NS (INT64_C(600) * 1000000000)

/* One folder being listed. */
struct scanning {
    struct ckv_store *store;
    struct ckv_io_dir dir;
    const char *folder_name;
    bool retry_soon; /* a file failed for a reason that passes */
};

static void log_file(const struct scanning *scanning, enum ckv_log_level level,
                     const char *id, const char *name, const char *what)
{
    ckvi_log(&scanning->store->log, level, id, "%s/%s/%s %s",
             scanning->store->fingerprint, scanning->folder_name, name, what);
}

static enum ckv_status note_foreign(struct scanning *scanning, const char *uuid,
                                    const char *name, const char *why,
                                    struct ckv_error *error)
{
    bool first = false;
    enum ckv_status status =
        ckvi_catalog_note(&scanning->store->catalog, scanning->folder_name, uuid,
                          CKVI_RECORD_FOREIGN, &first, error);
    if (first) {
        ckvi_count(&scanning->store->counters.foreign, 1);
        log_file(scanning, CKV_LOG_INFO, "store.foreign", name, why);
    }
    return status;
}

/* Descriptors and memory come back, and so may the file. */
static bool is_passing(const struct ckv_error *why)
{
    return why->status == CKV_AGAIN || why->os_errno == EMFILE ||
           why->os_errno == ENFILE || why->os_errno == ENOMEM;
}

static enum ckv_status note_failed(struct scanning *scanning, const char *uuid,
                                   const char *name, const struct ckv_error *why,
                                   struct ckv_error *error)
{
    bool first = false;
    enum ckv_status status =
        ckvi_catalog_note(&scanning->store->catalog, scanning->folder_name, uuid,
                          CKVI_RECORD_FAILED, &first, error);
    scanning->retry_soon = scanning->retry_soon || is_passing(why);
    if (first)
        log_file(scanning, CKV_LOG_WARN, "store.unreadable", name, why->text);
    return status;
}

static enum ckv_status note_corrupt(struct scanning *scanning, const char *uuid,
                                    const char *name, const struct ckv_io_stat *stat,
                                    const struct ckv_error *why, struct ckv_error *error)
{
    struct ckv_error failure;
    enum ckv_status status =
        ckvi_set_aside_file(scanning->store, scanning->dir, scanning->folder_name, uuid,
                            stat, why->text, &failure);
    if (status == CKV_OK || status == CKV_NOTFOUND || status == CKV_VANISHED)
        return CKV_OK;
    log_file(scanning, CKV_LOG_WARN, "store.set_aside", name, failure.text);
    return ckvi_catalog_note(&scanning->store->catalog, scanning->folder_name, uuid,
                             CKVI_RECORD_ASIDE, NULL, error);
}

/* The header is sound: is it ours? */
static enum ckv_status judge_entry(struct scanning *scanning, const char *uuid,
                                   const char *name, const struct ckv_reader *reader,
                                   struct ckv_error *error)
{
    struct ckv_store *store = scanning->store;
    const struct ckv_entry *entry = &ckv_reader_header(reader)->entry;
    const struct ckv_io_stat *stat = ckv_reader_stat(reader);
    char expected[CKVI_FOLDER_NAME_SIZE];
    struct ckvi_entry_facts facts;
    struct ckv_error why;
    enum ckv_status status;
    uint64_t id;
    if (ckvi_identity_check(store, NULL, entry, &why) != CKV_OK)
        return note_foreign(scanning, uuid, name, why.text, error);
    ckvi_folder_name(ckv_entry_meta(entry, CKV_META_NAMESPACE), expected);
    if (strcmp(expected, scanning->folder_name) != 0)
        return note_foreign(scanning, uuid, name, "is in another namespace's folder",
                            error);
    facts = (struct ckvi_entry_facts){
        .folder_name = scanning->folder_name,
        .uuid = uuid,
        .ns = ckv_entry_meta(entry, CKV_META_NAMESPACE),
        .tokens = entry->tokens,
        .token_count = entry->token_count,
        .floor = ckv_entry_floor(entry),
        .tensor_bytes = ckv_entry_tensor_bytes(entry),
        .file_bytes = stat->allocated_bytes,
        .mtime_ns = stat->mtime_ns,
    };
    status = ckvi_catalog_add(&store->catalog, &facts, &id, error);
    return status == CKV_EXISTS ? CKV_OK : status;
}

/* Reads and judges one new file. Fails only for lack of memory. */
static enum ckv_status look_at(struct scanning *scanning, const char *uuid,
                               const char *name, struct ckv_error *error)
{
    struct ckv_store *store = scanning->store;
    struct ckv_reader *reader = NULL;
    struct ckv_io_stat stat;
    struct ckv_error why;
    enum ckv_status status =
        ckv_io_stat_name(store->io, scanning->dir, name, &stat, &why);
    if (status == CKV_OK && !ckvi_file_trusted(store, &stat))
        return note_foreign(scanning, uuid, name,
                            "is not a regular file of this user with one link", error);
    if (status == CKV_OK)
        status =
            ckv_reader_open(store->io, scanning->dir, name, store->alloc, &reader, &why);
    switch (status) {
    case CKV_OK:
        status = judge_entry(scanning, uuid, name, reader, error);
        ckv_reader_close(reader);
        return status;
    case CKV_NOTFOUND:
    case CKV_VANISHED:
        return CKV_OK;
    case CKV_CORRUPT:
        return note_corrupt(scanning, uuid, name, &stat, &why, error);
    case CKV_FOREIGN:
    case CKV_VERSION:
    case CKV_TOOBIG:
        return note_foreign(scanning, uuid, name, why.text, error);
    case CKV_NOMEM:
        if (error)
            *error = why;
        return CKV_NOMEM;
    default:
        return note_failed(scanning, uuid, name, &why, error);
    }
}

static enum ckv_status look_at_new(struct scanning *scanning,
                                   const struct ckvi_listing *listing,
                                   struct ckv_error *error)
{
    enum ckv_status status = CKV_OK;
    for (size_t i = 0; i < listing->count && status == CKV_OK; i++) {
        char uuid[CKVI_UUID_SIZE];
        const char *name = listing->names[i];
        if (ckvi_name_classify(name, uuid) != CKVI_NAME_ENTRY)
            continue;
        if (!ckvi_catalog_knows(&scanning->store->catalog, scanning->folder_name, uuid))
            status = look_at(scanning, uuid, name, error);
    }
    return status;
}

static bool needs_listing(const struct ckvi_listed *listed,
                          const struct ckv_io_stat *stat)
{
    return !listed->known || stat->mtime_ns != listed->mtime_ns ||
           listed->mtime_ns > listed->listed_at_ns - RACY_NS;
}

/* The time of the folder and of now, both from before its names are read. */
static enum ckv_status stamp(const struct ckv_store *store, struct ckv_io_dir dir,
                             struct ckvi_listed *listed, struct ckv_error *error)
{
    struct ckv_io_stat stat;
    enum ckv_status status = ckv_io_stat_dir(store->io, dir, &stat, error);
    *listed = (struct ckvi_listed){true, stat.mtime_ns, ckvi_now_ns(store)};
    return status;
}

static enum ckv_status list_folder(struct ckv_store *store, struct ckv_io_dir parent,
                                   const char *folder_name, uint64_t mark,
                                   struct ckv_error *error)
{
    struct scanning scanning = {store, CKV_IO_DIR_NONE, folder_name, false};
    struct ckvi_listing listing = {0};
    struct ckvi_listed listed;
    enum ckv_status status = ckv_io_open_dir(store->io, parent, folder_name, false, NULL,
                                             &scanning.dir, error);
    if (status == CKV_OK)
        status = stamp(store, scanning.dir, &listed, error);
    if (status == CKV_OK)
        status =
            ckvi_listing_read(&listing, store->alloc, store->io, scanning.dir, error);
    if (status == CKV_OK) {
        (void)ckvi_catalog_drop_missing(&store->catalog, folder_name, &listing, mark);
        status = look_at_new(&scanning, &listing, error);
        listed.known = status == CKV_OK && !scanning.retry_soon;
        if (status == CKV_OK)
            status =
                ckvi_catalog_set_listed(&store->catalog, folder_name, &listed, error);
    }
    ckvi_listing_deinit(&listing);
    ckv_io_close_dir(store->io, &scanning.dir);
    return status;
}

/* Lists one folder if it changed. Its failure is that folder's: the others are seen. */
static enum ckv_status scan_folder(struct ckv_store *store, struct ckv_io_dir parent,
                                   const char *folder_name, uint64_t mark,
                                   struct ckv_error *error)
{
    struct ckvi_listed listed = ckvi_catalog_listed(&store->catalog, folder_name);
    struct ckv_io_stat stat;
    struct ckv_error why;
    enum ckv_status status =
        ckv_io_stat_name(store->io, parent, folder_name, &stat, &why);
    if (status == CKV_OK && stat.type == CKV_IO_TYPE_DIR) {
        if (!needs_listing(&listed, &stat))
            return CKV_OK;
        status = list_folder(store, parent, folder_name, mark, &why);
    } else if (status == CKV_OK) {
        status = CKV_NOTFOUND;
    }
    if (status == CKV_OK)
        return CKV_OK;
    if (status == CKV_NOTFOUND || status == CKV_VANISHED) {
        (void)ckvi_catalog_drop_missing(&store->catalog, folder_name, NULL, mark);
        return CKV_OK;
    }
    if (status == CKV_NOMEM) {
        if (error)
            *error = why;
        return CKV_NOMEM;
    }
    ckvi_log(&store->log, CKV_LOG_WARN, "store.unreadable", "%s/%s: %s",
             store->fingerprint, folder_name, why.text);
    return CKV_OK;
}

/* Makes the catalog know every namespace's folder. */
static enum ckv_status find_folders(struct ckv_store *store, struct ckv_io_dir parent,
                                    struct ckv_error *error)
{
    struct ckvi_listed listed = ckvi_catalog_listed(&store->catalog, NULL);
    struct ckvi_listing listing = {0};
    struct ckvi_listed now;
    struct ckv_io_stat stat;
    enum ckv_status status = ckv_io_stat_dir(store->io, parent, &stat, error);
    if (status != CKV_OK || !needs_listing(&listed, &stat))
        return status;
    status = stamp(store, parent, &now, error);
    if (status == CKV_OK)
        status = ckvi_listing_read(&listing, store->alloc, store->io, parent, error);
    for (size_t i = 0; i < listing.count && status == CKV_OK; i++) {
        if (ckvi_folder_name_valid(listing.names[i]))
            status = ckvi_catalog_add_folder(&store->catalog, listing.names[i], error);
    }
    ckvi_listing_deinit(&listing);
    if (status == CKV_OK)
        status = ckvi_catalog_set_listed(&store->catalog, NULL, &now, error);
    return status;
}

static enum ckv_status scan_folders(struct ckv_store *store, struct ckv_io_dir *parent,
                                    uint64_t mark, struct ckv_error *error)
{
    struct ckvi_listing folders = {0};
    enum ckv_status status = ckvi_catalog_folders(&store->catalog, &folders, error);
    for (size_t i = 0; i < folders.count && status == CKV_OK; i++) {
        if (parent)
            status = scan_folder(store, *parent, folders.names[i], mark, error);
        else
            (void)ckvi_catalog_drop_missing(&store->catalog, folders.names[i], NULL,
                                            mark);
    }
    ckvi_listing_deinit(&folders);
    return status;
}

enum ckv_status ckvi_scan(struct ckv_store *store, struct ckv_error *error)
{
    uint64_t mark = ckvi_catalog_mark(&store->catalog);
    struct ckv_io_dir parent;
    enum ckv_status status = ckvi_open_fingerprint(store, &parent, error);
    if (status == CKV_NOTFOUND || status == CKV_VANISHED)
        return scan_folders(store, NULL, mark, error);
    if (status != CKV_OK)
        return status;
    status = find_folders(store, parent, error);
    if (status == CKV_OK)
        status = scan_folders(store, &parent, mark, error);
    ckv_io_close_dir(store->io, &parent);
    return status;
}

/* Syncs a folder that changed lately: what is indexed counts as durable. */
static void settle_doubt(struct ckv_store *store, const char *folder_name)
{
    struct ckvi_listed listed = ckvi_catalog_listed(&store->catalog, folder_name);
    struct ckv_io_dir dir;
    struct ckv_error error;
    enum ckv_status status;
    if (!listed.known || listed.mtime_ns < listed.listed_at_ns - DOUBT_NS)
        return;
    status = ckvi_open_folder(store, folder_name, &dir, &error);
    if (status == CKV_OK)
        status = ckv_io_sync_dir(store->io, dir, &error);
    ckv_io_close_dir(store->io, &dir);
    if (status != CKV_OK && status != CKV_UNSUPPORTED && status != CKV_NOTFOUND)
        ckvi_log(&store->log, CKV_LOG_WARN, "store.sync_failed", "%s/%s: %s",
                 store->fingerprint, folder_name, error.text);
}

enum ckv_status ckvi_scan_first(struct ckv_store *store, struct ckv_error *error)
{
    struct ckvi_listing folders = {0};
    enum ckv_status status = ckvi_scan(store, error);
    if (status == CKV_OK)
        status = ckvi_catalog_folders(&store->catalog, &folders, error);
    for (size_t i = 0; i < folders.count && status == CKV_OK; i++)
        settle_doubt(store, folders.names[i]);
    ckvi_listing_deinit(&folders);
    return status;
}

enum ckv_status ckv_store_refresh(struct ckv_store *store, struct ckv_error *error)
{
    if (!store)
        return ckv_error_set(error, CKV_INVALID, "no store was given");
    return ckvi_scan(store, error);
}

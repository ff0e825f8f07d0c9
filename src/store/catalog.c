/*
 * Owns the records of a catalog: who is in which table.
 *
 * Invariant: a record is in both maps and in its folder's list, or it is dropped; it is
 * in its namespace's index iff it is an entry. Failure story: a record is built
 * completely before it is linked, so running out of memory changes nothing.
 */
#include "store/catalog_internal.h"

#include "base/alloc.h"
#include <coldkv/hash.h>
#include <string.h>

static uint64_t hash_file(const char *folder_name, const char *uuid)
{
    return ckv_wyhash(uuid, strlen(uuid),
                      ckv_wyhash(folder_name, strlen(folder_name), 0));
}

enum ckv_status ckvi_catalog_init(struct ckvi_catalog *catalog,
                                  const struct ckv_alloc *alloc, struct ckv_error *error)
{
    enum ckv_status status;
    *catalog = (struct ckvi_catalog){.alloc = alloc, .next_id = 1};
    if (pthread_mutex_init(&catalog->mu, NULL) != 0)
        return ckv_error_set(error, CKV_NOMEM, "no mutex for the catalog");
    catalog->ready = true;
    status = ckvi_map_init(&catalog->records_by_id, alloc, error);
    if (status == CKV_OK)
        status = ckvi_map_init(&catalog->records_by_file, alloc, error);
    if (status == CKV_OK)
        status = ckvi_map_init(&catalog->folders, alloc, error);
    if (status == CKV_OK)
        status = ckvi_map_init(&catalog->spaces, alloc, error);
    return status;
}

void ckvi_catalog_deinit(struct ckvi_catalog *catalog)
{
    struct ckvi_node *node;
    if (!catalog->ready)
        return;
    while ((node = ckvi_map_any(&catalog->records_by_id)))
        (void)ckvi_record_drop(catalog, CKVI_CONTAINER(node, struct ckvi_record, by_id));
    while ((node = ckvi_map_any(&catalog->folders)))
        ckvi_folder_forget(catalog, CKVI_CONTAINER(node, struct ckvi_folder, node));
    while ((node = ckvi_map_any(&catalog->spaces)))
        ckvi_space_destroy(catalog, CKVI_CONTAINER(node, struct ckvi_space, node));
    ckvi_map_deinit(&catalog->records_by_id);
    ckvi_map_deinit(&catalog->records_by_file);
    ckvi_map_deinit(&catalog->folders);
    ckvi_map_deinit(&catalog->spaces);
    (void)pthread_mutex_destroy(&catalog->mu);
    *catalog = (struct ckvi_catalog){0};
}

uint64_t ckvi_catalog_mark(struct ckvi_catalog *catalog)
{
    uint64_t mark;
    (void)pthread_mutex_lock(&catalog->mu);
    mark = catalog->next_id;
    (void)pthread_mutex_unlock(&catalog->mu);
    return mark;
}

struct ckvi_record *ckvi_record_by_id(const struct ckvi_catalog *catalog, uint64_t id)
{
    struct ckvi_node *node =
        ckvi_map_first(&catalog->records_by_id, ckvi_map_hash_u64(id));
    for (; node; node = ckvi_map_same(node)) {
        struct ckvi_record *record = CKVI_CONTAINER(node, struct ckvi_record, by_id);
        if (record->id == id)
            return record;
    }
    return NULL;
}

struct ckvi_record *ckvi_record_by_file(const struct ckvi_catalog *catalog,
                                        const char *folder_name, const char *uuid)
{
    struct ckvi_node *node =
        ckvi_map_first(&catalog->records_by_file, hash_file(folder_name, uuid));
    for (; node; node = ckvi_map_same(node)) {
        struct ckvi_record *record = CKVI_CONTAINER(node, struct ckvi_record, by_file);
        if (strcmp(record->uuid, uuid) == 0 &&
            strcmp(record->folder_name, folder_name) == 0)
            return record;
    }
    return NULL;
}

static void link_record(struct ckvi_catalog *catalog, struct ckvi_record *record)
{
    struct ckvi_folder *folder = record->folder;
    ckvi_map_insert(&catalog->records_by_id, &record->by_id,
                    ckvi_map_hash_u64(record->id));
    ckvi_map_insert(&catalog->records_by_file, &record->by_file,
                    hash_file(record->folder_name, record->uuid));
    record->folder_next = folder->records;
    record->folder_prev = NULL;
    if (folder->records)
        folder->records->folder_prev = record;
    folder->records = record;
}

static void unlink_record(struct ckvi_catalog *catalog, struct ckvi_record *record)
{
    ckvi_map_remove(&catalog->records_by_id, &record->by_id);
    ckvi_map_remove(&catalog->records_by_file, &record->by_file);
    if (record->folder_prev)
        record->folder_prev->folder_next = record->folder_next;
    else
        record->folder->records = record->folder_next;
    if (record->folder_next)
        record->folder_next->folder_prev = record->folder_prev;
}

/* Out of its index, if it is in one. */
static void leave_index(struct ckvi_catalog *catalog, struct ckvi_record *record)
{
    if (!record->space)
        return;
    (void)ckv_index_remove(record->space->index, record->id);
    record->space = NULL;
    catalog->entry_count--;
}

uint64_t ckvi_record_drop(struct ckvi_catalog *catalog, struct ckvi_record *record)
{
    uint64_t bytes = record->file_bytes;
    leave_index(catalog, record);
    unlink_record(catalog, record);
    record->folder = NULL;
    record->dropped = true;
    if (record->pins == 0)
        CKVI_DELETE(catalog->alloc, record);
    return bytes;
}

/* A record for the file, known or new, not linked when it is new. */
static struct ckvi_record *make_record(struct ckvi_catalog *catalog,
                                       const char *folder_name, const char *uuid,
                                       struct ckv_error *error)
{
    struct ckvi_folder *folder = ckvi_folder_ensure(catalog, folder_name, error);
    struct ckvi_record *record;
    if (!folder)
        return NULL;
    record = CKVI_NEW(catalog->alloc, struct ckvi_record);
    if (!record) {
        (void)ckvi_nomem(error, sizeof *record, "a record");
        return NULL;
    }
    record->id = catalog->next_id++;
    record->folder = folder;
    memcpy(record->folder_name, folder->name, sizeof record->folder_name);
    memcpy(record->uuid, uuid, strlen(uuid) + 1);
    return record;
}

static enum ckv_status index_record(struct ckvi_record *record,
                                    const struct ckvi_entry_facts *facts,
                                    struct ckvi_space *space, struct ckv_error *error)
{
    struct ckv_index_entry entry = {
        .id = record->id,
        .floor = facts->floor,
        .bytes = facts->tensor_bytes,
        .recency = facts->mtime_ns > 0 ? (uint64_t)facts->mtime_ns : 0,
        .tokens = facts->tokens,
        .token_count = facts->token_count,
    };
    return ckv_index_insert(space->index, &entry, error);
}

static enum ckv_status add_locked(struct ckvi_catalog *catalog,
                                  const struct ckvi_entry_facts *facts, uint64_t *id,
                                  struct ckv_error *error)
{
    struct ckvi_record *known =
        ckvi_record_by_file(catalog, facts->folder_name, facts->uuid);
    struct ckvi_record *record;
    struct ckvi_space *space;
    enum ckv_status status;
    if (known && known->kind != CKVI_RECORD_FAILED) {
        *id = known->id;
        return ckv_error_set(error, CKV_EXISTS, "%s is known already", facts->uuid);
    }
    space = ckvi_space_ensure(catalog, facts->ns, error);
    if (!space)
        return CKV_NOMEM;
    record = make_record(catalog, facts->folder_name, facts->uuid, error);
    if (!record)
        return CKV_NOMEM;
    status = index_record(record, facts, space, error);
    if (status != CKV_OK) {
        CKVI_DELETE(catalog->alloc, record);
        return status;
    }
    if (known)
        (void)ckvi_record_drop(catalog, known);
    record->kind = CKVI_RECORD_ENTRY;
    record->space = space;
    record->file_bytes = facts->file_bytes;
    link_record(catalog, record);
    catalog->entry_count++;
    if (facts->mtime_ns > catalog->newest_mtime_ns)
        catalog->newest_mtime_ns = facts->mtime_ns;
    *id = record->id;
    return CKV_OK;
}

enum ckv_status ckvi_catalog_add(struct ckvi_catalog *catalog,
                                 const struct ckvi_entry_facts *facts, uint64_t *id,
                                 struct ckv_error *error)
{
    enum ckv_status status;
    (void)pthread_mutex_lock(&catalog->mu);
    status = add_locked(catalog, facts, id, error);
    (void)pthread_mutex_unlock(&catalog->mu);
    return status;
}

enum ckv_status ckvi_catalog_note(struct ckvi_catalog *catalog, const char *folder_name,
                                  const char *uuid, enum ckvi_record_kind kind,
                                  bool *first, struct ckv_error *error)
{
    enum ckv_status status = CKV_OK;
    struct ckvi_record *record;
    bool changed = false;
    (void)pthread_mutex_lock(&catalog->mu);
    record = ckvi_record_by_file(catalog, folder_name, uuid);
    if (!record) {
        record = make_record(catalog, folder_name, uuid, error);
        if (record)
            link_record(catalog, record);
        else
            status = CKV_NOMEM;
    }
    /* What one reader failed to read another may have indexed meanwhile. */
    if (record && !(kind == CKVI_RECORD_FAILED && record->kind == CKVI_RECORD_ENTRY)) {
        changed = record->kind != kind;
        leave_index(catalog, record);
        record->kind = kind;
    }
    (void)pthread_mutex_unlock(&catalog->mu);
    if (first)
        *first = changed;
    return status;
}

bool ckvi_catalog_knows(struct ckvi_catalog *catalog, const char *folder_name,
                        const char *uuid)
{
    const struct ckvi_record *record;
    bool known;
    (void)pthread_mutex_lock(&catalog->mu);
    record = ckvi_record_by_file(catalog, folder_name, uuid);
    known = record && record->kind != CKVI_RECORD_FAILED;
    (void)pthread_mutex_unlock(&catalog->mu);
    return known;
}

uint64_t ckvi_catalog_drop(struct ckvi_catalog *catalog, uint64_t id)
{
    struct ckvi_record *record;
    uint64_t bytes = 0;
    (void)pthread_mutex_lock(&catalog->mu);
    record = ckvi_record_by_id(catalog, id);
    if (record)
        bytes = ckvi_record_drop(catalog, record);
    (void)pthread_mutex_unlock(&catalog->mu);
    return bytes;
}

uint64_t ckvi_catalog_drop_file(struct ckvi_catalog *catalog, const char *folder_name,
                                const char *uuid)
{
    struct ckvi_record *record;
    uint64_t bytes = 0;
    (void)pthread_mutex_lock(&catalog->mu);
    record = ckvi_record_by_file(catalog, folder_name, uuid);
    if (record)
        bytes = ckvi_record_drop(catalog, record);
    (void)pthread_mutex_unlock(&catalog->mu);
    return bytes;
}

void ckvi_catalog_demote(struct ckvi_catalog *catalog, uint64_t id,
                         enum ckvi_record_kind kind)
{
    struct ckvi_record *record;
    (void)pthread_mutex_lock(&catalog->mu);
    record = ckvi_record_by_id(catalog, id);
    if (record) {
        leave_index(catalog, record);
        record->kind = kind;
    }
    (void)pthread_mutex_unlock(&catalog->mu);
}

struct ckvi_record *ckvi_catalog_pin(struct ckvi_catalog *catalog, uint64_t id)
{
    struct ckvi_record *record;
    (void)pthread_mutex_lock(&catalog->mu);
    record = ckvi_record_by_id(catalog, id);
    if (record && record->kind == CKVI_RECORD_ENTRY)
        record->pins++;
    else
        record = NULL;
    (void)pthread_mutex_unlock(&catalog->mu);
    return record;
}

void ckvi_catalog_unpin(struct ckvi_catalog *catalog, struct ckvi_record *record)
{
    if (!record)
        return;
    (void)pthread_mutex_lock(&catalog->mu);
    record->pins--;
    if (record->pins == 0 && record->dropped)
        CKVI_DELETE(catalog->alloc, record);
    (void)pthread_mutex_unlock(&catalog->mu);
}

struct ckv_verified ckvi_catalog_verified(struct ckvi_catalog *catalog,
                                          const struct ckvi_record *record)
{
    struct ckv_verified verified;
    (void)pthread_mutex_lock(&catalog->mu);
    verified = record->verified;
    (void)pthread_mutex_unlock(&catalog->mu);
    return verified;
}

void ckvi_catalog_set_verified(struct ckvi_catalog *catalog, struct ckvi_record *record,
                               const struct ckv_verified *verified)
{
    (void)pthread_mutex_lock(&catalog->mu);
    record->verified = *verified;
    (void)pthread_mutex_unlock(&catalog->mu);
}

bool ckvi_catalog_pinned(struct ckvi_catalog *catalog, const char *folder_name,
                         const char *uuid)
{
    const struct ckvi_record *record;
    bool pinned;
    (void)pthread_mutex_lock(&catalog->mu);
    record = ckvi_record_by_file(catalog, folder_name, uuid);
    pinned = record && record->pins > 0;
    (void)pthread_mutex_unlock(&catalog->mu);
    return pinned;
}

uint64_t ckvi_catalog_id(struct ckvi_catalog *catalog, const char *folder_name,
                         const char *uuid)
{
    const struct ckvi_record *record;
    uint64_t id;
    (void)pthread_mutex_lock(&catalog->mu);
    record = ckvi_record_by_file(catalog, folder_name, uuid);
    id = record ? record->id : 0;
    (void)pthread_mutex_unlock(&catalog->mu);
    return id;
}

/*
 * Owns the folders of a catalog: which exist, how they stood when they were listed, and
 * what is forgotten when a listing does not show it any more.
 */
#include "store/catalog_internal.h"

#include "base/alloc.h"
#include <coldkv/hash.h>
#include <string.h>

static uint64_t hash_name(const char *name)
{
    return ckv_wyhash(name, strlen(name), 0);
}

struct ckvi_folder *ckvi_folder_find(const struct ckvi_catalog *catalog, const char *name)
{
    struct ckvi_node *node = ckvi_map_first(&catalog->folders, hash_name(name));
    for (; node; node = ckvi_map_same(node)) {
        struct ckvi_folder *folder = CKVI_CONTAINER(node, struct ckvi_folder, node);
        if (strcmp(folder->name, name) == 0)
            return folder;
    }
    return NULL;
}

struct ckvi_folder *ckvi_folder_ensure(struct ckvi_catalog *catalog, const char *name,
                                       struct ckv_error *error)
{
    struct ckvi_folder *folder = ckvi_folder_find(catalog, name);
    if (folder)
        return folder;
    folder = CKVI_NEW(catalog->alloc, struct ckvi_folder);
    if (!folder) {
        (void)ckvi_nomem(error, sizeof *folder, "a folder's record");
        return NULL;
    }
    memcpy(folder->name, name, strlen(name) + 1);
    ckvi_map_insert(&catalog->folders, &folder->node, hash_name(name));
    return folder;
}

void ckvi_folder_forget(struct ckvi_catalog *catalog, struct ckvi_folder *folder)
{
    ckvi_map_remove(&catalog->folders, &folder->node);
    CKVI_DELETE(catalog->alloc, folder);
}

/* Whether the listing still shows the record's file. */
static bool is_listed(const struct ckvi_listing *listing,
                      const struct ckvi_record *record)
{
    char name[CKVI_FILE_NAME_SIZE];
    if (!listing)
        return false;
    ckvi_name_entry(record->uuid, name);
    return ckvi_listing_has(listing, name);
}

size_t ckvi_catalog_drop_missing(struct ckvi_catalog *catalog, const char *folder_name,
                                 const struct ckvi_listing *listing, uint64_t mark)
{
    struct ckvi_folder *folder;
    size_t dropped = 0;
    (void)pthread_mutex_lock(&catalog->mu);
    folder = ckvi_folder_find(catalog, folder_name);
    for (struct ckvi_record *record = folder ? folder->records : NULL; record;) {
        struct ckvi_record *next = record->folder_next;
        if (record->id < mark && !is_listed(listing, record)) {
            dropped += record->kind == CKVI_RECORD_ENTRY;
            (void)ckvi_record_drop(catalog, record);
        }
        record = next;
    }
    if (folder && !listing && !folder->records)
        ckvi_folder_forget(catalog, folder);
    (void)pthread_mutex_unlock(&catalog->mu);
    return dropped;
}

struct ckvi_listed ckvi_catalog_listed(struct ckvi_catalog *catalog,
                                       const char *folder_name)
{
    struct ckvi_listed listed = {false, 0, 0};
    const struct ckvi_folder *folder;
    (void)pthread_mutex_lock(&catalog->mu);
    if (!folder_name) {
        listed = catalog->listed;
    } else {
        folder = ckvi_folder_find(catalog, folder_name);
        if (folder)
            listed = folder->listed;
    }
    (void)pthread_mutex_unlock(&catalog->mu);
    return listed;
}

enum ckv_status ckvi_catalog_set_listed(struct ckvi_catalog *catalog,
                                        const char *folder_name,
                                        const struct ckvi_listed *listed,
                                        struct ckv_error *error)
{
    struct ckvi_folder *folder = NULL;
    (void)pthread_mutex_lock(&catalog->mu);
    if (folder_name)
        folder = ckvi_folder_ensure(catalog, folder_name, error);
    else
        catalog->listed = *listed;
    if (folder)
        folder->listed = *listed;
    (void)pthread_mutex_unlock(&catalog->mu);
    return folder_name && !folder ? CKV_NOMEM : CKV_OK;
}

enum ckv_status ckvi_catalog_add_folder(struct ckvi_catalog *catalog,
                                        const char *folder_name, struct ckv_error *error)
{
    struct ckvi_folder *folder;
    (void)pthread_mutex_lock(&catalog->mu);
    folder = ckvi_folder_ensure(catalog, folder_name, error);
    (void)pthread_mutex_unlock(&catalog->mu);
    return folder ? CKV_OK : CKV_NOMEM;
}

bool ckvi_catalog_folder_durable(struct ckvi_catalog *catalog, const char *folder_name)
{
    const struct ckvi_folder *folder;
    bool durable;
    (void)pthread_mutex_lock(&catalog->mu);
    folder = ckvi_folder_find(catalog, folder_name);
    durable = folder && folder->durable;
    (void)pthread_mutex_unlock(&catalog->mu);
    return durable;
}

void ckvi_catalog_set_folder_durable(struct ckvi_catalog *catalog,
                                     const char *folder_name)
{
    struct ckvi_folder *folder;
    (void)pthread_mutex_lock(&catalog->mu);
    folder = ckvi_folder_find(catalog, folder_name);
    if (folder)
        folder->durable = true;
    (void)pthread_mutex_unlock(&catalog->mu);
}

enum ckv_status ckvi_catalog_folders(struct ckvi_catalog *catalog,
                                     struct ckvi_listing *names, struct ckv_error *error)
{
    enum ckv_status status = CKV_OK;
    struct ckvi_node *node = NULL;
    names->alloc = catalog->alloc;
    (void)pthread_mutex_lock(&catalog->mu);
    while (status == CKV_OK && (node = ckvi_map_next(&catalog->folders, node))) {
        const struct ckvi_folder *folder = CKVI_CONTAINER(node, struct ckvi_folder, node);
        status = ckvi_listing_add(names, folder->name, error);
    }
    (void)pthread_mutex_unlock(&catalog->mu);
    if (status == CKV_OK)
        status = ckvi_listing_finish(names, error);
    if (status != CKV_OK)
        ckvi_listing_deinit(names);
    return status;
}

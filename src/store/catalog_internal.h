/* Shared by the catalog's own files only. The mutex is held in all of these. */
#ifndef COLDKV_STORE_CATALOG_INTERNAL_H
#define COLDKV_STORE_CATALOG_INTERNAL_H

#include "store/catalog.h"

/* A namespace's folder under the fingerprint. */
struct ckvi_folder {
    struct ckvi_node node;
    char name[CKVI_FOLDER_NAME_SIZE];
    struct ckvi_record *records;
    struct ckvi_listed listed;
    bool durable; /* its own name was synced by this process */
};

/* A namespace: its text is what counts, folders only group files. */
struct ckvi_space {
    struct ckvi_node node;
    char *ns;
    struct ckv_index *index;
};

struct ckvi_folder *ckvi_folder_find(const struct ckvi_catalog *catalog,
                                     const char *name);
struct ckvi_folder *ckvi_folder_ensure(struct ckvi_catalog *catalog, const char *name,
                                       struct ckv_error *error);
/* Frees a folder that holds no records. */
void ckvi_folder_forget(struct ckvi_catalog *catalog, struct ckvi_folder *folder);

struct ckvi_space *ckvi_space_find(const struct ckvi_catalog *catalog, const char *ns);
struct ckvi_space *ckvi_space_ensure(struct ckvi_catalog *catalog, const char *ns,
                                     struct ckv_error *error);
void ckvi_space_destroy(struct ckvi_catalog *catalog, struct ckvi_space *space);

struct ckvi_record *ckvi_record_by_id(const struct ckvi_catalog *catalog, uint64_t id);
struct ckvi_record *ckvi_record_by_file(const struct ckvi_catalog *catalog,
                                        const char *folder_name, const char *uuid);
/* Takes a record out of every table and frees it unless it is pinned. */
uint64_t ckvi_record_drop(struct ckvi_catalog *catalog, struct ckvi_record *record);

#endif

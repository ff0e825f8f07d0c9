/*
 * What a store knows about the files of its fingerprint, in memory: entries with their
 * prefix indexes, and the files it has seen and leaves alone. Thread safe; every function
 * takes the catalog's mutex for as long as it runs and does no I/O.
 */
#ifndef COLDKV_STORE_CATALOG_H
#define COLDKV_STORE_CATALOG_H

#include "store/listing.h"
#include "store/map.h"
#include "store/names.h"
#include <coldkv/alloc.h>
#include <coldkv/index.h>
#include <coldkv/reader.h>
#include <coldkv/status.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ckvi_record_kind {
    CKVI_RECORD_ENTRY = 1, /* indexed */
    CKVI_RECORD_FOREIGN,   /* not ours: not read again */
    CKVI_RECORD_FAILED,    /* could not be read: tried again at the next listing */
    CKVI_RECORD_ASIDE,     /* proven bad, but its rename failed: never offered again */
};

/* How a folder stood when it was listed. */
struct ckvi_listed {
    bool known;
    int64_t mtime_ns;
    int64_t listed_at_ns;
};

/* One file. Members above the line never change and may be read while it is pinned. */
struct ckvi_record {
    uint64_t id;
    char folder_name[CKVI_FOLDER_NAME_SIZE];
    char uuid[CKVI_UUID_SIZE];
    /* guarded by the catalog's mutex */
    enum ckvi_record_kind kind;
    struct ckvi_node by_id;
    struct ckvi_node by_file;
    struct ckvi_folder *folder;
    struct ckvi_record *folder_next;
    struct ckvi_record *folder_prev;
    struct ckvi_space *space; /* entries only */
    uint64_t file_bytes;
    struct ckv_verified verified; /* the file was read whole and is what it says */
    uint32_t pins;
    bool dropped; /* out of all tables; lives until the last pin is gone */
};

struct ckvi_catalog {
    const struct ckv_alloc *alloc;
    bool ready;
    pthread_mutex_t mu;
    /* guarded by mu */
    struct ckvi_map records_by_id;
    struct ckvi_map records_by_file;
    struct ckvi_map folders;
    struct ckvi_map spaces;
    struct ckvi_listed listed; /* the folder of folders */
    uint64_t next_id;
    int64_t newest_mtime_ns;
    uint64_t entry_count;
};

/* What is known of an entry when it gets indexed; borrowed. */
struct ckvi_entry_facts {
    const char *folder_name;
    const char *uuid;
    const char *ns;
    const uint32_t *tokens;
    size_t token_count;
    uint64_t floor;
    uint64_t tensor_bytes;
    uint64_t file_bytes; /* on the disk */
    int64_t mtime_ns;
};

/* A growable list of ids. */
struct ckvi_ids {
    uint64_t *items;
    size_t count;
    size_t capacity;
};

enum ckv_status ckvi_catalog_init(struct ckvi_catalog *catalog,
                                  const struct ckv_alloc *alloc, struct ckv_error *error);
/* A zeroed one is fine. Nothing may be pinned. */
void ckvi_catalog_deinit(struct ckvi_catalog *catalog);

/* The id that the next record gets: records known before have smaller ones. */
uint64_t ckvi_catalog_mark(struct ckvi_catalog *catalog);

/* Indexes an entry. EXISTS with its id when the file is known already; a file that could
 * not be read before is taken in. */
enum ckv_status ckvi_catalog_add(struct ckvi_catalog *catalog,
                                 const struct ckvi_entry_facts *facts, uint64_t *id,
                                 struct ckv_error *error);
/* Remembers a file that is no entry. *first (may be NULL): it was not known as such. */
enum ckv_status ckvi_catalog_note(struct ckvi_catalog *catalog, const char *folder_name,
                                  const char *uuid, enum ckvi_record_kind kind,
                                  bool *first, struct ckv_error *error);
/* Whether a listed file needs no look. */
bool ckvi_catalog_knows(struct ckvi_catalog *catalog, const char *folder_name,
                        const char *uuid);

/* Forgets a record; what it took on the disk, or 0. */
uint64_t ckvi_catalog_drop(struct ckvi_catalog *catalog, uint64_t id);
uint64_t ckvi_catalog_drop_file(struct ckvi_catalog *catalog, const char *folder_name,
                                const char *uuid);
/* Forgets what a listing of a folder does not show, as far as it was known before `mark`.
 * listing NULL: the folder is gone. How many entries that were. */
size_t ckvi_catalog_drop_missing(struct ckvi_catalog *catalog, const char *folder_name,
                                 const struct ckvi_listing *listing, uint64_t mark);
/* Takes an entry out of its index and remembers its file as `kind`. */
void ckvi_catalog_demote(struct ckvi_catalog *catalog, uint64_t id,
                         enum ckvi_record_kind kind);

/* Keeps the record of an entry alive and its file from eviction; NULL when it is gone. */
struct ckvi_record *ckvi_catalog_pin(struct ckvi_catalog *catalog, uint64_t id);
void ckvi_catalog_unpin(struct ckvi_catalog *catalog, struct ckvi_record *record);
/* What is remembered of a pinned record's file, and the way to remember it. */
struct ckv_verified ckvi_catalog_verified(struct ckvi_catalog *catalog,
                                          const struct ckvi_record *record);
void ckvi_catalog_set_verified(struct ckvi_catalog *catalog, struct ckvi_record *record,
                               const struct ckv_verified *verified);
bool ckvi_catalog_pinned(struct ckvi_catalog *catalog, const char *folder_name,
                         const char *uuid);
/* The id of a known file; 0 = unknown. */
uint64_t ckvi_catalog_id(struct ckvi_catalog *catalog, const char *folder_name,
                         const char *uuid);

size_t ckvi_catalog_find(struct ckvi_catalog *catalog, const char *ns,
                         const uint32_t *prompt, size_t prompt_length,
                         struct ckv_index_match *out, size_t capacity);
bool ckvi_catalog_covers(struct ckvi_catalog *catalog, const char *ns,
                         const uint32_t *tokens, size_t token_count, uint64_t *id);
/* An entry with exactly these tokens. */
bool ckvi_catalog_same(struct ckvi_catalog *catalog, const char *ns,
                       const uint32_t *tokens, size_t token_count, uint64_t *id);
/* Ids of the entries that an entry with these tokens and this floor covers, without
 * `except`. ids is zeroed before; on failure it is empty. */
enum ckv_status ckvi_catalog_covered(struct ckvi_catalog *catalog, const char *ns,
                                     const uint32_t *tokens, size_t token_count,
                                     uint64_t floor, uint64_t except,
                                     struct ckvi_ids *ids, struct ckv_error *error);
/* Ids of all entries of a namespace. The same rules. */
enum ckv_status ckvi_catalog_space_ids(struct ckvi_catalog *catalog, const char *ns,
                                       struct ckvi_ids *ids, struct ckv_error *error);
void ckvi_ids_deinit(struct ckvi_ids *ids, const struct ckv_alloc *alloc);

/* The next recency: max(now, newest known + 1 us), which becomes the newest known. */
int64_t ckvi_catalog_next_mtime(struct ckvi_catalog *catalog, int64_t now_ns);
/* Tells of a time seen on the disk. */
void ckvi_catalog_saw_mtime(struct ckvi_catalog *catalog, int64_t mtime_ns);
void ckvi_catalog_touch(struct ckvi_catalog *catalog, uint64_t id, int64_t mtime_ns);

/* folder_name NULL: the folder of folders. A folder that is not known was never listed.
 */
struct ckvi_listed ckvi_catalog_listed(struct ckvi_catalog *catalog,
                                       const char *folder_name);
enum ckv_status ckvi_catalog_set_listed(struct ckvi_catalog *catalog,
                                        const char *folder_name,
                                        const struct ckvi_listed *listed,
                                        struct ckv_error *error);
/* Makes sure that a folder is known. */
enum ckv_status ckvi_catalog_add_folder(struct ckvi_catalog *catalog,
                                        const char *folder_name, struct ckv_error *error);
/* Whether this process made sure that the folder itself is durable; says so from now on.
 */
bool ckvi_catalog_folder_durable(struct ckvi_catalog *catalog, const char *folder_name);
void ckvi_catalog_set_folder_durable(struct ckvi_catalog *catalog,
                                     const char *folder_name);
/* Names of all known folders. names is zeroed before. */
enum ckv_status ckvi_catalog_folders(struct ckvi_catalog *catalog,
                                     struct ckvi_listing *names, struct ckv_error *error);

struct ckvi_catalog_counts {
    uint64_t entries;
    uint64_t longest_tokens;
};
void ckvi_catalog_count(struct ckvi_catalog *catalog, struct ckvi_catalog_counts *out);

#endif

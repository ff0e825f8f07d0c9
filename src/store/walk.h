/* Everything under a store's directory, looked at once: how much it takes, and what may
 * be evicted. Sweeps dead temporaries and expired .bad files on the way. The admission
 * lock is held. */
#ifndef COLDKV_STORE_WALK_H
#define COLDKV_STORE_WALK_H

#include "store/state.h"

/* A folder that holds files which may be evicted. */
struct ckvi_place {
    char fingerprint[CKV_FINGERPRINT_MAX + 1];
    char folder_name[CKVI_FOLDER_NAME_SIZE];
    bool emptied; /* something was evicted from it */
};

/* In which order files go. */
enum ckvi_rank {
    CKVI_RANK_BAD = 0,     /* bad files first */
    CKVI_RANK_COVERED = 1, /* then what the entry to come replaces anyway */
    CKVI_RANK_ENTRY = 2,   /* then the least recently used */
};

struct ckvi_victim {
    size_t place;
    char uuid[CKVI_UUID_SIZE];
    enum ckvi_rank rank;
    bool bad;
    int64_t mtime_ns;
    uint64_t bytes;
    uint64_t device;
    uint64_t inode;
};

struct ckvi_walk {
    struct ckv_store *store;
    struct ckvi_events *events;
    bool opening; /* nothing of this store is being written yet */
    struct ckvi_place *places;
    size_t place_count;
    size_t place_capacity;
    struct ckvi_victim *victims;
    size_t victim_count;
    size_t victim_capacity;
    uint64_t used_bytes;
    uint64_t reserved_bytes; /* length of temporaries that has no blocks yet */
    /* The first file that could not be measured; status OK = none. */
    struct ckv_error unmeasured;
};

/* Fills a zeroed walk; fails when a folder cannot be listed. */
enum ckv_status ckvi_walk_run(struct ckvi_walk *walk, struct ckv_store *store,
                              struct ckvi_events *events, bool opening,
                              struct ckv_error *error);
void ckvi_walk_deinit(struct ckvi_walk *walk);

/* What a file of that length takes on a disk with blocks of usual size. */
uint64_t ckvi_disk_bytes(uint64_t size_bytes);

/* sweep.c: removes the temporary when its writer is dead. Whether it did. */
bool ckvi_sweep_temporary(struct ckvi_walk *walk, struct ckv_io_dir dir, const char *name,
                          enum ckvi_name_kind kind, const struct ckv_io_stat *stat);
/* Removes a .bad file older than 7 days. Whether it did. */
bool ckvi_sweep_bad(struct ckvi_walk *walk, struct ckv_io_dir dir, const char *name,
                    const struct ckv_io_stat *stat);

#endif

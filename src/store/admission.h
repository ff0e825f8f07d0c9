/* Admission: the first step of a put. */
#ifndef COLDKV_STORE_ADMISSION_H
#define COLDKV_STORE_ADMISSION_H

#include "store/state.h"

/* Who asks; borrowed. */
struct ckvi_applicant {
    const char *ns;
    const char *folder_name;
    const uint32_t *tokens;
    size_t token_count;
    uint64_t floor;
    uint64_t file_bytes;
};

/*
 * Makes room for a file and reserves it: its folder is there, and in it a locked
 * temporary of the file's full length. FULL, AGAIN, or why it could not be told.
 */
enum ckv_status ckvi_admit(struct ckv_store *store,
                           const struct ckvi_applicant *applicant, struct ckv_io_dir *dir,
                           struct ckv_temporary *temporary, struct ckv_error *error);

/* In the statistics: what was reserved for a file is now what it takes (0: nothing came
 * of it). */
void ckvi_admission_settle(struct ckv_store *store, uint64_t file_bytes,
                           uint64_t disk_bytes);

/* What open does under the same lock: makes the fingerprint's folder, sweeps, measures,
 * settles the default limits and evicts what is over the cap. `wanted` has CKV_DEFAULT
 * where a default is asked for. */
enum ckv_status ckvi_admission_open(struct ckv_store *store,
                                    const struct ckv_store_options *wanted,
                                    struct ckv_error *error);

#endif

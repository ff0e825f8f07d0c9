/* Single files and folders of a store: opening the way to them, judging whether they can
 * be trusted, setting them aside. */
#ifndef COLDKV_STORE_FILES_H
#define COLDKV_STORE_FILES_H

#include "store/state.h"

/* Opens <fingerprint>, and <fingerprint>/<folder>; NOTFOUND when it is not there. */
enum ckv_status ckvi_open_fingerprint(const struct ckv_store *store,
                                      struct ckv_io_dir *out, struct ckv_error *error);
enum ckv_status ckvi_open_folder(const struct ckv_store *store, const char *folder_name,
                                 struct ckv_io_dir *out, struct ckv_error *error);

/* The same, made when missing, their names durable, identity.json written. The admission
 * lock is held, so that nobody removes a folder meanwhile for being empty. */
enum ckv_status ckvi_make_fingerprint(struct ckv_store *store, struct ckvi_events *events,
                                      struct ckv_io_dir *out, struct ckv_error *error);
enum ckv_status ckvi_make_folder(struct ckv_store *store, const char *folder_name,
                                 struct ckvi_events *events, struct ckv_io_dir *out,
                                 struct ckv_error *error);

/* Regular, ours, one link: only such files are read, renamed or removed. */
bool ckvi_file_trusted(const struct ckv_store *store, const struct ckv_io_stat *stat);

/*
 * Renames <uuid>.mlxkv to <uuid>.bad, with the time of now, and counts it. With `seen`,
 * only when it is still that file, else VANISHED. What the catalog knows of it is the
 * caller's.
 */
enum ckv_status ckvi_set_aside_file(struct ckv_store *store, struct ckv_io_dir dir,
                                    const char *folder_name, const char *uuid,
                                    const struct ckv_io_stat *seen, const char *reason,
                                    struct ckv_error *error);

#endif

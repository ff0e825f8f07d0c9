/* Taking entries out of a store. */
#ifndef COLDKV_STORE_DISCARD_H
#define COLDKV_STORE_DISCARD_H

#include "store/state.h"

/* Unlinks the file of an entry and forgets it. A file that is gone already is OK; one
 * that cannot be removed keeps its entry. */
enum ckv_status ckvi_discard(struct ckv_store *store, uint64_t id,
                             struct ckv_error *error);

/* Sets an entry aside; with `seen`, only when its file is still that one. In this process
 * it is never offered again, whatever becomes of the rename. */
enum ckv_status ckvi_discard_bad(struct ckv_store *store, uint64_t id,
                                 const struct ckv_io_stat *seen, const char *reason,
                                 struct ckv_error *error);

/* Whether the file of an entry is there, and what looking said. */
bool ckvi_file_exists(struct ckv_store *store, uint64_t id, enum ckv_status *found);

#endif

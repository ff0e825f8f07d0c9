/* The lock between processes: flock on <dir>/.lock, behind a mutex of this store. */
#ifndef COLDKV_STORE_LOCK_H
#define COLDKV_STORE_LOCK_H

#include "store/state.h"

/* Takes both; AGAIN when another process keeps the lock for 5 s, UNSUPPORTED when the
 * file system has none (and the store is not single_process). */
enum ckv_status ckvi_admission_lock(struct ckv_store *store, struct ckv_io_file *held,
                                    struct ckv_error *error);
void ckvi_admission_unlock(struct ckv_store *store, struct ckv_io_file *held);

#endif

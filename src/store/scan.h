/* Seeing what is in the folders of this store's fingerprint. */
#ifndef COLDKV_STORE_SCAN_H
#define COLDKV_STORE_SCAN_H

#include "store/state.h"

/* What open does: ckvi_scan, and makes durable what a process that died right after its
 * last rename may have left in doubt. */
enum ckv_status ckvi_scan_first(struct ckv_store *store, struct ckv_error *error);

/* Lists the folders that changed since they were listed last, reads the headers of files
 * that are new, forgets those that are gone. Only memory and an unreadable fingerprint's
 * folder make it fail; a bad file never does. */
enum ckv_status ckvi_scan(struct ckv_store *store, struct ckv_error *error);

#endif

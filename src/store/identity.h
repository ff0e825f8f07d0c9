/* Whose entries a store serves: the check of what a file says, and identity.json. */
#ifndef COLDKV_STORE_IDENTITY_H
#define COLDKV_STORE_IDENTITY_H

#include "store/state.h"

/* FOREIGN with the field named unless the entry says this store's fingerprint and
 * tokenizer, a namespace (`ns`, or any with NULL) and offsets that equal its token count.
 */
enum ckv_status ckvi_identity_check(const struct ckv_store *store, const char *ns,
                                    const struct ckv_entry *entry,
                                    struct ckv_error *error);

/* Writes identity.json into the fingerprint's folder unless it is there or nothing is
 * known to write. It only explains, so a failure is an event and no more. The admission
 * lock is held. */
void ckvi_identity_write(const struct ckv_store *store, struct ckv_io_dir dir,
                         struct ckvi_events *events);

#endif

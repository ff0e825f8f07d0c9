/*
 * Owns the end of a namespace: all of its entries leave the store.
 *
 * Invariant: other namespaces are not touched, also when they share a folder. Failure
 * story: a file that cannot be removed stays indexed and is reported, after all others
 * were tried.
 */
#include "store/discard.h"

#include "base/log.h"

enum ckv_status ckv_store_invalidate(struct ckv_store *store, const char *ns,
                                     uint64_t *removed_count, struct ckv_error *error)
{
    struct ckvi_ids ids = {0};
    struct ckv_error why;
    uint64_t removed = 0;
    enum ckv_status status;
    enum ckv_status first;
    if (!store)
        return ckv_error_set(error, CKV_INVALID, "no store was given");
    /* What other processes stored meanwhile goes too. */
    first = ckv_store_refresh(store, error);
    status = ckvi_catalog_space_ids(&store->catalog, ckvi_ns_text(ns), &ids, &why);
    if (status != CKV_OK && error)
        *error = why;
    if (status != CKV_OK)
        return status;
    for (size_t i = 0; i < ids.count; i++) {
        status = ckvi_discard(store, ids.items[i], &why);
        if (status == CKV_OK)
            removed++;
        if (status == CKV_OK || status == CKV_NOTFOUND || first != CKV_OK)
            continue;
        first = status;
        if (error)
            *error = why;
    }
    ckvi_ids_deinit(&ids, store->alloc);
    ckvi_log(&store->log, CKV_LOG_INFO, "store.invalidate",
             "%llu entries of one namespace removed", (unsigned long long)removed);
    if (removed_count)
        *removed_count = removed;
    return first;
}

/* Making room under the cap. The admission lock is held. */
#ifndef COLDKV_STORE_EVICT_H
#define COLDKV_STORE_EVICT_H

#include "store/walk.h"

/*
 * Evicts until `need_bytes` more fit under the cap: bad files, then `covered` entries,
 * then the least recently used of the whole directory. FULL, with nothing evicted, when
 * that cannot be enough or when free space would end up below its floor. free_bytes is
 * what the file system has left.
 */
enum ckv_status ckvi_evict_for(struct ckvi_walk *walk, uint64_t need_bytes,
                               const struct ckvi_ids *covered, uint64_t free_bytes,
                               struct ckv_error *error);

/* Evicts until the directory is under the cap, as far as that goes. */
void ckvi_evict_excess(struct ckvi_walk *walk);

#endif

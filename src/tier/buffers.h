/* What a tier keeps alive, in bytes: entries share buffers, each counts once. */
#ifndef COLDKV_TIER_BUFFERS_H
#define COLDKV_TIER_BUFFERS_H

#include "store/map.h"
#include <coldkv/alloc.h>
#include <coldkv/held.h>
#include <coldkv/status.h>
#include <stdint.h>

struct ckvi_buffers {
    struct ckvi_map map;
    uint64_t bytes; /* of all buffers in it */
};

enum ckv_status ckvi_buffers_init(struct ckvi_buffers *buffers,
                                  const struct ckv_alloc *alloc, struct ckv_error *error);
/* Forgets what is left in it. A zeroed one is fine. */
void ckvi_buffers_deinit(struct ckvi_buffers *buffers);

/* All buffers of the entry, or none of them when memory is out. */
enum ckv_status ckvi_buffers_add(struct ckvi_buffers *buffers,
                                 const struct ckv_held *held, struct ckv_error *error);
/* What was added before. */
void ckvi_buffers_remove(struct ckvi_buffers *buffers, const struct ckv_held *held);

#endif

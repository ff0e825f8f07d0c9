/*
 * The inside of a load: destinations for the tensors of an entry, the sink that fills
 * them, and the live caches made of them. For whoever drives a restore by himself.
 */
#ifndef COLDKV_FILE_LOAD_H
#define COLDKV_FILE_LOAD_H

#include <coldkv/lifecycle.h>

struct ckvi_load {
    const struct ckv_alloc *alloc;
    const struct ckv_entry *entry; /* borrowed */
    uint64_t rows;                 /* tokens wanted; 0 = all */
    struct ckv_array *arrays;      /* of all caches, in order */
    size_t *first;                 /* of each cache: its first array */
    size_t array_count;
    size_t cache_count;
    unsigned char *scratch;
};

/* Whether live caches can be made of the entry, cut to `prefix` tokens (0 = all). */
enum ckv_status ckvi_load_check(const struct ckv_entry *entry, uint64_t prefix,
                                struct ckv_error *error);

/* Makes the destinations; load has alloc, entry and rows set. The sink lends them and is
 * valid until deinit. */
enum ckv_status ckvi_load_begin(struct ckvi_load *load, struct ckv_sink *sink,
                                struct ckv_error *error);
/* Everything arrived: makes the caches. out is zeroed; on failure it is again. */
enum ckv_status ckvi_load_finish(const struct ckvi_load *load, struct ckv_loaded *out,
                                 struct ckv_error *error);
/* Releases what is left; a zeroed one is fine. */
void ckvi_load_deinit(struct ckvi_load *load);

#endif

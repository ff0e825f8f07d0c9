/* The names in a folder, collected first and looked at afterwards: a listing's callback
 * must not touch the folder again. */
#ifndef COLDKV_STORE_LISTING_H
#define COLDKV_STORE_LISTING_H

#include <coldkv/alloc.h>
#include <coldkv/io.h>
#include <coldkv/status.h>
#include <stdbool.h>
#include <stddef.h>

struct ckvi_listing {
    const struct ckv_alloc *alloc;
    const char **names; /* count of them, sorted, pointing into text */
    size_t count;
    char *text;
    size_t text_size;
    size_t text_capacity;
};

/* Zeroed before. On failure it is empty again. */
enum ckv_status ckvi_listing_read(struct ckvi_listing *listing,
                                  const struct ckv_alloc *alloc, const struct ckv_io *io,
                                  struct ckv_io_dir dir, struct ckv_error *error);
/* A listing put together by hand: add names, then finish. */
enum ckv_status ckvi_listing_add(struct ckvi_listing *listing, const char *name,
                                 struct ckv_error *error);
enum ckv_status ckvi_listing_finish(struct ckvi_listing *listing,
                                    struct ckv_error *error);
bool ckvi_listing_has(const struct ckvi_listing *listing, const char *name);
/* A zeroed one is fine. */
void ckvi_listing_deinit(struct ckvi_listing *listing);

#endif

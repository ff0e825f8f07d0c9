/*
 * Owns lists of names. Invariant: after finish, names are sorted and point into text.
 * Failure story: out of memory empties the listing; the folder is untouched.
 */
#include "store/listing.h"

#include "base/alloc.h"
#include "base/checked.h"
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 1024

static enum ckv_status make_room(struct ckvi_listing *listing, size_t size,
                                 struct ckv_error *error)
{
    size_t wanted;
    size_t capacity = listing->text_capacity ? listing->text_capacity : FIRST_CAPACITY;
    char *moved;
    if (!ckvi_add_size(listing->text_size, size, &wanted))
        return ckvi_nomem(error, SIZE_MAX, "a listing");
    if (wanted <= listing->text_capacity)
        return CKV_OK;
    while (capacity < wanted) {
        if (!ckvi_mul_size(capacity, 2, &capacity))
            return ckvi_nomem(error, SIZE_MAX, "a listing");
    }
    moved =
        ckvi_regrow(listing->alloc, listing->text, listing->text_capacity, capacity, 1);
    if (!moved)
        return ckvi_nomem(error, capacity, "a listing");
    listing->text = moved;
    listing->text_capacity = capacity;
    return CKV_OK;
}

enum ckv_status ckvi_listing_add(struct ckvi_listing *listing, const char *name,
                                 struct ckv_error *error)
{
    size_t size = strlen(name) + 1;
    enum ckv_status status = make_room(listing, size, error);
    if (status != CKV_OK)
        return status;
    memcpy(listing->text + listing->text_size, name, size);
    listing->text_size += size;
    listing->count++;
    return CKV_OK;
}

static int compare_names(const void *a, const void *b)
{
    const char *const *left = a;
    const char *const *right = b;
    return strcmp(*left, *right);
}

enum ckv_status ckvi_listing_finish(struct ckvi_listing *listing, struct ckv_error *error)
{
    const char *text = listing->text;
    if (listing->count == 0)
        return CKV_OK;
    listing->names = ckvi_zalloc(listing->alloc, listing->count, sizeof(char *));
    if (!listing->names)
        return ckvi_nomem(error, listing->count * sizeof(char *), "a listing");
    for (size_t i = 0; i < listing->count; i++) {
        listing->names[i] = text;
        text += strlen(text) + 1;
    }
    qsort(listing->names, listing->count, sizeof(char *), compare_names);
    return CKV_OK;
}

bool ckvi_listing_has(const struct ckvi_listing *listing, const char *name)
{
    if (listing->count == 0)
        return false;
    return bsearch(&name, listing->names, listing->count, sizeof(char *),
                   compare_names) != NULL;
}

struct reading {
    struct ckvi_listing *listing;
    struct ckv_error *error;
    enum ckv_status status;
};

static enum ckv_status take_name(void *ctx, const char *name)
{
    struct reading *reading = ctx;
    reading->status = ckvi_listing_add(reading->listing, name, reading->error);
    return reading->status;
}

enum ckv_status ckvi_listing_read(struct ckvi_listing *listing,
                                  const struct ckv_alloc *alloc, const struct ckv_io *io,
                                  struct ckv_io_dir dir, struct ckv_error *error)
{
    struct ckv_error own;
    struct reading reading = {listing, &own, CKV_OK};
    enum ckv_status status;
    ckv_error_clear(&own);
    listing->alloc = alloc;
    status = ckv_io_list(io, dir, take_name, &reading, error);
    if (reading.status != CKV_OK) {
        status = reading.status;
        if (error)
            *error = own;
    }
    if (status == CKV_OK)
        status = ckvi_listing_finish(listing, error);
    if (status != CKV_OK)
        ckvi_listing_deinit(listing);
    return status;
}

void ckvi_listing_deinit(struct ckvi_listing *listing)
{
    if (!listing->alloc)
        return;
    if (listing->names)
        ckvi_free(listing->alloc, listing->names, listing->count, sizeof(char *));
    if (listing->text)
        ckvi_free(listing->alloc, listing->text, listing->text_capacity, 1);
    *listing = (struct ckvi_listing){0};
}

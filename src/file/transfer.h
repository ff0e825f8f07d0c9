/* Calling the callbacks of sources and sinks, with their answers checked. */
#ifndef COLDKV_FILE_TRANSFER_H
#define COLDKV_FILE_TRANSFER_H

#include <coldkv/transfer.h>

/* Which bytes of which tensor. */
struct ckvi_window {
    size_t cache;
    size_t tensor;
    uint64_t offset;
};

/* ENGINE when the source answers OK without lending 1..wanted bytes. A failure's text
 * begins with the tensor, and is there even when the callback left it empty. */
enum ckv_status ckvi_source_view(const struct ckv_source *source,
                                 struct ckvi_window window, size_t wanted,
                                 const void **data, size_t *size,
                                 struct ckv_error *error);
enum ckv_status ckvi_source_done(const struct ckv_source *source,
                                 struct ckvi_window window, size_t size,
                                 struct ckv_error *error);
enum ckv_status ckvi_sink_lend(const struct ckv_sink *sink, struct ckvi_window window,
                               size_t wanted, void **data, size_t *size,
                               struct ckv_error *error);
enum ckv_status ckvi_sink_took(const struct ckv_sink *sink, struct ckvi_window window,
                               size_t size, struct ckv_error *error);

/* The number of the tensor among all of the entry's. */
size_t ckvi_tensor_number(const struct ckv_entry *entry, size_t cache, size_t tensor);

#endif

/*
 * Sources and sinks: how tensor bytes get out of an engine and into one. Both lend
 * windows of memory, so that a contiguous tensor, rows scattered in a larger buffer and a
 * staging buffer in front of device memory are served without a copy of the whole.
 *
 * `cache` and `tensor` are the numbers in the entry; offsets and sizes are bytes of that
 * tensor in row-major order. Callbacks return a status; anything but OK ends the
 * transfer.
 */
#ifndef COLDKV_TRANSFER_H
#define COLDKV_TRANSFER_H

#include <coldkv/entry.h>
#include <coldkv/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Where the bytes of an entry come from when it is stored. */
struct ckv_source {
    void *ctx;
    /** Whether view and done may be called on a thread other than the one that gave the
     *  source; false = only on the calling thread. */
    bool any_thread;
    /**
     * Lends bytes starting at `offset`, at least 1 and at most `wanted`, valid and
     * unchanged until done is called for them (or the next view when done is NULL).
     */
    enum ckv_status (*view)(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                            size_t wanted, const void **data, size_t *size,
                            struct ckv_error *error);
    /** Optional: the bytes are not needed any more. */
    enum ckv_status (*done)(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                            size_t size, struct ckv_error *error);
};

/** Where the bytes of an entry go when it is restored. */
struct ckv_sink {
    void *ctx;
    /**
     * Lends memory for bytes starting at `offset`: at least 1 and at most `wanted`. The
     * reader fills it completely, then calls took. Called on the thread that drives the
     * restore.
     */
    enum ckv_status (*lend)(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                            size_t wanted, void **data, size_t *size,
                            struct ckv_error *error);
    /** Optional: the lent bytes are filled. They are not verified yet: nothing may be
     * used before the restore's finish said OK. */
    enum ckv_status (*took)(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                            size_t size, struct ckv_error *error);
    /** Optional: the restore failed or was aborted; forget everything that was lent. */
    void (*drop)(void *ctx);
};

/** A source over plain memory: tensors[i] are the bytes of the i-th tensor of the entry,
 *  counted across its caches in order, contiguous. Borrowed until the transfer ends. */
struct ckv_memory_source {
    const struct ckv_entry *entry;
    const void *const *tensors;
};
/** Makes `out` read from `memory`, which must outlive it. any_thread is true. */
CKV_API void ckv_source_from_memory(const struct ckv_memory_source *memory,
                                    struct ckv_source *out);

/** A sink into plain memory; tensors[i] as above, each at least as large as its tensor.
 */
struct ckv_memory_sink {
    const struct ckv_entry *entry;
    void *const *tensors;
};
CKV_API void ckv_sink_to_memory(const struct ckv_memory_sink *memory,
                                struct ckv_sink *out);

#ifdef __cplusplus
}
#endif

#endif

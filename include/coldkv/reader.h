/*
 * The reader: one file, nothing in it trusted. Opening reads and checks prefix and
 * header; a restore then is a transaction into a sink:
 *
 *     begin -> step, step, ... -> finish      or abort at any time
 *
 * Nothing that a sink received is valid before finish said OK. On failure or abort the
 * sink's drop is called once.
 */
#ifndef COLDKV_READER_H
#define COLDKV_READER_H

#include <coldkv/alloc.h>
#include <coldkv/entry.h>
#include <coldkv/header.h>
#include <coldkv/io.h>
#include <coldkv/status.h>
#include <coldkv/transfer.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ckv_reader;

/**
 * Opens `name` in `dir` and reads its header. Statuses: NOTFOUND (no such file), FOREIGN
 * (other magic), VERSION, CORRUPT (header or size wrong), TOOBIG, IO … Only CORRUPT and
 * VERSION speak of the contents; everything else says nothing about the file.
 * `io` must outlive the reader, `dir` need not. alloc NULL = default.
 */
CKV_API enum ckv_status ckv_reader_open(const struct ckv_io *io, struct ckv_io_dir dir,
                                        const char *name, const struct ckv_alloc *alloc,
                                        struct ckv_reader **out,
                                        struct ckv_error *error) CKV_WARN_UNUSED;
/** NULL is fine. Ends the reader's header and entry. No restore may be running. */
CKV_API void ckv_reader_close(struct ckv_reader *reader);

/** The header; valid until close. */
CKV_API const struct ckv_header *ckv_reader_header(const struct ckv_reader *reader);
/** The file as it was at open. */
CKV_API const struct ckv_io_stat *ckv_reader_stat(const struct ckv_reader *reader);

/** Updates the file's modification time through the open file (recency for eviction). */
CKV_API enum ckv_status ckv_reader_touch(struct ckv_reader *reader, int64_t mtime_ns,
                                         struct ckv_error *error) CKV_WARN_UNUSED;

/**
 * Remembers that this process verified a whole file. It holds while device, inode, size
 * and change time stay the same; all zero = nothing remembered. A plain value, no
 * resources.
 */
struct ckv_verified {
    uint64_t device;
    uint64_t inode;
    uint64_t size_bytes;
    int64_t ctime_ns;
};

/** Whether `verified` speaks of the file as it was when the reader opened it. */
CKV_API bool ckv_verified_holds(const struct ckv_verified *verified,
                                const struct ckv_reader *reader);
/** Call it after a finished, verified restore of everything: remembers the file, or
 * nothing when it changed since it was opened. */
CKV_API void ckv_verified_set(struct ckv_verified *verified,
                              const struct ckv_reader *reader);
/** ckv_reader_touch that keeps a memory which held just before: our own touch changes
 *  nothing in the file. Anybody else's touch ends it. */
CKV_API enum ckv_status ckv_verified_touch(struct ckv_verified *verified,
                                           struct ckv_reader *reader, int64_t mtime_ns,
                                           struct ckv_error *error) CKV_WARN_UNUSED;

struct ckv_restore_options {
    size_t size; /**< sizeof this struct; set by ckv_restore_options_init */
    bool verify; /**< default true; ignored (true) when the entry has `state` caches */
    /** Without verify: only the first so many rows of each KV head are read of caches
     * whose rows are tokens in order (kv, qkv, turboquant); the sink is asked for just
     * those bytes, at their places in the whole tensor. 0 = everything. */
    uint64_t prefix_rows;
    size_t chunk_bytes; /**< bytes per step; 0 = CKV_CHUNK_BYTES_DEFAULT */
};

CKV_API void ckv_restore_options_init(struct ckv_restore_options *options);

struct ckv_restore;

/** Starts a restore of all tensors into `sink`, which is borrowed until finish or abort.
 *  options NULL = defaults. One restore belongs to one thread at a time. */
CKV_API enum ckv_status ckv_restore_begin(struct ckv_reader *reader,
                                          const struct ckv_sink *sink,
                                          const struct ckv_restore_options *options,
                                          struct ckv_restore **out,
                                          struct ckv_error *error) CKV_WARN_UNUSED;

/** Reads and hashes at most one chunk. *more = false: only finish is left. After a
 * failure only abort is allowed. CORRUPT names the tensor whose hash differs. */
CKV_API enum ckv_status ckv_restore_step(struct ckv_restore *restore, bool *more,
                                         struct ckv_error *error) CKV_WARN_UNUSED;

/** Bytes of tensors read so far. */
CKV_API uint64_t ckv_restore_done_bytes(const struct ckv_restore *restore);

/** Runs the steps that are left and ends the restore; on failure the sink was dropped.
 *  restore must not be used afterwards in either case. */
CKV_API enum ckv_status ckv_restore_finish(struct ckv_restore *restore,
                                           struct ckv_error *error) CKV_WARN_UNUSED;

/** Drops the sink and ends the restore. NULL is fine. */
CKV_API void ckv_restore_abort(struct ckv_restore *restore);

/** Called between chunks of a verification with bytes done and in all; anything but OK
 *  ends it with that status. */
typedef enum ckv_status (*ckv_progress_fn)(void *ctx, uint64_t done_bytes,
                                           uint64_t total_bytes);

/**
 * Reads every tensor and compares its hash, keeping nothing. progress may be NULL.
 * *nonzero_padding (may be NULL) tells whether bytes that the format leaves unused hold
 * something: legal, but no writer does it.
 */
CKV_API enum ckv_status ckv_reader_verify(struct ckv_reader *reader,
                                          ckv_progress_fn progress, void *progress_ctx,
                                          bool *nonzero_padding,
                                          struct ckv_error *error) CKV_WARN_UNUSED;

/** A source that reads tensors out of `reader` (for repacking). `buffer` of `size` bytes
 *  (at least 4096) is lent by the caller and used for the views; any_thread is false.
 *  *ctx_storage must outlive the source. Bytes are not verified: run ckv_reader_verify
 *  before. */
struct ckv_reader_source {
    struct ckv_reader *reader;
    void *buffer;
    size_t size;
};
CKV_API void ckv_source_from_reader(struct ckv_reader_source *storage,
                                    struct ckv_source *out);

#ifdef __cplusplus
}
#endif

#endif

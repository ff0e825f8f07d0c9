/*
 * The stepwise writer: one entry to one file, durably, in bounded steps. The blocking
 * save, a background worker and an event loop all drive the same steps:
 *
 *     begin (nothing on disk) -> step, step, ... -> commit      or abort at any time
 *
 * Commit point: the folder's sync after the rename. Before it the entry is not durable
 * and nobody may be told so. A failed data sync is final: the temporary is removed and
 * never synced again.
 */
#ifndef COLDKV_WRITER_H
#define COLDKV_WRITER_H

#include <coldkv/alloc.h>
#include <coldkv/clock.h>
#include <coldkv/entry.h>
#include <coldkv/io.h>
#include <coldkv/status.h>
#include <coldkv/transfer.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes copied and hashed per step unless the options say otherwise. */
#define CKV_CHUNK_BYTES_DEFAULT (4u * 1024u * 1024u)

enum ckv_writer_step {
    CKV_STEP_OPEN = 1,     /**< the temporary is opened (the store: admission) */
    CKV_STEP_COPY = 2,     /**< at most one chunk is copied, hashed and written */
    CKV_STEP_HEADER = 3,   /**< prefix, header and zero fill are written */
    CKV_STEP_SYNC = 4,     /**< data sync: takes what the disk takes */
    CKV_STEP_PUBLISH = 5,  /**< rename to the final name */
    CKV_STEP_SYNC_DIR = 6, /**< folder sync: the commit point */
    CKV_STEP_DONE = 7,     /**< nothing left but commit */
};

/** A temporary file, opened exclusively, locked by its writer. */
struct ckv_temporary {
    struct ckv_io_file file;
    char name[CKV_IO_NAME_MAX + 1];
};

/** Opens a temporary in the writer's folder for a file of `file_size` bytes. */
typedef enum ckv_status (*ckv_open_temporary_fn)(void *ctx, uint64_t file_size,
                                                 struct ckv_temporary *out,
                                                 struct ckv_error *error);

/** Asked before every step, the first and the last included; may wait. Its failure never
 *  stops a write. */
typedef enum ckv_status (*ckv_gate_fn)(void *ctx, enum ckv_writer_step next);

struct ckv_writer_options {
    size_t size; /**< sizeof this struct; set by ckv_writer_options_init */
    const struct ckv_alloc *alloc; /**< NULL = ckv_alloc_default() */
    const struct ckv_clock *clock; /**< for createdAt; NULL = ckv_clock_system() */
    uint64_t max_file_bytes; /**< larger is refused at begin with TOOBIG; 0 = no limit */
    size_t chunk_bytes;      /**< 0 = CKV_CHUNK_BYTES_DEFAULT */
    uint64_t sync_every_bytes; /**< data sync after so many bytes; 0 = only at the end */
    bool replace;              /**< an existing final name is replaced, else EXISTS */
    ckv_gate_fn gate;
    void *gate_ctx;
    ckv_open_temporary_fn
        open_temporary; /**< NULL = ".<uuid>.part", created and locked */
    void *open_temporary_ctx;
};

CKV_API void ckv_writer_options_init(struct ckv_writer_options *options);

struct ckv_writer;

/**
 * Plans the file: validates the entry, lays it out, fixes its size. Nothing touches the
 * disk. `dir`, `entry` and `source` are borrowed and must stay valid and unchanged until
 * commit or abort; the writer keeps own copies of the header data it changes, the
 * caller's entry is only read. options NULL = defaults. On failure *out is NULL.
 * One writer belongs to one thread at a time.
 */
CKV_API enum ckv_status ckv_writer_begin(const struct ckv_io *io, struct ckv_io_dir dir,
                                         const char *name, const struct ckv_entry *entry,
                                         const struct ckv_source *source,
                                         const struct ckv_writer_options *options,
                                         struct ckv_writer **out,
                                         struct ckv_error *error) CKV_WARN_UNUSED;

/** Size of the finished file, known from begin on. */
CKV_API uint64_t ckv_writer_file_bytes(const struct ckv_writer *writer);
/** Bytes of tensors written so far. */
CKV_API uint64_t ckv_writer_done_bytes(const struct ckv_writer *writer);
/** What the next step will be. */
CKV_API enum ckv_writer_step ckv_writer_next(const struct ckv_writer *writer);

/** Asks the gate, then does one step. After a failure only abort is allowed. */
CKV_API enum ckv_status ckv_writer_step(struct ckv_writer *writer,
                                        struct ckv_error *error) CKV_WARN_UNUSED;

/**
 * Runs the steps that are left and ends the writer. When it fails the writer is ended
 * too and its temporary removed. writer must not be used afterwards in either case.
 */
CKV_API enum ckv_status ckv_writer_commit(struct ckv_writer *writer,
                                          struct ckv_error *error) CKV_WARN_UNUSED;

/** Ends the writer and removes its temporary. NULL is fine. After PUBLISH the published
 *  file stays (it is complete), but it was never reported durable. */
CKV_API void ckv_writer_abort(struct ckv_writer *writer);

/** begin + commit. */
CKV_API enum ckv_status ckv_save(const struct ckv_io *io, struct ckv_io_dir dir,
                                 const char *name, const struct ckv_entry *entry,
                                 const struct ckv_source *source,
                                 const struct ckv_writer_options *options,
                                 struct ckv_error *error) CKV_WARN_UNUSED;

/** Creates `.<uuid>.part` in dir: exclusively, mode 0600, locked, and makes sure it was
 * not swept between the two. What a writer does when its options name no other way. */
CKV_API enum ckv_status ckv_temporary_create(const struct ckv_io *io,
                                             struct ckv_io_dir dir,
                                             struct ckv_temporary *out,
                                             struct ckv_error *error) CKV_WARN_UNUSED;

#define CKV_UUID_TEXT_SIZE 37
/** A random (version 4) UUID as text with terminator. */
CKV_API enum ckv_status ckv_uuid_create(const struct ckv_io *io,
                                        char text[CKV_UUID_TEXT_SIZE],
                                        struct ckv_error *error) CKV_WARN_UNUSED;

#ifdef __cplusplus
}
#endif

#endif

/*
 * Saving a list of live caches to a file and loading it back.
 */
#ifndef COLDKV_LIFECYCLE_H
#define COLDKV_LIFECYCLE_H

#include <coldkv/cache.h>
#include <coldkv/entry.h>
#include <coldkv/io.h>
#include <coldkv/reader.h>
#include <coldkv/status.h>
#include <coldkv/transfer.h>
#include <coldkv/writer.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ckv_snapshot;

/**
 * Describes a list of caches as an entry with a source, sharing their buffers: what the
 * caches do afterwards never changes it. tokens are copied. INVALID for an empty or
 * unknown member. The source may be read from any thread.
 */
CKV_API enum ckv_status ckv_snapshot_create(const struct ckv_alloc *alloc,
                                            struct ckv_live_cache *const *caches,
                                            size_t cache_count, const uint32_t *tokens,
                                            size_t token_count, struct ckv_snapshot **out,
                                            struct ckv_error *error) CKV_WARN_UNUSED;
/** NULL is fine. */
CKV_API void ckv_snapshot_destroy(struct ckv_snapshot *snapshot);
/** Both are valid as long as the snapshot. Metadata is the caller's to fill in a copy of
 * the entry. */
CKV_API const struct ckv_entry *ckv_snapshot_entry(const struct ckv_snapshot *snapshot);
CKV_API const struct ckv_source *ckv_snapshot_source(const struct ckv_snapshot *snapshot);

/** What must hold for a file to be loaded; NULL members are not compared. An empty string
 * is compared; a value that the file lacks counts as different. */
struct ckv_load_options {
    size_t size; /**< sizeof this struct; set by ckv_load_options_init */
    const struct ckv_alloc *alloc;
    const char *model_id;
    const char *fingerprint;
    const char *tokenizer_hash;
    const char *ns;
    uint64_t
        cache_count; /**< donor caches that the model has; CKV_LOAD_ANY = any number */
    bool verify;     /**< default true; false allows prefix-only reads */
    uint64_t prefix; /**< tokens wanted; 0 = all. Caches are cut to it */
    /** Where the caller remembers, per file, that it was verified (NULL = nowhere):
     * filled by a load that verified everything; while it holds, a prefix is read alone
     * also with verify = true. */
    struct ckv_verified *verified;
    size_t chunk_bytes; /**< 0 = default */
};

#define CKV_LOAD_ANY UINT64_MAX

CKV_API void ckv_load_options_init(struct ckv_load_options *options);

struct ckv_loaded {
    struct ckv_live_cache **caches; /**< in layer order */
    size_t cache_count;
    uint32_t *tokens; /**< cut to the prefix */
    size_t token_count;
    uint64_t read_bytes;           /**< tensor bytes read from the file */
    const struct ckv_alloc *alloc; /* private */
};

/**
 * Loads a file into caches that go on: kv gets step capacity with at least one free row,
 * the other kinds keep their exact shapes. With a prefix, and verify = false or a file
 * that is remembered as verified, only the rows of the prefix are read of kv, qkv and
 * turboquant caches; otherwise every tensor is read and verified, and only the prefix is
 * kept. INVALID when the prefix is longer than the entry, REFUSED when it is below the
 * entry's floor; FOREIGN names the expectation that differs or the cached layers' count;
 * UNSUPPORTED for the kind `state`. On failure nothing is kept.
 */
CKV_API enum ckv_status ckv_load(const struct ckv_io *io, struct ckv_io_dir dir,
                                 const char *name, const struct ckv_load_options *options,
                                 struct ckv_loaded *out,
                                 struct ckv_error *error) CKV_WARN_UNUSED;
/** Releases everything in it and zeroes it. */
CKV_API void ckv_loaded_deinit(struct ckv_loaded *loaded);

#ifdef __cplusplus
}
#endif

#endif

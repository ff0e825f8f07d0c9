/*
 * The store: one directory of entries, shared by namespaces, models and processes. The
 * files are the database; the index in memory is built from their headers.
 *
 *     <dir>/.lock
 *     <dir>/<fingerprint>/identity.json
 *     <dir>/<fingerprint>/<namespace hash, or "base">/<uuid>.mlxkv
 *
 * The rule behind everything: a fault of the store becomes "no hit" or "not stored",
 * never a failed request and never a wrong token.
 *
 * A store is thread safe. It holds no lock while it reads or writes tensors or calls
 * back. It is not fork-safe: open it after the fork.
 */
#ifndef COLDKV_STORE_H
#define COLDKV_STORE_H

#include <coldkv/alloc.h>
#include <coldkv/clock.h>
#include <coldkv/entry.h>
#include <coldkv/io.h>
#include <coldkv/log.h>
#include <coldkv/status.h>
#include <coldkv/transfer.h>
#include <coldkv/writer.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** In an option where 0 means something: take the documented default. */
#define CKV_DEFAULT UINT64_MAX

/** Longest fingerprint; it must match [A-Za-z0-9._-]{1,128} and not begin with a dot. */
#define CKV_FINGERPRINT_MAX 128

/** Who may read what: entries are served only where all of these are equal. Borrowed
 *  during open; the store keeps copies. */
struct ckv_store_identity {
    const char *fingerprint;    /**< names weights, layout, engine: a folder name */
    const char *tokenizer_hash; /**< opaque */
    const char *model_id;       /**< for people; written, not compared */
    const char *description; /**< optional canonical JSON behind the fingerprint; kept as
                                  identity.json */
};

struct ckv_store_options {
    size_t size;             /**< sizeof this struct; set by ckv_store_options_init */
    const struct ckv_io *io; /**< NULL = ckv_io_posix() */
    const struct ckv_clock *clock; /**< NULL = ckv_clock_system() */
    const struct ckv_alloc *alloc; /**< NULL = ckv_alloc_default() */
    struct ckv_log log;            /**< copied */
    /** Most bytes on disk of everything under the directory, all models and processes.
     *  CKV_DEFAULT = min(32 GiB, 20 % of (free space + what is stored)). */
    uint64_t cap_bytes;
    /** Stores are refused below this much free space.
     *  CKV_DEFAULT = max(2 GiB, 5 % of the file system). */
    uint64_t free_floor_bytes;
    bool init;             /**< accept a directory that is neither empty nor a store */
    bool allow_shared_dir; /**< accept a directory owned or writable by others */
    bool
        single_process; /**< accept a file system without locks; no one else may use it */
};

CKV_API void ckv_store_options_init(struct ckv_store_options *options);

struct ckv_store;

/**
 * Opens the directory `path` (made, mode 0700, when missing; its parent must exist),
 * sweeps what dead writers left, enforces the cap and indexes the entries of this
 * identity by reading headers only. options NULL = defaults. DENIED with the reason when
 * a trust rule refuses the directory, UNSUPPORTED when it cannot be locked, AGAIN when
 * its lock stays taken for 5 s. A bad file inside never makes open fail.
 */
CKV_API enum ckv_status ckv_store_open(const char *path,
                                       const struct ckv_store_identity *identity,
                                       const struct ckv_store_options *options,
                                       struct ckv_store **out,
                                       struct ckv_error *error) CKV_WARN_UNUSED;
/** NULL is fine. Nothing may be running in it. */
CKV_API void ckv_store_close(struct ckv_store *store);

/** Sees what other processes added or removed: re-lists folders that changed since the
 *  last listing. Cheap when nothing did. Call it at request boundaries. */
CKV_API enum ckv_status ckv_store_refresh(struct ckv_store *store,
                                          struct ckv_error *error) CKV_WARN_UNUSED;

/** One entry that can serve a prompt. */
struct ckv_candidate {
    uint64_t id;           /**< for set_aside and remove; valid in this process */
    uint64_t prefix;       /**< tokens that can be reused, <= prompt length - 1 */
    uint64_t token_count;  /**< tokens of the entry */
    uint64_t tensor_bytes; /**< what a full restore reads */
};

/** Candidates for a prompt, best first (see ckv_index_find). Memory only: reads no file,
 *  allocates nothing. ns may be "" (or NULL, the same). *count = 0 is a miss. */
CKV_API enum ckv_status ckv_store_find(struct ckv_store *store, const char *ns,
                                       const uint32_t *prompt, size_t prompt_length,
                                       struct ckv_candidate *out, size_t capacity,
                                       size_t *count,
                                       struct ckv_error *error) CKV_WARN_UNUSED;

/** What an engine offers for a restore. */
struct ckv_restore_target {
    void *ctx;
    /** An entry's header is read and its identity holds: gives a sink that can take all
     * of its tensors. REFUSED (kind or size not for this engine): the next one is tried.
     *  Called at most once per entry; after it either accept or the sink's drop follows.
     */
    enum ckv_status (*prepare)(void *ctx, const struct ckv_entry *entry, uint64_t prefix,
                               struct ckv_sink *sink, struct ckv_error *error);
    /** Optional: everything was read and verified; takes it over. CORRUPT: the entry is
     * set aside for good and the next one tried. Any other failure: the next one is
     * tried. */
    enum ckv_status (*accept)(void *ctx, const struct ckv_entry *entry, uint64_t prefix,
                              struct ckv_error *error);
    /** The sink can do with the first `prefix` rows of kv, qkv and turboquant caches: of
     * a file that this process verified whole before, and that did not change since, only
     *  those are read. */
    bool prefix_only;
};

struct ckv_restored {
    uint64_t id;
    uint64_t prefix;      /**< tokens to reuse: cut the restored caches to it */
    uint64_t token_count; /**< tokens of the entry that was restored */
    uint64_t read_bytes;  /**< tensor bytes read */
    int64_t elapsed_ns;
    uint32_t tried; /**< entries opened, this one included */
};

/**
 * Restores the best entry for a prompt: find, open, compare identity and tokens with what
 * was read, touch, read and verify all, accept. Tries at most 3 entries; proven
 * corruption sets an entry aside, everything else leaves it alone. NOTFOUND = miss (with
 * the last reason in error); the caller then evaluates the prompt.
 */
CKV_API enum ckv_status ckv_store_restore(struct ckv_store *store, const char *ns,
                                          const uint32_t *prompt, size_t prompt_length,
                                          const struct ckv_restore_target *target,
                                          struct ckv_restored *out,
                                          struct ckv_error *error) CKV_WARN_UNUSED;

struct ckv_loaded;

/**
 * ckv_store_restore into live caches, cut to the reused prefix (see <coldkv/lifecycle.h>;
 * `loaded` is released with ckv_loaded_deinit). cache_count is how many caches the model
 * has, CKV_LOAD_ANY when it does not matter; entries with another number are passed over.
 * alloc NULL = the store's. restored may be NULL.
 */
CKV_API enum ckv_status ckv_store_load(
    struct ckv_store *store, const char *ns, const uint32_t *prompt, size_t prompt_length,
    uint64_t cache_count, const struct ckv_alloc *alloc, struct ckv_loaded *loaded,
    struct ckv_restored *restored, struct ckv_error *error) CKV_WARN_UNUSED;

/** Whether a durable entry already serves exactly these tokens and its file still exists.
 */
CKV_API bool ckv_store_covers(struct ckv_store *store, const char *ns,
                              const uint32_t *tokens, size_t token_count);

struct ckv_put_options {
    size_t size;      /**< sizeof this struct; set by ckv_put_options_init */
    ckv_gate_fn gate; /**< asked before every step; NULL = none */
    void *gate_ctx;
    size_t chunk_bytes;        /**< 0 = default */
    uint64_t sync_every_bytes; /**< 0 = one data sync at the end */
};

CKV_API void ckv_put_options_init(struct ckv_put_options *options);

struct ckv_stored {
    uint64_t id;
    uint64_t file_bytes;
    uint64_t written_bytes;    /**< 0 when it was durable already */
    uint32_t superseded_count; /**< entries that this one covers and that were removed */
    int64_t elapsed_ns;
};

struct ckv_put;

/**
 * Begins to store an entry. The caller fills tokens and caches; metadata and createdAt
 * are the store's. entry and source are borrowed until commit or abort. Refused here,
 * before anything is on disk: CORRUPT/FOREIGN/INVALID (the entry breaks a rule), FULL
 * (larger than the cap). Admission (room under cap and floor, eviction) happens in the
 * first step and may answer FULL, AGAIN or NOSPACE there. options NULL = defaults.
 */
CKV_API enum ckv_status ckv_put_begin(struct ckv_store *store, const char *ns,
                                      const struct ckv_entry *entry,
                                      const struct ckv_source *source,
                                      const struct ckv_put_options *options,
                                      struct ckv_put **out,
                                      struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API enum ckv_writer_step ckv_put_next(const struct ckv_put *put);
CKV_API enum ckv_status ckv_put_step(struct ckv_put *put,
                                     struct ckv_error *error) CKV_WARN_UNUSED;
/** Runs what is left; durable when OK. Ends the put in either case. out may be NULL. */
CKV_API enum ckv_status ckv_put_commit(struct ckv_put *put, struct ckv_stored *out,
                                       struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API void ckv_put_abort(struct ckv_put *put);

/** begin + commit. Does nothing (written_bytes 0) when the same tokens are durable. */
CKV_API enum ckv_status ckv_store_put(struct ckv_store *store, const char *ns,
                                      const struct ckv_entry *entry,
                                      const struct ckv_source *source,
                                      const struct ckv_put_options *options,
                                      struct ckv_stored *out,
                                      struct ckv_error *error) CKV_WARN_UNUSED;

/** Renames an entry to .bad: never offered again, evicted first, removed after 7 days. */
CKV_API enum ckv_status ckv_store_set_aside(struct ckv_store *store, uint64_t id,
                                            const char *reason,
                                            struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API enum ckv_status ckv_store_remove(struct ckv_store *store, uint64_t id,
                                         struct ckv_error *error) CKV_WARN_UNUSED;
/** Removes all entries of a namespace of this identity, those that other processes stored
 * before the call too; puts that run are their caller's to abort first. What cannot be
 * removed is reported after all others were tried. removed_count may be NULL. */
CKV_API enum ckv_status ckv_store_invalidate(struct ckv_store *store, const char *ns,
                                             uint64_t *removed_count,
                                             struct ckv_error *error) CKV_WARN_UNUSED;

/** An entry that serves exactly these tokens was used from memory: most recently used
 * from now on, for all processes. Does nothing when there is none. */
CKV_API void ckv_store_touch(struct ckv_store *store, const char *ns,
                             const uint32_t *tokens, size_t token_count);

struct ckv_store_stats {
    uint64_t entries;               /**< of this identity, all namespaces */
    uint64_t longest_prefix_tokens; /**< the longest of them */
    uint64_t used_bytes; /**< everything under the directory, at the last look */
    uint64_t cap_bytes;
    uint64_t free_floor_bytes;
    uint64_t restores;
    uint64_t restored_bytes;
    uint64_t partial_restores; /**< of these: only a prefix's rows were read */
    int64_t restore_last_ns;
    int64_t restore_total_ns;  /**< of all restores that came through */
    uint64_t misses;           /**< restores that found nothing */
    uint64_t restore_failures; /**< candidates that could not be used, for any reason */
    uint64_t puts;
    uint64_t written_bytes;
    int64_t put_total_ns; /**< of all puts that wrote, gate and pace included */
    uint64_t put_failures;
    uint64_t refused_full; /**< of these: no room under cap or floor */
    uint64_t superseded;
    uint64_t evicted;
    uint64_t set_aside;
    uint64_t foreign; /**< files seen and left alone */
    uint64_t swept;   /**< temporaries of dead writers removed */
    const char *io_name;
};

CKV_API void ckv_store_get_stats(struct ckv_store *store, struct ckv_store_stats *out);

#ifdef __cplusplus
}
#endif

#endif

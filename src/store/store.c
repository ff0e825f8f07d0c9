/*
 * Owns a store's life: options, open, close.
 *
 * Invariant: what open returns has passed the trust rules, holds the limits in bytes and
 * is under its cap. Failure story: a half-built store is closed like a whole one; what
 * open made on the disk by then (directory, .lock, folder) stays and is accepted next
 * time.
 */
#include "store/admission.h"
#include "store/names.h"
#include "store/scan.h"
#include "store/trust.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "file/options.h"
#include <inttypes.h>
#include <string.h>

void ckv_store_options_init(struct ckv_store_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
    options->cap_bytes = CKV_DEFAULT;
    options->free_floor_bytes = CKV_DEFAULT;
}

void ckv_store_close(struct ckv_store *store)
{
    if (!store)
        return;
    ckvi_catalog_deinit(&store->catalog);
    ckv_io_close_dir(store->io, &store->root);
    if (store->mutex_ready)
        (void)pthread_mutex_destroy(&store->admission_mu);
    ckvi_strfree(store->alloc, store->path);
    ckvi_strfree(store->alloc, store->fingerprint);
    ckvi_strfree(store->alloc, store->tokenizer_hash);
    ckvi_strfree(store->alloc, store->model_id);
    ckvi_strfree(store->alloc, store->description);
    CKVI_DELETE(store->alloc, store);
}

static enum ckv_status check_arguments(const char *path,
                                       const struct ckv_store_identity *identity,
                                       struct ckv_error *error)
{
    if (!path || path[0] == '\0')
        return ckv_error_set(error, CKV_INVALID, "no directory was given for the store");
    if (!identity || !identity->tokenizer_hash)
        return ckv_error_set(error, CKV_INVALID,
                             "a store needs an identity: fingerprint and tokenizer hash");
    if (!ckvi_fingerprint_valid(identity->fingerprint))
        return ckv_error_set(error, CKV_INVALID,
                             "a fingerprint must match [A-Za-z0-9._-]{1,%d} and not "
                             "begin with a dot",
                             CKV_FINGERPRINT_MAX);
    return CKV_OK;
}

/* A copy; NULL stays NULL. */
static bool copy_text(const struct ckv_store *store, const char *from, char **to)
{
    if (from)
        *to = ckvi_strdup(store->alloc, from);
    return !from || *to;
}

static enum ckv_status fill_store(struct ckv_store *store, const char *path,
                                  const struct ckv_store_identity *identity,
                                  struct ckv_error *error)
{
    bool copied = copy_text(store, path, &store->path) &&
                  copy_text(store, identity->fingerprint, &store->fingerprint) &&
                  copy_text(store, identity->tokenizer_hash, &store->tokenizer_hash) &&
                  copy_text(store, identity->model_id, &store->model_id) &&
                  copy_text(store, identity->description, &store->description);
    if (!copied)
        return ckvi_nomem(error, strlen(path), "a store");
    if (pthread_mutex_init(&store->admission_mu, NULL) != 0)
        return ckv_error_set(error, CKV_NOMEM, "no mutex for the store");
    store->mutex_ready = true;
    store->uid = store->io->effective_uid(store->io->ctx);
    return ckvi_catalog_init(&store->catalog, store->alloc, error);
}

/* The folder that a path's last component is in, "." and "/" included. */
static char *parent_path(const struct ckv_store *store)
{
    char *path = ckvi_strdup(store->alloc, store->path);
    char *parent = NULL;
    size_t size;
    if (!path)
        return NULL;
    size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    while (size > 0 && path[size - 1] != '/')
        size--;
    while (size > 1 && path[size - 1] == '/')
        size--;
    path[size] = '\0';
    parent = ckvi_strdup(store->alloc, size > 0 ? path : ".");
    /* The copy was cut, so it cannot say its own size any more. */
    ckvi_free(store->alloc, path, strlen(store->path) + 1, 1);
    return parent;
}

/* Makes the name of a new directory durable. A parent that may not be read keeps its own
 * time; the entries in the store are synced all the same. */
static void sync_parent(const struct ckv_store *store)
{
    char *parent = parent_path(store);
    struct ckv_io_dir dir;
    struct ckv_error error;
    enum ckv_status status;
    if (!parent)
        return;
    status = ckv_io_open_root(store->io, parent, false, NULL, &dir, &error);
    if (status == CKV_OK)
        status = ckv_io_sync_dir(store->io, dir, &error);
    ckv_io_close_dir(store->io, &dir);
    if (status != CKV_OK && status != CKV_UNSUPPORTED)
        ckvi_log(&store->log, CKV_LOG_WARN, "store.sync_failed",
                 "%s may be lost in a power cut: %s", store->path, error.text);
    ckvi_strfree(store->alloc, parent);
}

static enum ckv_status open_directory(struct ckv_store *store,
                                      const struct ckv_store_options *options,
                                      struct ckv_error *error)
{
    bool made = false;
    enum ckv_status status =
        ckv_io_open_root(store->io, store->path, true, &made, &store->root, error);
    if (status == CKV_OK)
        status = ckvi_trust_check(store, options, error);
    if (status == CKV_OK && made)
        sync_parent(store);
    if (status == CKV_OK && !made)
        status = ckvi_init_check(store, options, error);
    if (status == CKV_OK)
        status = ckvi_admission_open(store, options, error);
    if (status == CKV_OK)
        status = ckvi_scan_first(store, error);
    return status;
}

static void report_open(struct ckv_store *store)
{
    struct ckv_store_stats stats;
    ckv_store_get_stats(store, &stats);
    ckvi_log(&store->log, CKV_LOG_INFO, "store.open",
             "%s/%s: %" PRIu64 " entries, %" PRIu64 " of %" PRIu64
             " bytes in use, %" PRIu64 " stay free on the disk",
             store->path, store->fingerprint, stats.entries, stats.used_bytes,
             stats.cap_bytes, stats.free_floor_bytes);
}

enum ckv_status ckv_store_open(const char *path,
                               const struct ckv_store_identity *identity,
                               const struct ckv_store_options *options,
                               struct ckv_store **out, struct ckv_error *error)
{
    struct ckv_store_options chosen;
    struct ckv_store *store;
    enum ckv_status status;
    if (!out)
        return ckv_error_set(error, CKV_INVALID, "no place for the store was given");
    *out = NULL;
    status = check_arguments(path, identity, error);
    if (status != CKV_OK)
        return status;
    ckv_store_options_init(&chosen);
    status = ckvi_options_copy(&chosen, sizeof chosen, options, "store options", error);
    if (status != CKV_OK)
        return status;
    chosen.alloc = ckvi_alloc_or_default(chosen.alloc);
    store = CKVI_NEW(chosen.alloc, struct ckv_store);
    if (!store)
        return ckvi_nomem(error, sizeof *store, "a store");
    store->alloc = chosen.alloc;
    store->io = chosen.io ? chosen.io : ckv_io_posix();
    store->clock = ckvi_clock_or_system(chosen.clock);
    store->log = chosen.log;
    store->single_process = chosen.single_process;
    store->root = CKV_IO_DIR_NONE;
    status = fill_store(store, path, identity, error);
    if (status == CKV_OK)
        status = open_directory(store, &chosen, error);
    if (status != CKV_OK) {
        ckv_store_close(store);
        return status;
    }
    report_open(store);
    *out = store;
    return CKV_OK;
}

/*
 * Owns a put: the store's side of a stepwise write.
 *
 * Invariant: until its first step a put has touched nothing outside memory; between that
 * step and the commit point it owns one temporary, counted by everyone; after the commit
 * point its entry is indexed and only then what it covers is unlinked. Failure story: a
 * put that fails or is aborted before the commit point leaves neither temporary nor
 * entry, and every older entry as it was.
 */
#include "store/admission.h"
#include "store/discard.h"
#include "store/names.h"
#include "store/walk.h"

#include "base/alloc.h"
#include "base/log.h"
#include "file/options.h"
#include <string.h>

struct ckv_put {
    struct ckv_store *store;
    struct ckv_put_options options;
    struct ckv_entry entry; /* the caller's, with the store's metadata */
    const struct ckv_source *source;
    char *ns;
    char folder_name[CKVI_FOLDER_NAME_SIZE];
    char uuid[CKVI_UUID_SIZE];
    char name[CKVI_FILE_NAME_SIZE];
    uint64_t floor;
    uint64_t file_bytes;
    int64_t started_ns;
    struct ckv_writer *writer; /* from the first step on */
    struct ckv_io_dir dir;
    struct ckv_temporary temporary;
    bool opening; /* the gate was asked for the step that runs */
    bool admitted;
    bool given; /* the temporary is the writer's */
    int64_t mtime_ns;
    uint64_t disk_bytes;
    bool stored;
    bool failed;
    struct ckv_stored result;
};

void ckv_put_options_init(struct ckv_put_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
}

static void add_meta(struct ckv_entry *entry, enum ckv_meta_key key, const char *value)
{
    if (value)
        entry->meta[entry->meta_count++] = (struct ckv_meta){key, value};
}

/* The entry as it will stand in the file; all else in it stays the caller's. */
static void fill_entry(struct ckv_put *put, const struct ckv_entry *entry)
{
    const struct ckv_store *store = put->store;
    int64_t now_ms = ckvi_now_ns(store) / 1000000;
    put->entry = *entry;
    put->entry.created_at_ms = now_ms > 0 ? (uint64_t)now_ms : 0;
    put->entry.meta_count = 0;
    add_meta(&put->entry, CKV_META_MODEL_ID, store->model_id);
    add_meta(&put->entry, CKV_META_FINGERPRINT, store->fingerprint);
    add_meta(&put->entry, CKV_META_TOKENIZER_HASH, store->tokenizer_hash);
    add_meta(&put->entry, CKV_META_NAMESPACE, put->ns);
}

/* The writer asks its gate before its first step too; that step is part of one for which
 * the gate was asked already. */
static enum ckv_status ask_gate(void *ctx, enum ckv_writer_step next)
{
    const struct ckv_put *put = ctx;
    if (put->opening || !put->options.gate)
        return CKV_OK;
    return put->options.gate(put->options.gate_ctx, next);
}

/* Hands over what admission made. */
static enum ckv_status give_temporary(void *ctx, uint64_t file_size,
                                      struct ckv_temporary *out, struct ckv_error *error)
{
    struct ckv_put *put = ctx;
    if (file_size != put->file_bytes)
        return ckv_error_set(error, CKV_INVALID, "the entry changed during its put");
    *out = put->temporary;
    put->given = true;
    return CKV_OK;
}

static enum ckv_status begin_writer(struct ckv_put *put, struct ckv_io_dir dir,
                                    struct ckv_writer **out, struct ckv_error *error)
{
    struct ckv_writer_options options;
    ckv_writer_options_init(&options);
    options.alloc = put->store->alloc;
    options.clock = put->store->clock;
    options.chunk_bytes = put->options.chunk_bytes;
    options.sync_every_bytes = put->options.sync_every_bytes;
    /* The name is a fresh UUID, so nothing is replaced; a plain rename never shows the
     * file under two names, which nobody would trust. */
    options.replace = true;
    options.gate = ask_gate;
    options.gate_ctx = put;
    options.open_temporary = give_temporary;
    options.open_temporary_ctx = put;
    return ckv_writer_begin(put->store->io, dir, put->name, &put->entry, put->source,
                            &options, out, error);
}

/* The folder may not exist yet, and may go while the put waits for its turn. So the
 * writer that writes begins in the first step; this one only tells the size. */
static enum ckv_status plan_size(struct ckv_put *put, struct ckv_error *error)
{
    struct ckv_writer *writer;
    enum ckv_status status = begin_writer(put, put->store->root, &writer, error);
    if (status != CKV_OK)
        return status;
    put->file_bytes = ckv_writer_file_bytes(writer);
    ckv_writer_abort(writer);
    if (put->file_bytes > put->store->cap_bytes)
        return ckv_error_set(error, CKV_FULL,
                             "the entry needs %llu bytes, the cap of the store is %llu",
                             (unsigned long long)put->file_bytes,
                             (unsigned long long)put->store->cap_bytes);
    return CKV_OK;
}

static void count_failure(struct ckv_put *put, enum ckv_status status,
                          const struct ckv_error *why)
{
    struct ckv_store *store = put->store;
    put->failed = true;
    ckvi_count(&store->counters.put_failures, 1);
    if (status == CKV_FULL)
        ckvi_count(&store->counters.refused_full, 1);
    ckvi_log(&store->log, CKV_LOG_WARN, "store.put_failed",
             "%zu tokens for %s/%s not stored: %s: %s", put->entry.token_count,
             store->fingerprint, put->folder_name, ckv_status_name(status), why->text);
}

/* Ends the put. What is not stored is removed, a published file too: it was never
 * durable. */
static void destroy(struct ckv_put *put)
{
    struct ckv_store *store = put->store;
    const struct ckv_io *io = store->io;
    bool published =
        put->writer && ckv_writer_next(put->writer) == CKV_STEP_SYNC_DIR && !put->stored;
    if (published)
        (void)io->remove(io->ctx, put->dir, put->name, NULL);
    ckv_writer_abort(put->writer);
    if (put->admitted && !put->given) {
        (void)io->remove(io->ctx, put->dir, put->temporary.name, NULL);
        ckv_io_close_file(io, &put->temporary.file);
    }
    if (put->admitted && !put->stored)
        ckvi_admission_settle(store, put->file_bytes, 0);
    ckv_io_close_dir(io, &put->dir);
    ckvi_strfree(store->alloc, put->ns);
    CKVI_DELETE(store->alloc, put);
}

static enum ckv_status fill_put(struct ckv_put *put, const char *ns,
                                const struct ckv_entry *entry, struct ckv_error *error)
{
    struct ckv_store *store = put->store;
    enum ckv_status status;
    put->ns = ckvi_strdup(store->alloc, ns);
    if (!put->ns)
        return ckvi_nomem(error, strlen(ns) + 1, "a namespace");
    ckvi_folder_name(ns, put->folder_name);
    fill_entry(put, entry);
    status = ckv_entry_validate(&put->entry, error);
    if (status == CKV_OK)
        status = ckv_entry_check_offsets(&put->entry, error);
    if (status != CKV_OK)
        return status;
    put->floor = ckv_entry_floor(&put->entry);
    status = ckv_uuid_create(store->io, put->uuid, error);
    if (status != CKV_OK)
        return status;
    ckvi_name_entry(put->uuid, put->name);
    return plan_size(put, error);
}

enum ckv_status ckv_put_begin(struct ckv_store *store, const char *ns,
                              const struct ckv_entry *entry,
                              const struct ckv_source *source,
                              const struct ckv_put_options *options, struct ckv_put **out,
                              struct ckv_error *error)
{
    struct ckv_put_options chosen;
    struct ckv_error why;
    struct ckv_put *put;
    enum ckv_status status;
    if (!out)
        return ckv_error_set(error, CKV_INVALID, "no place for the put was given");
    *out = NULL;
    if (!store || !entry || !source)
        return ckv_error_set(error, CKV_INVALID,
                             "put needs a store, an entry and a source");
    ckv_put_options_init(&chosen);
    status = ckvi_options_copy(&chosen, sizeof chosen, options, "put options", error);
    if (status != CKV_OK)
        return status;
    put = CKVI_NEW(store->alloc, struct ckv_put);
    if (!put)
        return ckvi_nomem(error, sizeof *put, "a put");
    put->store = store;
    put->options = chosen;
    put->source = source;
    put->dir = CKV_IO_DIR_NONE;
    put->temporary.file = CKV_IO_FILE_NONE;
    put->started_ns = ckvi_monotonic_ns(store);
    status = fill_put(put, ckvi_ns_text(ns), entry, &why);
    if (status == CKV_OK) {
        *out = put;
        return CKV_OK;
    }
    count_failure(put, status, &why);
    if (error)
        *error = why;
    destroy(put);
    return status;
}

enum ckv_writer_step ckv_put_next(const struct ckv_put *put)
{
    return put->writer ? ckv_writer_next(put->writer) : CKV_STEP_OPEN;
}

/* Admission, then the writer, which takes over the temporary. */
static enum ckv_status step_open(struct ckv_put *put, struct ckv_error *error)
{
    struct ckvi_applicant applicant = {
        .ns = put->ns,
        .folder_name = put->folder_name,
        .tokens = put->entry.tokens,
        .token_count = put->entry.token_count,
        .floor = put->floor,
        .file_bytes = put->file_bytes,
    };
    enum ckv_status status;
    if (put->options.gate)
        (void)put->options.gate(put->options.gate_ctx, CKV_STEP_OPEN);
    status = ckvi_admit(put->store, &applicant, &put->dir, &put->temporary, error);
    if (status != CKV_OK)
        return status;
    put->admitted = true;
    status = begin_writer(put, put->dir, &put->writer, error);
    if (status != CKV_OK)
        return status;
    put->opening = true;
    status = ckv_writer_step(put->writer, error);
    put->opening = false;
    return status;
}

/* The recency of a new entry, set while the file has no name that counts; and what it
 * takes now that all of it is written. */
static void set_recency(struct ckv_put *put)
{
    struct ckv_store *store = put->store;
    struct ckv_io_stat stat;
    struct ckv_error error;
    put->mtime_ns = ckvi_catalog_next_mtime(&store->catalog, ckvi_now_ns(store));
    if (store->io->set_mtime(store->io->ctx, put->temporary.file, put->mtime_ns,
                             &error) != CKV_OK)
        ckvi_log(&store->log, CKV_LOG_WARN, "store.touch_failed", "%s/%s/%s: %s",
                 store->fingerprint, put->folder_name, put->name, error.text);
    put->disk_bytes = ckvi_disk_bytes(put->file_bytes);
    if (ckv_io_stat_file(store->io, put->temporary.file, &stat, NULL) == CKV_OK)
        put->disk_bytes = stat.allocated_bytes;
}

static void supersede(struct ckv_put *put, uint64_t id)
{
    struct ckv_store *store = put->store;
    struct ckvi_ids covered = {0};
    struct ckv_error error;
    if (ckvi_catalog_covered(&store->catalog, put->ns, put->entry.tokens,
                             put->entry.token_count, put->floor, id, &covered,
                             &error) != CKV_OK) {
        ckvi_log(&store->log, CKV_LOG_WARN, "store.supersede_failed", "%s", error.text);
        return;
    }
    for (size_t i = 0; i < covered.count; i++) {
        enum ckv_status status = ckvi_discard(store, covered.items[i], &error);
        if (status == CKV_OK)
            put->result.superseded_count++;
        else if (status != CKV_NOTFOUND)
            ckvi_log(&store->log, CKV_LOG_WARN, "store.supersede_failed",
                     "an entry that %s covers stays: %s", put->name, error.text);
    }
    ckvi_count(&store->counters.superseded, put->result.superseded_count);
    ckvi_ids_deinit(&covered, store->alloc);
}

/* Behind the commit point: the entry is durable, whatever happens here. */
static void settle_stored(struct ckv_put *put)
{
    struct ckv_store *store = put->store;
    struct ckvi_entry_facts facts = {
        .folder_name = put->folder_name,
        .uuid = put->uuid,
        .ns = put->ns,
        .tokens = put->entry.tokens,
        .token_count = put->entry.token_count,
        .floor = put->floor,
        .tensor_bytes = ckv_entry_tensor_bytes(&put->entry),
        .file_bytes = put->disk_bytes,
        .mtime_ns = put->mtime_ns,
    };
    struct ckv_error error;
    uint64_t id = 0;
    enum ckv_status status = ckvi_catalog_add(&store->catalog, &facts, &id, &error);
    put->stored = true;
    ckvi_admission_settle(store, put->file_bytes, put->disk_bytes);
    /* EXISTS: a refresh on another thread saw it first. */
    if (status == CKV_OK || status == CKV_EXISTS)
        supersede(put, id);
    else
        ckvi_log(&store->log, CKV_LOG_WARN, "store.put_failed",
                 "%s is stored but not indexed: %s", put->name, error.text);
    ckvi_count(&store->counters.puts, 1);
    ckvi_count(&store->counters.written_bytes, put->file_bytes);
    put->result.id = id;
    put->result.file_bytes = put->file_bytes;
    put->result.written_bytes = put->file_bytes;
    put->result.elapsed_ns = ckvi_monotonic_ns(store) - put->started_ns;
    (void)atomic_fetch_add_explicit(&store->counters.put_total_ns, put->result.elapsed_ns,
                                    memory_order_relaxed);
}

static enum ckv_status run_step(struct ckv_put *put, struct ckv_error *error)
{
    enum ckv_status status;
    if (!put->writer)
        return step_open(put, error);
    if (ckv_writer_next(put->writer) == CKV_STEP_PUBLISH)
        set_recency(put);
    status = ckv_writer_step(put->writer, error);
    if (status == CKV_OK && ckv_writer_next(put->writer) == CKV_STEP_DONE)
        settle_stored(put);
    return status;
}

enum ckv_status ckv_put_step(struct ckv_put *put, struct ckv_error *error)
{
    struct ckv_error why;
    enum ckv_status status;
    if (!put || put->failed)
        return ckv_error_set(error, CKV_INVALID, "a step of a put that failed");
    if (put->stored)
        return CKV_OK;
    ckv_error_clear(&why);
    status = run_step(put, &why);
    if (status == CKV_OK)
        return CKV_OK;
    count_failure(put, status, &why);
    if (error)
        *error = why;
    return status;
}

enum ckv_status ckv_put_commit(struct ckv_put *put, struct ckv_stored *out,
                               struct ckv_error *error)
{
    enum ckv_status status = CKV_OK;
    if (!put)
        return ckv_error_set(error, CKV_INVALID, "no put was given");
    while (status == CKV_OK && !put->stored)
        status = ckv_put_step(put, error);
    if (status == CKV_OK && out)
        *out = put->result;
    destroy(put);
    return status;
}

void ckv_put_abort(struct ckv_put *put)
{
    if (put)
        destroy(put);
}

/* Whether exactly these tokens are durable already. */
static bool is_durable(struct ckv_store *store, const char *ns,
                       const struct ckv_entry *entry, uint64_t *id)
{
    enum ckv_status found;
    while (
        ckvi_catalog_same(&store->catalog, ns, entry->tokens, entry->token_count, id)) {
        if (ckvi_file_exists(store, *id, &found))
            return true;
        if (found != CKV_NOTFOUND && found != CKV_VANISHED)
            return false;
        (void)ckvi_catalog_drop(&store->catalog, *id);
    }
    return false;
}

enum ckv_status ckv_store_put(struct ckv_store *store, const char *ns,
                              const struct ckv_entry *entry,
                              const struct ckv_source *source,
                              const struct ckv_put_options *options,
                              struct ckv_stored *out, struct ckv_error *error)
{
    struct ckv_put *put;
    enum ckv_status status;
    uint64_t id;
    if (store && entry && entry->tokens &&
        is_durable(store, ckvi_ns_text(ns), entry, &id)) {
        if (out)
            *out = (struct ckv_stored){.id = id};
        return CKV_OK;
    }
    status = ckv_put_begin(store, ns, entry, source, options, &put, error);
    if (status != CKV_OK)
        return status;
    return ckv_put_commit(put, out, error);
}

/*
 * Owns the making of one file: plan, steps, publication.
 *
 * Invariant: the final name either does not exist (or holds what it held before), or
 * names a complete file whose data and length were synced before the name was given.
 * Between PUBLISH and SYNC_DIR the name may still be lost in a power cut; after it, it is
 * not. Failure story: the first failure is final. Ending the writer removes the
 * temporary, if the name still means the file that was opened; a file that was published
 * stays.
 */
#include "file/writer.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/escape.h"
#include "file/options.h"
#include "file/temporary.h"
#include <inttypes.h>
#include <string.h>

#define NS_PER_MS 1000000

void ckv_writer_options_init(struct ckv_writer_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
}

/* Frees the memory only. */
static void destroy(struct ckv_writer *writer)
{
    const struct ckv_alloc *alloc = writer->alloc;
    ckvi_free_aligned(alloc, writer->header, writer->prefix.data_start, 4096);
    ckvi_free_aligned(alloc, writer->chunk, writer->chunk_size, 4096);
    ckvi_free(alloc, writer->tensors, writer->tensor_count, sizeof *writer->tensors);
    ckvi_free(alloc, writer->entry.caches, writer->entry.cache_count,
              sizeof *writer->entry.caches);
    CKVI_DELETE(alloc, writer);
}

/* Copies what the writer changes: the caches and, in one array, their tensors. */
static enum ckv_status copy_entry(struct ckv_writer *writer,
                                  const struct ckv_entry *entry, struct ckv_error *error)
{
    struct ckv_cache *caches;
    uint64_t largest = 0;
    size_t next = 0;
    for (size_t i = 0; i < entry->cache_count; i++)
        writer->tensor_count += entry->caches[i].tensor_count;
    caches = ckvi_zalloc(writer->alloc, entry->cache_count, sizeof *caches);
    if (!caches)
        return ckvi_nomem(error, entry->cache_count * sizeof *caches,
                          "the plan of a file");
    writer->entry = *entry;
    writer->entry.caches = caches;
    writer->tensors =
        ckvi_zalloc(writer->alloc, writer->tensor_count, sizeof *writer->tensors);
    if (!writer->tensors)
        return ckvi_nomem(error, writer->tensor_count * sizeof *writer->tensors,
                          "the plan of a file");
    for (size_t i = 0; i < entry->cache_count; i++) {
        size_t count = entry->caches[i].tensor_count;
        caches[i] = entry->caches[i];
        caches[i].tensors = writer->tensors + next;
        if (count > 0)
            memcpy(caches[i].tensors, entry->caches[i].tensors,
                   count * sizeof *writer->tensors);
        next += count;
    }
    for (size_t i = 0; i < writer->tensor_count; i++)
        largest = ckvi_max_u64(largest, writer->tensors[i].bytes);
    writer->chunk_size = (size_t)ckvi_min_u64(largest, writer->step_size);
    return CKV_OK;
}

static enum ckv_status plan(struct ckv_writer *writer, const struct ckv_entry *entry,
                            struct ckv_error *error)
{
    const struct ckv_clock *clock = ckvi_clock_or_system(writer->options.clock);
    /* Before the copy: a count beyond the limits must not size an allocation. */
    enum ckv_status status = ckv_entry_validate(entry, error);
    if (!status)
        status = copy_entry(writer, entry, error);
    if (status)
        return status;
    if (writer->entry.created_at_ms == 0) {
        int64_t now = clock->realtime_ns(clock->ctx) / NS_PER_MS;
        writer->entry.created_at_ms = now > 0 ? (uint64_t)now : 0;
    }
    status = ckv_header_plan(&writer->entry, &writer->prefix, &writer->file_size, error);
    if (status)
        return status;
    if (writer->chunk_size > 0 && (!writer->source || !writer->source->view))
        return ckv_error_set(error, CKV_INVALID, "no source for the tensors");
    if (writer->options.max_file_bytes > 0 &&
        writer->file_size > writer->options.max_file_bytes)
        return ckv_error_set(error, CKV_TOOBIG,
                             "the file would have %" PRIu64 " bytes, the cap is %" PRIu64,
                             writer->file_size, writer->options.max_file_bytes);
    writer->header = ckvi_alloc_aligned(writer->alloc, writer->prefix.data_start, 4096);
    if (!writer->header)
        return ckvi_nomem(error, writer->prefix.data_start, "the header");
    return CKV_OK;
}

enum ckv_status ckv_writer_begin(const struct ckv_io *io, struct ckv_io_dir dir,
                                 const char *name, const struct ckv_entry *entry,
                                 const struct ckv_source *source,
                                 const struct ckv_writer_options *options,
                                 struct ckv_writer **out, struct ckv_error *error)
{
    struct ckv_writer_options chosen;
    struct ckv_writer *writer;
    enum ckv_status status;
    *out = NULL;
    ckv_writer_options_init(&chosen);
    status = ckvi_options_copy(&chosen, sizeof chosen, options, "writer options", error);
    if (status)
        return status;
    if (!ckv_io_name_valid(name))
        return ckv_error_set(error, CKV_INVALID, "the file's name is not a plain name");
    chosen.alloc = ckvi_alloc_or_default(chosen.alloc);
    writer = CKVI_NEW(chosen.alloc, struct ckv_writer);
    if (!writer)
        return ckvi_nomem(error, sizeof *writer, "a writer");
    writer->io = io;
    writer->dir = dir;
    writer->source = source;
    writer->alloc = chosen.alloc;
    writer->options = chosen;
    writer->step_size =
        chosen.chunk_bytes ? chosen.chunk_bytes : (size_t)CKV_CHUNK_BYTES_DEFAULT;
    writer->next = CKV_STEP_OPEN;
    writer->temporary.file = CKV_IO_FILE_NONE;
    ckv_wyhash_init(&writer->hash, 0);
    memcpy(writer->name, name, strlen(name) + 1);
    status = plan(writer, entry, error);
    if (status)
        destroy(writer);
    else
        *out = writer;
    return status;
}

uint64_t ckv_writer_file_bytes(const struct ckv_writer *writer)
{
    return writer->file_size;
}

uint64_t ckv_writer_done_bytes(const struct ckv_writer *writer)
{
    return writer->done_bytes;
}

enum ckv_writer_step ckv_writer_next(const struct ckv_writer *writer)
{
    return writer->next;
}

/* COPY while tensors are left (a sync in between when it is due), then HEADER. */
static enum ckv_writer_step next_transfer(struct ckv_writer *writer)
{
    uint64_t due = writer->options.sync_every_bytes;
    if (!ckvi_writer_more(writer))
        return CKV_STEP_HEADER;
    return due > 0 && writer->unsynced_bytes >= due ? CKV_STEP_SYNC : CKV_STEP_COPY;
}

/* A name that must be free is looked at before anything is written; PUBLISH decides. */
static enum ckv_status check_free(struct ckv_writer *writer, struct ckv_error *error)
{
    struct ckv_io_stat stat;
    enum ckv_status status;
    if (writer->options.replace)
        return CKV_OK;
    status = ckv_io_stat_name(writer->io, writer->dir, writer->name, &stat, error);
    if (status == CKV_NOTFOUND)
        return CKV_OK;
    return status ? status : ckv_error_set(error, CKV_EXISTS, "the name is taken");
}

static enum ckv_status step_open(struct ckv_writer *writer, struct ckv_error *error)
{
    const struct ckv_io *io = writer->io;
    enum ckv_status status = check_free(writer, error);
    if (status)
        return status;
    if (writer->options.open_temporary)
        status =
            writer->options.open_temporary(writer->options.open_temporary_ctx,
                                           writer->file_size, &writer->temporary, error);
    else
        status = ckv_temporary_create(io, writer->dir, &writer->temporary, error);
    if (status)
        return status;
    writer->opened = true;
    status = ckv_io_stat_file(io, writer->temporary.file, &writer->identity, error);
    /* The full length from the start: gaps are holes that read as zero, and an empty last
     * tensor needs no write to exist. */
    if (!status)
        status = io->truncate(io->ctx, writer->temporary.file, writer->file_size, error);
    if (!status)
        writer->next = next_transfer(writer);
    return status;
}

static enum ckv_status step_copy(struct ckv_writer *writer, struct ckv_error *error)
{
    enum ckv_status status = ckvi_writer_copy(writer, error);
    if (!status)
        writer->next = next_transfer(writer);
    return status;
}

/* Prefix, text and zero fill up to the first tensor, a chunk per step. */
static enum ckv_status step_header(struct ckv_writer *writer, struct ckv_error *error)
{
    uint64_t left = writer->prefix.data_start - writer->header_done;
    size_t size = (size_t)ckvi_min_u64(left, writer->step_size);
    enum ckv_status status = CKV_OK;
    if (writer->header_done == 0) {
        size_t used = CKV_PREFIX_BYTES + writer->prefix.header_bytes;
        status = ckv_header_encode(&writer->entry, &writer->prefix,
                                   writer->header + CKV_PREFIX_BYTES, error);
        ckv_prefix_encode(&writer->prefix, writer->header);
        memset(writer->header + used, 0, writer->prefix.data_start - used);
    }
    if (!status)
        status = ckv_io_write(writer->io, writer->temporary.file,
                              writer->header + writer->header_done, size,
                              writer->header_done, error);
    if (status)
        return status;
    writer->header_done += size;
    if (writer->header_done == writer->prefix.data_start)
        writer->next = CKV_STEP_SYNC;
    return CKV_OK;
}

static enum ckv_status step_sync(struct ckv_writer *writer, struct ckv_error *error)
{
    const struct ckv_io *io = writer->io;
    enum ckv_status status = io->sync_file(io->ctx, writer->temporary.file, error);
    if (status)
        return status;
    writer->unsynced_bytes = 0;
    writer->next = writer->header_done == writer->prefix.data_start
                       ? CKV_STEP_PUBLISH
                       : next_transfer(writer);
    return CKV_OK;
}

static enum ckv_status rename_temporary(struct ckv_writer *writer,
                                        struct ckv_error *error)
{
    return ckv_io_rename(writer->io, writer->dir, writer->temporary.name, writer->dir,
                         writer->name, error);
}

/* Where there are no hard links: look again, then rename. Two writers of one name could
 * both find it free; the later one wins, complete like the earlier. */
static enum ckv_status rename_if_free(struct ckv_writer *writer, struct ckv_error *error)
{
    enum ckv_status status = check_free(writer, error);
    return status ? status : rename_temporary(writer, error);
}

/* A second name instead of a rename: a link never replaces what is there. The first name
 * must go, else the entry would keep two and nobody would trust it. */
static enum ckv_status publish_new(struct ckv_writer *writer, struct ckv_error *error)
{
    const struct ckv_io *io = writer->io;
    enum ckv_status status = ckv_io_link(io, writer->dir, writer->temporary.name,
                                         writer->dir, writer->name, error);
    if (status == CKV_UNSUPPORTED || status == CKV_DENIED)
        return rename_if_free(writer, error);
    if (status)
        return status;
    status = ckv_io_remove(io, writer->dir, writer->temporary.name, error);
    if (status)
        ckvi_discard_name(io, writer->dir, writer->name);
    return status;
}

static enum ckv_status step_publish(struct ckv_writer *writer, struct ckv_error *error)
{
    enum ckv_status status = writer->options.replace ? rename_temporary(writer, error)
                                                     : publish_new(writer, error);
    if (status)
        return status;
    writer->published = true;
    writer->next = CKV_STEP_SYNC_DIR;
    return CKV_OK;
}

static enum ckv_status step_sync_dir(struct ckv_writer *writer, struct ckv_error *error)
{
    enum ckv_status status = ckv_io_sync_dir(writer->io, writer->dir, error);
    if (!status)
        writer->next = CKV_STEP_DONE; /* the commit point lies behind us */
    return status;
}

static enum ckv_status run_step(struct ckv_writer *writer, struct ckv_error *error)
{
    switch (writer->next) {
    case CKV_STEP_OPEN:
        return step_open(writer, error);
    case CKV_STEP_COPY:
        return step_copy(writer, error);
    case CKV_STEP_HEADER:
        return step_header(writer, error);
    case CKV_STEP_SYNC:
        return step_sync(writer, error);
    case CKV_STEP_PUBLISH:
        return step_publish(writer, error);
    case CKV_STEP_SYNC_DIR:
        return step_sync_dir(writer, error);
    case CKV_STEP_DONE:
        break;
    }
    return CKV_OK;
}

enum ckv_status ckv_writer_step(struct ckv_writer *writer, struct ckv_error *error)
{
    char name[CKVI_ESCAPE_SIZE];
    enum ckv_status status;
    ckv_error_clear(error);
    if (writer->failed)
        return ckv_error_set(error, CKV_INVALID, "a step after one that failed");
    if (writer->next == CKV_STEP_DONE)
        return CKV_OK;
    if (writer->options.gate)
        (void)writer->options.gate(writer->options.gate_ctx, writer->next);
    status = run_step(writer, error);
    if (status) {
        writer->failed = true;
        ckv_error_prefix(error, "write %s",
                         ckvi_escape_string(writer->name, name, sizeof name));
    }
    return status;
}

/* Removes the temporary, unless its name means another file by now. */
static void remove_temporary(struct ckv_writer *writer)
{
    struct ckv_io_stat stat;
    enum ckv_status status;
    status =
        ckv_io_stat_name(writer->io, writer->dir, writer->temporary.name, &stat, NULL);
    if (!status && writer->identity.inode != 0 &&
        (stat.inode != writer->identity.inode || stat.device != writer->identity.device))
        return;
    if (status != CKV_NOTFOUND)
        ckvi_discard_name(writer->io, writer->dir, writer->temporary.name);
}

void ckv_writer_abort(struct ckv_writer *writer)
{
    if (!writer)
        return;
    if (writer->opened && !writer->published)
        remove_temporary(writer);
    ckv_io_close_file(writer->io, &writer->temporary.file);
    destroy(writer);
}

enum ckv_status ckv_writer_commit(struct ckv_writer *writer, struct ckv_error *error)
{
    enum ckv_status status = CKV_OK;
    while (!status && (writer->failed || writer->next != CKV_STEP_DONE))
        status = ckv_writer_step(writer, error);
    ckv_writer_abort(writer); /* after PUBLISH it only closes and frees */
    return status;
}

enum ckv_status ckv_save(const struct ckv_io *io, struct ckv_io_dir dir, const char *name,
                         const struct ckv_entry *entry, const struct ckv_source *source,
                         const struct ckv_writer_options *options,
                         struct ckv_error *error)
{
    struct ckv_writer *writer = NULL;
    enum ckv_status status =
        ckv_writer_begin(io, dir, name, entry, source, options, &writer, error);
    return status || !writer ? status : ckv_writer_commit(writer, error);
}

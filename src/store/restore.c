/*
 * Owns the restore of an entry for a prompt: candidates one after the other until one
 * was read completely, verified and accepted.
 *
 * Invariant: what is handed to accept was compared with the prompt and the identity as
 * the file itself says them, not as the index remembers them. Failure story: every
 * failure is a miss for that candidate. Only CORRUPT, by its hash or by the engine's
 * word, sets a file aside; a file that is gone, or is not ours any more, is forgotten;
 * anything else leaves it alone.
 */
#include "store/discard.h"
#include "store/files.h"
#include "store/identity.h"
#include "store/names.h"

#include "base/log.h"
#include <coldkv/reader.h>
#include <string.h>

#define TRIES_MAX 3

/* How far an attempt came: what a status means depends on who said it. */
enum phase {
    JUDGING = 0, /* the file speaks */
    PREPARING,   /* the engine, before it saw any bytes */
    READING,     /* the file's bytes, or the engine about them */
};

/* One candidate on its way. */
struct attempt {
    struct ckv_store *store;
    const char *ns;
    const uint32_t *prompt;
    size_t prompt_length;
    const struct ckv_restore_target *target;
    struct ckv_index_match match;
    struct ckvi_record *record; /* pinned */
    char name[CKVI_FILE_NAME_SIZE];
    enum phase phase;
    struct ckv_reader *reader;
    bool measured; /* seen is the file's */
    struct ckv_io_stat seen;
    struct ckv_verified verified; /* what is remembered of the file */
    bool partial;                 /* only the prefix's rows were read */
    uint64_t read_bytes;
};

/* Opens the file; what the trust rules do not allow is FOREIGN. */
static enum ckv_status open_file(struct attempt *attempt, struct ckv_error *error)
{
    struct ckv_store *store = attempt->store;
    struct ckv_io_dir dir;
    enum ckv_status status =
        ckvi_open_folder(store, attempt->record->folder_name, &dir, error);
    if (status == CKV_OK)
        status = ckv_io_stat_name(store->io, dir, attempt->name, &attempt->seen, error);
    attempt->measured = status == CKV_OK;
    if (status == CKV_OK && !ckvi_file_trusted(store, &attempt->seen))
        status = ckv_error_set(error, CKV_FOREIGN,
                               "%s is no regular file of this user with one link",
                               attempt->name);
    if (status == CKV_OK)
        status = ckv_reader_open(store->io, dir, attempt->name, store->alloc,
                                 &attempt->reader, error);
    ckv_io_close_dir(store->io, &dir);
    return status;
}

/* Compares what the file says with the prompt: the index is only a memory of it. */
static enum ckv_status check_tokens(const struct attempt *attempt,
                                    const struct ckv_entry *entry,
                                    struct ckv_error *error)
{
    size_t prefix = (size_t)attempt->match.prefix;
    uint64_t usable;
    if (prefix > entry->token_count ||
        memcmp(entry->tokens, attempt->prompt, prefix * sizeof(uint32_t)) != 0)
        return ckv_error_set(error, CKV_FOREIGN, "%s: tokens: not the indexed ones",
                             attempt->name);
    usable = ckv_usable_prefix(ckv_entry_floor(entry), entry->token_count, prefix,
                               attempt->prompt_length);
    if (usable != attempt->match.prefix)
        return ckv_error_set(error, CKV_FOREIGN,
                             "%s: expected %llu reusable tokens, found %llu",
                             attempt->name, (unsigned long long)attempt->match.prefix,
                             (unsigned long long)usable);
    return CKV_OK;
}

/* Most recently used from now on, for every process: before the long read, so that an
 * evictor sees it. */
static void touch(struct attempt *attempt)
{
    struct ckv_store *store = attempt->store;
    struct ckv_error error;
    int64_t mtime_ns = ckvi_catalog_next_mtime(&store->catalog, ckvi_now_ns(store));
    attempt->verified = ckvi_catalog_verified(&store->catalog, attempt->record);
    if (ckv_verified_touch(&attempt->verified, attempt->reader, mtime_ns, &error) !=
        CKV_OK) {
        ckvi_log(&store->log, CKV_LOG_WARN, "store.touch_failed", "%s/%s/%s: %s",
                 store->fingerprint, attempt->record->folder_name, attempt->name,
                 error.text);
        return;
    }
    ckvi_catalog_touch(&store->catalog, attempt->match.id, mtime_ns);
}

/* Moves the tensors: all of them, verified; or, of a file that was verified before and is
 * still the same, only the prefix's rows. */
static enum ckv_status read_tensors(struct attempt *attempt, const struct ckv_sink *sink,
                                    struct ckv_error *error)
{
    struct ckv_store *store = attempt->store;
    struct ckv_restore *restore = NULL;
    struct ckv_restore_options options;
    bool more = true;
    enum ckv_status status;
    attempt->partial = attempt->target->prefix_only &&
                       attempt->match.prefix < attempt->match.length &&
                       ckv_verified_holds(&attempt->verified, attempt->reader);
    ckv_restore_options_init(&options);
    options.verify = !attempt->partial;
    options.prefix_rows = attempt->partial ? attempt->match.prefix : 0;
    status = ckv_restore_begin(attempt->reader, sink, &options, &restore, error);
    if (status != CKV_OK) {
        if (sink->drop)
            sink->drop(sink->ctx);
        return status;
    }
    while (status == CKV_OK && more)
        status = ckv_restore_step(restore, &more, error);
    if (status != CKV_OK) {
        ckv_restore_abort(restore);
        return status;
    }
    attempt->read_bytes = ckv_restore_done_bytes(restore);
    status = ckv_restore_finish(restore, error);
    if (status != CKV_OK)
        return status;
    if (!attempt->partial)
        ckv_verified_set(&attempt->verified, attempt->reader);
    ckvi_catalog_set_verified(&store->catalog, attempt->record, &attempt->verified);
    return CKV_OK;
}

static enum ckv_status read_all(struct attempt *attempt, const struct ckv_entry *entry,
                                struct ckv_error *error)
{
    const struct ckv_restore_target *target = attempt->target;
    struct ckv_sink sink = {0};
    enum ckv_status status;
    attempt->phase = PREPARING;
    status = target->prepare(target->ctx, entry, attempt->match.prefix, &sink, error);
    if (status != CKV_OK)
        return status;
    attempt->phase = READING;
    status = read_tensors(attempt, &sink, error);
    if (status != CKV_OK || !target->accept)
        return status;
    return target->accept(target->ctx, entry, attempt->match.prefix, error);
}

static enum ckv_status run_attempt(struct attempt *attempt, struct ckv_error *error)
{
    const struct ckv_entry *entry;
    enum ckv_status status = open_file(attempt, error);
    if (status != CKV_OK)
        return status;
    entry = &ckv_reader_header(attempt->reader)->entry;
    status = ckvi_identity_check(attempt->store, attempt->ns, entry, error);
    if (status == CKV_OK)
        status = check_tokens(attempt, entry, error);
    if (status != CKV_OK)
        return status;
    touch(attempt);
    return read_all(attempt, entry, error);
}

/* What a failure means for the file. */
static void settle_file(struct attempt *attempt, enum ckv_status status,
                        const struct ckv_error *why)
{
    struct ckv_store *store = attempt->store;
    struct ckv_error failure;
    if (status == CKV_CORRUPT && attempt->phase != PREPARING) {
        if (ckvi_discard_bad(store, attempt->match.id,
                             attempt->measured ? &attempt->seen : NULL, why->text,
                             &failure) != CKV_OK)
            ckvi_log(&store->log, CKV_LOG_WARN, "store.set_aside", "%s stays: %s",
                     attempt->name, failure.text);
        return;
    }
    if (attempt->phase != JUDGING)
        return;
    if (status == CKV_NOTFOUND || status == CKV_VANISHED)
        (void)ckvi_catalog_drop(&store->catalog, attempt->match.id);
    if (status != CKV_FOREIGN && status != CKV_VERSION)
        return;
    ckvi_count(&store->counters.foreign, 1);
    ckvi_catalog_demote(&store->catalog, attempt->match.id, CKVI_RECORD_FOREIGN);
}

static void settle_failure(struct attempt *attempt, enum ckv_status status,
                           const struct ckv_error *why)
{
    struct ckv_store *store = attempt->store;
    ckvi_count(&store->counters.restore_failures, 1);
    ckvi_log(&store->log, status == CKV_REFUSED ? CKV_LOG_INFO : CKV_LOG_WARN,
             "store.restore_failed", "%s/%s/%s: %s: %s", store->fingerprint,
             attempt->record->folder_name, attempt->name, ckv_status_name(status),
             why->text);
    settle_file(attempt, status, why);
}

static void settle_success(const struct attempt *attempt, struct ckv_restored *out,
                           uint32_t tried, int64_t elapsed_ns)
{
    struct ckvi_counters *counters = &attempt->store->counters;
    ckvi_count(&counters->restores, 1);
    ckvi_count(&counters->restored_bytes, attempt->read_bytes);
    if (attempt->partial)
        ckvi_count(&counters->partial_restores, 1);
    atomic_store_explicit(&counters->restore_last_ns, elapsed_ns, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&counters->restore_total_ns, elapsed_ns,
                                    memory_order_relaxed);
    *out = (struct ckv_restored){
        .id = attempt->match.id,
        .prefix = attempt->match.prefix,
        .token_count = attempt->match.length,
        .read_bytes = attempt->read_bytes,
        .elapsed_ns = elapsed_ns,
        .tried = tried,
    };
}

/* Tries one candidate. NOTFOUND without a try when it is gone from the catalog. */
static enum ckv_status try_match(struct attempt *attempt, uint32_t *tried,
                                 struct ckv_error *why)
{
    enum ckv_status status;
    attempt->record = ckvi_catalog_pin(&attempt->store->catalog, attempt->match.id);
    if (!attempt->record)
        return ckv_error_set(why, CKV_NOTFOUND, "the entry was removed meanwhile");
    ckvi_name_entry(attempt->record->uuid, attempt->name);
    (*tried)++;
    ckv_error_clear(why);
    status = run_attempt(attempt, why);
    if (status != CKV_OK && why->text[0] == '\0')
        (void)ckv_error_set(why, status, "the engine gave no reason");
    why->status = status;
    if (status != CKV_OK)
        settle_failure(attempt, status, why);
    ckv_reader_close(attempt->reader);
    attempt->reader = NULL;
    ckvi_catalog_unpin(&attempt->store->catalog, attempt->record);
    return status;
}

enum ckv_status ckv_store_restore(struct ckv_store *store, const char *ns,
                                  const uint32_t *prompt, size_t prompt_length,
                                  const struct ckv_restore_target *target,
                                  struct ckv_restored *out, struct ckv_error *error)
{
    struct ckv_index_match matches[TRIES_MAX];
    struct ckv_restored restored = {0};
    struct ckv_error why;
    int64_t started_ns;
    uint32_t tried = 0;
    size_t count;
    if (!store || !target || !target->prepare || (!prompt && prompt_length > 0))
        return ckv_error_set(error, CKV_INVALID,
                             "restore needs a store, a prompt and a target");
    started_ns = ckvi_monotonic_ns(store);
    (void)ckv_error_set(&why, CKV_NOTFOUND, "no entry shares a usable prefix");
    count = ckvi_catalog_find(&store->catalog, ckvi_ns_text(ns), prompt, prompt_length,
                              matches, TRIES_MAX);
    /* Who cancels wants no other candidate either. */
    for (size_t i = 0; i < count && why.status != CKV_CANCELLED; i++) {
        struct attempt attempt = {
            .store = store,
            .ns = ckvi_ns_text(ns),
            .prompt = prompt,
            .prompt_length = prompt_length,
            .target = target,
            .match = matches[i],
        };
        if (try_match(&attempt, &tried, &why) != CKV_OK)
            continue;
        settle_success(&attempt, &restored, tried, ckvi_monotonic_ns(store) - started_ns);
        if (out)
            *out = restored;
        return CKV_OK;
    }
    ckvi_count(&store->counters.misses, 1);
    if (error) {
        *error = why;
        error->status = CKV_NOTFOUND;
    }
    return CKV_NOTFOUND;
}

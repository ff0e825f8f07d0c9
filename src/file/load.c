/*
 * Owns the way from a file to live caches that go on: expectations, destinations with the
 * capacity the next tokens need, and a sink that leads each run of file bytes to its
 * rows.
 *
 * Rows beyond the wanted prefix are read only where the whole tensor has to be hashed;
 * they pass through one small scratch buffer. Failure story: caches are made only after
 * everything arrived; until then all that exists is arrays, released on every path.
 */
#include <coldkv/lifecycle.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/escape.h"
#include "tensor/rows.h"
#include <string.h>

#define SCRATCH_BYTES ((size_t)256 * 1024)
#define TOKEN_AXIS 2u

struct load {
    const struct ckv_alloc *alloc;
    const struct ckv_entry *entry;
    uint64_t rows;            /* tokens wanted */
    struct ckv_array *arrays; /* of all caches, in order */
    size_t *first;            /* of each cache: its first array */
    size_t array_count;
    unsigned char *scratch;
};

void ckv_load_options_init(struct ckv_load_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
    options->cache_count = CKV_LOAD_ANY;
    options->verify = true;
}

/* Kinds whose rows are tokens in order, so that a prefix is its first rows. */
static bool grows(enum ckv_cache_kind kind)
{
    return kind == CKV_CACHE_KV || kind == CKV_CACHE_QKV || kind == CKV_CACHE_TURBOQUANT;
}

static enum ckv_status expect(const struct ckv_entry *entry, enum ckv_meta_key key,
                              const char *expected, struct ckv_error *error)
{
    const char *found = ckv_entry_meta(entry, key);
    char a[CKVI_ESCAPE_SIZE];
    char b[CKVI_ESCAPE_SIZE];
    if (!expected || (found && strcmp(found, expected) == 0))
        return CKV_OK;
    return ckv_error_set(
        error, CKV_FOREIGN, "%s: expected \"%s\", found %s%s%s", ckv_meta_key_name(key),
        ckvi_escape_string(expected, a, sizeof a), found ? "\"" : "",
        found ? ckvi_escape_string(found, b, sizeof b) : "none", found ? "\"" : "");
}

static enum ckv_status check_expectations(const struct ckv_entry *entry,
                                          const struct ckv_load_options *options,
                                          struct ckv_error *error)
{
    const struct {
        enum ckv_meta_key key;
        const char *value;
    } expected[] = {{CKV_META_FINGERPRINT, options->fingerprint},
                    {CKV_META_TOKENIZER_HASH, options->tokenizer_hash},
                    {CKV_META_NAMESPACE, options->ns},
                    {CKV_META_MODEL_ID, options->model_id}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        enum ckv_status status = expect(entry, expected[i].key, expected[i].value, error);
        if (status)
            return status;
    }
    if (options->cache_count != CKV_LOAD_ANY &&
        options->cache_count != entry->cache_count)
        return ckv_error_set(
            error, CKV_FOREIGN, "cached layers: the model has %llu, the file %zu",
            (unsigned long long)options->cache_count, entry->cache_count);
    return CKV_OK;
}

static enum ckv_status check_prefix(const struct ckv_entry *entry, uint64_t prefix,
                                    struct ckv_error *error)
{
    for (size_t i = 0; i < entry->cache_count; i++) {
        const struct ckv_cache *cache = &entry->caches[i];
        if (cache->kind == CKV_CACHE_STATE)
            return ckv_error_set(error, CKV_UNSUPPORTED,
                                 "caches[%zu]: the kind state belongs to the engine %s",
                                 i, cache->engine);
        if (cache->tensor_count > CKV_CACHE_ARRAYS_MAX)
            return ckv_error_set(
                error, CKV_UNSUPPORTED,
                "caches[%zu]: %zu tensors, a live cache holds at most %d", i,
                cache->tensor_count, CKV_CACHE_ARRAYS_MAX);
        if (prefix > cache->offset)
            return ckv_error_set(
                error, CKV_INVALID, "prefix: %llu tokens wanted, caches[%zu] has %llu",
                (unsigned long long)prefix, i, (unsigned long long)cache->offset);
    }
    if (prefix > 0 && prefix < ckv_entry_floor(entry))
        return ckv_error_set(error, CKV_REFUSED,
                             "prefix: %llu tokens wanted, the entry can be cut to %llu",
                             (unsigned long long)prefix,
                             (unsigned long long)ckv_entry_floor(entry));
    return CKV_OK;
}

/* Rows of a cache that are kept. */
static uint64_t wanted_rows(const struct load *load, const struct ckv_cache *cache)
{
    return load->rows > 0 ? load->rows : cache->offset;
}

/* A destination; kv leaves at least one free row, so that decoding starts without a copy.
 */
static enum ckv_status make_array(const struct load *load, const struct ckv_cache *cache,
                                  const struct ckv_tensor *tensor, struct ckv_array *out,
                                  struct ckv_error *error)
{
    uint64_t shape[CKV_ARRAY_RANK_MAX];
    uint64_t rows = 0;
    enum ckv_status status;
    memcpy(shape, tensor->shape, sizeof shape);
    if (grows(cache->kind)) {
        rows = wanted_rows(load, cache);
        shape[TOKEN_AXIS] = rows;
        if (cache->kind == CKV_CACHE_KV)
            shape[TOKEN_AXIS] = (rows / CKV_CACHE_STEP + 1) * CKV_CACHE_STEP;
    }
    status = ckv_array_create(load->alloc, tensor->dtype, tensor->rank, shape,
                              tensor->rank > TOKEN_AXIS ? TOKEN_AXIS : 0, out, error);
    if (status == CKV_OK && grows(cache->kind))
        ckvi_array_cut(out, rows);
    return status;
}

static enum ckv_status make_arrays(struct load *load, struct ckv_error *error)
{
    const struct ckv_entry *entry = load->entry;
    size_t total = 0;
    for (size_t i = 0; i < entry->cache_count; i++)
        total += entry->caches[i].tensor_count;
    load->first = ckvi_zalloc(load->alloc, entry->cache_count, sizeof *load->first);
    load->arrays = ckvi_zalloc(load->alloc, total, sizeof *load->arrays);
    load->array_count = total;
    load->scratch = ckvi_zalloc(load->alloc, SCRATCH_BYTES, 1);
    if (!load->first || !load->arrays || !load->scratch)
        return ckvi_nomem(error, total * sizeof *load->arrays, "loaded arrays");
    total = 0;
    for (size_t i = 0; i < entry->cache_count; i++) {
        const struct ckv_cache *cache = &entry->caches[i];
        load->first[i] = total;
        for (size_t t = 0; t < cache->tensor_count; t++) {
            enum ckv_status status = make_array(load, cache, &cache->tensors[t],
                                                &load->arrays[total++], error);
            if (status)
                return status;
        }
    }
    return CKV_OK;
}

static enum ckv_status lend(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                            size_t wanted, void **data, size_t *size,
                            struct ckv_error *error)
{
    struct load *load = ctx;
    const struct ckv_cache *record = &load->entry->caches[cache];
    const struct ckv_tensor *from = &record->tensors[tensor];
    const struct ckv_array *to = &load->arrays[load->first[cache] + tensor];
    uint64_t row_bytes;
    uint64_t head_bytes;
    uint64_t head;
    uint64_t within;
    uint64_t kept;
    uint64_t run;
    (void)error;
    if (!grows(record->kind)) {
        size_t whole;
        *data = (void *)(uintptr_t)ckv_array_run(to, offset, &whole);
        *size = whole < wanted ? whole : wanted;
        return CKV_OK;
    }
    row_bytes = from->shape[3] * ckv_dtype_size(from->dtype);
    head_bytes = row_bytes * from->shape[TOKEN_AXIS];
    head = offset / head_bytes;
    within = offset % head_bytes;
    kept = row_bytes * to->shape[TOKEN_AXIS];
    if (within < kept) {
        unsigned char *row =
            ckvi_array_at(to, head / from->shape[1], head % from->shape[1], 0);
        *data = row + within;
        run = kept - within;
    } else {
        *data = load->scratch;
        run = ckvi_min_u64(head_bytes - within, SCRATCH_BYTES);
    }
    *size = run < wanted ? (size_t)run : wanted;
    return CKV_OK;
}

/* The live cache of one record, cut to the prefix. */
static enum ckv_status make_cache(const struct load *load, size_t index,
                                  struct ckv_live_cache **out, struct ckv_error *error)
{
    const struct ckv_cache *record = &load->entry->caches[index];
    struct ckv_cache_params params = {record->kind, record->max_size, record->group_size,
                                      record->bits, record->k_bits,   record->v_bits};
    uint64_t wanted = wanted_rows(load, record);
    uint64_t offset = grows(record->kind) ? wanted : record->offset;
    uint64_t dropped = 0;
    enum ckv_status status = ckv_cache_create(load->alloc, &params, out, error);
    if (status)
        return status;
    status = ckv_cache_restore_state(*out, load->arrays + load->first[index],
                                     record->tensor_count, offset, record->idx, error);
    if (status == CKV_OK && offset > wanted)
        status = ckv_cache_trim(*out, offset - wanted, &dropped, error);
    if (status)
        ckv_error_prefix(error, "caches[%zu]", index);
    return status;
}

static enum ckv_status make_caches(const struct load *load, struct ckv_loaded *out,
                                   struct ckv_error *error)
{
    const struct ckv_entry *entry = load->entry;
    out->alloc = load->alloc;
    out->cache_count = entry->cache_count;
    out->token_count = load->rows > 0 && load->rows < entry->token_count
                           ? (size_t)load->rows
                           : entry->token_count;
    out->caches = ckvi_zalloc(load->alloc, out->cache_count, sizeof *out->caches);
    out->tokens = ckvi_zalloc(load->alloc, out->token_count, sizeof *out->tokens);
    if (!out->caches || !out->tokens)
        return ckvi_nomem(error, out->token_count * sizeof *out->tokens, "loaded tokens");
    if (out->token_count > 0)
        memcpy(out->tokens, entry->tokens, out->token_count * sizeof *out->tokens);
    for (size_t i = 0; i < out->cache_count; i++) {
        enum ckv_status status = make_cache(load, i, &out->caches[i], error);
        if (status)
            return status;
    }
    return CKV_OK;
}

static enum ckv_status read_tensors(struct ckv_reader *reader, struct load *load,
                                    const struct ckv_load_options *options,
                                    uint64_t *read_bytes, struct ckv_error *error)
{
    struct ckv_sink sink = {.ctx = load, .lend = lend};
    struct ckv_restore_options how;
    struct ckv_restore *restore = NULL;
    bool more = true;
    bool whole;
    enum ckv_status status;
    ckv_restore_options_init(&how);
    how.verify = options->verify;
    how.chunk_bytes = options->chunk_bytes;
    if (load->rows > 0 && ckv_verified_holds(options->verified, reader))
        how.verify = false;
    how.prefix_rows = how.verify ? 0 : load->rows;
    whole = how.verify;
    status = ckv_restore_begin(reader, &sink, &how, &restore, error);
    while (status == CKV_OK && more)
        status = ckv_restore_step(restore, &more, error);
    if (status) {
        ckv_restore_abort(restore);
        return status;
    }
    *read_bytes = ckv_restore_done_bytes(restore);
    status = ckv_restore_finish(restore, error);
    if (status == CKV_OK && whole && options->verified)
        ckv_verified_set(options->verified, reader);
    return status;
}

static void load_deinit(struct load *load)
{
    size_t cache_count = load->entry ? load->entry->cache_count : 0;
    for (size_t i = 0; load->arrays && i < load->array_count; i++)
        ckv_array_unref(&load->arrays[i]);
    ckvi_free(load->alloc, load->arrays, load->array_count, sizeof *load->arrays);
    ckvi_free(load->alloc, load->first, cache_count, sizeof *load->first);
    ckvi_free(load->alloc, load->scratch, SCRATCH_BYTES, 1);
}

enum ckv_status ckv_load(const struct ckv_io *io, struct ckv_io_dir dir, const char *name,
                         const struct ckv_load_options *options, struct ckv_loaded *out,
                         struct ckv_error *error)
{
    struct ckv_load_options defaults;
    struct ckv_reader *reader = NULL;
    struct load load = {0};
    enum ckv_status status;
    memset(out, 0, sizeof *out);
    ckv_load_options_init(&defaults);
    if (!options)
        options = &defaults;
    if (options->size != sizeof *options)
        return ckv_error_set(error, CKV_INVALID, "load options: size %zu, expected %zu",
                             options->size, sizeof *options);
    load.alloc = ckvi_alloc_or_default(options->alloc);
    status = ckv_reader_open(io, dir, name, load.alloc, &reader, error);
    if (status)
        return status;
    load.entry = &ckv_reader_header(reader)->entry;
    load.rows = options->prefix;
    status = check_expectations(load.entry, options, error);
    if (status == CKV_OK)
        status = check_prefix(load.entry, options->prefix, error);
    if (status == CKV_OK)
        status = make_arrays(&load, error);
    if (status == CKV_OK)
        status = read_tensors(reader, &load, options, &out->read_bytes, error);
    if (status == CKV_OK)
        status = make_caches(&load, out, error);
    if (status)
        ckv_loaded_deinit(out);
    load_deinit(&load);
    ckv_reader_close(reader);
    return status;
}

void ckv_loaded_deinit(struct ckv_loaded *loaded)
{
    if (loaded->caches)
        ckv_caches_destroy(loaded->caches, loaded->cache_count);
    if (loaded->alloc) {
        ckvi_free(loaded->alloc, loaded->caches, loaded->cache_count,
                  sizeof *loaded->caches);
        ckvi_free(loaded->alloc, loaded->tokens, loaded->token_count,
                  sizeof *loaded->tokens);
    }
    memset(loaded, 0, sizeof *loaded);
}

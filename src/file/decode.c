/*
 * Owns the reading of a header: from text to entry, or to the one reason why not.
 *
 * Invariant: a header that is handed out has passed every rule of the format; nobody
 * above looks at its numbers with suspicion again. Failure story: the reason is the first
 * of: hash, syntax, format version, rules in the order of the text, rules across fields,
 * layout, file size. Whatever was allocated is given back; *out is NULL.
 */
#include "file/decode.h"

#include "base/alloc.h"
#include "base/escape.h"
#include <coldkv/hash.h>
#include <inttypes.h>
#include <string.h>

enum {
    TOP_VERSION,
    TOP_CREATED,
    TOP_META, /* CKV_META_COUNT of them */
    TOP_TOKENS = TOP_META + CKV_META_COUNT,
    TOP_CACHES,
    TOP_KEYS
};

static void free_storage(const struct ckv_alloc *alloc,
                         struct ckvi_header_storage *storage)
{
    if (!storage)
        return;
    ckvi_free_aligned(alloc, storage->tokens,
                      storage->token_capacity * sizeof *storage->tokens,
                      _Alignof(uint32_t));
    ckvi_free(alloc, storage->caches, storage->cache_capacity, sizeof *storage->caches);
    ckvi_free(alloc, storage->tensors, storage->tensor_capacity,
              sizeof *storage->tensors);
    for (size_t i = 0; i < CKV_META_COUNT; i++)
        ckvi_strfree(alloc, storage->values[i]);
    CKVI_DELETE(alloc, storage);
}

void ckv_header_destroy(struct ckv_header *header)
{
    if (!header)
        return;
    free_storage(header->alloc, header->storage);
    CKVI_DELETE(header->alloc, header);
}

static void read_meta(struct ckvi_decoder *decoder, enum ckv_meta_key key)
{
    struct ckvi_json_string string;
    struct ckv_entry *entry = decoder->entry;
    const char *name = ckv_meta_key_name(key);
    size_t size;
    size_t at;
    char *value;
    if (!ckvi_read_string(decoder, name, &string))
        return;
    at = (size_t)(string.data - decoder->json.text);
    size = ckvi_json_value_size(&string);
    if (size > CKV_META_VALUE_MAX) {
        ckvi_decoder_refuse(decoder, CKV_TOOBIG, at, name,
                            "%zu bytes are over the limit of %d", size,
                            CKV_META_VALUE_MAX);
        return;
    }
    value = ckvi_zalloc(decoder->alloc, size + 1, 1);
    if (!value) {
        ckvi_decoder_nomem(decoder);
        return;
    }
    ckvi_json_value_copy(&string, value);
    if (memchr(value, 0, size)) {
        ckvi_free(decoder->alloc, value, size + 1, 1);
        ckvi_decoder_refuse(decoder, CKV_CORRUPT, at, name, "expected no NUL character");
        return;
    }
    decoder->storage->values[entry->meta_count] = value;
    entry->meta[entry->meta_count].key = key;
    entry->meta[entry->meta_count].value = value;
    entry->meta_count++;
}

static void read_version(struct ckvi_decoder *decoder)
{
    if (!ckvi_read_integer(decoder, "formatVersion", CKVI_INTEGER_MAX, &decoder->version))
        return;
    if (decoder->version == CKV_FORMAT_VERSION)
        return;
    decoder->refused = CKV_OK; /* it outranks a rule that was broken before it */
    ckvi_decoder_refuse(decoder, CKV_VERSION, decoder->json.at, "formatVersion",
                        "expected %u, found %" PRIu64, CKV_FORMAT_VERSION,
                        decoder->version);
}

static void read_top(struct ckvi_decoder *decoder)
{
    static const char *const names[TOP_KEYS] = {
        "formatVersion", "createdAt", "modelId", "configFingerprint",
        "tokenizerHash", "ns",        "tokens",  "caches"};
    const uint32_t optional = ((1u << CKV_META_COUNT) - 1) << TOP_META;
    struct ckvi_members members;
    size_t which;
    if (!ckvi_members_begin(decoder, &members, "header", names, TOP_KEYS))
        return;
    members.always = 1u << TOP_VERSION;
    while (ckvi_members_next(decoder, &members, &which)) {
        if (which == TOP_VERSION)
            read_version(decoder);
        else if (which == TOP_CREATED)
            ckvi_read_integer(decoder, "createdAt", CKVI_INTEGER_MAX,
                              &decoder->entry->created_at_ms);
        else if (which == TOP_TOKENS)
            ckvi_read_tokens(decoder);
        else if (which == TOP_CACHES)
            ckvi_read_caches(decoder);
        else
            read_meta(decoder, (enum ckv_meta_key)(which - TOP_META));
    }
    if (!(members.seen & 1u << TOP_VERSION))
        decoder->refused = CKV_OK; /* nothing is known about such a text */
    ckvi_members_require(decoder, &members, (1u << TOP_KEYS) - 1 - optional);
}

static enum ckv_status report_fault(const struct ckvi_decoder *decoder,
                                    struct ckv_error *error)
{
    const struct ckvi_json *json = &decoder->json;
    size_t left = json->size - json->fault_at;
    char found[40];
    if (json->fault == CKV_NOMEM)
        return ckv_error_set(error, CKV_NOMEM, "out of memory for the header");
    ckvi_escape(json->text + json->fault_at, left < 8 ? left : 8, found, sizeof found);
    ckv_error_set(error, json->fault, "header: expected %s at byte %zu, found %s",
                  json->expected, json->fault_at, left ? found : "its end");
    if (error)
        error->file_offset = (int64_t)(CKV_PREFIX_BYTES + json->fault_at);
    return json->fault;
}

/* The tensors lie where the layout rule puts them, and the file ends where they do. */
static enum ckv_status check_layout(const struct ckv_header *header, uint64_t file_size,
                                    uint64_t *expected_size, struct ckv_error *error)
{
    const struct ckv_entry *entry = &header->entry;
    uint64_t end = 0;
    for (size_t i = 0; i < entry->cache_count; i++) {
        for (size_t j = 0; j < entry->caches[i].tensor_count; j++) {
            const struct ckv_tensor *tensor = &entry->caches[i].tensors[j];
            uint64_t offset = 0;
            if (!ckvi_layout_next(&end, tensor->bytes, &offset))
                return ckv_error_set(error, CKV_CORRUPT,
                                     "caches[%zu].tensors[%zu]: ends beyond 2^53 bytes",
                                     i, j);
            if (tensor->offset != offset)
                return ckv_error_set(
                    error, CKV_CORRUPT,
                    "caches[%zu].tensors[%zu].off: expected %" PRIu64
                    " (16 KiB aligned, behind the tensor before), found %" PRIu64,
                    i, j, offset, tensor->offset);
        }
    }
    *expected_size = header->prefix.data_start + end;
    if (file_size == *expected_size)
        return CKV_OK;
    return ckv_error_set(error, CKV_CORRUPT,
                         "file size: expected %" PRIu64
                         " bytes by the header, found %" PRIu64,
                         *expected_size, file_size);
}

static void link_tensors(struct ckv_header *header)
{
    struct ckvi_header_storage *storage = header->storage;
    size_t next = 0;
    header->entry.caches = storage->caches;
    for (size_t i = 0; i < header->entry.cache_count; i++) {
        /* With no tensors at all there is no array either. */
        storage->caches[i].tensors = storage->tensors ? storage->tensors + next : NULL;
        next += storage->caches[i].tensor_count;
    }
}

/* Everything behind the hash: *header is zeroed but for alloc, storage and prefix. */
static enum ckv_status decode_text(struct ckv_header *header, const uint8_t *json,
                                   uint64_t file_size, struct ckv_error *error)
{
    struct ckvi_decoder decoder;
    enum ckv_status status;
    memset(&decoder, 0, sizeof decoder);
    ckvi_json_init(&decoder.json, json, header->prefix.header_bytes);
    decoder.alloc = header->alloc;
    decoder.storage = header->storage;
    decoder.entry = &header->entry;
    read_top(&decoder);
    (void)ckvi_json_end(&decoder.json);
    if (decoder.json.fault)
        return report_fault(&decoder, error);
    if (decoder.refused) {
        if (error)
            *error = decoder.rule;
        return decoder.refused;
    }
    link_tensors(header);
    status = ckv_entry_validate(&header->entry, error);
    if (!status)
        status = check_layout(header, file_size, &header->file_size, error);
    if (!status)
        header->canonical = ckvi_header_matches(
            &header->entry, json, header->prefix.header_bytes, &decoder.tokens);
    return status;
}

static enum ckv_status check_hash(const struct ckv_prefix *prefix, const uint8_t *json,
                                  struct ckv_error *error)
{
    uint64_t found = ckv_wyhash(json, prefix->header_bytes, 0);
    if (found == prefix->header_hash)
        return CKV_OK;
    ckv_error_set(error, CKV_CORRUPT,
                  "header hash: expected %016" PRIx64 " by the prefix, found %016" PRIx64,
                  prefix->header_hash, found);
    if (error)
        error->file_offset = CKV_PREFIX_BYTES;
    return CKV_CORRUPT;
}

enum ckv_status ckv_header_decode(const struct ckv_alloc *alloc,
                                  const struct ckv_prefix *prefix, const uint8_t *json,
                                  uint64_t file_size, struct ckv_header **out,
                                  struct ckv_error *error)
{
    struct ckv_header *header = NULL;
    enum ckv_status status;
    *out = NULL;
    alloc = ckvi_alloc_or_default(alloc);
    if (prefix->header_bytes > CKV_HEADER_BYTES_MAX)
        return ckv_error_set(error, CKV_TOOBIG,
                             "headerLen: %" PRIu32 " is over the limit of %u",
                             prefix->header_bytes, CKV_HEADER_BYTES_MAX);
    status = check_hash(prefix, json, error);
    if (status)
        return status;
    header = CKVI_NEW(alloc, struct ckv_header);
    if (!header)
        return ckvi_nomem(error, sizeof *header, "a header");
    header->alloc = alloc;
    header->prefix = *prefix;
    header->storage = CKVI_NEW(alloc, struct ckvi_header_storage);
    status = header->storage
                 ? decode_text(header, json, file_size, error)
                 : ckvi_nomem(error, sizeof(struct ckvi_header_storage), "a header");
    if (status) {
        ckv_header_destroy(header);
        return status;
    }
    *out = header;
    return CKV_OK;
}

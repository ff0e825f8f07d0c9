/*
 * Owns the spelling of a header: one text per entry, byte for byte what a compact
 * ECMAScript serialization gives (docs/format.md), and the layout of the tensors behind
 * it.
 *
 * Invariant: the same walk over an entry counts, writes and compares, so that the three
 * can never disagree; hashes are always 16 digits, so the length does not depend on them.
 * Failure story: an entry that changed between plan and encode is INVALID, never a write
 * beyond the buffer.
 */
#include "file/encode.h"

#include "base/checked.h"
#include "cache/kind.h"
#include <coldkv/hash.h>
#include <inttypes.h>
#include <string.h>

/* A walk's target. All NULL: only the length is wanted. */
struct emitter {
    uint8_t *out;
    const uint8_t *expected;
    size_t size; /* of either buffer */
    size_t at;
    bool differs; /* did not fit, or not what was expected */
    const struct ckvi_token_span *tokens;
};

static void emit(struct emitter *to, const void *data, size_t size)
{
    if (to->out || to->expected) {
        if (to->differs || size > to->size - to->at) {
            to->differs = true;
            return;
        }
        if (to->out)
            memcpy(to->out + to->at, data, size);
        else if (memcmp(to->expected + to->at, data, size) != 0)
            to->differs = true;
    }
    to->at += size;
}

static void emit_text(struct emitter *to, const char *text)
{
    emit(to, text, strlen(text));
}

static void emit_integer(struct emitter *to, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    emit(to, digits + at, sizeof digits - at);
}

static void emit_escape(struct emitter *to, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char from[] = "\"\\\b\t\n\f\r";
    static const char names[] = "\"\\btnfr";
    const char *known = memchr(from, c, sizeof from - 1);
    char form[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    if (!known) {
        emit(to, form, sizeof form);
        return;
    }
    form[1] = names[known - from];
    emit(to, form, 2);
}

static void emit_string(struct emitter *to, const char *text)
{
    const char *run = text;
    emit(to, "\"", 1);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        emit(to, run, (size_t)(text - run));
        emit_escape(to, c);
        run = text + 1;
    }
    emit(to, run, (size_t)(text - run));
    emit(to, "\"", 1);
}

/* `,"name":`, or `{"name":` for the first member of an object. */
static void emit_key(struct emitter *to, char before, const char *name)
{
    emit(to, &before, 1);
    emit(to, "\"", 1);
    emit_text(to, name);
    emit(to, "\":", 2);
}

static void emit_integer_member(struct emitter *to, char before, const char *name,
                                uint64_t value)
{
    emit_key(to, before, name);
    emit_integer(to, value);
}

static void emit_string_member(struct emitter *to, char before, const char *name,
                               const char *value)
{
    emit_key(to, before, name);
    emit_string(to, value);
}

static void emit_tensor(struct emitter *to, const struct ckv_tensor *tensor)
{
    static const char hex[] = "0123456789abcdef";
    char hash[19] = "\"";
    emit_integer_member(to, '{', "off", tensor->offset);
    emit_integer_member(to, ',', "bytes", tensor->bytes);
    emit_key(to, ',', "shape");
    for (uint32_t i = 0; i < tensor->rank; i++) {
        emit(to, i ? "," : "[", 1);
        emit_integer(to, tensor->shape[i]);
    }
    emit(to, "]", 1);
    emit_integer_member(to, ',', "dtype", (uint64_t)tensor->dtype);
    emit_key(to, ',', "hash");
    for (unsigned i = 0; i < 16; i++)
        hash[1 + i] = hex[tensor->hash >> (60 - 4 * i) & 15];
    hash[17] = '"';
    emit(to, hash, 18);
    emit(to, "}", 1);
}

static void emit_cache(struct emitter *to, const struct ckv_cache *cache)
{
    uint32_t fields = ckvi_kind_of(cache->kind)->fields;
    emit_string_member(to, '{', "kind", ckvi_kind_of(cache->kind)->name);
    for (unsigned i = 0; i < CKVI_FIELD_COUNT; i++) {
        enum ckvi_field field = (enum ckvi_field)i;
        if (!(fields & CKVI_FIELD_BIT(field)))
            continue;
        if (field == CKVI_FIELD_ENGINE)
            emit_string_member(to, ',', ckvi_field_name(field), cache->engine);
        else
            emit_integer_member(to, ',', ckvi_field_name(field),
                                ckvi_field_get(cache, field));
    }
    emit_key(to, ',', "tensors");
    for (size_t i = 0; i < cache->tensor_count; i++) {
        emit(to, i ? "," : "[", 1);
        emit_tensor(to, &cache->tensors[i]);
    }
    emit(to, "]}", 2);
}

static void emit_tokens(struct emitter *to, const struct ckv_entry *entry)
{
    if (to->tokens) {
        if (!to->tokens->tight || to->at != to->tokens->begin)
            to->differs = true;
        to->at = to->tokens->end;
        return;
    }
    emit(to, "[", 1);
    for (size_t i = 0; i < entry->token_count; i++) {
        if (i)
            emit(to, ",", 1);
        emit_integer(to, entry->tokens[i]);
    }
    emit(to, "]", 1);
}

/* The entry is valid. */
static void emit_header(struct emitter *to, const struct ckv_entry *entry)
{
    emit_integer_member(to, '{', "formatVersion", CKV_FORMAT_VERSION);
    emit_integer_member(to, ',', "createdAt", entry->created_at_ms);
    for (size_t i = 0; i < entry->meta_count; i++)
        emit_string_member(to, ',', ckv_meta_key_name(entry->meta[i].key),
                           entry->meta[i].value);
    emit_key(to, ',', "tokens");
    emit_tokens(to, entry);
    emit_key(to, ',', "caches");
    emit(to, "[", 1);
    for (size_t i = 0; i < entry->cache_count; i++) {
        if (i)
            emit(to, ",", 1);
        emit_cache(to, &entry->caches[i]);
    }
    emit(to, "]}", 2);
}

bool ckvi_header_matches(const struct ckv_entry *entry, const uint8_t *text, size_t size,
                         const struct ckvi_token_span *tokens)
{
    struct emitter to = {.expected = text, .size = size, .tokens = tokens};
    emit_header(&to, entry);
    return !to.differs && to.at == size;
}

bool ckvi_layout_next(uint64_t *cursor, uint64_t bytes, uint64_t *offset)
{
    *offset = ckv_file_align(*cursor);
    if (*offset > CKVI_INTEGER_MAX || bytes > CKVI_INTEGER_MAX - *offset)
        return false;
    *cursor = *offset + bytes;
    return true;
}

static enum ckv_status lay_out(struct ckv_entry *entry, uint64_t *end,
                               struct ckv_error *error)
{
    *end = 0;
    for (size_t i = 0; i < entry->cache_count; i++) {
        struct ckv_cache *cache = &entry->caches[i];
        for (size_t j = 0; j < cache->tensor_count; j++)
            if (!ckvi_layout_next(end, cache->tensors[j].bytes,
                                  &cache->tensors[j].offset))
                return ckv_error_set(error, CKV_TOOBIG,
                                     "caches[%zu].tensors[%zu]: ends beyond 2^53 bytes",
                                     i, j);
    }
    return CKV_OK;
}

enum ckv_status ckv_header_plan(struct ckv_entry *entry, struct ckv_prefix *prefix,
                                uint64_t *file_size, struct ckv_error *error)
{
    struct emitter to = {0};
    uint64_t end = 0;
    enum ckv_status status = ckv_entry_validate(entry, error);
    memset(prefix, 0, sizeof *prefix);
    *file_size = 0;
    if (!status)
        status = lay_out(entry, &end, error);
    if (status)
        return status;
    emit_header(&to, entry);
    if (to.at > (size_t)CKV_HEADER_BYTES_MAX)
        return ckv_error_set(error, CKV_TOOBIG,
                             "header: %zu bytes are over the limit of %u", to.at,
                             CKV_HEADER_BYTES_MAX);
    prefix->header_bytes = (uint32_t)to.at;
    prefix->data_start = (uint32_t)ckv_file_align(CKV_PREFIX_BYTES + to.at);
    *file_size = prefix->data_start + end;
    return CKV_OK;
}

enum ckv_status ckv_header_encode(const struct ckv_entry *entry,
                                  struct ckv_prefix *prefix, uint8_t *json,
                                  struct ckv_error *error)
{
    struct emitter to = {.out = json, .size = prefix->header_bytes};
    emit_header(&to, entry);
    if (to.differs || to.at != prefix->header_bytes)
        return ckv_error_set(error, CKV_INVALID,
                             "the entry changed after its header was planned (%" PRIu32
                             " bytes)",
                             prefix->header_bytes);
    prefix->header_hash = ckv_wyhash(json, prefix->header_bytes, 0);
    return CKV_OK;
}

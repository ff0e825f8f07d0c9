/*
 * Owns the reading of the cache entries and their tensor slots. Keys may stand in any
 * order; which scalars a kind has is known from its table row.
 *
 * Invariant: the arrays grow by doubling while every element took its share of text, so
 * memory stays a small multiple of the text; tensors of all caches share one array,
 * linked to their caches when it has stopped moving.
 */
#include "file/decode.h"

#include "base/alloc.h"
#include "base/escape.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KEY_KIND = 0, KEY_FIELDS = 1, KEY_TENSORS = 1 + CKVI_FIELD_COUNT, CACHE_KEYS };
enum { SLOT_OFF, SLOT_BYTES, SLOT_SHAPE, SLOT_DTYPE, SLOT_HASH, SLOT_KEYS };

static const char *const slot_names[SLOT_KEYS] = {"off", "bytes", "shape", "dtype",
                                                  "hash"};

/* Room for one more element; false when memory is out. */
static bool grow(struct ckvi_decoder *decoder, void **array, size_t count,
                 size_t *capacity, size_t first_capacity, size_t element)
{
    size_t wanted = *capacity ? 2 * *capacity : first_capacity;
    void *moved;
    if (count < *capacity)
        return true;
    moved = ckvi_regrow(decoder->alloc, *array, *capacity, wanted, element);
    if (!moved) {
        ckvi_decoder_nomem(decoder);
        return false;
    }
    *array = moved;
    *capacity = wanted;
    return true;
}

static void read_shape(struct ckvi_decoder *decoder, struct ckv_tensor *tensor)
{
    bool first = true;
    if (!ckvi_read_begin_array(decoder, "shape"))
        return;
    while (ckvi_json_more(&decoder->json, &first, ']')) {
        char field[16];
        if (tensor->rank == CKV_RANK_MAX)
            ckvi_decoder_refuse(decoder, CKV_TOOBIG, decoder->json.at, "shape",
                                "the rank is over the limit of %d", CKV_RANK_MAX);
        if (decoder->refused) {
            if (!ckvi_json_skip(&decoder->json))
                return;
            continue;
        }
        (void)snprintf(field, sizeof field, "shape[%" PRIu32 "]", tensor->rank);
        if (ckvi_read_integer(decoder, field, CKVI_INTEGER_MAX,
                              &tensor->shape[tensor->rank]))
            tensor->rank++;
    }
}

static void read_hash(struct ckvi_decoder *decoder, uint64_t *out)
{
    struct ckvi_json_string string;
    char digits[16];
    char found[CKVI_ESCAPE_SIZE];
    uint64_t value = 0;
    bool good;
    if (!ckvi_read_string(decoder, "hash", &string))
        return;
    good = ckvi_json_value_size(&string) == sizeof digits;
    if (good)
        ckvi_json_value_copy(&string, digits);
    for (size_t i = 0; i < sizeof digits && good; i++) {
        char c = digits[i];
        good = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *out = value;
    if (good)
        return;
    ckvi_escape(string.data, string.size, found, 40);
    ckvi_decoder_refuse(decoder, CKV_CORRUPT, (size_t)(string.data - decoder->json.text),
                        "hash", "expected 16 lower-case hex digits, found %s", found);
}

static void read_slot(struct ckvi_decoder *decoder, struct ckv_tensor *tensor)
{
    struct ckvi_members members;
    uint64_t value = 0;
    size_t which;
    if (!ckvi_members_begin(decoder, &members, "slot", slot_names, SLOT_KEYS))
        return;
    while (ckvi_members_next(decoder, &members, &which)) {
        if (which == SLOT_OFF)
            ckvi_read_integer(decoder, "off", CKVI_INTEGER_MAX, &tensor->offset);
        else if (which == SLOT_BYTES)
            ckvi_read_integer(decoder, "bytes", CKVI_INTEGER_MAX, &tensor->bytes);
        else if (which == SLOT_SHAPE)
            read_shape(decoder, tensor);
        else if (which == SLOT_HASH)
            read_hash(decoder, &tensor->hash);
        else if (ckvi_read_integer(decoder, "dtype", CKV_DTYPE_COUNT - 1, &value))
            tensor->dtype = (enum ckv_dtype)value;
    }
    ckvi_members_require(decoder, &members, (1u << SLOT_KEYS) - 1);
}

static void read_tensors(struct ckvi_decoder *decoder, struct ckv_cache *cache)
{
    struct ckvi_header_storage *storage = decoder->storage;
    bool first = true;
    if (!ckvi_read_begin_array(decoder, "tensors"))
        return;
    while (ckvi_json_more(&decoder->json, &first, ']')) {
        void *array = storage->tensors;
        if (storage->tensor_count == CKV_TENSORS_MAX)
            ckvi_decoder_refuse(decoder, CKV_TOOBIG, decoder->json.at, "tensors",
                                "more than %d in all", CKV_TENSORS_MAX);
        if (decoder->refused) {
            if (!ckvi_json_skip(&decoder->json))
                return;
            continue;
        }
        if (!grow(decoder, &array, storage->tensor_count, &storage->tensor_capacity, 32,
                  sizeof *storage->tensors))
            return;
        storage->tensors = array;
        decoder->tensor = cache->tensor_count;
        decoder->level = CKVI_LEVEL_TENSOR;
        read_slot(decoder, &storage->tensors[storage->tensor_count]);
        decoder->level = CKVI_LEVEL_CACHE;
        storage->tensor_count++;
        cache->tensor_count++;
    }
}

static void read_kind(struct ckvi_decoder *decoder, struct ckv_cache *cache)
{
    struct ckvi_json_string string;
    char name[CKVI_ESCAPE_SIZE];
    size_t size;
    if (!ckvi_read_string(decoder, "kind", &string))
        return;
    size = ckvi_json_value_size(&string);
    if (size <= sizeof name) {
        ckvi_json_value_copy(&string, name);
        if (ckvi_kind_find(name, size, &cache->kind))
            return;
    }
    ckvi_escape(string.data, string.size, name, sizeof name);
    ckvi_decoder_refuse(decoder, CKV_FOREIGN, (size_t)(string.data - decoder->json.text),
                        "kind", "unknown kind %s", name);
}

static void read_engine(struct ckvi_decoder *decoder, struct ckv_cache *cache)
{
    struct ckvi_json_string string;
    char found[CKVI_ESCAPE_SIZE];
    size_t size;
    if (!ckvi_read_string(decoder, "engine", &string))
        return;
    size = ckvi_json_value_size(&string);
    if (size <= CKV_ENGINE_NAME_MAX) {
        ckvi_json_value_copy(&string, cache->engine);
        if (!memchr(cache->engine, 0, size))
            return; /* the rest of the name's rule is ckv_entry_validate's */
    }
    ckvi_escape(string.data, string.size, found, sizeof found);
    ckvi_decoder_refuse(decoder, CKV_CORRUPT, (size_t)(string.data - decoder->json.text),
                        "engine", "expected [A-Za-z0-9._-]{1,63}, found %s", found);
}

/* Exactly the kind's scalars must be there. */
static void check_keys(struct ckvi_decoder *decoder, const struct ckvi_members *members,
                       const struct ckv_cache *cache)
{
    const uint32_t ends = 1u << KEY_KIND | 1u << KEY_TENSORS;
    const struct ckvi_kind *kind = ckvi_kind_of(cache->kind);
    uint32_t strangers;
    ckvi_members_require(decoder, members, 1u << KEY_KIND);
    if (!kind)
        return;
    ckvi_members_require(decoder, members, ends | kind->fields << KEY_FIELDS);
    strangers = members->seen & ~(ends | kind->fields << KEY_FIELDS);
    for (size_t i = 0; i < CACHE_KEYS; i++)
        if (strangers & 1u << i)
            ckvi_decoder_refuse(decoder, CKV_CORRUPT, decoder->json.at, members->names[i],
                                "kind %s has no such key", kind->name);
}

static void read_cache(struct ckvi_decoder *decoder, struct ckv_cache *cache)
{
    const char *names[CACHE_KEYS] = {[KEY_KIND] = "kind", [KEY_TENSORS] = "tensors"};
    struct ckvi_members members;
    size_t which;
    for (unsigned i = 0; i < CKVI_FIELD_COUNT; i++)
        names[KEY_FIELDS + i] = ckvi_field_name((enum ckvi_field)i);
    if (!ckvi_members_begin(decoder, &members, "entry", names, CACHE_KEYS))
        return;
    while (ckvi_members_next(decoder, &members, &which)) {
        enum ckvi_field field = (enum ckvi_field)(which - KEY_FIELDS);
        uint64_t value = 0;
        if (which == KEY_KIND)
            read_kind(decoder, cache);
        else if (which == KEY_TENSORS)
            read_tensors(decoder, cache);
        else if (field == CKVI_FIELD_ENGINE)
            read_engine(decoder, cache);
        else if (ckvi_read_integer(decoder, names[which], ckvi_field_max(field), &value))
            ckvi_field_set(cache, field, value);
    }
    check_keys(decoder, &members, cache);
}

void ckvi_read_caches(struct ckvi_decoder *decoder)
{
    struct ckvi_header_storage *storage = decoder->storage;
    struct ckv_entry *entry = decoder->entry;
    bool first = true;
    if (!ckvi_read_begin_array(decoder, "caches"))
        return;
    while (ckvi_json_more(&decoder->json, &first, ']')) {
        void *array = storage->caches;
        if (entry->cache_count == CKV_CACHES_MAX)
            ckvi_decoder_refuse(decoder, CKV_TOOBIG, decoder->json.at, "caches",
                                "more than %d", CKV_CACHES_MAX);
        if (decoder->refused) {
            if (!ckvi_json_skip(&decoder->json))
                return;
            continue;
        }
        if (!grow(decoder, &array, entry->cache_count, &storage->cache_capacity, 8,
                  sizeof *storage->caches))
            return;
        storage->caches = array;
        decoder->cache = entry->cache_count;
        decoder->level = CKVI_LEVEL_CACHE;
        read_cache(decoder, &storage->caches[entry->cache_count]);
        decoder->level = CKVI_LEVEL_HEADER;
        entry->cache_count++;
    }
}

/*
 * Owns the reading of single values and keys out of a header, and the wording of what is
 * wrong with them: "caches[1].tensors[0].bytes: expected ..., found ...".
 *
 * Invariant: each read passes exactly one value, whatever it is, so that the scanner
 * stays in step; after a broken rule nothing is stored any more.
 */
#include "file/decode.h"

#include "base/escape.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FOUND_SIZE 64

void ckvi_decoder_refuse(struct ckvi_decoder *decoder, enum ckv_status status, size_t at,
                         const char *field, const char *format, ...)
{
    char place[96] = "";
    char finding[256];
    va_list arguments;
    if (decoder->refused)
        return;
    if (decoder->level == CKVI_LEVEL_CACHE)
        (void)snprintf(place, sizeof place, "caches[%zu].", decoder->cache);
    if (decoder->level == CKVI_LEVEL_TENSOR)
        (void)snprintf(place, sizeof place, "caches[%zu].tensors[%zu].", decoder->cache,
                       decoder->tensor);
    va_start(arguments, format);
    (void)vsnprintf(finding, sizeof finding, format, arguments);
    va_end(arguments);
    decoder->refused =
        ckv_error_set(&decoder->rule, status, "%s%s: %s", place, field, finding);
    decoder->rule.file_offset = (int64_t)(CKV_PREFIX_BYTES + at);
}

void ckvi_decoder_nomem(struct ckvi_decoder *decoder)
{
    ckvi_json_stop(&decoder->json, CKV_NOMEM);
}

/* Text for a value of this type that was passed: scalars as they stand. */
static void describe(const struct ckvi_decoder *decoder, enum ckvi_json_type type,
                     size_t begin, char out[FOUND_SIZE])
{
    size_t size = decoder->json.at - begin;
    if (type == CKVI_JSON_OBJECT)
        (void)snprintf(out, FOUND_SIZE, "an object");
    else if (type == CKVI_JSON_ARRAY)
        (void)snprintf(out, FOUND_SIZE, "an array");
    else
        ckvi_escape(decoder->json.text + begin, size, out, FOUND_SIZE);
}

/* Passes a value of a type that is not wanted. */
static void refuse_type(struct ckvi_decoder *decoder, const char *field,
                        const char *expected)
{
    enum ckvi_json_type type = ckvi_json_peek(&decoder->json);
    size_t begin = decoder->json.at;
    char found[FOUND_SIZE];
    if (!ckvi_json_skip(&decoder->json))
        return;
    describe(decoder, type, begin, found);
    ckvi_decoder_refuse(decoder, CKV_CORRUPT, begin, field, "expected %s, found %s",
                        expected, found);
}

bool ckvi_read_integer(struct ckvi_decoder *decoder, const char *field, uint64_t max,
                       uint64_t *out)
{
    char expected[96];
    char found[FOUND_SIZE];
    const uint8_t *data;
    size_t size;
    if (ckvi_json_peek(&decoder->json) == CKVI_JSON_NUMBER) {
        if (!ckvi_json_number(&decoder->json, &data, &size))
            return false;
        if (ckvi_json_integer(data, size, max, out))
            return true;
        ckvi_escape(data, size, found, sizeof found);
        ckvi_decoder_refuse(
            decoder, CKV_CORRUPT, (size_t)(data - decoder->json.text), field,
            "expected a plain integer from 0 to %" PRIu64 ", found %s", max, found);
        return false;
    }
    (void)snprintf(expected, sizeof expected, "a plain integer from 0 to %" PRIu64, max);
    refuse_type(decoder, field, expected);
    return false;
}

bool ckvi_read_string(struct ckvi_decoder *decoder, const char *field,
                      struct ckvi_json_string *out)
{
    if (ckvi_json_peek(&decoder->json) == CKVI_JSON_STRING)
        return ckvi_json_string(&decoder->json, out);
    refuse_type(decoder, field, "a string");
    return false;
}

bool ckvi_read_begin_array(struct ckvi_decoder *decoder, const char *field)
{
    if (ckvi_json_peek(&decoder->json) == CKVI_JSON_ARRAY)
        return ckvi_json_begin(&decoder->json, '[');
    refuse_type(decoder, field, "an array");
    return false;
}

bool ckvi_members_begin(struct ckvi_decoder *decoder, struct ckvi_members *members,
                        const char *field, const char *const *names, size_t name_count)
{
    memset(members, 0, sizeof *members);
    members->names = names;
    members->name_count = name_count;
    members->first = true;
    if (ckvi_json_peek(&decoder->json) == CKVI_JSON_OBJECT)
        return ckvi_json_begin(&decoder->json, '{');
    refuse_type(decoder, field, "an object");
    return false;
}

static void refuse_duplicate(struct ckvi_decoder *decoder,
                             const struct ckvi_json_string *key)
{
    char name[FOUND_SIZE];
    ckvi_escape(key->data, key->size, name, sizeof name);
    ckvi_decoder_refuse(decoder, CKV_CORRUPT, (size_t)(key->data - decoder->json.text),
                        name, "the key stands twice");
}

/* Keys that we do not know are passed, but not twice the same. */
static void note_unknown(struct ckvi_decoder *decoder, struct ckvi_members *members,
                         const struct ckvi_json_string *key)
{
    uint64_t hash;
    if (decoder->refused)
        return;
    hash = ckvi_json_value_hash(key);
    for (size_t i = 0; i < members->unknown_count; i++)
        if (members->unknown[i] == hash)
            refuse_duplicate(decoder, key);
    if (members->unknown_count < CKVI_UNKNOWN_KEYS_MAX)
        members->unknown[members->unknown_count++] = hash;
    else
        ckvi_decoder_refuse(decoder, CKV_TOOBIG, (size_t)(key->data - decoder->json.text),
                            "keys", "more than %d that are not known",
                            CKVI_UNKNOWN_KEYS_MAX);
}

/* Whether the value behind this key is wanted. */
static bool wanted(struct ckvi_decoder *decoder, struct ckvi_members *members,
                   const struct ckvi_json_string *key, size_t *which)
{
    uint32_t bit;
    for (*which = 0; *which < members->name_count; ++*which)
        if (ckvi_json_value_equals(key, members->names[*which]))
            break;
    if (*which == members->name_count) {
        note_unknown(decoder, members, key);
        return false;
    }
    bit = 1u << *which;
    if (members->seen & bit) {
        refuse_duplicate(decoder, key);
        return false;
    }
    members->seen |= bit;
    return !decoder->refused || (members->always & bit);
}

bool ckvi_members_next(struct ckvi_decoder *decoder, struct ckvi_members *members,
                       size_t *which)
{
    struct ckvi_json_string key;
    while (ckvi_json_more(&decoder->json, &members->first, '}')) {
        if (!ckvi_json_key(&decoder->json, &key))
            return false;
        if (wanted(decoder, members, &key, which))
            return true;
        if (!ckvi_json_skip(&decoder->json))
            return false;
    }
    return false;
}

void ckvi_members_require(struct ckvi_decoder *decoder,
                          const struct ckvi_members *members, uint32_t required)
{
    for (size_t i = 0; i < members->name_count; i++)
        if (required & ~members->seen & 1u << i)
            ckvi_decoder_refuse(decoder, CKV_CORRUPT, decoder->json.at, members->names[i],
                                "the key is missing");
}

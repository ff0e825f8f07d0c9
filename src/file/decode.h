/*
 * The header decoder at work. The scanner's faults (syntax) stop everything; a broken
 * rule does not: it is kept, and the rest is only checked for syntax, because a syntax
 * fault and another format version both outrank it wherever they stand.
 */
#ifndef COLDKV_FILE_DECODE_H
#define COLDKV_FILE_DECODE_H

#include "cache/kind.h"
#include "file/encode.h"
#include "file/json.h"
#include <coldkv/header.h>

/* What a decoded header owns. */
struct ckvi_header_storage {
    uint32_t *tokens;
    size_t token_capacity;
    struct ckv_cache *caches;
    size_t cache_capacity;
    struct ckv_tensor *tensors; /* of all caches, one behind the other */
    size_t tensor_count;
    size_t tensor_capacity;
    char *values[CKV_META_COUNT]; /* of the metadata, in file order */
};

enum ckvi_level { CKVI_LEVEL_HEADER, CKVI_LEVEL_CACHE, CKVI_LEVEL_TENSOR };

struct ckvi_decoder {
    struct ckvi_json json;
    const struct ckv_alloc *alloc;
    struct ckvi_header_storage *storage;
    struct ckv_entry *entry;
    enum ckv_status refused; /* the first broken rule, or OK */
    struct ckv_error rule;   /* and what it says */
    uint64_t version;
    struct ckvi_token_span tokens;
    enum ckvi_level level; /* for naming a field: the object it is in ... */
    size_t cache;          /* ... and that object's numbers */
    size_t tensor;
};

/* Keys that one object may have beyond those we know. */
#define CKVI_UNKNOWN_KEYS_MAX 64

/* The keys seen in one object. Zeroed by ckvi_members_begin. */
struct ckvi_members {
    const char *const *names; /* known keys */
    size_t name_count;
    uint32_t always; /* bits of names: wanted even after a rule was broken */
    uint32_t seen;   /* bits of names */
    bool first;
    size_t unknown_count;
    uint64_t unknown[CKVI_UNKNOWN_KEYS_MAX]; /* hashes, to find duplicates */
};

/* Notes a broken rule about `field` of the object at hand, at a position in the text. */
void ckvi_decoder_refuse(struct ckvi_decoder *decoder, enum ckv_status status, size_t at,
                         const char *field, const char *format, ...) CKV_PRINTF(5, 6);
/* Stops for lack of memory. */
void ckvi_decoder_nomem(struct ckvi_decoder *decoder);

/* Enters the object at hand; false (and the value skipped) when it is none. */
bool ckvi_members_begin(struct ckvi_decoder *decoder, struct ckvi_members *members,
                        const char *field, const char *const *names, size_t name_count);
/* The next key that we know and that has not been seen, its value up next; passes all
 * others. False at the object's end and on a fault. */
bool ckvi_members_next(struct ckvi_decoder *decoder, struct ckvi_members *members,
                       size_t *which);
/* Refuses when one of the keys in `required` (bits) was not seen. */
void ckvi_members_require(struct ckvi_decoder *decoder,
                          const struct ckvi_members *members, uint32_t required);

/* Each passes one value; true when it was as wanted, else the rule is noted. */
bool ckvi_read_integer(struct ckvi_decoder *decoder, const char *field, uint64_t max,
                       uint64_t *out);
bool ckvi_read_string(struct ckvi_decoder *decoder, const char *field,
                      struct ckvi_json_string *out);
bool ckvi_read_begin_array(struct ckvi_decoder *decoder, const char *field);

void ckvi_read_tokens(struct ckvi_decoder *decoder);
void ckvi_read_caches(struct ckvi_decoder *decoder);

#endif

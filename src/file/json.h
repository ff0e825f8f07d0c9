/*
 * A strict JSON scanner over a bounded text. It moves forward only, allocates nothing and
 * knows no values: it hands out the spans of strings and numbers. Strict: valid UTF-8, no
 * lone surrogate escapes, nesting <= CKV_JSON_DEPTH_MAX, nothing after the value.
 *
 * The first fault stays: after it every call fails at once, so that loops may ask late.
 */
#ifndef COLDKV_FILE_JSON_H
#define COLDKV_FILE_JSON_H

#include <coldkv/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ckvi_json_type {
    CKVI_JSON_NONE, /* no value begins here: a fault, or the end of the text */
    CKVI_JSON_OBJECT,
    CKVI_JSON_ARRAY,
    CKVI_JSON_STRING,
    CKVI_JSON_NUMBER,
    CKVI_JSON_LITERAL, /* true, false, null */
};

struct ckvi_json {
    const uint8_t *text;
    size_t size;
    size_t at;
    size_t blank_count; /* white space passed so far */
    unsigned depth;
    enum ckv_status
        fault; /* OK, CORRUPT, TOOBIG (nesting), or what ckvi_json_stop said */
    size_t fault_at;
    const char *expected; /* what the fault missed; static */
};

/* A string's bytes between the quotes, as they stand in the text. */
struct ckvi_json_string {
    const uint8_t *data;
    size_t size;
    bool escaped; /* has backslashes; else the bytes are the value */
};

void ckvi_json_init(struct ckvi_json *json, const uint8_t *text, size_t size);

/* Makes every further call fail with this status, unless there is a fault already. */
void ckvi_json_stop(struct ckvi_json *json, enum ckv_status status);

/* Passes white space and tells what value begins. Never a fault itself. */
enum ckvi_json_type ckvi_json_peek(struct ckvi_json *json);

/* Enters an object ('{') or array ('['). */
bool ckvi_json_begin(struct ckvi_json *json, char open);
/* Whether another member or item follows; passes the comma, or the closing bracket.
 * *first is true before the first call. False on a fault as well. */
bool ckvi_json_more(struct ckvi_json *json, bool *first, char close);
/* A member's key and its colon. */
bool ckvi_json_key(struct ckvi_json *json, struct ckvi_json_string *out);

bool ckvi_json_string(struct ckvi_json *json, struct ckvi_json_string *out);
/* A run of the characters numbers are made of; whether it is well-formed is not a fault
 * here but told by ckvi_json_number_valid, so that the caller can name the field. */
bool ckvi_json_number(struct ckvi_json *json, const uint8_t **data, size_t *size);
bool ckvi_json_number_valid(const uint8_t *data, size_t size);
/* A plain decimal without sign, point, exponent or leading zero, at most `max`. */
bool ckvi_json_integer(const uint8_t *data, size_t size, uint64_t max, uint64_t *out);
/* Any value, syntax checked. */
bool ckvi_json_skip(struct ckvi_json *json);
/* Nothing but white space is left. */
bool ckvi_json_end(struct ckvi_json *json);

/* Length of the valid escape that begins at p with a backslash, or 0; a pair of
 * surrogates is one escape, a lone one none. */
size_t ckvi_json_escape_length(const uint8_t *p, const uint8_t *end);
/* One code point of a string (scanned before, so well-formed): its UTF-8 bytes to out,
 * returns how many; moves *p on. */
size_t ckvi_json_unescape(const uint8_t **p, uint8_t out[4]);
/* Length of the string's value in bytes. */
size_t ckvi_json_value_size(const struct ckvi_json_string *string);
/* Writes the value (ckvi_json_value_size bytes). */
void ckvi_json_value_copy(const struct ckvi_json_string *string, void *out);
bool ckvi_json_value_equals(const struct ckvi_json_string *string, const char *text);
/* wyhash of the value. */
uint64_t ckvi_json_value_hash(const struct ckvi_json_string *string);

#endif

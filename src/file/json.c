/*
 * Owns JSON syntax.
 *
 * Invariant: text[at] is read only after at < size was seen.
 * Failure story: the first fault is kept with its position and what was expected there;
 * from then on nothing moves.
 */
#include "file/json.h"

#include "cache/utf8.h"
#include <coldkv/entry.h>
#include <string.h>

void ckvi_json_init(struct ckvi_json *json, const uint8_t *text, size_t size)
{
    memset(json, 0, sizeof *json);
    json->text = text;
    json->size = size;
}

static bool fail(struct ckvi_json *json, enum ckv_status status, size_t at,
                 const char *expected)
{
    if (json->fault)
        return false;
    json->fault = status;
    json->fault_at = at;
    json->expected = expected;
    return false;
}

void ckvi_json_stop(struct ckvi_json *json, enum ckv_status status)
{
    (void)fail(json, status, json->at, "");
}

static bool miss(struct ckvi_json *json, const char *expected)
{
    return fail(json, CKV_CORRUPT, json->at, expected);
}

static void skip_blanks(struct ckvi_json *json)
{
    size_t start = json->at;
    while (json->at < json->size) {
        uint8_t c = json->text[json->at];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            break;
        json->at++;
    }
    json->blank_count += json->at - start;
}

/* The next character, or -1 at the end and after a fault. */
static int look(const struct ckvi_json *json)
{
    if (json->fault || json->at >= json->size)
        return -1;
    return json->text[json->at];
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

enum ckvi_json_type ckvi_json_peek(struct ckvi_json *json)
{
    int c;
    skip_blanks(json);
    c = look(json);
    switch (c) {
    case '{':
        return CKVI_JSON_OBJECT;
    case '[':
        return CKVI_JSON_ARRAY;
    case '"':
        return CKVI_JSON_STRING;
    case 't':
    case 'f':
    case 'n':
        return CKVI_JSON_LITERAL;
    default:
        return is_digit(c) || c == '-' ? CKVI_JSON_NUMBER : CKVI_JSON_NONE;
    }
}

bool ckvi_json_begin(struct ckvi_json *json, char open)
{
    skip_blanks(json);
    if (look(json) != open)
        return miss(json, open == '{' ? "an object" : "an array");
    if (json->depth >= CKV_JSON_DEPTH_MAX)
        return fail(json, CKV_TOOBIG, json->at, "no deeper nesting (limit 16)");
    json->depth++;
    json->at++;
    return true;
}

bool ckvi_json_more(struct ckvi_json *json, bool *first, char close)
{
    bool was_first = *first;
    *first = false;
    skip_blanks(json);
    if (look(json) == close) {
        json->at++;
        json->depth--;
        return false;
    }
    if (was_first) {
        if (look(json) < 0)
            return miss(json, close == '}' ? "a key or '}'" : "a value or ']'");
        return true;
    }
    if (look(json) != ',')
        return miss(json, close == '}' ? "',' or '}'" : "',' or ']'");
    json->at++;
    skip_blanks(json);
    return !json->fault;
}

bool ckvi_json_key(struct ckvi_json *json, struct ckvi_json_string *out)
{
    if (ckvi_json_peek(json) != CKVI_JSON_STRING)
        return miss(json, "a key in quotes");
    if (!ckvi_json_string(json, out))
        return false;
    skip_blanks(json);
    if (look(json) != ':')
        return miss(json, "':' after the key");
    json->at++;
    return true;
}

/* Passes one character of a string. */
static bool pass_unit(struct ckvi_json *json, bool *escaped)
{
    const uint8_t *p = json->text + json->at;
    const uint8_t *end = json->text + json->size;
    size_t length;
    if (*p == '\\') {
        *escaped = true;
        length = ckvi_json_escape_length(p, end);
        if (length == 0)
            return miss(json, "a valid escape (no lone surrogate)");
    } else {
        if (*p < 0x20)
            return miss(json, "no raw control character");
        length = ckvi_utf8_sequence(p, (size_t)(end - p));
        if (length == 0)
            return miss(json, "valid UTF-8");
    }
    json->at += length;
    return true;
}

bool ckvi_json_string(struct ckvi_json *json, struct ckvi_json_string *out)
{
    if (ckvi_json_peek(json) != CKVI_JSON_STRING)
        return miss(json, "a string");
    json->at++;
    out->data = json->text + json->at;
    out->escaped = false;
    while (json->at < json->size && json->text[json->at] != '"')
        if (!pass_unit(json, &out->escaped))
            return false;
    if (json->at >= json->size)
        return miss(json, "the string's closing quote");
    out->size = (size_t)(json->text + json->at - out->data);
    json->at++;
    return true;
}

bool ckvi_json_number(struct ckvi_json *json, const uint8_t **data, size_t *size)
{
    size_t start;
    if (ckvi_json_peek(json) != CKVI_JSON_NUMBER)
        return miss(json, "a number");
    start = json->at;
    while (json->at < json->size) {
        uint8_t c = json->text[json->at];
        if (!is_digit(c) && c != '+' && c != '-' && c != '.' && c != 'e' && c != 'E')
            break;
        json->at++;
    }
    *data = json->text + start;
    *size = json->at - start;
    return true;
}

/* Passes at least one digit. */
static bool pass_digits(const uint8_t **p, const uint8_t *end)
{
    const uint8_t *start = *p;
    while (*p < end && is_digit(**p))
        ++*p;
    return *p > start;
}

bool ckvi_json_number_valid(const uint8_t *data, size_t size)
{
    const uint8_t *p = data;
    const uint8_t *end = data + size;
    const uint8_t *digits;
    if (size == 0)
        return false;
    if (*p == '-')
        p++;
    digits = p;
    if (!pass_digits(&p, end) || (*digits == '0' && p - digits > 1))
        return false;
    if (p < end && *p == '.') {
        p++;
        if (!pass_digits(&p, end))
            return false;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        if (!pass_digits(&p, end))
            return false;
    }
    return p == end;
}

bool ckvi_json_integer(const uint8_t *data, size_t size, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;
    if (size == 0 || size > 19 || (data[0] == '0' && size > 1))
        return false;
    for (size_t i = 0; i < size; i++) {
        if (!is_digit(data[i]))
            return false;
        value = value * 10 + (uint64_t)(data[i] - '0'); /* 19 digits fit in 64 bits */
    }
    *out = value;
    return value <= max;
}

static bool skip_literal(struct ckvi_json *json)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < 3; i++) {
        size_t length = strlen(words[i]);
        if (json->size - json->at < length)
            continue;
        if (memcmp(json->text + json->at, words[i], length) != 0)
            continue;
        json->at += length;
        return true;
    }
    return miss(json, "true, false or null");
}

/* Objects and arrays call back here once per level: ckvi_json_begin bounds the levels. */
static bool skip_members(struct ckvi_json *json, bool object)
{
    struct ckvi_json_string key;
    bool first = true;
    if (!ckvi_json_begin(json, object ? '{' : '['))
        return false;
    while (ckvi_json_more(json, &first, object ? '}' : ']')) {
        if (object && !ckvi_json_key(json, &key))
            return false;
        if (!ckvi_json_skip(json))
            return false;
    }
    return !json->fault;
}

bool ckvi_json_skip(struct ckvi_json *json)
{
    struct ckvi_json_string string;
    const uint8_t *data = NULL;
    size_t size = 0;
    size_t start;
    switch (ckvi_json_peek(json)) {
    case CKVI_JSON_OBJECT:
        return skip_members(json, true);
    case CKVI_JSON_ARRAY:
        return skip_members(json, false);
    case CKVI_JSON_STRING:
        return ckvi_json_string(json, &string);
    case CKVI_JSON_LITERAL:
        return skip_literal(json);
    case CKVI_JSON_NUMBER:
        start = json->at;
        if (!ckvi_json_number(json, &data, &size))
            return false;
        return ckvi_json_number_valid(data, size) ||
               fail(json, CKV_CORRUPT, start, "a well-formed number");
    case CKVI_JSON_NONE:
        break;
    }
    return miss(json, "a value");
}

bool ckvi_json_end(struct ckvi_json *json)
{
    skip_blanks(json);
    if (json->fault)
        return false;
    return json->at == json->size || miss(json, "the end of the text");
}

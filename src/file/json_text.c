/*
 * Owns what a JSON string means: its escapes and its value.
 *
 * Invariant: a span in struct ckvi_json_string has passed the scanner, which asked
 * ckvi_json_escape_length about each of its backslashes; so unescaping needs no checks.
 */
#include "cache/utf8.h"
#include "file/json.h"

#include <coldkv/hash.h>
#include <string.h>

#define SURROGATE_HIGH 0xd800u
#define SURROGATE_LOW 0xdc00u
#define SURROGATE_END 0xe000u

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

/* The value of four hex digits, or -1. */
static int32_t hex4(const uint8_t *p, const uint8_t *end)
{
    int32_t value = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int c = p[i];
        int digit = is_digit(c)            ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

size_t ckvi_json_escape_length(const uint8_t *p, const uint8_t *end)
{
    int32_t unit;
    int32_t low;
    if (end - p < 2)
        return 0;
    if (p[1] != 'u')
        return p[1] && strchr("\"\\/bfnrt", p[1]) ? 2 : 0;
    unit = hex4(p + 2, end);
    if (unit < 0)
        return 0;
    if ((uint32_t)unit < SURROGATE_HIGH || (uint32_t)unit >= SURROGATE_END)
        return 6;
    if ((uint32_t)unit >= SURROGATE_LOW)
        return 0;
    if (end - p < 12 || p[6] != '\\' || p[7] != 'u')
        return 0;
    low = hex4(p + 8, end);
    return low >= (int32_t)SURROGATE_LOW && low < (int32_t)SURROGATE_END ? 12 : 0;
}

static uint32_t unescape_unit(const uint8_t **p)
{
    static const char from[] = "bfnrt";
    static const char to[] = "\b\f\n\r\t";
    const uint8_t *q = *p;
    const char *found;
    uint32_t unit;
    uint32_t low;
    *p += 2;
    if (q[1] != 'u') {
        found = strchr(from, q[1]);
        return found ? (uint32_t)to[found - from] : q[1];
    }
    *p += 4;
    unit = (uint32_t)hex4(q + 2, q + 6);
    if (unit < SURROGATE_HIGH || unit >= SURROGATE_END)
        return unit;
    *p += 6;
    low = (uint32_t)hex4(q + 8, q + 12);
    return 0x10000u + ((unit - SURROGATE_HIGH) << 10) + (low - SURROGATE_LOW);
}

size_t ckvi_json_unescape(const uint8_t **p, uint8_t out[4])
{
    if (**p == '\\')
        return ckvi_utf8_encode(unescape_unit(p), out);
    out[0] = **p;
    ++*p;
    return 1;
}

size_t ckvi_json_value_size(const struct ckvi_json_string *string)
{
    const uint8_t *p = string->data;
    const uint8_t *end = p + string->size;
    uint8_t unit[4];
    size_t size = 0;
    if (!string->escaped)
        return string->size;
    while (p < end)
        size += ckvi_json_unescape(&p, unit);
    return size;
}

void ckvi_json_value_copy(const struct ckvi_json_string *string, void *out)
{
    const uint8_t *p = string->data;
    const uint8_t *end = p + string->size;
    uint8_t *to = out;
    if (!string->escaped) {
        memcpy(out, string->data, string->size);
        return;
    }
    while (p < end) {
        uint8_t unit[4];
        size_t length = ckvi_json_unescape(&p, unit);
        memcpy(to, unit, length);
        to += length;
    }
}

bool ckvi_json_value_equals(const struct ckvi_json_string *string, const char *text)
{
    const uint8_t *p = string->data;
    const uint8_t *end = p + string->size;
    size_t left = strlen(text);
    while (p < end) {
        uint8_t unit[4];
        size_t length = ckvi_json_unescape(&p, unit);
        if (length > left || memcmp(unit, text, length) != 0)
            return false;
        text += length;
        left -= length;
    }
    return left == 0;
}

uint64_t ckvi_json_value_hash(const struct ckvi_json_string *string)
{
    const uint8_t *p = string->data;
    const uint8_t *end = p + string->size;
    struct ckv_wyhash_state state;
    if (!string->escaped)
        return ckv_wyhash(string->data, string->size, 0);
    ckv_wyhash_init(&state, 0);
    while (p < end) {
        uint8_t unit[4];
        size_t length = ckvi_json_unescape(&p, unit);
        ckv_wyhash_update(&state, unit, length);
    }
    return ckv_wyhash_digest(&state);
}

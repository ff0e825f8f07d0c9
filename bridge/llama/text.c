/*
 * Owns the canonical spelling of everything that enters an identity.
 *
 * Invariant: equal values give equal bytes on every host and in every locale, different
 * values different bytes. The text is NUL-terminated whenever data is not NULL.
 *
 * Failure story: the first failed allocation sets `failed`; nothing is put after it.
 */
#include "text.h"

#include "memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define TEXT_FIRST_CAPACITY 1024u

void ckvi_llama_text_init(struct ckvi_llama_text *text, const struct ckv_alloc *alloc)
{
    *text = (struct ckvi_llama_text){.alloc = alloc};
}

void ckvi_llama_text_deinit(struct ckvi_llama_text *text)
{
    if (text->data)
        ckvi_llama_release(text->alloc, text->data, text->capacity, 1);
    *text = (struct ckvi_llama_text){.alloc = text->alloc};
}

static bool reserve(struct ckvi_llama_text *text, size_t size)
{
    size_t capacity = text->capacity ? text->capacity : TEXT_FIRST_CAPACITY;
    char *larger;
    if (text->failed)
        return false;
    if (text->data && size < text->capacity - text->length)
        return true;
    while (capacity - text->length <= size && capacity <= SIZE_MAX / 2)
        capacity *= 2;
    larger = capacity - text->length > size
                 ? ckvi_llama_allocate(text->alloc, capacity, 1)
                 : NULL;
    text->failed = !larger;
    if (!larger)
        return false;
    if (text->data)
        memcpy(larger, text->data, text->length);
    ckvi_llama_release(text->alloc, text->data, text->capacity, 1);
    text->data = larger;
    text->capacity = capacity;
    return true;
}

void ckvi_llama_text_put_bytes(struct ckvi_llama_text *text, const char *raw, size_t size)
{
    if (!reserve(text, size))
        return;
    if (size > 0)
        memcpy(text->data + text->length, raw, size);
    text->length += size;
    text->data[text->length] = '\0';
}

void ckvi_llama_text_put(struct ckvi_llama_text *text, const char *raw)
{
    ckvi_llama_text_put_bytes(text, raw, strlen(raw));
}

void ckvi_llama_text_escape(struct ckvi_llama_text *text, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        char escaped[8];
        if (byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\')
            snprintf(escaped, sizeof escaped, "%c", byte);
        else
            snprintf(escaped, sizeof escaped, "\\u%04x", byte);
        ckvi_llama_text_put(text, escaped);
    }
}

void ckvi_llama_text_string(struct ckvi_llama_text *text, const char *bytes)
{
    ckvi_llama_text_put(text, "\"");
    ckvi_llama_text_escape(text, bytes, strlen(bytes));
    ckvi_llama_text_put(text, "\"");
}

void ckvi_llama_text_key(struct ckvi_llama_text *text, const char *name)
{
    ckvi_llama_text_string(text, name);
    ckvi_llama_text_put(text, ":");
}

void ckvi_llama_text_unsigned(struct ckvi_llama_text *text, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    ckvi_llama_text_put(text, digits);
}

void ckvi_llama_text_signed(struct ckvi_llama_text *text, int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    ckvi_llama_text_put(text, digits);
}

void ckvi_llama_text_boolean(struct ckvi_llama_text *text, bool value)
{
    ckvi_llama_text_put(text, value ? "true" : "false");
}

/* A locale's decimal point may be any bytes; all others are ASCII digits and signs. */
static void put_number(struct ckvi_llama_text *text, const char *number)
{
    bool in_point = false;
    for (const char *at = number; *at; at++) {
        bool plain = (*at >= '0' && *at <= '9') || *at == '+' || *at == '-' || *at == 'e';
        if (plain)
            ckvi_llama_text_put_bytes(text, at, 1);
        else if (!in_point)
            ckvi_llama_text_put(text, ".");
        in_point = !plain;
    }
}

void ckvi_llama_text_float(struct ckvi_llama_text *text, float value)
{
    char number[64];
    uint32_t bits;
    if (isfinite(value)) {
        snprintf(number, sizeof number, "%.9g", (double)value);
        put_number(text, number);
        return;
    }
    memcpy(&bits, &value, sizeof bits);
    snprintf(number, sizeof number, "bits:0x%08" PRIx32, bits);
    ckvi_llama_text_put(text, number);
}

void ckvi_llama_text_double(struct ckvi_llama_text *text, double value)
{
    char number[64];
    uint64_t bits;
    if (isfinite(value)) {
        snprintf(number, sizeof number, "%.17g", value);
        put_number(text, number);
        return;
    }
    memcpy(&bits, &value, sizeof bits);
    snprintf(number, sizeof number, "bits:0x%016" PRIx64, bits);
    ckvi_llama_text_put(text, number);
}

/*
 * Owns the rule of what text is. Metadata goes to other programs byte for byte, so that
 * what is written here must be readable there.
 */
#include "cache/utf8.h"

struct form {
    size_t length;
    uint8_t second_low;  /* bounds of the second byte: they shut out overlong forms, */
    uint8_t second_high; /* surrogates and code points beyond the last one */
};

static struct form form_of(uint8_t first)
{
    if (first < 0x80)
        return (struct form){1, 0, 0};
    if (first < 0xc2)
        return (struct form){0, 0, 0};
    if (first < 0xe0)
        return (struct form){2, 0x80, 0xbf};
    if (first == 0xe0)
        return (struct form){3, 0xa0, 0xbf};
    if (first == 0xed)
        return (struct form){3, 0x80, 0x9f};
    if (first < 0xf0)
        return (struct form){3, 0x80, 0xbf};
    if (first == 0xf0)
        return (struct form){4, 0x90, 0xbf};
    if (first < 0xf4)
        return (struct form){4, 0x80, 0xbf};
    if (first == 0xf4)
        return (struct form){4, 0x80, 0x8f};
    return (struct form){0, 0, 0};
}

size_t ckvi_utf8_sequence(const uint8_t *p, size_t size)
{
    struct form form;
    if (size == 0)
        return 0;
    form = form_of(p[0]);
    if (form.length == 0 || form.length > size)
        return 0;
    if (form.length > 1 && (p[1] < form.second_low || p[1] > form.second_high))
        return 0;
    for (size_t i = 2; i < form.length; i++)
        if (p[i] < 0x80 || p[i] > 0xbf)
            return 0;
    return form.length;
}

bool ckvi_utf8_valid(const void *text, size_t size)
{
    const uint8_t *p = text;
    size_t at = 0;
    while (at < size) {
        size_t length = ckvi_utf8_sequence(p + at, size - at);
        if (length == 0)
            return false;
        at += length;
    }
    return true;
}

size_t ckvi_utf8_encode(uint32_t code, uint8_t out[4])
{
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xc0 | code >> 6);
        out[1] = (uint8_t)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xe0 | code >> 12);
        out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | code >> 18);
    out[1] = (uint8_t)(0x80 | (code >> 12 & 0x3f));
    out[2] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
    out[3] = (uint8_t)(0x80 | (code & 0x3f));
    return 4;
}

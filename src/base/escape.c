/*
 * Owns the one way in which bytes from a file or a directory get into messages: nothing
 * that a terminal or a log reader could take for a command passes.
 */
#include "base/escape.h"

#include <string.h>

static const char dots[] = "...";

/* Writes one byte's text form to `form`; returns its length. */
static size_t escape_byte(unsigned char byte, char form[4])
{
    static const char digits[] = "0123456789abcdef";
    if (byte >= 0x20 && byte < 0x7f && byte != '\\') {
        form[0] = (char)byte;
        return 1;
    }
    form[0] = '\\';
    form[1] = 'x';
    form[2] = digits[byte >> 4];
    form[3] = digits[byte & 15];
    return 4;
}

const char *ckvi_escape(const void *text, size_t size, char *out, size_t capacity)
{
    const unsigned char *bytes = text;
    size_t used = 0;
    size_t fits = 0; /* length up to which the dots still fit behind */
    for (size_t i = 0; i < size; i++) {
        char form[4];
        size_t length = escape_byte(bytes[i], form);
        if (used + length + 1 > capacity) {
            if (fits + sizeof dots <= capacity) {
                memcpy(out + fits, dots, sizeof dots);
                return out;
            }
            break;
        }
        memcpy(out + used, form, length);
        used += length;
        if (used + sizeof dots <= capacity)
            fits = used;
    }
    out[used] = '\0';
    return out;
}

const char *ckvi_escape_string(const char *text, char *out, size_t capacity)
{
    return ckvi_escape(text, strlen(text), out, capacity);
}

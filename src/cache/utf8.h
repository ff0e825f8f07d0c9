/* Strict UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef COLDKV_CACHE_UTF8_H
#define COLDKV_CACHE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length (1..4) of the valid sequence that begins at p, of which `size` bytes are there;
 * 0 when there is none. */
size_t ckvi_utf8_sequence(const uint8_t *p, size_t size);
/* Whether all of `size` bytes are valid sequences. */
bool ckvi_utf8_valid(const void *text, size_t size);
/* Writes the sequence of a code point (<= U+10FFFF, no surrogate); returns its length. */
size_t ckvi_utf8_encode(uint32_t code, uint8_t out[4]);

#endif

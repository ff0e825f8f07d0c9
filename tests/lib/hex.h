/* Bytes and 16-bit words as hexadecimal text, the way the vectors of the codecs are
 * written down. */
#ifndef COLDKV_TESTS_HEX_H
#define COLDKV_TESTS_HEX_H

#include <stddef.h>
#include <stdint.h>

/* How many bytes `hex` stands for. */
size_t test_hex_size(const char *hex);
/* Those bytes; ends the program when there is another character or not `size` of them. */
void test_hex_bytes(const char *hex, void *out, size_t size);
/* "3f80 bf78": numbers of four digits with a space between; returns how many. */
size_t test_hex_words(const char *hex, uint16_t *out, size_t capacity);

#endif

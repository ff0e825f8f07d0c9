/*
 * Codes of 2, 3, 4, 5, 6 or 8 bits as one little-endian bit stream: code i takes the bits
 * [i*bits, (i+1)*bits), counted from the lowest bit of the first byte.
 */
#ifndef COLDKV_TENSOR_BITPACK_H
#define COLDKV_TENSOR_BITPACK_H

#include <stddef.h>
#include <stdint.h>

/* `count` (a multiple of 8) codes below 2^bits, one per byte, to count * bits / 8 bytes.
 */
void ckvi_bitpack_encode(uint32_t bits, const uint8_t *codes, size_t count,
                         uint8_t *packed);
/* And back. */
void ckvi_bitpack_decode(uint32_t bits, const uint8_t *packed, size_t count,
                         uint8_t *codes);

#endif

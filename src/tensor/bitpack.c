/*
 * Owns the bit streams of both codecs. Eight codes are one 64-bit word with a byte for
 * each; three steps close the gaps between neighbours, pairs and fours:
 *
 *     00000aaa 00000bbb ...   ->   0000000000aaabbb ...   ->   8 * bits bits in a row
 *
 * Invariant: reads and writes exactly count codes and count * bits / 8 bytes. Cannot
 * fail; widths that no codec has are the caller's mistake.
 */
#include "tensor/bitpack.h"

#include "base/assert.h"
#include "base/bytes.h"
#include <string.h>

/* All lanes of `width` bits, each with its lowest `bits` set. */
static inline uint64_t lanes(unsigned width, unsigned bits)
{
    uint64_t mask = 0;
    for (unsigned at = 0; at < 64; at += width)
        mask |= ((UINT64_C(1) << bits) - 1) << at;
    return mask;
}

/* The upper half of every lane of 2 * half bits moves down by `gap`, or back up. */
static inline uint64_t close_gap(uint64_t word, unsigned half, unsigned gap)
{
    uint64_t low = lanes(2 * half, half);
    return (word & low) | ((word & ~low) >> gap);
}

static inline uint64_t open_gap(uint64_t word, unsigned half, unsigned gap)
{
    uint64_t kept = lanes(2 * half, half - gap);
    return (word & kept) | ((word << gap) & (kept << half));
}

static inline void encode(unsigned bits, const uint8_t *codes, size_t count,
                          uint8_t *packed)
{
    for (size_t i = 0; i < count; i += 8, packed += bits) {
        uint64_t word = ckvi_get_le64(codes + i);
        word = close_gap(word, 8, 8 - bits);
        word = close_gap(word, 16, 2 * (8 - bits));
        word = close_gap(word, 32, 4 * (8 - bits));
        for (unsigned k = 0; k < bits; k++)
            packed[k] = (uint8_t)(word >> 8 * k);
    }
}

static inline uint64_t spread(unsigned bits, uint64_t word)
{
    word = open_gap(word, 32, 4 * (8 - bits));
    word = open_gap(word, 16, 2 * (8 - bits));
    return open_gap(word, 8, 8 - bits);
}

static inline void decode(unsigned bits, const uint8_t *packed, size_t count,
                          uint8_t *codes)
{
    size_t i = 0;
    /* Loads of 8 bytes reach past the `bits` that are wanted; the last ones must not. */
    for (; (count - i) / 8 * bits >= 8; i += 8, packed += bits)
        ckvi_put_le64(codes + i, spread(bits, ckvi_get_le64(packed)));
    for (; i < count; i += 8, packed += bits) {
        uint64_t word = 0;
        for (unsigned k = 0; k < bits; k++)
            word |= (uint64_t)packed[k] << 8 * k;
        ckvi_put_le64(codes + i, spread(bits, word));
    }
}

void ckvi_bitpack_encode(uint32_t bits, const uint8_t *codes, size_t count,
                         uint8_t *packed)
{
    CKV_ASSERT(count % 8 == 0);
    switch (bits) {
    case 2:
        encode(2, codes, count, packed);
        break;
    case 3:
        encode(3, codes, count, packed);
        break;
    case 4:
        encode(4, codes, count, packed);
        break;
    case 5:
        encode(5, codes, count, packed);
        break;
    case 6:
        encode(6, codes, count, packed);
        break;
    default:
        CKV_ASSERT(bits == 8);
        memcpy(packed, codes, count);
    }
}

void ckvi_bitpack_decode(uint32_t bits, const uint8_t *packed, size_t count,
                         uint8_t *codes)
{
    CKV_ASSERT(count % 8 == 0);
    switch (bits) {
    case 2:
        decode(2, packed, count, codes);
        break;
    case 3:
        decode(3, packed, count, codes);
        break;
    case 4:
        decode(4, packed, count, codes);
        break;
    case 5:
        decode(5, packed, count, codes);
        break;
    case 6:
        decode(6, packed, count, codes);
        break;
    default:
        CKV_ASSERT(bits == 8);
        memcpy(codes, packed, count);
    }
}

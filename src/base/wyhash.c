/*
 * Owns wyhash as the file format uses it: docs/format.md, "Hash", gives the rule in
 * words.
 *
 * Invariant of the streaming form: `block` holds the last 1..48 bytes of what came so far
 * (0 only at the very start), because the rule mixes a block of 48 only when at least one
 * byte follows it. `last` holds the 16 bytes before `block` for the tail, which reaches
 * back over bytes that are mixed already.
 */
#include <coldkv/hash.h>

#include "base/bytes.h"
#include <string.h>

#define BLOCK 48u
#define TAIL 16u

static const uint64_t prime[4] = {
    UINT64_C(0xa0761d6478bd642f), UINT64_C(0xe7037ed1a0b428db),
    UINT64_C(0x8ebc6af09c88c6e3), UINT64_C(0x589965cc75374cc3)};

/* The 128-bit product, low half in *a and high half in *b. */
static inline void multiply(uint64_t *a, uint64_t *b)
{
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)*a * *b;
    *a = (uint64_t)product;
    *b = (uint64_t)(product >> 64);
#else
    uint64_t a_high = *a >> 32, a_low = (uint32_t)*a;
    uint64_t b_high = *b >> 32, b_low = (uint32_t)*b;
    uint64_t low = a_low * b_low;
    uint64_t cross = a_high * b_low + (low >> 32);
    uint64_t middle = a_low * b_high + (uint32_t)cross;
    *a = (middle << 32) | (uint32_t)low;
    *b = a_high * b_high + (cross >> 32) + (middle >> 32);
#endif
}

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    multiply(&a, &b);
    return a ^ b;
}

static inline uint64_t start(uint64_t seed)
{
    return seed ^ mix(seed ^ prime[0], prime[1]);
}

static uint64_t finish(uint64_t a, uint64_t b, uint64_t lane, uint64_t total)
{
    a ^= prime[1];
    b ^= lane;
    multiply(&a, &b);
    return mix(a ^ prime[0] ^ total, b ^ prime[1]);
}

/* Up to 16 bytes. */
static uint64_t hash_short(const uint8_t *p, size_t size, uint64_t lane)
{
    uint64_t a = 0;
    uint64_t b = 0;
    if (size >= 4) {
        size_t middle = (size >> 3) << 2;
        size_t end = size - 4;
        a = (uint64_t)ckvi_get_le32(p) << 32 | ckvi_get_le32(p + middle);
        b = (uint64_t)ckvi_get_le32(p + end) << 32 | ckvi_get_le32(p + end - middle);
    } else if (size > 0) {
        a = (uint64_t)p[0] << 16 | (uint64_t)p[size >> 1] << 8 | p[size - 1];
    }
    return finish(a, b, lane, size);
}

/* Mixes whole blocks while at least one byte follows; returns how many bytes it took. */
static size_t mix_blocks(const uint8_t *p, size_t size, uint64_t lanes[3])
{
    uint64_t lane0 = lanes[0];
    uint64_t lane1 = lanes[1];
    uint64_t lane2 = lanes[2];
    size_t taken = 0;
    while (size - taken > BLOCK) {
        const uint8_t *q = p + taken;
        lane0 = mix(ckvi_get_le64(q) ^ prime[1], ckvi_get_le64(q + 8) ^ lane0);
        lane1 = mix(ckvi_get_le64(q + 16) ^ prime[2], ckvi_get_le64(q + 24) ^ lane1);
        lane2 = mix(ckvi_get_le64(q + 32) ^ prime[3], ckvi_get_le64(q + 40) ^ lane2);
        taken += BLOCK;
    }
    lanes[0] = lane0;
    lanes[1] = lane1;
    lanes[2] = lane2;
    return taken;
}

/* The last 1..48 bytes of an input longer than 16; `tail` points at its last 16 bytes. */
static uint64_t hash_rest(const uint8_t *p, size_t size, const uint8_t *tail,
                          const uint64_t lanes[3], uint64_t total)
{
    /* Without a mixed block all three lanes are equal and this is lane 0 itself. */
    uint64_t lane = lanes[0] ^ lanes[1] ^ lanes[2];
    for (size_t at = 0; at + TAIL < size; at += TAIL)
        lane = mix(ckvi_get_le64(p + at) ^ prime[1], ckvi_get_le64(p + at + 8) ^ lane);
    return finish(ckvi_get_le64(tail), ckvi_get_le64(tail + 8), lane, total);
}

uint64_t ckv_wyhash(const void *data, size_t size, uint64_t seed)
{
    const uint8_t *p = data;
    uint64_t lane = start(seed);
    uint64_t lanes[3] = {lane, lane, lane};
    size_t taken;
    if (size <= TAIL)
        return hash_short(p, size, lane);
    taken = mix_blocks(p, size, lanes);
    return hash_rest(p + taken, size - taken, p + size - TAIL, lanes, size);
}

void ckv_wyhash_init(struct ckv_wyhash_state *state, uint64_t seed)
{
    memset(state, 0, sizeof *state);
    state->seed = seed;
    state->lane[0] = state->lane[1] = state->lane[2] = start(seed);
}

void ckv_wyhash_update(struct ckv_wyhash_state *state, const void *data, size_t size)
{
    const uint8_t *p = data;
    size_t taken;
    if (size == 0)
        return;
    state->total += size;
    if (size <= BLOCK - state->held) {
        memcpy(state->block + state->held, p, size);
        state->held += size;
        return;
    }
    if (state->held > 0) {
        /* More follows than the block holds: fill it, mix it, remember its end. */
        uint8_t full[BLOCK + 1] = {0};
        size_t fill = BLOCK - state->held;
        memcpy(full, state->block, state->held);
        memcpy(full + state->held, p, fill);
        (void)mix_blocks(full, sizeof full, state->lane);
        memcpy(state->last, full + BLOCK - TAIL, TAIL);
        p += fill;
        size -= fill;
    }
    taken = mix_blocks(p, size, state->lane);
    if (taken > 0)
        memcpy(state->last, p + taken - TAIL, TAIL);
    state->held = size - taken;
    memcpy(state->block, p + taken, state->held);
}

uint64_t ckv_wyhash_digest(const struct ckv_wyhash_state *state)
{
    uint8_t joined[TAIL + BLOCK];
    if (state->total <= TAIL)
        return hash_short(state->block, state->held, start(state->seed));
    memcpy(joined, state->last, TAIL);
    memcpy(joined + TAIL, state->block, state->held);
    return hash_rest(state->block, state->held, joined + state->held, state->lane,
                     state->total);
}

/*
 * wyhash, 64 bits, as the file format uses it (final version 3 constants, seed 0).
 * It detects accidents; it is no defence against someone who wants a collision.
 */
#ifndef COLDKV_HASH_H
#define COLDKV_HASH_H

#include <coldkv/export.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Hash of `size` bytes. data may be NULL when size is 0. */
CKV_API uint64_t ckv_wyhash(const void *data, size_t size, uint64_t seed);

/**
 * The same hash over bytes that arrive in pieces of any size: the result does not depend
 * on where the pieces were cut. Plain value, no resources; copy it freely. Do not touch
 * the members.
 */
struct ckv_wyhash_state {
    uint64_t seed;
    uint64_t lane[3];
    uint64_t total;
    size_t held;
    unsigned char block[48]; /* bytes not mixed yet: the last 1..48 */
    unsigned char last[16];  /* the 16 bytes before `block`, for the overlapping tail */
};

CKV_API void ckv_wyhash_init(struct ckv_wyhash_state *state, uint64_t seed);
CKV_API void ckv_wyhash_update(struct ckv_wyhash_state *state, const void *data,
                               size_t size);
/** The hash of all bytes so far. The state is unchanged and may go on. */
CKV_API uint64_t ckv_wyhash_digest(const struct ckv_wyhash_state *state);

#ifdef __cplusplus
}
#endif

#endif

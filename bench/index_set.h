/* A prefix index full of made-up conversations, and prompts to ask it with. */
#ifndef COLDKV_BENCH_INDEX_SET_H
#define COLDKV_BENCH_INDEX_SET_H

#include <coldkv/alloc.h>
#include <coldkv/index.h>
#include <coldkv/status.h>
#include <stddef.h>
#include <stdint.h>

#define INDEX_SET_LONG 32000u /* tokens of a long entry and of a prompt */
#define INDEX_SET_BASES 64u
#define INDEX_SET_PROMPTS 192u

struct index_prompt {
    uint32_t tokens[INDEX_SET_LONG];
    uint64_t prefix; /* what the best candidate must have */
};

struct index_set {
    struct ckv_alloc alloc; /* counts live_bytes */
    size_t live_bytes;
    struct ckv_index *index;
    size_t entry_count;
    uint64_t distinct_tokens;
    uint32_t (*bases)[INDEX_SET_LONG];
    uint32_t used[INDEX_SET_BASES];   /* longest prefix of each that an entry has */
    uint32_t usable[INDEX_SET_BASES]; /* and one that can be cut anywhere */
    struct index_prompt *prompts;
};

/**
 * `short_count` entries of 256 to 4,096 tokens and one of 32,000 for each hundred of
 * them; a third begins like others, in different lengths; a quarter cannot be cut. Always
 * the same for the same count. The set must stay where it is. deinit of a zeroed set does
 * nothing.
 */
enum ckv_status index_set_init(struct index_set *set, size_t short_count,
                               struct ckv_error *error) CKV_WARN_UNUSED;
void index_set_deinit(struct index_set *set);

/* Asks with one of the prompts; false when the best candidate is not what it must be. */
bool index_set_find(const struct index_set *set, size_t prompt);

#endif

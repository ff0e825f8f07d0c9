/*
 * Histories of a prefix index: what is done to it is drawn from bytes (of a random
 * generator or of a fuzzer), done to the model too, and after every step both are asked
 * the same questions.
 */
#ifndef COLDKV_TESTS_INDEX_HISTORY_H
#define COLDKV_TESTS_INDEX_HISTORY_H

#include "lib/index_model.h"
#include <coldkv/index.h>

/* Longest entry of a history. */
#define INDEX_HISTORY_TOKENS 64

struct index_history {
    struct ckv_index *index;
    const uint8_t *data; /* decisions; zeros behind their end */
    size_t size;
    uint32_t alphabet; /* tokens are below it; at least 1 */
    size_t length_max; /* at most INDEX_HISTORY_TOKENS */
    size_t count_max;  /* of entries; beyond it more are removed than inserted */
    /* Called before the index allocates; attempt 0 = all goes well, n > 0 = allocation n
     * fails; after a failure n + 1 follows. NULL = memory never fails. */
    void (*arm)(void *ctx, size_t attempt);
    void *arm_ctx;
    /* the history's own; zero at first */
    struct index_model model;
    uint64_t made;
    size_t at;
    uint32_t tokens[INDEX_HISTORY_TOKENS]; /* drawn last */
    size_t token_count;
};

/* One change and the questions after it. NULL when index and model agree, else where they
 * do not. */
const char *index_history_step(struct index_history *history);
/* Whether there are decisions left. */
bool index_history_goes_on(const struct index_history *history);
/* Removes all entries, asking on. */
const char *index_history_empty(struct index_history *history);
/* The index is the caller's. */
void index_history_deinit(struct index_history *history);

#endif

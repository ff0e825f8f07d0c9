/*
 * The prefix index in its plainest form: an array of entries that are compared one by
 * one. What <coldkv/index.h> promises, written down once more.
 */
#ifndef COLDKV_TESTS_INDEX_MODEL_H
#define COLDKV_TESTS_INDEX_MODEL_H

#include <coldkv/index.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct index_model {
    struct ckv_index_entry *entries; /* their tokens are the model's */
    size_t count;
    size_t capacity;
};

/* A zeroed model is empty. */
void index_model_deinit(struct index_model *model);

/* OK, EXISTS or INVALID as the index. */
enum ckv_status index_model_insert(struct index_model *model,
                                   const struct ckv_index_entry *entry);
bool index_model_remove(struct index_model *model, uint64_t id);
bool index_model_touch(struct index_model *model, uint64_t id, uint64_t recency);
/* NULL when it is not there. Valid until the next change. */
const struct ckv_index_entry *index_model_get(const struct index_model *model,
                                              uint64_t id);
size_t index_model_find(const struct index_model *model, const uint32_t *prompt,
                        size_t prompt_length, struct ckv_index_match *out,
                        size_t capacity);
/* Ids in the order of their insertion; `out` has room for all. */
size_t index_model_covered(const struct index_model *model, const uint32_t *tokens,
                           size_t token_count, uint64_t floor, uint64_t *out);
/* Whether this entry alone would make ckv_index_covers true. */
bool index_model_serves(const struct ckv_index_entry *entry, const uint32_t *tokens,
                        size_t token_count);
bool index_model_covers(const struct index_model *model, const uint32_t *tokens,
                        size_t token_count);
uint64_t index_model_longest(const struct index_model *model);
/* How many tokens a prefix tree of the entries has: prefixes that differ. */
uint64_t index_model_distinct(const struct index_model *model);

#endif

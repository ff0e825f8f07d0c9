/* Remembers the outcomes of a spill queue, in the order in which they were told. Thread
 * safe. */
#ifndef COLDKV_TESTS_OUTCOMES_H
#define COLDKV_TESTS_OUTCOMES_H

#include <coldkv/spill_queue.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define TEST_OUTCOMES_MAX 256

struct test_outcome {
    enum ckv_spill_outcome outcome;
    uint32_t first; /* token */
    size_t token_count;
    char ns[16];
};

struct test_outcomes {
    pthread_mutex_t mutex;
    struct test_outcome items[TEST_OUTCOMES_MAX]; /* the first ones */
    size_t count;
};

void test_outcomes_init(struct test_outcomes *outcomes);
void test_outcomes_deinit(struct test_outcomes *outcomes);
/* A ckv_spill_done_fn; ctx is the outcomes. */
void test_outcomes_note(void *ctx, const char *ns, const struct ckv_entry *entry,
                        enum ckv_spill_outcome outcome);
size_t test_outcomes_count(struct test_outcomes *outcomes);
struct test_outcome test_outcomes_get(struct test_outcomes *outcomes, size_t number);

#endif

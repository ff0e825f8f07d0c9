/*
 * An allocator that keeps books: what is live, what the peak was, whether each block
 * comes back with the size and alignment it was asked for with, and that fails when told.
 * New and freed memory is filled with rubbish; resize always moves. Thread safe.
 */
#ifndef COLDKV_TESTS_COUNTING_ALLOC_H
#define COLDKV_TESTS_COUNTING_ALLOC_H

#include <coldkv/alloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct test_alloc {
    struct ckv_alloc alloc; /* give &x.alloc to the code under test */
    pthread_mutex_t mutex;
    size_t live_blocks;
    size_t live_bytes;
    size_t peak_bytes;
    size_t call_count; /* allocate and resize calls so far, failed ones included */
    size_t fail_at;    /* the call with this number fails (the first is 1); 0 = none */
    bool fail_on;      /* all later calls fail too */
    size_t failed_count;
    size_t bytes_max; /* calls that would lead beyond so many live bytes fail; 0 = none */
};

void test_alloc_init(struct test_alloc *alloc);
/* Whether nothing is live; says on stderr what is. */
bool test_alloc_clean(struct test_alloc *alloc);
/* Forgets the counts and the orders to fail, not the live blocks. */
void test_alloc_reset(struct test_alloc *alloc);
void test_alloc_deinit(struct test_alloc *alloc);

#endif

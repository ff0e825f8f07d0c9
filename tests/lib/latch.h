/* A gate between threads of a test: those who come wait in it until the test opens it,
 * and the test can wait until they have come. No time is involved. */
#ifndef COLDKV_TESTS_LATCH_H
#define COLDKV_TESTS_LATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct test_latch {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool open;
    size_t arrived; /* how often it was passed or is waited in */
};

void test_latch_init(struct test_latch *latch, bool open);
void test_latch_deinit(struct test_latch *latch);
/* Counts as arrived, then waits until it is open. */
void test_latch_pass(struct test_latch *latch);
/* Waits until so many have arrived, all told. */
void test_latch_await(struct test_latch *latch, size_t arrived);
void test_latch_open(struct test_latch *latch);
/* Those who come from now on wait again. */
void test_latch_close(struct test_latch *latch);
size_t test_latch_arrived(struct test_latch *latch);

#endif

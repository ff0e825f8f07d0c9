/* Owns latches. */
#include "lib/latch.h"

#include "lib/require.h"

void test_latch_init(struct test_latch *latch, bool open)
{
    TEST_REQUIRE(pthread_mutex_init(&latch->mutex, NULL) == 0);
    TEST_REQUIRE(pthread_cond_init(&latch->changed, NULL) == 0);
    latch->open = open;
    latch->arrived = 0;
}

void test_latch_deinit(struct test_latch *latch)
{
    pthread_cond_destroy(&latch->changed);
    pthread_mutex_destroy(&latch->mutex);
}

void test_latch_pass(struct test_latch *latch)
{
    pthread_mutex_lock(&latch->mutex);
    latch->arrived++;
    pthread_cond_broadcast(&latch->changed);
    while (!latch->open)
        pthread_cond_wait(&latch->changed, &latch->mutex);
    pthread_mutex_unlock(&latch->mutex);
}

void test_latch_await(struct test_latch *latch, size_t arrived)
{
    pthread_mutex_lock(&latch->mutex);
    while (latch->arrived < arrived)
        pthread_cond_wait(&latch->changed, &latch->mutex);
    pthread_mutex_unlock(&latch->mutex);
}

static void set_open(struct test_latch *latch, bool open)
{
    pthread_mutex_lock(&latch->mutex);
    latch->open = open;
    pthread_cond_broadcast(&latch->changed);
    pthread_mutex_unlock(&latch->mutex);
}

void test_latch_open(struct test_latch *latch)
{
    set_open(latch, true);
}

void test_latch_close(struct test_latch *latch)
{
    set_open(latch, false);
}

size_t test_latch_arrived(struct test_latch *latch)
{
    size_t arrived;
    pthread_mutex_lock(&latch->mutex);
    arrived = latch->arrived;
    pthread_mutex_unlock(&latch->mutex);
    return arrived;
}

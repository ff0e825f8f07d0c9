/* A log target that remembers every event. Thread safe. */
#ifndef COLDKV_TESTS_CAPTURE_LOG_H
#define COLDKV_TESTS_CAPTURE_LOG_H

#include <coldkv/log.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct test_log_event {
    enum ckv_log_level level;
    char *id;
    char *text;
};

struct test_log {
    struct ckv_log log; /* level DEBUG; give &x.log to the code under test */
    pthread_mutex_t mutex;
    struct test_log_event *events;
    size_t count;
    size_t capacity;
};

void test_log_init(struct test_log *log);
void test_log_deinit(struct test_log *log);
/* Forgets all events. */
void test_log_clear(struct test_log *log);
/* How many events had this id. */
size_t test_log_count(struct test_log *log, const char *id);
/* The text of the latest event with this id, or NULL. Valid until clear or deinit. */
const char *test_log_find(struct test_log *log, const char *id);
/* Whether some event with this id (NULL = any) has `part` in its text. */
bool test_log_contains(struct test_log *log, const char *id, const char *part);

#endif

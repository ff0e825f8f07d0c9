/*
 * Owns captured events. What the contract promises about an event (an id, one line, a
 * known level) is required of each.
 */
#include "lib/capture_log.h"

#include "lib/require.h"
#include <string.h>

static char *copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    TEST_REQUIRE(copy);
    return memcpy(copy, text, size);
}

static void capture(void *ctx, enum ckv_log_level level, const char *id, const char *text)
{
    struct test_log *log = ctx;
    TEST_REQUIRE(level >= CKV_LOG_ERROR && level <= CKV_LOG_DEBUG);
    TEST_REQUIRE(id && *id && text && !strchr(text, '\n'));
    pthread_mutex_lock(&log->mutex);
    if (log->count == log->capacity) {
        log->capacity = log->capacity ? 2 * log->capacity : 16;
        log->events = realloc(log->events, log->capacity * sizeof *log->events);
        TEST_REQUIRE(log->events);
    }
    log->events[log->count++] =
        (struct test_log_event){level, copy_text(id), copy_text(text)};
    pthread_mutex_unlock(&log->mutex);
}

void test_log_init(struct test_log *log)
{
    memset(log, 0, sizeof *log);
    log->log = (struct ckv_log){log, CKV_LOG_DEBUG, capture};
    TEST_REQUIRE(pthread_mutex_init(&log->mutex, NULL) == 0);
}

void test_log_clear(struct test_log *log)
{
    pthread_mutex_lock(&log->mutex);
    for (size_t i = 0; i < log->count; i++) {
        free(log->events[i].id);
        free(log->events[i].text);
    }
    log->count = 0;
    pthread_mutex_unlock(&log->mutex);
}

void test_log_deinit(struct test_log *log)
{
    test_log_clear(log);
    free(log->events);
    log->events = NULL;
    log->capacity = 0;
    pthread_mutex_destroy(&log->mutex);
}

size_t test_log_count(struct test_log *log, const char *id)
{
    size_t count = 0;
    pthread_mutex_lock(&log->mutex);
    for (size_t i = 0; i < log->count; i++) {
        if (strcmp(log->events[i].id, id) == 0)
            count++;
    }
    pthread_mutex_unlock(&log->mutex);
    return count;
}

const char *test_log_find(struct test_log *log, const char *id)
{
    const char *text = NULL;
    pthread_mutex_lock(&log->mutex);
    for (size_t i = 0; i < log->count; i++) {
        if (strcmp(log->events[i].id, id) == 0)
            text = log->events[i].text;
    }
    pthread_mutex_unlock(&log->mutex);
    return text;
}

bool test_log_contains(struct test_log *log, const char *id, const char *part)
{
    bool found = false;
    pthread_mutex_lock(&log->mutex);
    for (size_t i = 0; i < log->count && !found; i++) {
        if (!id || strcmp(log->events[i].id, id) == 0)
            found = strstr(log->events[i].text, part) != NULL;
    }
    pthread_mutex_unlock(&log->mutex);
    return found;
}

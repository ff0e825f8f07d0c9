/* Owns the list of outcomes. */
#include "lib/outcomes.h"

#include "lib/require.h"
#include <string.h>

void test_outcomes_init(struct test_outcomes *outcomes)
{
    memset(outcomes, 0, sizeof *outcomes);
    TEST_REQUIRE(pthread_mutex_init(&outcomes->mutex, NULL) == 0);
}

void test_outcomes_deinit(struct test_outcomes *outcomes)
{
    pthread_mutex_destroy(&outcomes->mutex);
}

void test_outcomes_note(void *ctx, const char *ns, const struct ckv_entry *entry,
                        enum ckv_spill_outcome outcome)
{
    struct test_outcomes *outcomes = ctx;
    pthread_mutex_lock(&outcomes->mutex);
    if (outcomes->count < TEST_OUTCOMES_MAX) {
        struct test_outcome *item = &outcomes->items[outcomes->count];
        item->outcome = outcome;
        item->first = entry->tokens[0];
        item->token_count = entry->token_count;
        (void)snprintf(item->ns, sizeof item->ns, "%s", ns);
    }
    outcomes->count++;
    pthread_mutex_unlock(&outcomes->mutex);
}

size_t test_outcomes_count(struct test_outcomes *outcomes)
{
    size_t count;
    pthread_mutex_lock(&outcomes->mutex);
    count = outcomes->count;
    pthread_mutex_unlock(&outcomes->mutex);
    return count;
}

struct test_outcome test_outcomes_get(struct test_outcomes *outcomes, size_t number)
{
    struct test_outcome item;
    pthread_mutex_lock(&outcomes->mutex);
    TEST_REQUIRE(number < outcomes->count && number < TEST_OUTCOMES_MAX);
    item = outcomes->items[number];
    pthread_mutex_unlock(&outcomes->mutex);
    return item;
}

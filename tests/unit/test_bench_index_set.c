/* The set that the prefix index is measured with: it is what it says. */
#include "index_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct seen {
    size_t shorts;
    size_t longs;
};

static void look(void *ctx, const struct ckv_index_entry *entry)
{
    struct seen *seen = ctx;
    assert_true(entry->floor == 0 || entry->floor == entry->token_count);
    if (entry->token_count == INDEX_SET_LONG) {
        seen->longs++;
        return;
    }
    assert_in_range(entry->token_count, 256, 4096);
    seen->shorts++;
}

static void entries_are_short_and_a_few_long(void **state)
{
    static struct index_set set;
    struct seen seen = {0, 0};
    (void)state;
    assert_int_equal(index_set_init(&set, 300, NULL), CKV_OK);
    ckv_index_visit(set.index, look, &seen);
    assert_int_equal(seen.shorts, 300);
    assert_int_equal(seen.longs, 3);
    assert_int_equal(set.entry_count, 303);
    assert_true(set.live_bytes >= 4 * set.distinct_tokens);
    assert_true(set.live_bytes <= 5 * set.distinct_tokens);
    index_set_deinit(&set);
    assert_int_equal(set.live_bytes, 0);
    index_set_deinit(&set);
}

static void every_prompt_finds_what_it_must(void **state)
{
    static struct index_set set;
    size_t found = 0;
    (void)state;
    assert_int_equal(index_set_init(&set, 200, NULL), CKV_OK);
    for (size_t i = 0; i < INDEX_SET_PROMPTS; i++) {
        assert_true(index_set_find(&set, i));
        found += set.prompts[i].prefix > 0;
    }
    assert_in_range(found, INDEX_SET_PROMPTS * 2 / 3, INDEX_SET_PROMPTS);
    set.prompts[0].prefix++;
    assert_false(index_set_find(&set, 0));
    index_set_deinit(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_short_and_a_few_long),
        cmocka_unit_test(every_prompt_finds_what_it_must),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

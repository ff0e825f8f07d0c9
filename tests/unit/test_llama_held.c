/* Sequences as held entries: kept, taken from memory and from disk, put back, cut (S30,
 * S35, S60). With a small model of random weights. */
#include "lib/counting_alloc.h"
#include "lib/temp_dir.h"
#include "llama_fixture.h"
#include "llama_session.h"
#include <coldkv/llama.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    LENGTH = 299, /* tokens of the held entry */
    ROWS = 8,     /* of logits that are compared */
};

struct fixture {
    struct test_alloc alloc;
    struct test_dir dir;
    char model_path[TEST_PATH_SIZE];
    struct llama_model *model;
    struct llama_context_params params;
    struct llama_context *context;
    struct ckv_llama *bridge;
    struct ckv_store *store;
    struct ckv_error error;
    int32_t prompt[LENGTH + 1];
};

static void open_all(struct fixture *fixture)
{
    struct ckv_llama_options options;
    struct ckv_store_options store_options;
    ckv_llama_options_init(&options);
    options.alloc = &fixture->alloc.alloc;
    fixture->context = test_llama_context(fixture->model, &fixture->params);
    assert_int_equal(ckv_llama_create(fixture->context, &fixture->params,
                                      fixture->model_path, &options, &fixture->bridge,
                                      &fixture->error),
                     CKV_OK);
    ckv_store_options_init(&store_options);
    store_options.cap_bytes = UINT64_C(256) << 20;
    store_options.free_floor_bytes = 0;
    assert_int_equal(ckv_store_open(test_dir_path(&fixture->dir, "store"),
                                    ckv_llama_identity(fixture->bridge), &store_options,
                                    &fixture->store, &fixture->error),
                     CKV_OK);
}

static void close_all(struct fixture *fixture)
{
    ckv_store_close(fixture->store);
    ckv_llama_destroy(fixture->bridge);
    llama_free(fixture->context);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct test_gguf made;
    assert_non_null(fixture);
    test_alloc_init(&fixture->alloc);
    test_dir_init(&fixture->dir);
    strcpy(fixture->model_path, test_dir_path(&fixture->dir, "m.gguf"));
    test_gguf_init(&made);
    test_gguf_fill_model(&made, "llama", 1);
    test_gguf_write(&made, fixture->model_path);
    test_gguf_deinit(&made);
    fixture->model = test_llama_load(fixture->model_path);
    fixture->params = test_llama_params();
    fixture->params.n_threads = 1; /* the model is tiny */
    fixture->params.n_threads_batch = 1;
    for (int32_t i = 0; i <= LENGTH; i++)
        fixture->prompt[i] = (i * 37 + 11) % TEST_MODEL_TOKENS;
    open_all(fixture);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    close_all(fixture);
    llama_model_free(fixture->model);
    test_dir_deinit(&fixture->dir);
    assert_true(test_alloc_clean(&fixture->alloc));
    test_alloc_deinit(&fixture->alloc);
    free(fixture);
    return 0;
}

static struct ckv_held *hold(struct fixture *fixture)
{
    struct ckv_held *held = NULL;
    test_llama_evaluate(fixture->context, 0, fixture->prompt, LENGTH, 0);
    assert_int_equal(ckv_llama_hold(fixture->bridge, 0, fixture->prompt, LENGTH, &held,
                                    &fixture->error),
                     CKV_OK);
    return held;
}

static struct ckv_prompt_cache *create_cache(struct fixture *fixture,
                                             struct ckv_store *store)
{
    struct ckv_prompt_cache_options options;
    struct ckv_prompt_cache *cache = NULL;
    ckv_prompt_cache_options_init(&options);
    options.alloc = &fixture->alloc.alloc;
    options.cap_bytes = UINT64_C(64) << 20;
    options.store = store;
    ckv_llama_get_restorer(fixture->bridge, &options.restorer);
    assert_int_equal(ckv_prompt_cache_create(&options, &cache, &fixture->error), CKV_OK);
    return cache;
}

/* What a run without any tier gives, in the same pieces: `count` tokens, then one by one.
 */
static struct test_run *run_clean(struct fixture *fixture, size_t count)
{
    struct llama_context *context = test_llama_context(fixture->model, &fixture->params);
    struct test_run *run;
    test_llama_evaluate(context, 0, fixture->prompt, count, 0);
    run = test_llama_generate(context, 0, fixture->prompt[count], count, ROWS);
    llama_free(context);
    return run;
}

static void expect_goes_on_like_clean(struct fixture *fixture, size_t count)
{
    struct test_run *run =
        test_llama_generate(fixture->context, 0, fixture->prompt[count], count, ROWS);
    struct test_run *clean = run_clean(fixture, count);
    assert_true(test_run_equals(run, clean));
    test_run_destroy(run);
    test_run_destroy(clean);
}

static void a_held_entry_is_the_sequence_and_stays_as_it_is(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_held *held = hold(fixture);
    const struct ckv_entry *entry = ckv_held_entry(held);
    assert_int_equal(entry->token_count, LENGTH);
    for (size_t i = 0; i < LENGTH; i++)
        assert_int_equal(entry->tokens[i], fixture->prompt[i]);
    assert_int_equal(ckv_held_bytes(held), entry->caches[0].tensors[0].bytes);
    assert_int_equal(ckv_held_floor(held), 0);
    /* The sequence goes on to other tokens, and is still put back as it was. */
    test_llama_evaluate(fixture->context, 0, fixture->prompt, 40, LENGTH);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            ckv_llama_apply(fixture->bridge, held, 0, LENGTH, &fixture->error), CKV_OK);
        expect_goes_on_like_clean(fixture, LENGTH);
    }
    ckv_held_unref(held);
}

static void a_prefix_of_it_can_be_put_back(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_held *held = hold(fixture);
    assert_int_equal(
        ckv_llama_apply(fixture->bridge, held, 0, LENGTH - 1, &fixture->error), CKV_OK);
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(fixture->context), 0),
                     LENGTH - 2);
    expect_goes_on_like_clean(fixture, LENGTH - 1);
    ckv_held_unref(held);
}

static void what_cannot_be_put_back_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_held *held = hold(fixture);
    static const uint64_t bad[] = {0, LENGTH + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(
            ckv_llama_apply(fixture->bridge, held, 0, bad[i], &fixture->error),
            CKV_INVALID);
        assert_true(test_llama_is_empty(fixture->context, 0));
    }
    assert_int_equal(ckv_llama_apply(fixture->bridge, held, 0, LENGTH, &fixture->error),
                     CKV_OK);
    for (int32_t sequence = -2; sequence < 300; sequence += 151)
        assert_int_equal(
            ckv_llama_apply(fixture->bridge, held, sequence, 1, &fixture->error),
            CKV_INVALID);
    /* A sequence that does not exist was not touched, nor was another. */
    expect_goes_on_like_clean(fixture, LENGTH);
    ckv_held_unref(held);
}

static void only_what_the_sequence_holds_can_be_held(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_held *held = NULL;
    test_llama_evaluate(fixture->context, 0, fixture->prompt, 10, 0);
    static const size_t bad[] = {0, 9, 11};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(ckv_llama_hold(fixture->bridge, 0, fixture->prompt, bad[i],
                                        &held, &fixture->error),
                         CKV_INVALID);
        assert_null(held);
    }
}

static void out_of_memory_holds_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_held *held = NULL;
    enum ckv_status status;
    size_t failed = 0;
    test_llama_evaluate(fixture->context, 0, fixture->prompt, LENGTH, 0);
    do {
        test_alloc_reset(&fixture->alloc);
        fixture->alloc.fail_at = failed + 1;
        status = ckv_llama_hold(fixture->bridge, 0, fixture->prompt, LENGTH, &held,
                                &fixture->error);
        if (status != CKV_OK) {
            assert_int_equal(status, CKV_NOMEM);
            assert_null(held);
            failed++;
        }
    } while (status != CKV_OK);
    test_alloc_reset(&fixture->alloc);
    assert_true(failed >= 3); /* the snapshot, its tokens, its state */
    ckv_held_unref(held);
}

static void a_prompt_cache_gives_it_from_memory_and_from_disk(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_held *held = hold(fixture);
    struct ckv_prompt_cache *cache = create_cache(fixture, fixture->store);
    struct ckv_taken taken = {0};
    const uint32_t *prompt = (const uint32_t *)fixture->prompt;
    assert_int_equal(ckv_store_put(fixture->store, "", ckv_held_entry(held),
                                   ckv_held_source(held), NULL, NULL, &fixture->error),
                     CKV_OK);
    ckv_held_unref(held);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            ckv_prompt_cache_take(cache, "", prompt, LENGTH + 1, &taken, &fixture->error),
            CKV_OK);
        assert_int_equal(taken.tier, i == 0 ? CKV_TIER_STORE : CKV_TIER_RAM);
        assert_int_equal(taken.prefix, LENGTH);
        assert_int_equal(ckv_llama_apply(fixture->bridge, taken.held, 0, taken.prefix,
                                         &fixture->error),
                         CKV_OK);
        expect_goes_on_like_clean(fixture, LENGTH);
        ckv_held_unref(taken.held);
    }
    ckv_prompt_cache_destroy(cache);
}

/* S30: a state whose bytes verify but that this context would not have written. */
static void a_forged_state_is_set_aside_and_never_reaches_the_context(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_held *held = hold(fixture);
    const struct ckv_entry *entry = ckv_held_entry(held);
    uint64_t size = entry->caches[0].tensors[0].bytes;
    uint8_t *forged = malloc((size_t)size);
    const void *tensors[1] = {forged};
    struct ckv_memory_source memory = {.entry = entry, .tensors = tensors};
    struct ckv_source source;
    struct ckv_prompt_cache *cache = create_cache(fixture, fixture->store);
    struct ckv_store_stats stats;
    struct ckv_taken taken = {0};
    const void *window = NULL;
    const struct ckv_source *original = ckv_held_source(held);
    size_t got = 0;
    assert_non_null(forged);
    for (uint64_t at = 0; at < size; at += got) {
        assert_int_equal(original->view(original->ctx, 0, 0, at, (size_t)(size - at),
                                        &window, &got, &fixture->error),
                         CKV_OK);
        memcpy(forged + at, window, got);
        if (original->done)
            assert_int_equal(
                original->done(original->ctx, 0, 0, at, got, &fixture->error), CKV_OK);
    }
    forged[0] ^= 1; /* the magic number */
    ckv_source_from_memory(&memory, &source);
    assert_int_equal(
        ckv_store_put(fixture->store, "", entry, &source, NULL, NULL, &fixture->error),
        CKV_OK);
    ckv_held_unref(held);
    assert_int_equal(ckv_prompt_cache_take(cache, "", (const uint32_t *)fixture->prompt,
                                           LENGTH + 1, &taken, &fixture->error),
                     CKV_NOTFOUND);
    assert_null(taken.held);
    ckv_store_get_stats(fixture->store, &stats);
    assert_int_equal(stats.set_aside, 1);
    assert_int_equal(stats.entries, 0);
    ckv_prompt_cache_destroy(cache);
    free(forged);
}

static void a_live_sequence_is_cut_and_goes_on(void **state)
{
    struct fixture *fixture = *state;
    test_llama_evaluate(fixture->context, 0, fixture->prompt, LENGTH, 0);
    assert_int_equal(ckv_llama_cut(fixture->bridge, 0, LENGTH, LENGTH, &fixture->error),
                     CKV_OK);
    assert_int_equal(
        ckv_llama_cut(fixture->bridge, 0, LENGTH, LENGTH - 1, &fixture->error), CKV_OK);
    expect_goes_on_like_clean(fixture, LENGTH - 1);
}

static void a_cut_that_is_not_possible_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        size_t count;
        uint64_t prefix;
        enum ckv_status status;
    } bad[] = {
        {10, 0, CKV_INVALID},
        {10, 11, CKV_INVALID},
        {12, 11, CKV_REFUSED}, /* it holds less than is said */
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        test_llama_evaluate(fixture->context, 0, fixture->prompt, 10, 0);
        assert_int_equal(ckv_llama_cut(fixture->bridge, 0, bad[i].count, bad[i].prefix,
                                       &fixture->error),
                         bad[i].status);
        assert_true(test_llama_is_empty(fixture->context, 0));
    }
    assert_int_equal(ckv_llama_cut(fixture->bridge, -1, 1, 1, &fixture->error),
                     CKV_INVALID);
    assert_int_equal(ckv_llama_cut(fixture->bridge, 0, 1, 1, &fixture->error),
                     CKV_REFUSED); /* it is empty */
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_held_entry_is_the_sequence_and_stays_as_it_is),
        TEST(a_prefix_of_it_can_be_put_back),
        TEST(what_cannot_be_put_back_leaves_nothing),
        TEST(only_what_the_sequence_holds_can_be_held),
        TEST(out_of_memory_holds_nothing),
        TEST(a_prompt_cache_gives_it_from_memory_and_from_disk),
        TEST(a_forged_state_is_set_aside_and_never_reaches_the_context),
        TEST(a_live_sequence_is_cut_and_goes_on),
        TEST(a_cut_that_is_not_possible_leaves_nothing),
    };
    int failed;
    test_llama_start();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_llama_stop();
    return failed;
}

/* A real model's prompt cache through a store: a new context goes on with the same bits
 * (S10, S22, S24, S50). COLDKV_MODEL names another model than the one built in. */
#include "lib/temp_dir.h"
#include "llama_session.h"
#include <coldkv/llama.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    STORED = 600, /* tokens in the entry: beyond 512, where threads split the cache */
    ROWS = 64,
    THREADED_ROWS = 4,
    COMMON = 333, /* of a prompt that diverges in the middle */
    DIVERGED = 380,
    DIVERGED_ROWS = 16,
};

struct fixture {
    const char *model_path;
    struct llama_model *model;
    struct test_dir dir;
    int32_t tokens[STORED + 1];
    int32_t diverged[DIVERGED];
    struct test_run *unbroken;          /* the prompt, then greedy */
    struct test_run *unbroken_threaded; /* the same by two threads */
    struct test_run *unbroken_trimmed;  /* cut to COMMON, then the other prompt */
};

/* One context with its bridge and store. */
struct line {
    struct llama_context *context;
    struct ckv_llama *bridge;
    struct ckv_store *store;
    struct ckv_error error;
};

static void open_line(const struct fixture *fixture,
                      const struct llama_context_params *params, struct line *line)
{
    struct ckv_store_options options;
    char path[TEST_PATH_SIZE + 8];
    snprintf(path, sizeof path, "%s/store", fixture->dir.path);
    ckv_store_options_init(&options);
    options.cap_bytes = UINT64_C(512) << 20;
    options.free_floor_bytes = 0;
    line->context = test_llama_context(fixture->model, params);
    assert_int_equal(ckv_llama_create(line->context, params, fixture->model_path, NULL,
                                      &line->bridge, &line->error),
                     CKV_OK);
    assert_int_equal(ckv_store_open(path, ckv_llama_identity(line->bridge), &options,
                                    &line->store, &line->error),
                     CKV_OK);
}

static void close_line(struct line *line)
{
    ckv_store_close(line->store);
    ckv_llama_destroy(line->bridge);
    llama_free(line->context);
}

/* One thread: two would wait for each other on a machine that is busy with other tests.
 */
static struct llama_context_params model_params(void)
{
    struct llama_context_params params = test_llama_params();
    params.n_threads = 1;
    params.n_threads_batch = 1;
    return params;
}

/* What follows the prompt, by two threads. */
static struct test_run *run_threaded(const struct fixture *fixture,
                                     struct llama_context *context)
{
    struct test_run *run;
    llama_set_n_threads(context, 2, 2);
    run = test_llama_generate(context, 0, fixture->tokens[STORED], STORED, THREADED_ROWS);
    llama_set_n_threads(context, 1, 1);
    return run;
}

static void make_tokens(struct fixture *fixture)
{
    const struct llama_vocab *vocab = llama_model_get_vocab(fixture->model);
    char text[8192];
    size_t length = 0;
    int32_t all[4096];
    for (int i = 0; length < 5000; i++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "In year %d the lighthouse keeper of island number %d "
                                   "counted %d ships and wrote a short note. ",
                                   1800 + i, i * 7 % 31, i * i % 97);
    assert_true(llama_tokenize(vocab, text, (int32_t)length, all, 4096, true, false) >
                STORED);
    memcpy(fixture->tokens, all, sizeof fixture->tokens);
    memcpy(fixture->diverged, all, sizeof fixture->diverged);
    for (size_t i = COMMON; i < DIVERGED; i++)
        fixture->diverged[i] = all[DIVERGED - i];
    fixture->diverged[COMMON] = (all[COMMON] + 1) % llama_vocab_n_tokens(vocab);
}

static struct test_run *run_diverged(const struct fixture *fixture,
                                     struct llama_context *context)
{
    test_llama_evaluate(context, 0, fixture->diverged + COMMON, DIVERGED - 1 - COMMON,
                        COMMON);
    return test_llama_generate(context, 0, fixture->diverged[DIVERGED - 1], DIVERGED - 1,
                               DIVERGED_ROWS);
}

/* The cold run, once: it stores the entry and remembers what an unbroken run gives. */
static int evaluate_cold(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct llama_context_params params = model_params();
    struct ckv_llama_snapshot *snapshot = NULL;
    const char *named = getenv("COLDKV_MODEL");
    struct line line;
    assert_non_null(fixture);
    fixture->model_path = named && *named ? named : COLDKV_TEST_MODEL;
    fixture->model = test_llama_load(fixture->model_path);
    test_dir_init(&fixture->dir);
    make_tokens(fixture);
    open_line(fixture, &params, &line);
    test_llama_evaluate(line.context, 0, fixture->tokens, STORED, 0);
    assert_int_equal(ckv_llama_snapshot_create(line.bridge, 0, fixture->tokens, STORED,
                                               &snapshot, &line.error),
                     CKV_OK);
    fixture->unbroken_threaded = run_threaded(fixture, line.context);
    assert_true(llama_memory_seq_rm(llama_get_memory(line.context), 0, STORED, -1));
    fixture->unbroken =
        test_llama_generate(line.context, 0, fixture->tokens[STORED], STORED, ROWS);
    assert_true(llama_memory_seq_rm(llama_get_memory(line.context), 0, COMMON, -1));
    fixture->unbroken_trimmed = run_diverged(fixture, line.context);
    assert_int_equal(ckv_store_put(line.store, "", ckv_llama_snapshot_entry(snapshot),
                                   ckv_llama_snapshot_source(snapshot), NULL, NULL,
                                   &line.error),
                     CKV_OK);
    ckv_llama_snapshot_destroy(snapshot);
    close_line(&line);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    test_run_destroy(fixture->unbroken);
    test_run_destroy(fixture->unbroken_threaded);
    test_run_destroy(fixture->unbroken_trimmed);
    llama_model_free(fixture->model);
    test_dir_deinit(&fixture->dir);
    free(fixture);
    return 0;
}

static void expect_restored(struct line *line, const int32_t *prompt, size_t length,
                            uint64_t prefix)
{
    struct ckv_restored restored;
    assert_int_equal(ckv_llama_restore(line->bridge, line->store, "", 0, prompt, length,
                                       &restored, &line->error),
                     CKV_OK);
    assert_int_equal(restored.prefix, prefix);
    assert_int_equal(restored.token_count, STORED);
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(line->context), 0),
                     prefix - 1);
}

static void s50_a_new_context_goes_on_with_the_same_bits(void **state)
{
    const struct fixture *fixture = *state;
    struct llama_context_params params = model_params();
    struct test_run *run;
    struct line line;
    params.n_ctx = 2048;
    open_line(fixture, &params, &line);
    expect_restored(&line, fixture->tokens, STORED + 1, STORED);
    run = test_llama_generate(line.context, 0, fixture->tokens[STORED], STORED, ROWS);
    assert_true(test_run_equals(run, fixture->unbroken));
    test_run_destroy(run);
    close_line(&line);
}

static void two_threads_give_the_same_bits_too(void **state)
{
    const struct fixture *fixture = *state;
    struct llama_context_params params = model_params();
    struct test_run *run;
    struct line line;
    open_line(fixture, &params, &line);
    expect_restored(&line, fixture->tokens, STORED + 1, STORED);
    run = run_threaded(fixture, line.context);
    assert_true(test_run_equals(run, fixture->unbroken_threaded));
    test_run_destroy(run);
    close_line(&line);
}

static void s10_a_diverging_prompt_takes_the_common_prefix(void **state)
{
    const struct fixture *fixture = *state;
    struct llama_context_params params = model_params();
    struct test_run *run;
    struct line line;
    open_line(fixture, &params, &line);
    test_llama_evaluate(line.context, 0, fixture->tokens + 50, 100, 0);
    expect_restored(&line, fixture->diverged, DIVERGED, COMMON);
    run = run_diverged(fixture, line.context);
    assert_true(test_run_equals(run, fixture->unbroken_trimmed));
    test_run_destroy(run);
    close_line(&line);
}

static void s22_a_quantized_cache_is_offered_nothing(void **state)
{
    const struct fixture *fixture = *state;
    struct llama_context_params params = model_params();
    struct ckv_store_stats stats;
    struct ckv_restored restored;
    struct line line;
    params.type_k = GGML_TYPE_Q8_0;
    params.type_v = GGML_TYPE_Q8_0;
    open_line(fixture, &params, &line);
    assert_int_equal(ckv_llama_restore(line.bridge, line.store, "", 0, fixture->tokens,
                                       STORED + 1, &restored, &line.error),
                     CKV_NOTFOUND);
    assert_true(test_llama_is_empty(line.context, 0));
    ckv_store_get_stats(line.store, &stats);
    assert_int_equal(stats.entries, 0);
    assert_int_equal(stats.restore_failures, 0);
    close_line(&line);
}

static void a_context_too_small_evaluates_from_the_start(void **state)
{
    const struct fixture *fixture = *state;
    struct llama_context_params params = model_params();
    struct ckv_store_stats stats;
    struct ckv_restored restored;
    struct line line;
    params.n_ctx = 512;
    open_line(fixture, &params, &line);
    assert_int_equal(ckv_llama_restore(line.bridge, line.store, "", 0, fixture->tokens,
                                       400, &restored, &line.error),
                     CKV_NOTFOUND);
    assert_true(test_llama_is_empty(line.context, 0));
    ckv_store_get_stats(line.store, &stats);
    assert_int_equal(stats.entries, 1);
    assert_int_equal(stats.set_aside, 0);
    close_line(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s50_a_new_context_goes_on_with_the_same_bits),
        cmocka_unit_test(two_threads_give_the_same_bits_too),
        cmocka_unit_test(s10_a_diverging_prompt_takes_the_common_prefix),
        cmocka_unit_test(s22_a_quantized_cache_is_offered_nothing),
        cmocka_unit_test(a_context_too_small_evaluates_from_the_start),
    };
    int failed;
    test_llama_start();
    failed = cmocka_run_group_tests(tests, evaluate_cold, tear_down);
    test_llama_stop();
    return failed;
}

/* Snapshot and restore of a sequence through a store, and every way to refuse (S10, S30,
 * S34, S35, S37, S60). With a small model of random weights; test_llama_model.c does it
 * with a real one. */
#include "lib/capture_log.h"
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
    LENGTH = 299, /* tokens of the stored entry */
    ROWS = 8,     /* of logits that are compared */
};

struct fixture {
    struct test_alloc alloc;
    struct test_log log;
    struct test_dir dir;
    char model_path[TEST_PATH_SIZE];
    struct llama_model *model;
    struct llama_context_params params;
    struct llama_context *context;
    struct ckv_llama *bridge;
    struct ckv_store *store;
    struct ckv_store_options store_options;
    struct ckv_restored restored;
    struct ckv_error error;
    int32_t prompt[LENGTH + 1];
};

static void open_store(struct fixture *fixture)
{
    assert_int_equal(ckv_store_open(test_dir_path(&fixture->dir, "store"),
                                    ckv_llama_identity(fixture->bridge),
                                    &fixture->store_options, &fixture->store,
                                    &fixture->error),
                     CKV_OK);
}

static void open_context(struct fixture *fixture)
{
    struct ckv_llama_options options;
    ckv_llama_options_init(&options);
    options.alloc = &fixture->alloc.alloc;
    options.log = fixture->log.log;
    fixture->context = test_llama_context(fixture->model, &fixture->params);
    assert_int_equal(ckv_llama_create(fixture->context, &fixture->params,
                                      fixture->model_path, &options, &fixture->bridge,
                                      &fixture->error),
                     CKV_OK);
}

static void close_context(struct fixture *fixture)
{
    ckv_llama_destroy(fixture->bridge);
    llama_free(fixture->context);
    fixture->bridge = NULL;
    fixture->context = NULL;
}

/* As another process would: nothing of the old context or store is left. */
static void start_again(struct fixture *fixture)
{
    ckv_store_close(fixture->store);
    close_context(fixture);
    open_context(fixture);
    open_store(fixture);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct test_gguf made;
    assert_non_null(fixture);
    test_alloc_init(&fixture->alloc);
    test_log_init(&fixture->log);
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
    ckv_store_options_init(&fixture->store_options);
    fixture->store_options.cap_bytes = UINT64_C(256) << 20;
    fixture->store_options.free_floor_bytes = 0;
    for (int32_t i = 0; i <= LENGTH; i++)
        fixture->prompt[i] = (i * 37 + 11) % TEST_MODEL_TOKENS;
    open_context(fixture);
    open_store(fixture);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    ckv_store_close(fixture->store);
    close_context(fixture);
    llama_model_free(fixture->model);
    test_dir_deinit(&fixture->dir);
    test_log_deinit(&fixture->log);
    assert_true(test_alloc_clean(&fixture->alloc));
    test_alloc_deinit(&fixture->alloc);
    free(fixture);
    return 0;
}

static struct ckv_llama_snapshot *snapshot(struct fixture *fixture, size_t count)
{
    struct ckv_llama_snapshot *made = NULL;
    assert_int_equal(ckv_llama_snapshot_create(fixture->bridge, 0, fixture->prompt, count,
                                               &made, &fixture->error),
                     CKV_OK);
    return made;
}

static enum ckv_status put(struct fixture *fixture, const struct ckv_entry *entry,
                           const struct ckv_source *source)
{
    return ckv_store_put(fixture->store, "", entry, source, NULL, NULL, &fixture->error);
}

/* Evaluates and stores all but the prompt's last token. */
static void store_prompt(struct fixture *fixture)
{
    struct ckv_llama_snapshot *made;
    test_llama_evaluate(fixture->context, 0, fixture->prompt, LENGTH, 0);
    made = snapshot(fixture, LENGTH);
    assert_int_equal(
        put(fixture, ckv_llama_snapshot_entry(made), ckv_llama_snapshot_source(made)),
        CKV_OK);
    ckv_llama_snapshot_destroy(made);
}

static enum ckv_status restore(struct fixture *fixture, int32_t sequence)
{
    enum ckv_status status;
    ckv_error_clear(&fixture->error);
    status =
        ckv_llama_restore(fixture->bridge, fixture->store, "", sequence, fixture->prompt,
                          LENGTH + 1, &fixture->restored, &fixture->error);
    assert_int_equal(fixture->error.status, status);
    return status;
}

static void expect_miss(struct fixture *fixture, const char *reason)
{
    assert_int_equal(restore(fixture, 0), CKV_NOTFOUND);
    assert_true(test_llama_is_empty(fixture->context, 0));
    if (reason && !strstr(fixture->error.text, reason))
        fail_msg("\"%s\" does not say \"%s\"", fixture->error.text, reason);
}

static struct ckv_store_stats stats_of(struct fixture *fixture)
{
    struct ckv_store_stats stats;
    ckv_store_get_stats(fixture->store, &stats);
    return stats;
}

/* The last prompt token and what follows. */
static struct test_run *go_on(struct fixture *fixture)
{
    return test_llama_generate(fixture->context, 0, fixture->prompt[LENGTH], LENGTH,
                               ROWS);
}

/* What a run without any store gives, in the same pieces. */
static struct test_run *run_clean(struct fixture *fixture)
{
    struct llama_context *context = test_llama_context(fixture->model, &fixture->params);
    struct test_run *run;
    test_llama_evaluate(context, 0, fixture->prompt, LENGTH, 0);
    run = test_llama_generate(context, 0, fixture->prompt[LENGTH], LENGTH, ROWS);
    llama_free(context);
    return run;
}

static void expect_same(struct test_run *run, struct test_run *clean)
{
    assert_true(test_run_equals(run, clean));
    test_run_destroy(run);
    test_run_destroy(clean);
}

static void snapshot_is_one_state_with_floor_zero(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_llama_snapshot *made;
    const struct ckv_entry *entry;
    test_llama_evaluate(fixture->context, 0, fixture->prompt, LENGTH, 0);
    made = snapshot(fixture, LENGTH);
    entry = ckv_llama_snapshot_entry(made);
    assert_int_equal(ckv_entry_validate(entry, &fixture->error), CKV_OK);
    assert_int_equal(ckv_entry_check_offsets(entry, &fixture->error), CKV_OK);
    assert_int_equal(entry->token_count, LENGTH);
    assert_int_equal(entry->cache_count, 1);
    assert_int_equal(entry->caches[0].kind, CKV_CACHE_STATE);
    assert_string_equal(entry->caches[0].engine, "llama.cpp");
    assert_int_equal(ckv_entry_floor(entry), 0);
    assert_int_equal(entry->caches[0].tensors[0].bytes,
                     ckv_llama_state_bytes(fixture->bridge, 0));
    for (size_t i = 0; i < LENGTH; i++)
        assert_int_equal(entry->tokens[i], fixture->prompt[i]);
    assert_true(ckv_llama_snapshot_source(made)->any_thread);
    ckv_llama_snapshot_destroy(made);
}

static void state_bytes_are_exact_and_zero_when_empty(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(ckv_llama_state_bytes(fixture->bridge, 0), 0);
    assert_int_equal(ckv_llama_state_bytes(fixture->bridge, -1), 0);
    assert_int_equal(ckv_llama_state_bytes(fixture->bridge, 1), 0);
    assert_int_equal(ckv_llama_state_bytes(fixture->bridge, 256), 0);
    test_llama_evaluate(fixture->context, 0, fixture->prompt, 10, 0);
    /* 2 layers of keys and values, one head of 64 f16 each, and 12 bytes per cell. */
    assert_int_equal(ckv_llama_state_bytes(fixture->bridge, 0),
                     24 + 4 * 12 + 10 * (12 + 4 * 128));
}

static void restored_run_equals_an_unbroken_one(void **state)
{
    struct fixture *fixture = *state;
    struct test_run *unbroken;
    store_prompt(fixture);
    unbroken = go_on(fixture);
    fixture->params.n_ctx = 512;
    start_again(fixture);
    assert_int_equal(restore(fixture, 0), CKV_OK);
    assert_int_equal(fixture->restored.prefix, LENGTH);
    assert_int_equal(fixture->restored.token_count, LENGTH);
    assert_int_equal(fixture->restored.tried, 1);
    expect_same(go_on(fixture), unbroken);
    assert_int_equal(stats_of(fixture).restores, 1);
}

static void s60_the_same_prompt_keeps_one_token_to_evaluate(void **state)
{
    struct fixture *fixture = *state;
    store_prompt(fixture);
    start_again(fixture);
    assert_int_equal(ckv_llama_restore(fixture->bridge, fixture->store, "", 0,
                                       fixture->prompt, LENGTH, &fixture->restored,
                                       &fixture->error),
                     CKV_OK);
    assert_int_equal(fixture->restored.prefix, LENGTH - 1);
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(fixture->context), 0),
                     LENGTH - 2);
}

/* A prompt that leaves the entry after 150 tokens, against the same trim without a store.
 */
static void s10_a_shorter_prefix_is_cut_out_of_the_entry(void **state)
{
    enum { COMMON = 150, PROMPT = 200 };
    struct fixture *fixture = *state;
    int32_t prompt[PROMPT];
    struct test_run *trimmed;
    llama_memory_t memory;
    for (int32_t i = 0; i < PROMPT; i++)
        prompt[i] = i < COMMON ? fixture->prompt[i] : (i * 13 + 5) % TEST_MODEL_TOKENS;
    prompt[COMMON] = (fixture->prompt[COMMON] + 1) % TEST_MODEL_TOKENS;
    store_prompt(fixture);
    memory = llama_get_memory(fixture->context);
    assert_true(llama_memory_seq_rm(memory, 0, COMMON, -1));
    test_llama_evaluate(fixture->context, 0, prompt + COMMON, PROMPT - 1 - COMMON,
                        COMMON);
    trimmed =
        test_llama_generate(fixture->context, 0, prompt[PROMPT - 1], PROMPT - 1, ROWS);
    start_again(fixture);
    assert_int_equal(ckv_llama_restore(fixture->bridge, fixture->store, "", 0, prompt,
                                       PROMPT, &fixture->restored, &fixture->error),
                     CKV_OK);
    assert_int_equal(fixture->restored.prefix, COMMON);
    memory = llama_get_memory(fixture->context);
    assert_int_equal(llama_memory_seq_pos_min(memory, 0), 0);
    assert_int_equal(llama_memory_seq_pos_max(memory, 0), COMMON - 1);
    test_llama_evaluate(fixture->context, 0, prompt + COMMON, PROMPT - 1 - COMMON,
                        COMMON);
    expect_same(
        test_llama_generate(fixture->context, 0, prompt[PROMPT - 1], PROMPT - 1, ROWS),
        trimmed);
}

static void s35_a_snapshot_does_not_follow_the_sequence(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_llama_snapshot *made;
    struct test_run *unbroken;
    test_llama_evaluate(fixture->context, 0, fixture->prompt, LENGTH, 0);
    made = snapshot(fixture, LENGTH);
    unbroken = go_on(fixture);
    llama_memory_clear(llama_get_memory(fixture->context), true);
    test_llama_evaluate(fixture->context, 0, fixture->prompt + 5, 200, 0);
    assert_int_equal(
        put(fixture, ckv_llama_snapshot_entry(made), ckv_llama_snapshot_source(made)),
        CKV_OK);
    ckv_llama_snapshot_destroy(made);
    start_again(fixture);
    assert_int_equal(restore(fixture, 0), CKV_OK);
    expect_same(go_on(fixture), unbroken);
}

static void an_occupied_sequence_is_replaced(void **state)
{
    struct fixture *fixture = *state;
    struct test_run *unbroken;
    store_prompt(fixture);
    unbroken = go_on(fixture);
    start_again(fixture);
    test_llama_evaluate(fixture->context, 0, fixture->prompt + 7, 280, 0);
    assert_int_equal(restore(fixture, 0), CKV_OK);
    assert_int_equal(fixture->restored.prefix, LENGTH);
    expect_same(go_on(fixture), unbroken);
}

static void an_occupied_sequence_is_emptied_by_a_miss(void **state)
{
    struct fixture *fixture = *state;
    test_llama_evaluate(fixture->context, 0, fixture->prompt, 20, 0);
    expect_miss(fixture, NULL);
    assert_int_equal(stats_of(fixture).misses, 1);
    assert_int_equal(fixture->restored.prefix, 0);
}

static void another_sequence_can_take_the_entry(void **state)
{
    struct fixture *fixture = *state;
    struct test_run *unbroken;
    store_prompt(fixture);
    unbroken = go_on(fixture);
    fixture->params.n_seq_max = 3;
    start_again(fixture);
    assert_int_equal(restore(fixture, 2), CKV_OK);
    assert_true(test_llama_is_empty(fixture->context, 0));
    expect_same(
        test_llama_generate(fixture->context, 2, fixture->prompt[LENGTH], LENGTH, ROWS),
        unbroken);
}

static void flash_attention_off_round_trips_too(void **state)
{
    struct fixture *fixture = *state;
    struct test_run *unbroken;
    fixture->params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    start_again(fixture);
    store_prompt(fixture);
    unbroken = go_on(fixture);
    start_again(fixture);
    assert_int_equal(restore(fixture, 0), CKV_OK);
    expect_same(go_on(fixture), unbroken);
}

static void quantized_caches_round_trip_too(void **state)
{
    struct fixture *fixture = *state;
    struct test_run *unbroken;
    fixture->params.type_k = GGML_TYPE_Q8_0;
    fixture->params.type_v = GGML_TYPE_Q4_0;
    start_again(fixture);
    store_prompt(fixture);
    unbroken = go_on(fixture);
    start_again(fixture);
    assert_int_equal(restore(fixture, 0), CKV_OK);
    expect_same(go_on(fixture), unbroken);
}

static void s22_entries_of_another_setting_are_not_offered(void **state)
{
    struct fixture *fixture = *state;
    const struct llama_context_params standard = fixture->params;
    store_prompt(fixture);
    fixture->params.type_k = GGML_TYPE_Q8_0;
    start_again(fixture);
    expect_miss(fixture, NULL);
    fixture->params = standard;
    fixture->params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    start_again(fixture);
    expect_miss(fixture, NULL);
    fixture->params = standard;
    fixture->params.rope_freq_base = 20000.0f;
    start_again(fixture);
    expect_miss(fixture, NULL);
    fixture->params = standard;
    start_again(fixture);
    assert_int_equal(restore(fixture, 0), CKV_OK);
}

static void a_context_too_small_is_a_miss_and_harms_nothing(void **state)
{
    struct fixture *fixture = *state;
    store_prompt(fixture);
    fixture->params.n_ctx = 256;
    start_again(fixture);
    expect_miss(fixture, "do not fit");
    assert_int_equal(stats_of(fixture).set_aside, 0);
    fixture->params.n_ctx = 512;
    start_again(fixture);
    assert_int_equal(restore(fixture, 0), CKV_OK);
}

/* The context is large enough, but another sequence has the room: libllama itself refuses
 * the well-formed state. */
static void no_room_beside_another_sequence_is_a_miss(void **state)
{
    struct fixture *fixture = *state;
    store_prompt(fixture);
    fixture->params.n_ctx = 512;
    fixture->params.n_seq_max = 2;
    start_again(fixture);
    test_llama_evaluate(fixture->context, 1, fixture->prompt, 256, 0);
    expect_miss(fixture, "took 0 of");
    assert_int_equal(stats_of(fixture).set_aside, 0);
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(fixture->context), 1),
                     255);
    assert_int_equal(test_log_count(&fixture->log, "llama.refused"), 1);
}

/* How a state is damaged; its hash will be right, since it is stored damaged. */
struct damage {
    const char *what;
    size_t offset;
    uint32_t value;
    size_t added;   /* bytes behind the end */
    size_t removed; /* bytes from the end */
};

#define CELLS (16 + 12 * LENGTH)

static const struct damage damages[] = {
    {"the magic number", 0, 0xaf143cd9u, 0, 0},
    {"sequence 300 is out of range", 4, 300, 0, 0},
    {"the number of streams", 8, 2, 0, 0},
    {"the number of cells", 12, LENGTH - 1, 0, 0},
    {"the number of cells", 12, 0xffffffffu, 0, 0},
    {"the position of a cell", 16 + 12 * 7, 8, 0, 0},
    {"the position of a cell", 16 + 12 * 7, 0x80000000u, 0, 0},
    {"the sequence count", 16 + 12 * 7 + 4, 2, 0, 0},
    {"the sequence of a cell", 16 + 12 * 7 + 8, 1, 0, 0},
    {"the transposition", CELLS, 1, 0, 0},
    {"the number of layers", CELLS + 4, 1, 0, 0},
    {"the type of a layer", CELLS + 8, 8, 0, 0},
    {"the row size", CELLS + 12, 64, 0, 0},
    {"the size in bytes", 0, 0xaf143cd8u, 1, 0},
    {"the size in bytes", 0, 0xaf143cd8u, 0, 1},
};

/* Stores the prompt's state with the damage in it. */
static void store_damaged(struct fixture *fixture, const struct damage *damage)
{
    struct ckv_llama_snapshot *made;
    struct ckv_source source;
    struct ckv_memory_source memory;
    const void *tensors[1];
    struct ckv_tensor tensor;
    struct ckv_cache cache;
    struct ckv_entry entry;
    const void *good = NULL;
    size_t size = 0;
    unsigned char *bad;
    test_llama_evaluate(fixture->context, 0, fixture->prompt, LENGTH, 0);
    made = snapshot(fixture, LENGTH);
    entry = *ckv_llama_snapshot_entry(made);
    cache = entry.caches[0];
    tensor = cache.tensors[0];
    source = *ckv_llama_snapshot_source(made);
    assert_int_equal(
        source.view(source.ctx, 0, 0, 0, (size_t)tensor.bytes, &good, &size, NULL),
        CKV_OK);
    assert_int_equal(size, tensor.bytes);
    bad = calloc(1, size + damage->added);
    assert_non_null(bad);
    memcpy(bad, good, size);
    memcpy(bad + damage->offset, &damage->value, sizeof damage->value);
    tensor.bytes = size + damage->added - damage->removed;
    tensor.shape[0] = tensor.bytes;
    cache.tensors = &tensor;
    entry.caches = &cache;
    tensors[0] = bad;
    memory = (struct ckv_memory_source){.entry = &entry, .tensors = tensors};
    ckv_source_from_memory(&memory, &source);
    assert_int_equal(put(fixture, &entry, &source), CKV_OK);
    ckv_llama_snapshot_destroy(made);
    free(bad);
}

static void s37_a_state_that_lies_is_set_aside_for_good(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        store_damaged(fixture, &damages[i]);
        start_again(fixture);
        expect_miss(fixture, damages[i].what);
        assert_int_equal(stats_of(fixture).set_aside, 1);
        assert_int_equal(stats_of(fixture).entries, 0);
        start_again(fixture);
        expect_miss(fixture, NULL);
        assert_int_equal(stats_of(fixture).restore_failures, 0);
    }
}

static void after_a_refusal_a_cold_run_is_a_clean_run(void **state)
{
    struct fixture *fixture = *state;
    store_damaged(fixture, &damages[5]);
    start_again(fixture);
    expect_miss(fixture, NULL);
    test_llama_evaluate(fixture->context, 0, fixture->prompt, LENGTH, 0);
    expect_same(go_on(fixture), run_clean(fixture));
}

/* The bad entry shares more with the prompt and is tried first. */
static void a_good_entry_behind_a_bad_one_is_found(void **state)
{
    enum { COMMON = 150, OTHER = 200 };
    struct fixture *fixture = *state;
    struct ckv_llama_snapshot *made = NULL;
    int32_t other[OTHER];
    for (int32_t i = 0; i < OTHER; i++)
        other[i] = i < COMMON ? fixture->prompt[i] : TEST_MODEL_TOKENS - 1;
    test_llama_evaluate(fixture->context, 0, other, OTHER, 0);
    assert_int_equal(ckv_llama_snapshot_create(fixture->bridge, 0, other, OTHER, &made,
                                               &fixture->error),
                     CKV_OK);
    assert_int_equal(
        put(fixture, ckv_llama_snapshot_entry(made), ckv_llama_snapshot_source(made)),
        CKV_OK);
    ckv_llama_snapshot_destroy(made);
    llama_memory_clear(llama_get_memory(fixture->context), true);
    store_damaged(fixture, &damages[6]);
    start_again(fixture);
    assert_int_equal(restore(fixture, 0), CKV_OK);
    assert_int_equal(fixture->restored.prefix, COMMON);
    assert_int_equal(fixture->restored.tried, 2);
    assert_int_equal(stats_of(fixture).set_aside, 1);
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(fixture->context), 0),
                     COMMON - 1);
}

static void bytes_of_another_engine_are_left_alone(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_llama_snapshot *made;
    struct ckv_entry entry;
    struct ckv_cache cache;
    test_llama_evaluate(fixture->context, 0, fixture->prompt, LENGTH, 0);
    made = snapshot(fixture, LENGTH);
    entry = *ckv_llama_snapshot_entry(made);
    cache = entry.caches[0];
    strcpy(cache.engine, "other");
    entry.caches = &cache;
    assert_int_equal(put(fixture, &entry, ckv_llama_snapshot_source(made)), CKV_OK);
    ckv_llama_snapshot_destroy(made);
    start_again(fixture);
    expect_miss(fixture, "another engine");
    assert_int_equal(stats_of(fixture).set_aside, 0);
    assert_int_equal(stats_of(fixture).entries, 1);
}

static void sequences_out_of_range_are_refused_without_abort(void **state)
{
    static const int32_t sequences[] = {-1, -2, 1, 2, 255, 256, 1 << 20, INT32_MIN};
    struct fixture *fixture = *state;
    struct ckv_llama_snapshot *made = NULL;
    store_prompt(fixture);
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++) {
        assert_int_equal(restore(fixture, sequences[i]), CKV_INVALID);
        assert_int_equal(ckv_llama_snapshot_create(fixture->bridge, sequences[i],
                                                   fixture->prompt, LENGTH, &made,
                                                   &fixture->error),
                         CKV_INVALID);
        assert_null(made);
    }
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(fixture->context), 0),
                     LENGTH - 1);
}

static void a_negative_token_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_llama_snapshot *made = NULL;
    store_prompt(fixture);
    fixture->prompt[10] = -1;
    assert_int_equal(ckv_llama_snapshot_create(fixture->bridge, 0, fixture->prompt,
                                               LENGTH, &made, &fixture->error),
                     CKV_INVALID);
    assert_null(made);
    assert_int_equal(restore(fixture, 0), CKV_INVALID);
    assert_true(test_llama_is_empty(fixture->context, 0));
}

static void an_empty_prompt_is_a_miss(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(ckv_llama_restore(fixture->bridge, fixture->store, NULL, 0, NULL, 0,
                                       &fixture->restored, &fixture->error),
                     CKV_NOTFOUND);
}

static void a_snapshot_wants_exactly_the_positions_given(void **state)
{
    static const size_t counts[] = {0, 1, 9, 11, SIZE_MAX};
    struct fixture *fixture = *state;
    struct ckv_llama_snapshot *made = NULL;
    assert_int_equal(ckv_llama_snapshot_create(fixture->bridge, 0, fixture->prompt, 1,
                                               &made, &fixture->error),
                     CKV_INVALID);
    test_llama_evaluate(fixture->context, 0, fixture->prompt, 10, 0);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        assert_int_equal(ckv_llama_snapshot_create(fixture->bridge, 0, fixture->prompt,
                                                   counts[i], &made, &fixture->error),
                         CKV_INVALID);
    (void)llama_memory_seq_rm(llama_get_memory(fixture->context), 0, 0, 3);
    assert_int_equal(ckv_llama_snapshot_create(fixture->bridge, 0, fixture->prompt, 10,
                                               &made, &fixture->error),
                     CKV_INVALID);
    assert_null(made);
}

static void a_snapshot_refuses_a_hole_in_the_middle(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_llama_snapshot *made = NULL;
    test_llama_evaluate(fixture->context, 0, fixture->prompt, 10, 0);
    (void)llama_memory_seq_rm(llama_get_memory(fixture->context), 0, 4, 6);
    assert_int_equal(ckv_llama_snapshot_create(fixture->bridge, 0, fixture->prompt, 10,
                                               &made, &fixture->error),
                     CKV_ENGINE);
    assert_null(made);
}

static void a_snapshot_wants_its_sequence_alone(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_llama_snapshot *made = NULL;
    fixture->params.n_seq_max = 2;
    start_again(fixture);
    test_llama_evaluate(fixture->context, 0, fixture->prompt, 10, 0);
    test_llama_evaluate(fixture->context, 1, fixture->prompt, 5, 0);
    assert_int_equal(ckv_llama_snapshot_create(fixture->bridge, 0, fixture->prompt, 10,
                                               &made, &fixture->error),
                     CKV_INVALID);
    assert_non_null(strstr(fixture->error.text, "not alone"));
    (void)llama_memory_seq_rm(llama_get_memory(fixture->context), 1, -1, -1);
    made = snapshot(fixture, 10);
    ckv_llama_snapshot_destroy(made);
    ckv_llama_snapshot_destroy(NULL);
}

static void every_failed_allocation_is_a_miss_that_harms_nothing(void **state)
{
    struct fixture *fixture = *state;
    enum ckv_status status = CKV_NOMEM;
    size_t failures = 0;
    store_prompt(fixture);
    for (size_t at = 1; status != CKV_OK; at++) {
        test_alloc_reset(&fixture->alloc);
        fixture->alloc.fail_at = at;
        status = restore(fixture, 0);
        fixture->alloc.fail_at = 0;
        if (status == CKV_OK)
            break;
        failures++;
        assert_true(status == CKV_NOMEM || status == CKV_NOTFOUND);
        assert_true(test_llama_is_empty(fixture->context, 0));
    }
    assert_int_equal(failures, 2);
    assert_int_equal(stats_of(fixture).set_aside, 0);
}

static void every_failed_allocation_of_a_snapshot_ends_cleanly(void **state)
{
    struct fixture *fixture = *state;
    enum ckv_status status = CKV_NOMEM;
    struct ckv_llama_snapshot *made = NULL;
    size_t live;
    test_llama_evaluate(fixture->context, 0, fixture->prompt, LENGTH, 0);
    live = fixture->alloc.live_blocks;
    for (size_t at = 1; status == CKV_NOMEM; at++) {
        test_alloc_reset(&fixture->alloc);
        fixture->alloc.fail_at = at;
        status = ckv_llama_snapshot_create(fixture->bridge, 0, fixture->prompt, LENGTH,
                                           &made, &fixture->error);
        fixture->alloc.fail_at = 0;
        if (status)
            assert_int_equal(fixture->alloc.live_blocks, live);
    }
    assert_int_equal(status, CKV_OK);
    ckv_llama_snapshot_destroy(made);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(snapshot_is_one_state_with_floor_zero),
        TEST(state_bytes_are_exact_and_zero_when_empty),
        TEST(restored_run_equals_an_unbroken_one),
        TEST(s60_the_same_prompt_keeps_one_token_to_evaluate),
        TEST(s10_a_shorter_prefix_is_cut_out_of_the_entry),
        TEST(s35_a_snapshot_does_not_follow_the_sequence),
        TEST(an_occupied_sequence_is_replaced),
        TEST(an_occupied_sequence_is_emptied_by_a_miss),
        TEST(another_sequence_can_take_the_entry),
        TEST(flash_attention_off_round_trips_too),
        TEST(quantized_caches_round_trip_too),
        TEST(s22_entries_of_another_setting_are_not_offered),
        TEST(a_context_too_small_is_a_miss_and_harms_nothing),
        TEST(no_room_beside_another_sequence_is_a_miss),
        TEST(s37_a_state_that_lies_is_set_aside_for_good),
        TEST(after_a_refusal_a_cold_run_is_a_clean_run),
        TEST(a_good_entry_behind_a_bad_one_is_found),
        TEST(bytes_of_another_engine_are_left_alone),
        TEST(sequences_out_of_range_are_refused_without_abort),
        TEST(a_negative_token_is_refused),
        TEST(an_empty_prompt_is_a_miss),
        TEST(a_snapshot_wants_exactly_the_positions_given),
        TEST(a_snapshot_refuses_a_hole_in_the_middle),
        TEST(a_snapshot_wants_its_sequence_alone),
        TEST(every_failed_allocation_is_a_miss_that_harms_nothing),
        TEST(every_failed_allocation_of_a_snapshot_ends_cleanly),
    };
    int failed;
    test_llama_start();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_llama_stop();
    return failed;
}

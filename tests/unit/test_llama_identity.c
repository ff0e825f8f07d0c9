/* What makes two contexts share entries and what does not, and which contexts have none
 * (S14, S20-S24, S27). With small models of random weights. */
#include "lib/capture_log.h"
#include "lib/counting_alloc.h"
#include "lib/files.h"
#include "lib/temp_dir.h"
#include "llama_fixture.h"
#include "llama_session.h"
#include <coldkv/llama.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct test_alloc alloc;
    struct test_log log;
    struct test_dir dir;
    char path[TEST_PATH_SIZE]; /* of the model that is loaded */
    struct llama_model *model;
    struct llama_context_params params;
    struct ckv_llama_options options;
    struct ckv_error error;
};

static void write_model(struct fixture *fixture, const char *name,
                        const char *architecture, uint32_t seed)
{
    struct test_gguf made;
    test_gguf_init(&made);
    test_gguf_fill_model(&made, architecture, seed);
    test_gguf_write(&made, test_dir_path(&fixture->dir, name));
    test_gguf_deinit(&made);
}

static void use_model(struct fixture *fixture, const char *name)
{
    if (fixture->model)
        llama_model_free(fixture->model);
    strcpy(fixture->path, test_dir_path(&fixture->dir, name));
    fixture->model = test_llama_load(fixture->path);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    test_alloc_init(&fixture->alloc);
    test_log_init(&fixture->log);
    test_dir_init(&fixture->dir);
    fixture->params = test_llama_params();
    fixture->params.n_threads = 1; /* the model is tiny */
    fixture->params.n_threads_batch = 1;
    ckv_llama_options_init(&fixture->options);
    fixture->options.alloc = &fixture->alloc.alloc;
    fixture->options.log = fixture->log.log;
    write_model(fixture, "m.gguf", "llama", 1);
    use_model(fixture, "m.gguf");
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    llama_model_free(fixture->model);
    test_dir_deinit(&fixture->dir);
    test_log_deinit(&fixture->log);
    assert_true(test_alloc_clean(&fixture->alloc));
    test_alloc_deinit(&fixture->alloc);
    free(fixture);
    return 0;
}

/* Makes a context and a bridge, keeps what `look` wants, ends both. */
static enum ckv_status try_bridge(struct fixture *fixture, struct ckv_store_identity *out)
{
    struct llama_context *context = test_llama_context(fixture->model, &fixture->params);
    struct ckv_llama *bridge = NULL;
    enum ckv_status status;
    ckv_error_clear(&fixture->error);
    status = ckv_llama_create(context, &fixture->params, fixture->path, &fixture->options,
                              &bridge, &fixture->error);
    assert_int_equal(fixture->error.status, status);
    assert_true((status == CKV_OK) == (bridge != NULL));
    if (bridge && out) {
        const struct ckv_store_identity *identity = ckv_llama_identity(bridge);
        out->fingerprint = strdup(identity->fingerprint);
        out->tokenizer_hash = strdup(identity->tokenizer_hash);
        out->model_id = strdup(identity->model_id);
        out->description = strdup(identity->description);
    }
    if (bridge)
        assert_true(test_llama_is_empty(context, 0));
    ckv_llama_destroy(bridge);
    llama_free(context);
    return status;
}

static struct ckv_store_identity identify(struct fixture *fixture)
{
    struct ckv_store_identity identity = {0};
    assert_int_equal(try_bridge(fixture, &identity), CKV_OK);
    return identity;
}

static void release(struct ckv_store_identity *identity)
{
    free((char *)identity->fingerprint);
    free((char *)identity->tokenizer_hash);
    free((char *)identity->model_id);
    free((char *)identity->description);
}

/* Whether the settings now lead to entries that `first` can use. */
static bool shares(struct fixture *fixture, const struct ckv_store_identity *first)
{
    struct ckv_store_identity now = identify(fixture);
    bool same = strcmp(first->fingerprint, now.fingerprint) == 0 &&
                strcmp(first->tokenizer_hash, now.tokenizer_hash) == 0;
    assert_true((strcmp(first->fingerprint, now.fingerprint) == 0) ==
                (strcmp(first->description, now.description) == 0));
    release(&now);
    return same;
}

static void identity_is_hashes_and_a_text_behind_them(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_store_identity identity = identify(fixture);
    struct ckv_sha256 *sha = NULL;
    char text[CKV_SHA256_TEXT_SIZE];
    assert_int_equal(ckv_sha256_create(NULL, &sha, NULL), CKV_OK);
    assert_int_equal(
        ckv_sha256_update(sha, identity.description, strlen(identity.description), NULL),
        CKV_OK);
    assert_int_equal(ckv_sha256_finish(sha, text, NULL), CKV_OK);
    ckv_sha256_destroy(sha);
    assert_string_equal(identity.fingerprint, text);
    assert_int_equal(strspn(identity.tokenizer_hash, "0123456789abcdef"), 64);
    assert_string_equal(identity.model_id, "Random");
    assert_non_null(strstr(
        identity.description,
        "\"cache\":{\"key_type\":\"f16\",\"value_type\":\"f16\",\"flash_attention\":true,"
        "\"keys_rotated\":false,\"values_rotated\":false,\"streams\":1,\"layers\":2,"
        "\"bytes_per_token\":524}"));
    assert_non_null(
        strstr(identity.description,
               "\"rope\":{\"type\":\"norm\",\"base\":\"10000\",\"scaling\":\"linear\","));
    assert_null(strstr(identity.description, "auto"));
    assert_int_equal(test_log_count(&fixture->log, "llama.identity"), 1);
    release(&identity);
}

static void s24_volatile_things_do_not_enter(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_store_identity first = identify(fixture);
    fixture->params.n_ctx = 512;
    assert_true(shares(fixture, &first));
    fixture->params.n_threads = 2;
    fixture->params.n_threads_batch = 2;
    fixture->params.n_ubatch = 32;
    fixture->params.n_batch = 64;
    assert_true(shares(fixture, &first));
    fixture->params.n_seq_max = 4;
    assert_true(shares(fixture, &first));
    fixture->params.n_seq_max = 1;
    fixture->params.kv_unified = false;
    assert_true(shares(fixture, &first));
    test_copy_file(fixture->path, test_dir_path(&fixture->dir, "copy.gguf"));
    use_model(fixture, "copy.gguf");
    assert_true(shares(fixture, &first));
    release(&first);
}

static void s20_other_weights_of_the_same_shape_do_not_share(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_store_identity first = identify(fixture);
    write_model(fixture, "other.gguf", "llama", 2);
    use_model(fixture, "other.gguf");
    assert_false(shares(fixture, &first));
    release(&first);
}

static void s21_a_changed_file_under_the_same_name_does_not_share(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_store_identity first = identify(fixture);
    uint64_t last = test_file_size(fixture->path) - 1;
    test_flip_byte(fixture->path, last - 40, 1);
    use_model(fixture, "m.gguf");
    assert_false(shares(fixture, &first));
    release(&first);
}

static void a_changed_key_does_not_share(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_store_identity first = identify(fixture);
    struct test_gguf made;
    test_gguf_init(&made);
    test_gguf_fill_model(&made, "llama", 1);
    gguf_set_val_f32(made.gguf, "llama.attention.layer_norm_rms_epsilon", 2e-5f);
    test_gguf_write(&made, test_dir_path(&fixture->dir, "key.gguf"));
    test_gguf_deinit(&made);
    use_model(fixture, "key.gguf");
    assert_false(shares(fixture, &first));
    release(&first);
}

static void another_name_or_chat_template_still_shares(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_store_identity first = identify(fixture);
    struct ckv_store_identity second;
    struct test_gguf made;
    test_gguf_init(&made);
    test_gguf_fill_model(&made, "llama", 1);
    gguf_set_val_str(made.gguf, "general.name", "Renamed \xc3\xa9");
    gguf_set_val_str(made.gguf, "tokenizer.chat_template", "{{ x }}");
    test_gguf_write(&made, test_dir_path(&fixture->dir, "renamed.gguf"));
    test_gguf_deinit(&made);
    use_model(fixture, "renamed.gguf");
    assert_true(shares(fixture, &first));
    second = identify(fixture);
    assert_string_equal(second.model_id, "Renamed \xc3\xa9");
    release(&second);
    release(&first);
}

static void another_tokenizer_does_not_share(void **state)
{
    static const char *merges[] = {"a b"};
    struct fixture *fixture = *state;
    struct ckv_store_identity first = identify(fixture);
    struct ckv_store_identity second;
    struct test_gguf made;
    test_gguf_init(&made);
    test_gguf_fill_model(&made, "llama", 1);
    gguf_set_arr_str(made.gguf, "tokenizer.ggml.merges", merges, 1);
    test_gguf_write(&made, test_dir_path(&fixture->dir, "tok.gguf"));
    test_gguf_deinit(&made);
    use_model(fixture, "tok.gguf");
    second = identify(fixture);
    assert_string_equal(second.fingerprint, first.fingerprint);
    assert_string_not_equal(second.tokenizer_hash, first.tokenizer_hash);
    release(&second);
    release(&first);
}

static void s22_types_layout_and_rope_do_not_share(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_store_identity first = identify(fixture);
    const struct llama_context_params standard = fixture->params;
    fixture->params.type_k = GGML_TYPE_Q8_0;
    assert_false(shares(fixture, &first));
    fixture->params.type_v = GGML_TYPE_Q8_0;
    assert_false(shares(fixture, &first));
    fixture->params = standard;
    fixture->params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    assert_false(shares(fixture, &first));
    fixture->params = standard;
    fixture->params.rope_freq_base = 20000.0f;
    assert_false(shares(fixture, &first));
    fixture->params.rope_freq_base = 10000.0f;
    assert_true(shares(fixture, &first));
    fixture->params = standard;
    fixture->params.rope_freq_scale = 0.5f;
    assert_false(shares(fixture, &first));
    release(&first);
}

/* The variable changes what a quantized cache means, without changing its layout. */
static void rotation_from_the_environment_does_not_share(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_store_identity first = identify(fixture);
    struct ckv_store_identity rotated;
    setenv("LLAMA_ATTN_ROT_DISABLE", "1", 1);
    assert_true(shares(fixture, &first));
    unsetenv("LLAMA_ATTN_ROT_DISABLE");
    fixture->params.type_k = GGML_TYPE_Q8_0;
    fixture->params.type_v = GGML_TYPE_Q8_0;
    rotated = identify(fixture);
    setenv("LLAMA_ATTN_ROT_DISABLE", "0", 1);
    assert_true(shares(fixture, &rotated));
    setenv("LLAMA_ATTN_ROT_DISABLE", "1", 1);
    assert_false(shares(fixture, &rotated));
    unsetenv("LLAMA_ATTN_ROT_DISABLE");
    release(&rotated);
    release(&first);
}

static void what_the_caller_adds_enters(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_store_identity first = identify(fixture);
    fixture->options.extra_identity = "override llama.x=1";
    assert_false(shares(fixture, &first));
    fixture->options.extra_identity = "";
    assert_true(shares(fixture, &first));
    fixture->options.extra_identity = NULL;
    fixture->options.full_identity = true;
    assert_false(shares(fixture, &first));
    release(&first);
}

static void expect_refused(struct fixture *fixture, enum ckv_status status,
                           const char *reason)
{
    assert_int_equal(try_bridge(fixture, NULL), status);
    if (!strstr(fixture->error.text, reason))
        fail_msg("\"%s\" does not say \"%s\"", fixture->error.text, reason);
}

static void s14_contexts_that_cannot_be_kept_are_refused_with_the_remedy(void **state)
{
    struct fixture *fixture = *state;
    const struct llama_context_params standard = fixture->params;
    fixture->params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_AUTO;
    expect_refused(fixture, CKV_UNSUPPORTED, "set flash_attn_type");
    fixture->params = standard;
    fixture->params.n_seq_max = 2;
    fixture->params.kv_unified = false;
    expect_refused(fixture, CKV_UNSUPPORTED, "set kv_unified");
    fixture->params = standard;
    fixture->params.attention_type = LLAMA_ATTENTION_TYPE_NON_CAUSAL;
    expect_refused(fixture, CKV_UNSUPPORTED, "not causal");
}

static void s14_models_that_cannot_be_cut_are_refused_by_name(void **state)
{
    static const char *const kinds[][2] = {
        {"gemma3", "sliding window of 64 tokens"},
        {"mamba", "recurrent"},
        {"qwen2vl", "M-RoPE"},
    };
    struct fixture *fixture = *state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        write_model(fixture, "kind.gguf", kinds[i][0], 1);
        use_model(fixture, "kind.gguf");
        expect_refused(fixture, CKV_UNSUPPORTED, kinds[i][1]);
    }
}

static void parameters_of_another_context_are_found_out(void **state)
{
    struct fixture *fixture = *state;
    struct llama_context *context = test_llama_context(fixture->model, &fixture->params);
    struct ckv_llama *bridge = NULL;
    struct llama_context_params other = fixture->params;
    other.type_v = GGML_TYPE_Q8_0;
    assert_int_equal(
        ckv_llama_create(context, &other, fixture->path, NULL, &bridge, &fixture->error),
        CKV_INVALID);
    assert_null(bridge);
    other = fixture->params;
    other.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    assert_int_equal(
        ckv_llama_create(context, &other, fixture->path, NULL, &bridge, &fixture->error),
        CKV_UNSUPPORTED);
    assert_true(test_llama_is_empty(context, 0));
    llama_free(context);
}

static void a_context_in_use_is_refused_and_left_alone(void **state)
{
    static const int32_t tokens[] = {1, 2, 3};
    struct fixture *fixture = *state;
    struct llama_context *context;
    struct ckv_llama *bridge = NULL;
    fixture->params.n_seq_max = 2;
    context = test_llama_context(fixture->model, &fixture->params);
    test_llama_evaluate(context, 1, tokens, 3, 0);
    assert_int_equal(ckv_llama_create(context, &fixture->params, fixture->path, NULL,
                                      &bridge, &fixture->error),
                     CKV_INVALID);
    assert_null(bridge);
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(context), 1), 2);
    llama_free(context);
}

static void another_file_than_the_loaded_one_is_found_out(void **state)
{
    struct fixture *fixture = *state;
    struct test_gguf made;
    test_gguf_init(&made);
    test_gguf_fill_model(&made, "llama", 1);
    test_gguf_add(&made, "one.more", GGML_TYPE_F32, 8, 1, 1);
    test_gguf_write(&made, test_dir_path(&fixture->dir, "more.gguf"));
    test_gguf_deinit(&made);
    strcpy(fixture->path, test_dir_path(&fixture->dir, "more.gguf"));
    expect_refused(fixture, CKV_INVALID, "not the file that was loaded");
    strcpy(fixture->path, test_dir_path(&fixture->dir, "absent.gguf"));
    expect_refused(fixture, CKV_NOTFOUND, "absent.gguf");
}

static void missing_arguments_and_unknown_options_are_refused(void **state)
{
    struct {
        struct ckv_llama_options options;
        uint64_t later;
    } longer = {.later = 1};
    struct fixture *fixture = *state;
    struct llama_context *context = test_llama_context(fixture->model, &fixture->params);
    struct ckv_llama *bridge = NULL;
    assert_int_equal(
        ckv_llama_create(NULL, &fixture->params, fixture->path, NULL, &bridge, NULL),
        CKV_INVALID);
    assert_int_equal(ckv_llama_create(context, NULL, fixture->path, NULL, &bridge, NULL),
                     CKV_INVALID);
    assert_int_equal(
        ckv_llama_create(context, &fixture->params, NULL, NULL, &bridge, NULL),
        CKV_INVALID);
    ckv_llama_options_init(&longer.options);
    longer.options.size = sizeof longer;
    assert_int_equal(ckv_llama_create(context, &fixture->params, fixture->path,
                                      &longer.options, &bridge, &fixture->error),
                     CKV_INVALID);
    longer.options.size = 0;
    assert_int_equal(ckv_llama_create(context, &fixture->params, fixture->path,
                                      &longer.options, &bridge, &fixture->error),
                     CKV_INVALID);
    assert_null(bridge);
    ckv_llama_destroy(NULL);
    llama_free(context);
}

static void every_failed_allocation_ends_cleanly(void **state)
{
    struct fixture *fixture = *state;
    enum ckv_status status = CKV_NOMEM;
    size_t at = 0;
    for (at = 1; status == CKV_NOMEM; at++) {
        test_alloc_reset(&fixture->alloc);
        fixture->alloc.fail_at = at;
        status = try_bridge(fixture, NULL);
        fixture->alloc.fail_at = 0;
        assert_int_equal(fixture->alloc.live_blocks, 0);
    }
    assert_int_equal(status, CKV_OK);
    assert_true(at > 20);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(identity_is_hashes_and_a_text_behind_them),
        TEST(s24_volatile_things_do_not_enter),
        TEST(s20_other_weights_of_the_same_shape_do_not_share),
        TEST(s21_a_changed_file_under_the_same_name_does_not_share),
        TEST(a_changed_key_does_not_share),
        TEST(another_name_or_chat_template_still_shares),
        TEST(another_tokenizer_does_not_share),
        TEST(s22_types_layout_and_rope_do_not_share),
        TEST(rotation_from_the_environment_does_not_share),
        TEST(what_the_caller_adds_enters),
        TEST(s14_contexts_that_cannot_be_kept_are_refused_with_the_remedy),
        TEST(s14_models_that_cannot_be_cut_are_refused_by_name),
        TEST(parameters_of_another_context_are_found_out),
        TEST(a_context_in_use_is_refused_and_left_alone),
        TEST(another_file_than_the_loaded_one_is_found_out),
        TEST(missing_arguments_and_unknown_options_are_refused),
        TEST(every_failed_allocation_ends_cleanly),
    };
    int failed;
    test_llama_start();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_llama_stop();
    return failed;
}

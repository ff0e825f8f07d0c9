/* Effective settings in the identity: never the word auto, equal when the effect is equal
 * (S22, S23). */
#include "llama_fixture.h"
#include "settings.h"
#include <coldkv/alloc.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct test_gguf made;
    struct llama_context_params params;
    struct ckvi_llama_settings settings;
    struct ckvi_llama_text text;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    test_gguf_init(&fixture->made);
    gguf_set_val_u32(fixture->made.gguf, "tiny.context_length", 4096);
    gguf_set_val_f32(fixture->made.gguf, "tiny.rope.freq_base", 500000.0f);
    fixture->params = llama_context_default_params();
    fixture->settings = (struct ckvi_llama_settings){
        .keys = fixture->made.gguf,
        .architecture = "tiny",
        .params = &fixture->params,
        .rope_type = LLAMA_ROPE_TYPE_NORM,
        .freq_scale_train = 1.0f,
        .context_tokens = 512,
        .embedding_length = 576,
        .head_count = 9,
        .pooling = LLAMA_POOLING_TYPE_NONE,
    };
    ckvi_llama_text_init(&fixture->text, ckv_alloc_default());
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    ckvi_llama_text_deinit(&fixture->text);
    test_gguf_deinit(&fixture->made);
    free(fixture);
    return 0;
}

static const char *rope_of(struct fixture *fixture)
{
    ckvi_llama_text_deinit(&fixture->text);
    ckvi_llama_settings_put_rope(&fixture->text, &fixture->settings);
    return fixture->text.data;
}

static char *copy_rope(struct fixture *fixture)
{
    char *copy = strdup(rope_of(fixture));
    assert_non_null(copy);
    return copy;
}

static void rope_of_the_model_is_written_in_numbers(void **state)
{
    assert_string_equal(
        rope_of(*state),
        "{\"type\":\"norm\",\"base\":\"500000\",\"scaling\":\"linear\",\"scale\":\"1\","
        "\"yarn_ext_factor\":\"0\",\"yarn_attn_factor\":\"1\","
        "\"yarn_beta_fast\":\"32\",\"yarn_beta_slow\":\"1\","
        "\"original_context\":4096,\"factors\":\"none\"}");
}

static void asking_for_the_models_own_values_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    char *automatic = copy_rope(fixture);
    fixture->params.rope_freq_base = 500000.0f;
    fixture->params.rope_freq_scale = 1.0f;
    fixture->params.rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_LINEAR;
    fixture->params.yarn_ext_factor = 0.0f;
    fixture->params.yarn_attn_factor = 1.0f;
    fixture->params.yarn_beta_fast = 32.0f;
    fixture->params.yarn_beta_slow = 1.0f;
    fixture->params.yarn_orig_ctx = 4096;
    assert_string_equal(rope_of(fixture), automatic);
    free(automatic);
}

static void every_rope_parameter_matters(void **state)
{
    struct fixture *fixture = *state;
    char *automatic = copy_rope(fixture);
    const struct llama_context_params standard = fixture->params;
    struct llama_context_params variants[8];
    for (size_t i = 0; i < 8; i++)
        variants[i] = standard;
    variants[0].rope_freq_base = 500001.0f;
    variants[1].rope_freq_scale = 0.5f;
    variants[2].rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_YARN;
    variants[3].yarn_ext_factor = 1.0f;
    variants[4].yarn_attn_factor = 1.5f;
    variants[5].yarn_beta_fast = 16.0f;
    variants[6].yarn_beta_slow = 2.0f;
    variants[7].yarn_orig_ctx = 2048;
    for (size_t i = 0; i < 8; i++) {
        fixture->params = variants[i];
        assert_string_not_equal(rope_of(fixture), automatic);
    }
    free(automatic);
}

static void no_scaling_means_scale_one(void **state)
{
    struct fixture *fixture = *state;
    char *one;
    fixture->params.rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_NONE;
    one = copy_rope(fixture);
    fixture->params.rope_freq_scale = 0.25f;
    assert_string_equal(rope_of(fixture), one);
    assert_non_null(strstr(one, "\"scaling\":\"none\",\"scale\":\"1\""));
    free(one);
}

static void the_models_yarn_switches_the_factor_on(void **state)
{
    struct fixture *fixture = *state;
    gguf_set_val_str(fixture->made.gguf, "tiny.rope.scaling.type", "yarn");
    gguf_set_val_u32(fixture->made.gguf, "tiny.rope.scaling.original_context_length",
                     2048);
    gguf_set_val_f32(fixture->made.gguf, "tiny.rope.scaling.yarn_beta_fast", 8.0f);
    fixture->settings.freq_scale_train = 0.125f;
    assert_string_equal(
        rope_of(fixture),
        "{\"type\":\"norm\",\"base\":\"500000\",\"scaling\":\"yarn\","
        "\"scale\":\"0.125\",\"yarn_ext_factor\":\"1\",\"yarn_attn_factor\":\"1\","
        "\"yarn_beta_fast\":\"model\",\"yarn_beta_slow\":\"1\","
        "\"original_context\":2048,\"factors\":\"none\"}");
}

static void a_model_without_a_base_has_the_engines(void **state)
{
    struct fixture *fixture = *state;
    gguf_remove_key(fixture->made.gguf, "tiny.rope.freq_base");
    assert_non_null(strstr(rope_of(fixture), "\"base\":\"10000\""));
    gguf_set_val_f32(fixture->made.gguf, "tiny.rope.scaling.alpha", 1000.0f);
    assert_non_null(strstr(rope_of(fixture), "\"base\":\"model\""));
}

static void context_size_matters_only_where_it_picks_factors(void **state)
{
    struct fixture *fixture = *state;
    char *small = copy_rope(fixture);
    fixture->settings.context_tokens = 8192;
    assert_string_equal(rope_of(fixture), small);
    free(small);
    fixture->settings.has_long_factors = true;
    assert_non_null(strstr(rope_of(fixture), "\"factors\":\"long\""));
    fixture->settings.context_tokens = 4096;
    assert_non_null(strstr(rope_of(fixture), "\"factors\":\"short\""));
}

static void put_cache(struct fixture *fixture, enum ggml_type type, bool transposed)
{
    struct ckvi_llama_rows rows[4];
    const struct ckvi_llama_layout layout = {
        .values_transposed = transposed,
        .layer_count = 2,
        .value_count = 2,
        .rows = rows,
        .token_bytes = 1234,
    };
    for (size_t i = 0; i < 4; i++)
        rows[i] = (struct ckvi_llama_rows){.type = (int32_t)type};
    ckvi_llama_text_deinit(&fixture->text);
    ckvi_llama_settings_put_cache(&fixture->text, &fixture->settings, &layout);
}

static void cache_is_written_as_it_was_seen(void **state)
{
    struct fixture *fixture = *state;
    put_cache(fixture, GGML_TYPE_F16, false);
    assert_string_equal(
        fixture->text.data,
        "{\"key_type\":\"f16\",\"value_type\":\"f16\",\"flash_attention\":true,"
        "\"keys_rotated\":false,\"values_rotated\":false,\"streams\":1,\"layers\":2,"
        "\"bytes_per_token\":1234}");
    put_cache(fixture, GGML_TYPE_F16, true);
    assert_non_null(strstr(fixture->text.data, "\"flash_attention\":false"));
}

static bool rotated(struct fixture *fixture, enum ggml_type type)
{
    put_cache(fixture, type, false);
    return strstr(fixture->text.data, "\"keys_rotated\":true") != NULL;
}

/* LLAMA_ATTN_ROT_DISABLE matters only for quantized caches with heads of 64, 128, … */
static void rotation_shows_where_it_happens(void **state)
{
    struct fixture *fixture = *state;
    assert_true(rotated(fixture, GGML_TYPE_Q8_0));
    assert_false(rotated(fixture, GGML_TYPE_F16));
    fixture->settings.rotation_disabled = true;
    assert_false(rotated(fixture, GGML_TYPE_Q8_0));
    fixture->settings.rotation_disabled = false;
    gguf_set_val_u32(fixture->made.gguf, "tiny.attention.key_length", 80);
    assert_false(rotated(fixture, GGML_TYPE_Q8_0));
    gguf_set_val_u32(fixture->made.gguf, "tiny.attention.key_length", 128);
    assert_true(rotated(fixture, GGML_TYPE_Q8_0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rope_of_the_model_is_written_in_numbers),
        TEST(asking_for_the_models_own_values_changes_nothing),
        TEST(every_rope_parameter_matters),
        TEST(no_scaling_means_scale_one),
        TEST(the_models_yarn_switches_the_factor_on),
        TEST(a_model_without_a_base_has_the_engines),
        TEST(context_size_matters_only_where_it_picks_factors),
        TEST(cache_is_written_as_it_was_seen),
        TEST(rotation_shows_where_it_happens),
    };
    setenv("GGML_NO_BACKTRACE", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The canonical text of numbers, strings and GGUF keys (S23, S24, S27). */
#include "keys.h"
#include "lib/counting_alloc.h"
#include "lib/temp_dir.h"
#include "llama_fixture.h"
#include "text.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The golden file's keys, spelled by hand after the rules in keys.h; hashes computed with
 * another implementation of SHA-256. */
static const char golden_model[] =
    "{\"another.key\":\"str:x\","
    "\"tiny.block_count\":\"u32:2\","
    "\"tiny.epsilon\":\"f32:9.99999975e-06\","
    "\"tiny.flag\":\"bool:true\","
    "\"tiny.i16\":\"i16:-300\","
    "\"tiny.i32\":\"i32:-70000\","
    "\"tiny.i64\":\"i64:-1099511627776\","
    "\"tiny.i8\":\"i8:-5\","
    "\"tiny.note\":\"str:say \\u0022\\u005c\\u0022 \\u00c3\\u00a9\\u000a\","
    "\"tiny.numbers\":\"[i32#3]:"
    "bc7ee6861c985ac4137f1fee179022c42688e8b66c508976e4432ff4fa4ba03a\","
    "\"tiny.rope.freq_base\":\"f32:1000000\","
    "\"tiny.third\":\"f64:0.33333333333333331\","
    "\"tiny.u16\":\"u16:65535\","
    "\"tiny.u64\":\"u64:18446744073709551615\","
    "\"tiny.u8\":\"u8:200\","
    "\"tiny.words\":\"[str#3]:"
    "025b7deb669a2a016a37ec34b136a0138957b04c6aa987a5c81a97547d7591ef\"}";

static const char golden_tokenizer[] =
    "{\"tokenizer.ggml.merges\":\"[str#2]:"
    "5efe16c97d78a54029d0c3905017866b5ca4d1506358b35963cf703554e3bc1b\","
    "\"tokenizer.ggml.model\":\"str:gpt2\","
    "\"tokenizer.ggml.pre\":\"str:tiny\"}";

struct fixture {
    struct test_alloc alloc;
    struct test_gguf made;
    struct ckvi_llama_text text;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    test_alloc_init(&fixture->alloc);
    test_gguf_init(&fixture->made);
    ckvi_llama_text_init(&fixture->text, &fixture->alloc.alloc);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    ckvi_llama_text_deinit(&fixture->text);
    test_gguf_deinit(&fixture->made);
    assert_true(test_alloc_clean(&fixture->alloc));
    test_alloc_deinit(&fixture->alloc);
    free(fixture);
    return 0;
}

static const char *keys_of(struct fixture *fixture, enum ckvi_llama_key_group group)
{
    struct ckv_error error;
    ckvi_llama_text_deinit(&fixture->text);
    assert_int_equal(
        ckvi_llama_keys_put(&fixture->text, fixture->made.gguf, group, &error), CKV_OK);
    return fixture->text.data;
}

static void model_keys_have_one_spelling(void **state)
{
    struct fixture *fixture = *state;
    test_gguf_fill_golden(&fixture->made);
    assert_string_equal(keys_of(fixture, CKVI_LLAMA_KEYS_MODEL), golden_model);
}

static void tokenizer_keys_leave_chat_templates_out(void **state)
{
    struct fixture *fixture = *state;
    test_gguf_fill_golden(&fixture->made);
    gguf_set_val_str(fixture->made.gguf, "tokenizer.chat_template.tools", "{{ tools }}");
    assert_string_equal(keys_of(fixture, CKVI_LLAMA_KEYS_TOKENIZER), golden_tokenizer);
}

static void names_authors_and_cuts_are_left_out(void **state)
{
    struct fixture *fixture = *state;
    test_gguf_fill_golden(&fixture->made);
    gguf_set_val_str(fixture->made.gguf, "general.name", "another name");
    gguf_set_val_str(fixture->made.gguf, "general.license", "none");
    gguf_set_val_u16(fixture->made.gguf, "split.count", 3);
    assert_string_equal(keys_of(fixture, CKVI_LLAMA_KEYS_MODEL), golden_model);
}

/* Keys in another order, as another converter would write them. */
static void order_in_the_file_does_not_matter(void **state)
{
    struct fixture *fixture = *state;
    gguf_set_val_u32(fixture->made.gguf, "b", 2);
    gguf_set_val_u32(fixture->made.gguf, "a", 1);
    assert_string_equal(keys_of(fixture, CKVI_LLAMA_KEYS_MODEL),
                        "{\"a\":\"u32:1\",\"b\":\"u32:2\"}");
}

static void type_and_value_and_name_all_show(void **state)
{
    struct fixture *fixture = *state;
    gguf_set_val_u32(fixture->made.gguf, "a", 1);
    assert_string_equal(keys_of(fixture, CKVI_LLAMA_KEYS_MODEL), "{\"a\":\"u32:1\"}");
    gguf_set_val_i32(fixture->made.gguf, "a", 1);
    assert_string_equal(keys_of(fixture, CKVI_LLAMA_KEYS_MODEL), "{\"a\":\"i32:1\"}");
    gguf_set_val_i32(fixture->made.gguf, "a", 2);
    assert_string_equal(keys_of(fixture, CKVI_LLAMA_KEYS_MODEL), "{\"a\":\"i32:2\"}");
    gguf_remove_key(fixture->made.gguf, "a");
    assert_string_equal(keys_of(fixture, CKVI_LLAMA_KEYS_MODEL), "{}");
}

static void arrays_of_equal_joined_text_differ(void **state)
{
    static const char *one[] = {"ab", "c"};
    static const char *two[] = {"a", "bc"};
    struct fixture *fixture = *state;
    char *first;
    gguf_set_arr_str(fixture->made.gguf, "a", one, 2);
    first = strdup(keys_of(fixture, CKVI_LLAMA_KEYS_MODEL));
    gguf_set_arr_str(fixture->made.gguf, "a", two, 2);
    assert_string_not_equal(keys_of(fixture, CKVI_LLAMA_KEYS_MODEL), first);
    free(first);
}

static void long_strings_are_hashed(void **state)
{
    struct fixture *fixture = *state;
    char text[258];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    gguf_set_val_str(fixture->made.gguf, "a", text);
    assert_string_equal(
        keys_of(fixture, CKVI_LLAMA_KEYS_MODEL),
        "{\"a\":\"str#257:"
        "15eb95a462ee20bd91a415ae2d4aed341288186ddaa2b37908f7d592f0c3f85f\"}");
    text[256] = '\0';
    gguf_set_val_str(fixture->made.gguf, "a", text);
    assert_int_equal(strlen(keys_of(fixture, CKVI_LLAMA_KEYS_MODEL)),
                     strlen("{\"a\":\"str:\"}") + 256);
}

static void typed_access_never_aborts(void **state)
{
    struct fixture *fixture = *state;
    uint64_t number = 7;
    float real = 7.0f;
    bool flag = false;
    const struct gguf_context *gguf = fixture->made.gguf;
    test_gguf_fill_golden(&fixture->made);
    assert_true(ckvi_llama_keys_get_u64(gguf, "tiny.block_count", &number));
    assert_int_equal(number, 2);
    assert_true(ckvi_llama_keys_get_u64(gguf, "tiny.u64", &number));
    assert_true(number == UINT64_MAX);
    assert_false(ckvi_llama_keys_get_u64(gguf, "tiny.i32", &number));
    assert_false(ckvi_llama_keys_get_u64(gguf, "tiny.note", &number));
    assert_false(ckvi_llama_keys_get_u64(gguf, "tiny.numbers", &number));
    assert_false(ckvi_llama_keys_get_u64(gguf, "absent", &number));
    assert_true(ckvi_llama_keys_get_float(gguf, "tiny.rope.freq_base", &real));
    assert_true(real == 1000000.0f);
    assert_false(ckvi_llama_keys_get_float(gguf, "tiny.third", &real));
    assert_true(ckvi_llama_keys_get_bool(gguf, "tiny.flag", &flag));
    assert_true(flag);
    assert_false(ckvi_llama_keys_get_bool(gguf, "tiny.u8", &flag));
    assert_string_equal(ckvi_llama_keys_get_string(gguf, "another.key"), "x");
    assert_null(ckvi_llama_keys_get_string(gguf, "tiny.words"));
}

static void put_floats(struct ckvi_llama_text *text)
{
    static const float values[] = {0.5f, -1.25e-10f, 16777216.0f, 3.4e38f, 0.1f};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        ckvi_llama_text_float(text, values[i]);
        ckvi_llama_text_put(text, " ");
    }
    ckvi_llama_text_double(text, 0.1);
}

#define FLOATS                                                                           \
    "0.5 -1.24999996e-10 16777216 3.39999995e+38 0.100000001 0.10000000000000001"

static void floats_read_back_to_the_same_bits(void **state)
{
    struct fixture *fixture = *state;
    put_floats(&fixture->text);
    assert_string_equal(fixture->text.data, FLOATS);
}

static void floats_are_the_same_in_every_locale(void **state)
{
    static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "ps_AF.UTF-8"};
    struct fixture *fixture = *state;
    for (size_t i = 0; i < sizeof commas / sizeof *commas; i++) {
        if (!setlocale(LC_NUMERIC, commas[i]))
            continue;
        ckvi_llama_text_deinit(&fixture->text);
        put_floats(&fixture->text);
        setlocale(LC_NUMERIC, "C");
        assert_string_equal(fixture->text.data, FLOATS);
    }
}

static void what_is_not_finite_shows_its_bits(void **state)
{
    struct fixture *fixture = *state;
    ckvi_llama_text_float(&fixture->text, INFINITY);
    ckvi_llama_text_put(&fixture->text, " ");
    ckvi_llama_text_double(&fixture->text, -INFINITY);
    assert_string_equal(fixture->text.data, "bits:0x7f800000 bits:0xfff0000000000000");
}

static void every_failed_allocation_is_reported(void **state)
{
    struct fixture *fixture = *state;
    enum ckv_status status = CKV_NOMEM;
    size_t at = 0;
    test_gguf_fill_golden(&fixture->made);
    for (at = 1; status == CKV_NOMEM; at++) {
        struct ckv_error error;
        ckvi_llama_text_deinit(&fixture->text);
        test_alloc_reset(&fixture->alloc);
        fixture->alloc.fail_at = at;
        status = ckvi_llama_keys_put(&fixture->text, fixture->made.gguf,
                                     CKVI_LLAMA_KEYS_MODEL, &error);
        fixture->alloc.fail_at = 0;
        if (status)
            assert_int_equal(error.status, CKV_NOMEM);
    }
    assert_int_equal(status, CKV_OK);
    assert_true(at > 3);
    assert_string_equal(fixture->text.data, golden_model);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(model_keys_have_one_spelling),
        TEST(tokenizer_keys_leave_chat_templates_out),
        TEST(names_authors_and_cuts_are_left_out),
        TEST(order_in_the_file_does_not_matter),
        TEST(type_and_value_and_name_all_show),
        TEST(arrays_of_equal_joined_text_differ),
        TEST(long_strings_are_hashed),
        TEST(typed_access_never_aborts),
        TEST(floats_read_back_to_the_same_bits),
        TEST(floats_are_the_same_in_every_locale),
        TEST(what_is_not_finite_shows_its_bits),
        TEST(every_failed_allocation_is_reported),
    };
    setenv("GGML_NO_BACKTRACE", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

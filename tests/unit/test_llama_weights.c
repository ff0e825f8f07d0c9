/* Which bytes of a model file decide its identity (S20, S21, S24). */
#include "lib/counting_alloc.h"
#include "lib/files.h"
#include "lib/temp_dir.h"
#include "llama_fixture.h"
#include "model_file.h"
#include "weights.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

/* Computed after the rules in model_file.h with another implementation of SHA-256. */
#define GOLDEN_SAMPLED "e520d37b66c113c2fc789557f5300d8951c2b5e6113ca1f10910a777f4080160"
#define GOLDEN_FULL "fdfb3863f062a6e6a0eac03e64fc3abbbc9a83d7081fb359c808b5687bd25e3a"
#define GOLDEN_BYTES (3 + 32 + 300000)

struct fixture {
    struct test_alloc alloc;
    struct test_dir dir;
    struct test_gguf made;
    char digest[CKV_SHA256_TEXT_SIZE];
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    test_alloc_init(&fixture->alloc);
    test_dir_init(&fixture->dir);
    test_gguf_init(&fixture->made);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    test_gguf_deinit(&fixture->made);
    test_dir_deinit(&fixture->dir);
    assert_true(test_alloc_clean(&fixture->alloc));
    test_alloc_deinit(&fixture->alloc);
    free(fixture);
    return 0;
}

static enum ckv_status load(struct fixture *fixture, const char *name, bool full,
                            struct ckv_error *error)
{
    struct ckvi_llama_model_file file;
    enum ckv_status status = ckvi_llama_model_file_load(
        &file, &fixture->alloc.alloc, test_dir_path(&fixture->dir, name), full, error);
    fixture->digest[0] = '\0';
    if (status)
        return status;
    status = ckvi_llama_model_file_digest(&file, fixture->digest, error);
    ckvi_llama_model_file_deinit(&file);
    return status;
}

static const char *digest_of(struct fixture *fixture, const char *name, bool full)
{
    struct ckv_error error;
    assert_int_equal(load(fixture, name, full, &error), CKV_OK);
    return fixture->digest;
}

static const char *write_golden(struct fixture *fixture, const char *name)
{
    const char *path = test_dir_path(&fixture->dir, name);
    test_gguf_fill_golden(&fixture->made);
    test_gguf_write(&fixture->made, path);
    return path;
}

static void samples_are_evenly_spaced_and_end_with_the_tensor(void **state)
{
    (void)state;
    assert_int_equal(ckvi_llama_sample_offset(300000, 0), 0);
    assert_int_equal(ckvi_llama_sample_offset(300000, 1), 4696);
    assert_int_equal(ckvi_llama_sample_offset(300000, 31), 145603);
    assert_int_equal(ckvi_llama_sample_offset(300000, 62), 291207);
    assert_int_equal(ckvi_llama_sample_offset(300000, 63), 300000 - 4096);
    assert_true(ckvi_llama_sample_offset(UINT64_MAX / 2, 63) == UINT64_MAX / 2 - 4096);
}

static void digest_of_a_fixed_model_is_fixed(void **state)
{
    struct fixture *fixture = *state;
    struct ckvi_llama_model_file file;
    struct ckv_error error;
    const char *path = write_golden(fixture, "m.gguf");
    assert_string_equal(digest_of(fixture, "m.gguf", false), GOLDEN_SAMPLED);
    assert_string_equal(digest_of(fixture, "m.gguf", true), GOLDEN_FULL);
    assert_int_equal(
        ckvi_llama_model_file_load(&file, &fixture->alloc.alloc, path, false, &error),
        CKV_OK);
    assert_int_equal(file.weight_count, 3);
    assert_int_equal(file.weight_bytes, GOLDEN_BYTES);
    assert_string_equal(file.weights[0].name, "a.weight");
    assert_string_equal(file.weights[2].digest, "ec418b72a2c9170bdfd8c75c1ce66835"
                                                "f5e312aaa71dd1003b5d3cd663b05540");
    ckvi_llama_model_file_deinit(&file);
}

static void path_and_time_do_not_matter(void **state)
{
    const struct timeval times[2] = {{1000000000, 0}, {1000000000, 0}};
    struct fixture *fixture = *state;
    const char *path = write_golden(fixture, "m.gguf");
    const char *copy = test_dir_path(&fixture->dir, "elsewhere.gguf");
    test_copy_file(path, copy);
    assert_int_equal(utimes(copy, times), 0);
    assert_string_equal(digest_of(fixture, "elsewhere.gguf", false), GOLDEN_SAMPLED);
}

static uint64_t data_offset(struct fixture *fixture)
{
    return gguf_get_meta_size(fixture->made.gguf);
}

/* Every byte of the small tensors; of the large one the borders of all samples. */
static void any_sampled_byte_matters(void **state)
{
    struct fixture *fixture = *state;
    const char *path = write_golden(fixture, "m.gguf");
    uint64_t start = data_offset(fixture);
    uint64_t large = start + gguf_get_tensor_offset(fixture->made.gguf, 2);
    uint64_t small = start + gguf_get_tensor_offset(fixture->made.gguf, 1);
    for (uint64_t at = 0; at < 32; at++) {
        test_flip_byte(path, small + at, 1);
        assert_string_not_equal(digest_of(fixture, "m.gguf", false), GOLDEN_SAMPLED);
        test_flip_byte(path, small + at, 1);
    }
    for (uint32_t i = 0; i < CKVI_LLAMA_SAMPLES; i++) {
        uint64_t first = large + ckvi_llama_sample_offset(300000, i);
        test_flip_byte(path, first, 0x80);
        assert_string_not_equal(digest_of(fixture, "m.gguf", false), GOLDEN_SAMPLED);
        test_flip_byte(path, first, 0x80);
        test_flip_byte(path, first + 4095, 1);
        assert_string_not_equal(digest_of(fixture, "m.gguf", false), GOLDEN_SAMPLED);
        test_flip_byte(path, first + 4095, 1);
    }
    assert_string_equal(digest_of(fixture, "m.gguf", false), GOLDEN_SAMPLED);
}

/* The documented limit of sampling, and what full_identity is for. */
static void a_byte_between_samples_shows_only_in_full(void **state)
{
    struct fixture *fixture = *state;
    const char *path = write_golden(fixture, "m.gguf");
    uint64_t large = data_offset(fixture) + gguf_get_tensor_offset(fixture->made.gguf, 2);
    test_flip_byte(path, large + 4096 + 10, 1);
    assert_string_equal(digest_of(fixture, "m.gguf", false), GOLDEN_SAMPLED);
    assert_string_not_equal(digest_of(fixture, "m.gguf", true), GOLDEN_FULL);
}

static void name_type_and_shape_of_a_tensor_matter(void **state)
{
    static const struct {
        const char *name;
        enum ggml_type type;
        int64_t width;
        int64_t rows;
    } variants[] = {
        {"x.weight", GGML_TYPE_I8, 64, 1},   {"y.weight", GGML_TYPE_I8, 64, 1},
        {"x.weight", GGML_TYPE_I8, 32, 2},   {"x.weight", GGML_TYPE_F16, 32, 1},
        {"x.weight", GGML_TYPE_BF16, 32, 1}, {"x.weight", GGML_TYPE_I8, 65, 1},
    };
    struct fixture *fixture = *state;
    enum { COUNT = sizeof variants / sizeof *variants };
    char digests[COUNT][CKV_SHA256_TEXT_SIZE];
    for (size_t i = 0; i < COUNT; i++) {
        struct test_gguf made;
        test_gguf_init(&made);
        test_gguf_add(&made, variants[i].name, variants[i].type, variants[i].width,
                      variants[i].rows, 1);
        test_gguf_write(&made, test_dir_path(&fixture->dir, "v.gguf"));
        test_gguf_deinit(&made);
        strcpy(digests[i], digest_of(fixture, "v.gguf", false));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(digests[i], digests[j]);
    }
}

static void order_of_tensors_does_not_matter(void **state)
{
    struct fixture *fixture = *state;
    struct test_gguf made;
    test_gguf_init(&made);
    test_gguf_add(&made, "c.weight", GGML_TYPE_I8, 1000, 300, 3);
    test_gguf_add(&made, "a.weight", GGML_TYPE_F16, 8, 2, 2);
    test_gguf_add(&made, "b.weight", GGML_TYPE_I8, 3, 1, 1);
    test_gguf_write(&made, test_dir_path(&fixture->dir, "o.gguf"));
    test_gguf_deinit(&made);
    assert_string_equal(digest_of(fixture, "o.gguf", false), GOLDEN_SAMPLED);
}

static void write_part(struct fixture *fixture, const char *name, uint16_t number,
                       uint16_t count)
{
    struct test_gguf made;
    test_gguf_init(&made);
    gguf_set_val_u16(made.gguf, "split.no", number);
    gguf_set_val_u16(made.gguf, "split.count", count);
    if (number == 0)
        test_gguf_add(&made, "c.weight", GGML_TYPE_I8, 1000, 300, 3);
    else
        test_gguf_add(&made, number == 1 ? "a.weight" : "b.weight",
                      number == 1 ? GGML_TYPE_F16 : GGML_TYPE_I8, number == 1 ? 8 : 3,
                      number == 1 ? 2 : 1, number == 1 ? 2 : 1);
    test_gguf_write(&made, test_dir_path(&fixture->dir, name));
    test_gguf_deinit(&made);
}

static void a_split_model_equals_the_same_in_one_file(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_error error;
    write_part(fixture, "m-00001-of-00003.gguf", 0, 3);
    write_part(fixture, "m-00002-of-00003.gguf", 1, 3);
    write_part(fixture, "m-00003-of-00003.gguf", 2, 3);
    assert_string_equal(digest_of(fixture, "m-00001-of-00003.gguf", false),
                        GOLDEN_SAMPLED);
    assert_int_equal(load(fixture, "m-00002-of-00003.gguf", false, &error), CKV_INVALID);
    assert_non_null(strstr(error.text, "part 2 of 3"));
    unlink(test_dir_path(&fixture->dir, "m-00003-of-00003.gguf"));
    assert_int_equal(load(fixture, "m-00001-of-00003.gguf", false, &error), CKV_NOTFOUND);
    assert_non_null(strstr(error.text, "m-00003-of-00003.gguf"));
}

static void a_split_model_under_another_name_says_what_it_needs(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_error error;
    write_part(fixture, "renamed.gguf", 0, 3);
    assert_int_equal(load(fixture, "renamed.gguf", false, &error), CKV_INVALID);
    assert_non_null(strstr(error.text, "-00001-of-00003.gguf"));
}

static void a_tensor_twice_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_error error;
    write_part(fixture, "m-00001-of-00003.gguf", 0, 3);
    write_part(fixture, "m-00002-of-00003.gguf", 1, 3);
    write_part(fixture, "m-00003-of-00003.gguf", 1, 3);
    assert_int_equal(load(fixture, "m-00001-of-00003.gguf", false, &error), CKV_CORRUPT);
    assert_non_null(strstr(error.text, "twice"));
}

static void a_short_file_is_refused_at_every_length(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_error error;
    const char *path = write_golden(fixture, "m.gguf");
    size_t size = 0;
    void *bytes = test_read_file(path, &size);
    uint64_t start = data_offset(fixture);
    uint64_t end = start + gguf_get_tensor_offset(fixture->made.gguf, 2) + 300000;
    const uint64_t cuts[] = {
        0, 1, 4, 20, start / 2, start - 1, start + 1, end - 300000, end - 1};
    const char *cut = test_dir_path(&fixture->dir, "cut.gguf");
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        assert_true(cuts[i] < size);
        test_write_file(cut, bytes, (size_t)cuts[i]);
        assert_int_equal(load(fixture, "cut.gguf", false, &error), CKV_CORRUPT);
        assert_non_null(strstr(error.text, "cut.gguf"));
    }
    free(bytes);
}

static void what_is_not_there_or_no_model_says_so(void **state)
{
    struct fixture *fixture = *state;
    struct ckv_error error;
    assert_int_equal(load(fixture, "absent.gguf", false, &error), CKV_NOTFOUND);
    test_write_file(test_dir_path(&fixture->dir, "text"), "hello, world", 12);
    assert_int_equal(load(fixture, "text", false, &error), CKV_CORRUPT);
    assert_int_equal(load(fixture, ".", false, &error), CKV_CORRUPT);
}

static void every_failed_allocation_is_reported(void **state)
{
    struct fixture *fixture = *state;
    enum ckv_status status = CKV_NOMEM;
    size_t at = 0;
    write_golden(fixture, "m.gguf");
    for (at = 1; status == CKV_NOMEM; at++) {
        struct ckv_error error;
        test_alloc_reset(&fixture->alloc);
        fixture->alloc.fail_at = at;
        status = load(fixture, "m.gguf", false, &error);
        fixture->alloc.fail_at = 0;
        assert_int_equal(fixture->alloc.live_blocks, 0);
    }
    assert_int_equal(status, CKV_OK);
    assert_string_equal(fixture->digest, GOLDEN_SAMPLED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void be_quiet(enum ggml_log_level level, const char *text, void *ctx)
{
    (void)level;
    (void)text;
    (void)ctx;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(samples_are_evenly_spaced_and_end_with_the_tensor),
        TEST(digest_of_a_fixed_model_is_fixed),
        TEST(path_and_time_do_not_matter),
        TEST(any_sampled_byte_matters),
        TEST(a_byte_between_samples_shows_only_in_full),
        TEST(name_type_and_shape_of_a_tensor_matter),
        TEST(order_of_tensors_does_not_matter),
        TEST(a_split_model_equals_the_same_in_one_file),
        TEST(a_split_model_under_another_name_says_what_it_needs),
        TEST(a_tensor_twice_is_refused),
        TEST(a_short_file_is_refused_at_every_length),
        TEST(what_is_not_there_or_no_model_says_so),
        TEST(every_failed_allocation_is_reported),
    };
    setenv("GGML_NO_BACKTRACE", "1", 1);
    ggml_log_set(be_quiet, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

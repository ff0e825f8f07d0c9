/* The default allocator, the helpers around the hook, and the counting allocator. */
#include "base/alloc.h"
#include "lib/counting_alloc.h"
#include "lib/unit.h"

#include <string.h>

static int set_up(void **state)
{
    static struct test_alloc counting;
    test_alloc_init(&counting);
    *state = &counting;
    return 0;
}

static int tear_down(void **state)
{
    struct test_alloc *counting = *state;
    bool clean = test_alloc_clean(counting);
    test_alloc_deinit(counting);
    return clean ? 0 : -1;
}

static void the_default_one_aligns_and_resizes(void **state)
{
    static const size_t aligns[] = {1, 8, 16, 64, 4096, 16384};
    const struct ckv_alloc *alloc = ckv_alloc_default();
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(aligns); i++) {
        size_t align = aligns[i];
        char *block = alloc->allocate(alloc->ctx, 100, align);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % align, 0);
        memset(block, 'x', 100);
        block = alloc->resize(alloc->ctx, block, 100, 50000, align);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % align, 0);
        for (size_t j = 0; j < 100; j++)
            assert_int_equal(block[j], 'x');
        block = alloc->resize(alloc->ctx, block, 50000, 10, align);
        assert_non_null(block);
        assert_int_equal(block[9], 'x');
        alloc->release(alloc->ctx, block, 10, align);
    }
    alloc->release(alloc->ctx, NULL, 0, 8);
}

static void null_means_the_default_one(void **state)
{
    struct test_alloc *counting = *state;
    assert_ptr_equal(ckvi_alloc_or_default(NULL), ckv_alloc_default());
    assert_ptr_equal(ckvi_alloc_or_default(&counting->alloc), &counting->alloc);
}

static void zalloc_gives_zeros(void **state)
{
    struct test_alloc *counting = *state;
    unsigned char *block = ckvi_zalloc(&counting->alloc, 10, 30);
    assert_non_null(block);
    for (size_t i = 0; i < 300; i++)
        assert_int_equal(block[i], 0);
    assert_int_equal(counting->live_bytes, 300);
    ckvi_free(&counting->alloc, block, 10, 30);
    assert_int_equal(counting->live_bytes, 0);
}

static void a_size_of_zero_still_gives_a_block(void **state)
{
    struct test_alloc *counting = *state;
    void *a = ckvi_zalloc(&counting->alloc, 0, 8);
    void *b = ckvi_zalloc(&counting->alloc, 8, 0);
    assert_non_null(a);
    assert_non_null(b);
    ckvi_free(&counting->alloc, a, 0, 8);
    ckvi_free(&counting->alloc, b, 8, 0);
    ckvi_free(&counting->alloc, NULL, 5, 5);
}

static void a_product_that_overflows_is_refused(void **state)
{
    struct test_alloc *counting = *state;
    char *block;
    assert_null(ckvi_zalloc(&counting->alloc, SIZE_MAX / 2, 3));
    assert_null(ckvi_zalloc(&counting->alloc, SIZE_MAX, 2));
    block = ckvi_zalloc(&counting->alloc, 4, 16);
    assert_null(ckvi_regrow(&counting->alloc, block, 4, SIZE_MAX / 15, 16));
    assert_int_equal(counting->live_bytes, 64);
    ckvi_free(&counting->alloc, block, 4, 16);
}

static void regrow_keeps_old_elements_and_zeroes_new_ones(void **state)
{
    struct test_alloc *counting = *state;
    uint32_t *array = ckvi_regrow(&counting->alloc, NULL, 0, 3, sizeof *array);
    assert_non_null(array);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(array[i], 0);
        array[i] = i + 1;
    }
    array = ckvi_regrow(&counting->alloc, array, 3, 100, sizeof *array);
    assert_non_null(array);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(array[i], i < 3 ? i + 1 : 0);
    array = ckvi_regrow(&counting->alloc, array, 100, 2, sizeof *array);
    assert_non_null(array);
    assert_int_equal(array[1], 2);
    assert_int_equal(counting->live_bytes, 8);
    ckvi_free(&counting->alloc, array, 2, sizeof *array);
}

static void a_failed_regrow_leaves_the_old_block(void **state)
{
    struct test_alloc *counting = *state;
    uint32_t *array = ckvi_zalloc(&counting->alloc, 4, sizeof *array);
    array[3] = 77;
    counting->fail_at = counting->call_count + 1;
    assert_null(ckvi_regrow(&counting->alloc, array, 4, 8, sizeof *array));
    assert_int_equal(array[3], 77);
    ckvi_free(&counting->alloc, array, 4, sizeof *array);
}

static void strings_are_copied_and_given_back(void **state)
{
    struct test_alloc *counting = *state;
    char *copy = ckvi_strdup(&counting->alloc, "hello");
    char *empty = ckvi_strdup(&counting->alloc, "");
    assert_string_equal(copy, "hello");
    assert_string_equal(empty, "");
    assert_int_equal(counting->live_bytes, 7);
    ckvi_strfree(&counting->alloc, copy);
    ckvi_strfree(&counting->alloc, empty);
    ckvi_strfree(&counting->alloc, NULL);
}

static void aligned_blocks_are_aligned(void **state)
{
    struct test_alloc *counting = *state;
    void *block = ckvi_alloc_aligned(&counting->alloc, 1000, 4096);
    void *nothing = ckvi_alloc_aligned(&counting->alloc, 0, 64);
    assert_non_null(block);
    assert_non_null(nothing);
    assert_int_equal((uintptr_t)block % 4096, 0);
    ckvi_free_aligned(&counting->alloc, block, 1000, 4096);
    ckvi_free_aligned(&counting->alloc, nothing, 0, 64);
    ckvi_free_aligned(&counting->alloc, NULL, 10, 64);
}

static void out_of_memory_is_a_status_with_size_and_purpose(void **state)
{
    struct ckv_error error;
    (void)state;
    assert_status(ckvi_nomem(&error, 123, "a thing"), CKV_NOMEM);
    assert_string_equal(error.text, "out of memory (123 bytes for a thing)");
    assert_status(ckvi_nomem(NULL, 1, "x"), CKV_NOMEM);
}

static void counting_fails_the_nth_call_and_then_goes_on(void **state)
{
    struct test_alloc *counting = *state;
    const struct ckv_alloc *alloc = &counting->alloc;
    void *a;
    void *c;
    counting->fail_at = 2;
    a = alloc->allocate(alloc->ctx, 8, 8);
    assert_non_null(a);
    assert_null(alloc->allocate(alloc->ctx, 8, 8));
    c = alloc->allocate(alloc->ctx, 8, 8);
    assert_non_null(c);
    assert_int_equal(counting->failed_count, 1);
    alloc->release(alloc->ctx, a, 8, 8);
    alloc->release(alloc->ctx, c, 8, 8);
}

static void counting_can_fail_for_good_or_beyond_a_limit(void **state)
{
    struct test_alloc *counting = *state;
    const struct ckv_alloc *alloc = &counting->alloc;
    void *block;
    counting->fail_at = 1;
    counting->fail_on = true;
    assert_null(alloc->allocate(alloc->ctx, 8, 8));
    assert_null(alloc->allocate(alloc->ctx, 8, 8));
    assert_int_equal(counting->failed_count, 2);
    test_alloc_reset(counting);
    counting->bytes_max = 100;
    block = alloc->allocate(alloc->ctx, 100, 8);
    assert_non_null(block);
    assert_null(alloc->allocate(alloc->ctx, 1, 8));
    alloc->release(alloc->ctx, block, 100, 8);
}

static void counting_knows_peak_and_leaks(void **state)
{
    struct test_alloc *counting = *state;
    const struct ckv_alloc *alloc = &counting->alloc;
    void *a = alloc->allocate(alloc->ctx, 100, 64);
    void *b = alloc->allocate(alloc->ctx, 50, 16);
    alloc->release(alloc->ctx, a, 100, 64);
    assert_int_equal(counting->peak_bytes, 150);
    assert_int_equal(counting->live_bytes, 50);
    assert_int_equal(counting->live_blocks, 1);
    assert_false(test_alloc_clean(counting));
    alloc->release(alloc->ctx, b, 50, 16);
    assert_true(test_alloc_clean(counting));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_one_aligns_and_resizes),
        TEST(null_means_the_default_one),
        TEST(zalloc_gives_zeros),
        TEST(a_size_of_zero_still_gives_a_block),
        TEST(a_product_that_overflows_is_refused),
        TEST(regrow_keeps_old_elements_and_zeroes_new_ones),
        TEST(a_failed_regrow_leaves_the_old_block),
        TEST(strings_are_copied_and_given_back),
        TEST(aligned_blocks_are_aligned),
        cmocka_unit_test(out_of_memory_is_a_status_with_size_and_purpose),
        TEST(counting_fails_the_nth_call_and_then_goes_on),
        TEST(counting_can_fail_for_good_or_beyond_a_limit),
        TEST(counting_knows_peak_and_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Arrays are values: slices and references share, writes never show through, appends go
 * in place exactly when nobody could see it.
 */
#include "lib/counting_alloc.h"
#include "lib/random.h"
#include <coldkv/array.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct test_alloc alloc;

static int set_up(void **state)
{
    (void)state;
    test_alloc_init(&alloc);
    return 0;
}

static int tear_down(void **state)
{
    bool clean = test_alloc_clean(&alloc);
    (void)state;
    test_alloc_deinit(&alloc);
    return clean ? 0 : -1;
}

/* [1, 2, rows, 3] of uint16, element = first + its number in row-major order. */
static struct ckv_array numbered(uint64_t rows, unsigned first)
{
    uint64_t shape[4] = {1, 2, rows, 3};
    uint16_t values[512];
    struct ckv_array array;
    assert_true(rows * 6 <= 512);
    for (unsigned i = 0; i < rows * 6; i++)
        values[i] = (uint16_t)(first + i);
    assert_int_equal(ckv_array_from_bytes(&alloc.alloc, CKV_DTYPE_UINT16, 4, shape, 2,
                                          values, &array, NULL),
                     CKV_OK);
    return array;
}

static uint16_t at(const struct ckv_array *array, uint64_t h, uint64_t row, uint64_t d)
{
    uint16_t values[512];
    assert_true(ckv_array_bytes(array) <= sizeof values);
    ckv_array_read(array, values);
    return values[(h * array->shape[2] + row) * array->shape[3] + d];
}

static void a_new_array_is_zero_and_contiguous(void **state)
{
    uint64_t shape[3] = {2, 3, 4};
    static const unsigned char zeros[96];
    unsigned char bytes[96];
    struct ckv_array array;
    (void)state;
    for (uint64_t dtype = 0; dtype < CKV_DTYPE_COUNT; dtype++) {
        assert_int_equal(ckv_array_create(&alloc.alloc, (enum ckv_dtype)dtype, 3, shape,
                                          1, &array, NULL),
                         CKV_OK);
        assert_int_equal(ckv_array_count(&array), 24);
        assert_int_equal(ckv_array_bytes(&array),
                         24 * ckv_dtype_size((enum ckv_dtype)dtype));
        assert_true(ckv_array_is_contiguous(&array));
        if (ckv_array_bytes(&array) <= sizeof bytes) {
            ckv_array_read(&array, bytes);
            assert_memory_equal(bytes, zeros, ckv_array_bytes(&array));
        }
        ckv_array_unref(&array);
        assert_null(array.buffer);
    }
}

static void bad_shapes_are_refused(void **state)
{
    uint64_t huge[2] = {UINT64_C(1) << 40, UINT64_C(1) << 40};
    uint64_t one[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct ckv_array array;
    (void)state;
    assert_int_equal(
        ckv_array_create(&alloc.alloc, CKV_DTYPE_UINT8, 2, huge, 0, &array, NULL),
        CKV_TOOBIG);
    assert_int_equal(
        ckv_array_create(&alloc.alloc, CKV_DTYPE_UINT8, 9, one, 0, &array, NULL),
        CKV_INVALID);
    assert_int_equal(
        ckv_array_create(&alloc.alloc, CKV_DTYPE_UINT8, 0, one, 0, &array, NULL),
        CKV_INVALID);
    assert_int_equal(
        ckv_array_create(&alloc.alloc, CKV_DTYPE_UINT8, 2, one, 2, &array, NULL),
        CKV_INVALID);
    assert_int_equal(
        ckv_array_create(&alloc.alloc, (enum ckv_dtype)14, 1, one, 0, &array, NULL),
        CKV_INVALID);
    assert_null(array.buffer);
}

static void a_slice_shares_and_is_strided(void **state)
{
    struct ckv_array array = numbered(4, 0);
    struct ckv_array slice;
    struct ckv_array whole;
    size_t calls = alloc.call_count;
    (void)state;
    assert_int_equal(ckv_array_slice(&array, 2, 1, 3, &slice, NULL), CKV_OK);
    assert_int_equal(alloc.call_count, calls);
    assert_int_equal(ckv_array_holders(&array), 2);
    assert_ptr_equal(ckv_array_buffer_id(&array), ckv_array_buffer_id(&slice));
    assert_false(ckv_array_is_contiguous(&slice));
    assert_int_equal(at(&slice, 0, 0, 0), 3);
    assert_int_equal(at(&slice, 1, 1, 2), 20);
    assert_int_equal(ckv_array_contiguous(&slice, &whole, NULL), CKV_OK);
    assert_true(ckv_array_is_contiguous(&whole));
    assert_true(ckv_array_equal(&slice, &whole));
    ckv_array_unref(&whole);
    assert_int_equal(ckv_array_slice(&array, 2, 3, 5, &whole, NULL), CKV_INVALID);
    assert_null(whole.buffer);
    ckv_array_unref(&slice);
    ckv_array_unref(&array);
}

static void runs_cover_a_strided_view_in_order(void **state)
{
    struct ckv_array array = numbered(5, 100);
    struct ckv_array slice;
    unsigned char joined[64];
    unsigned char direct[64];
    size_t done = 0;
    (void)state;
    assert_int_equal(ckv_array_slice(&array, 2, 1, 4, &slice, NULL), CKV_OK);
    while (done < ckv_array_bytes(&slice)) {
        size_t run;
        const void *bytes = ckv_array_run(&slice, done, &run);
        assert_true(run > 0);
        memcpy(joined + done, bytes, run);
        done += run;
    }
    assert_int_equal(done, 2 * 3 * 3 * 2);
    ckv_array_read(&slice, direct);
    assert_memory_equal(joined, direct, done);
    ckv_array_unref(&slice);
    ckv_array_unref(&array);
}

static void a_write_never_shows_through(void **state)
{
    struct ckv_array a = numbered(4, 0);
    struct ckv_array b = ckv_array_ref(&a);
    struct ckv_array part = numbered(1, 900);
    (void)state;
    assert_int_equal(ckv_array_update(&a, 2, 2, &part, NULL), CKV_OK);
    assert_int_equal(at(&a, 0, 2, 0), 900);
    assert_int_equal(at(&a, 1, 2, 0), 903);
    assert_int_equal(at(&b, 0, 2, 0), 6);
    assert_int_equal(at(&a, 0, 1, 0), 3);
    ckv_array_unref(&a);
    ckv_array_unref(&b);
    ckv_array_unref(&part);
}

static void an_owned_array_is_written_in_place(void **state)
{
    struct ckv_array a = numbered(4, 0);
    struct ckv_array part = numbered(1, 900);
    const void *before = ckv_array_buffer_id(&a);
    (void)state;
    assert_int_equal(ckv_array_update(&a, 2, 0, &part, NULL), CKV_OK);
    assert_ptr_equal(ckv_array_buffer_id(&a), before);
    ckv_array_unref(&a);
    ckv_array_unref(&part);
}

static void append(struct ckv_array *array, unsigned first, uint64_t capacity)
{
    struct ckv_array part = numbered(1, first);
    assert_int_equal(ckv_array_reserve(array, 1, capacity, NULL), CKV_OK);
    ckv_array_append(array, &part);
    ckv_array_unref(&part);
}

static void only_one_of_two_holders_appends_in_place(void **state)
{
    struct ckv_array a = numbered(2, 0);
    struct ckv_array b;
    const void *shared;
    (void)state;
    append(&a, 100, 8);
    b = ckv_array_ref(&a);
    shared = ckv_array_buffer_id(&a);
    append(&a, 200, 8);
    append(&b, 300, 8);
    assert_ptr_equal(ckv_array_buffer_id(&a), shared);
    assert_ptr_not_equal(ckv_array_buffer_id(&b), shared);
    assert_int_equal(at(&a, 0, 3, 0), 200);
    assert_int_equal(at(&b, 0, 3, 0), 300);
    assert_int_equal(at(&a, 1, 2, 2), 105);
    assert_int_equal(at(&b, 1, 2, 2), 105);
    assert_int_equal(ckv_array_capacity(&a), 8);
    ckv_array_unref(&a);
    ckv_array_unref(&b);
}

static void a_sealed_view_never_appends_in_place(void **state)
{
    struct ckv_array a = numbered(2, 0);
    struct ckv_array b;
    (void)state;
    append(&a, 100, 8);
    b = ckv_array_ref(&a);
    b.sealed = true;
    assert_int_equal(ckv_array_capacity(&b), 3);
    append(&b, 300, 8);
    assert_ptr_not_equal(ckv_array_buffer_id(&a), ckv_array_buffer_id(&b));
    assert_false(b.sealed);
    append(&b, 400, 8);
    assert_int_equal(at(&b, 0, 4, 0), 400);
    ckv_array_unref(&a);
    ckv_array_unref(&b);
}

static void a_view_below_the_mark_copies_when_it_is_shared(void **state)
{
    struct ckv_array a = numbered(2, 0);
    struct ckv_array other;
    struct ckv_array cut;
    (void)state;
    append(&a, 100, 8);
    other = ckv_array_ref(&a);
    assert_int_equal(ckv_array_slice(&a, 2, 0, 2, &cut, NULL), CKV_OK);
    append(&cut, 500, 8);
    assert_int_equal(at(&other, 0, 2, 0), 100);
    assert_int_equal(at(&cut, 0, 2, 0), 500);
    ckv_array_unref(&a);
    ckv_array_unref(&other);
    ckv_array_unref(&cut);
}

static void concat_joins_along_any_axis(void **state)
{
    struct ckv_array parts[2] = {numbered(1, 0), numbered(2, 50)};
    struct ckv_array rows;
    struct ckv_array heads;
    struct ckv_array same[2];
    (void)state;
    assert_int_equal(ckv_array_concat(parts, 2, 2, 2, &rows, NULL), CKV_OK);
    assert_int_equal(rows.shape[2], 3);
    assert_int_equal(at(&rows, 0, 0, 1), 1);
    assert_int_equal(at(&rows, 0, 2, 0), 53);
    assert_int_equal(at(&rows, 1, 0, 0), 3);
    same[0] = same[1] = parts[1];
    assert_int_equal(ckv_array_concat(same, 2, 1, 2, &heads, NULL), CKV_OK);
    assert_int_equal(heads.shape[1], 4);
    assert_int_equal(at(&heads, 2, 0, 0), 50);
    ckv_array_unref(&heads);
    assert_int_equal(ckv_array_concat(parts, 2, 1, 2, &heads, NULL), CKV_INVALID);
    assert_null(heads.buffer);
    ckv_array_unref(&rows);
    ckv_array_unref(&parts[0]);
    ckv_array_unref(&parts[1]);
}

static void a_failed_reserve_changes_nothing(void **state)
{
    struct ckv_array a = numbered(2, 7);
    struct ckv_array before = ckv_array_ref(&a);
    (void)state;
    for (size_t fail = 1; fail <= 2; fail++) {
        alloc.fail_at = alloc.call_count + fail;
        assert_int_equal(ckv_array_reserve(&a, 1, 8, NULL), CKV_NOMEM);
        assert_true(ckv_array_equal(&a, &before));
        assert_int_equal(a.claimed_rows, 0);
    }
    alloc.fail_at = 0;
    ckv_array_unref(&a);
    ckv_array_unref(&before);
}

static void a_part_that_does_not_fit_is_refused(void **state)
{
    struct ckv_array a = numbered(4, 0);
    struct ckv_array part = numbered(2, 900);
    struct ckv_array head;
    struct ckv_array none = CKV_ARRAY_NONE;
    struct ckv_array before = ckv_array_ref(&a);
    uint64_t shape[4] = {1, 2, 1, 3};
    struct ckv_array bytes;
    (void)state;
    assert_int_equal(
        ckv_array_create(&alloc.alloc, CKV_DTYPE_UINT8, 4, shape, 2, &bytes, NULL),
        CKV_OK);
    assert_int_equal(ckv_array_slice(&part, 1, 0, 1, &head, NULL), CKV_OK);
    assert_int_equal(ckv_array_update(&a, 2, 3, &part, NULL), CKV_INVALID);
    assert_int_equal(ckv_array_update(&a, 2, UINT64_MAX, &part, NULL), CKV_INVALID);
    assert_int_equal(ckv_array_update(&a, 4, 0, &part, NULL), CKV_INVALID);
    assert_int_equal(ckv_array_update(&a, 2, 0, &head, NULL), CKV_INVALID);
    assert_int_equal(ckv_array_update(&a, 2, 0, &bytes, NULL), CKV_INVALID);
    assert_int_equal(ckv_array_update(&a, 2, 0, &none, NULL), CKV_INVALID);
    assert_true(ckv_array_equal(&a, &before));
    ckv_array_unref(&a);
    ckv_array_unref(&before);
    ckv_array_unref(&part);
    ckv_array_unref(&head);
    ckv_array_unref(&bytes);
}

static void a_run_at_the_end_is_empty(void **state)
{
    struct ckv_array a = numbered(4, 0);
    struct ckv_array empty;
    struct ckv_array none = CKV_ARRAY_NONE;
    size_t run = 7;
    (void)state;
    assert_int_equal(ckv_array_slice(&a, 2, 2, 2, &empty, NULL), CKV_OK);
    assert_null(ckv_array_run(&empty, 0, &run));
    assert_int_equal(run, 0);
    run = 7;
    assert_null(ckv_array_run(&a, 48, &run));
    assert_int_equal(run, 0);
    run = 7;
    assert_null(ckv_array_run(&none, 0, &run));
    assert_int_equal(run, 0);
    assert_non_null(ckv_array_run(&a, 47, &run));
    assert_int_equal(run, 1);
    ckv_array_unref(&empty);
    ckv_array_unref(&a);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_array_is_zero_and_contiguous),
        TEST(bad_shapes_are_refused),
        TEST(a_slice_shares_and_is_strided),
        TEST(runs_cover_a_strided_view_in_order),
        TEST(a_write_never_shows_through),
        TEST(an_owned_array_is_written_in_place),
        TEST(only_one_of_two_holders_appends_in_place),
        TEST(a_sealed_view_never_appends_in_place),
        TEST(a_view_below_the_mark_copies_when_it_is_shared),
        TEST(concat_joins_along_any_axis),
        TEST(a_part_that_does_not_fit_is_refused),
        TEST(a_run_at_the_end_is_empty),
        TEST(a_failed_reserve_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

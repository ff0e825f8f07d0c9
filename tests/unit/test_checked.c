/* Checked arithmetic and little-endian integers. */
#include "base/bytes.h"
#include "base/checked.h"
#include "lib/unit.h"

static void sums_say_when_they_do_not_fit(void **state)
{
    uint64_t wide;
    size_t size;
    (void)state;
    assert_true(ckvi_add_u64(2, 3, &wide));
    assert_true(wide == 5);
    assert_true(ckvi_add_u64(UINT64_MAX, 0, &wide));
    assert_true(wide == UINT64_MAX);
    assert_false(ckvi_add_u64(UINT64_MAX, 1, &wide));
    assert_false(ckvi_add_u64(UINT64_MAX, UINT64_MAX, &wide));
    assert_true(ckvi_add_size(SIZE_MAX - 1, 1, &size));
    assert_true(size == SIZE_MAX);
    assert_false(ckvi_add_size(SIZE_MAX, 1, &size));
}

static void products_say_when_they_do_not_fit(void **state)
{
    uint64_t wide;
    size_t size;
    (void)state;
    assert_true(ckvi_mul_u64(0, UINT64_MAX, &wide));
    assert_true(wide == 0);
    assert_true(ckvi_mul_u64(UINT64_MAX, 0, &wide));
    assert_true(wide == 0);
    assert_true(ckvi_mul_u64(UINT32_MAX, UINT32_MAX, &wide));
    assert_true(wide == UINT64_C(0xfffffffe00000001));
    assert_true(ckvi_mul_u64(UINT64_MAX, 1, &wide));
    assert_false(ckvi_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &wide));
    assert_false(ckvi_mul_u64(UINT64_MAX / 2, 3, &wide));
    assert_true(ckvi_mul_size(7, 6, &size));
    assert_true(size == 42);
    assert_false(ckvi_mul_size(SIZE_MAX, 2, &size));
}

static void the_smaller_and_the_larger(void **state)
{
    (void)state;
    assert_true(ckvi_min_u64(1, UINT64_MAX) == 1);
    assert_true(ckvi_min_u64(9, 9) == 9);
    assert_true(ckvi_max_u64(1, UINT64_MAX) == UINT64_MAX);
    assert_true(ckvi_max_u64(3, 2) == 3);
}

static void integers_are_little_endian(void **state)
{
    static const uint8_t bytes[8] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};
    uint8_t put[8];
    (void)state;
    assert_true(ckvi_get_le32(bytes) == UINT32_C(0x67452301));
    assert_true(ckvi_get_le64(bytes) == UINT64_C(0xefcdab8967452301));
    ckvi_put_le64(put, UINT64_C(0xefcdab8967452301));
    assert_memory_equal(put, bytes, 8);
    ckvi_put_le32(put, UINT32_C(0xefcdab89));
    assert_memory_equal(put, bytes + 4, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_say_when_they_do_not_fit),
        cmocka_unit_test(products_say_when_they_do_not_fit),
        cmocka_unit_test(the_smaller_and_the_larger),
        cmocka_unit_test(integers_are_little_endian),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

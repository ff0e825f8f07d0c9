/* Element types: the numbers, sizes and names of the format. */
#include <coldkv/dtype.h>

#include "lib/unit.h"

static const struct {
    enum ckv_dtype dtype;
    int number;
    size_t size;
    const char *name;
} table[] = {
    {CKV_DTYPE_BOOL, 0, 1, "bool"},          {CKV_DTYPE_UINT8, 1, 1, "uint8"},
    {CKV_DTYPE_UINT16, 2, 2, "uint16"},      {CKV_DTYPE_UINT32, 3, 4, "uint32"},
    {CKV_DTYPE_UINT64, 4, 8, "uint64"},      {CKV_DTYPE_INT8, 5, 1, "int8"},
    {CKV_DTYPE_INT16, 6, 2, "int16"},        {CKV_DTYPE_INT32, 7, 4, "int32"},
    {CKV_DTYPE_INT64, 8, 8, "int64"},        {CKV_DTYPE_FLOAT16, 9, 2, "float16"},
    {CKV_DTYPE_FLOAT32, 10, 4, "float32"},   {CKV_DTYPE_FLOAT64, 11, 8, "float64"},
    {CKV_DTYPE_BFLOAT16, 12, 2, "bfloat16"}, {CKV_DTYPE_COMPLEX64, 13, 8, "complex64"},
};

static void numbers_sizes_and_names(void **state)
{
    (void)state;
    assert_int_equal(TEST_COUNT_OF(table), CKV_DTYPE_COUNT);
    for (size_t i = 0; i < TEST_COUNT_OF(table); i++) {
        assert_int_equal(table[i].dtype, table[i].number);
        assert_true(ckv_dtype_valid((uint64_t)table[i].number));
        assert_int_equal(ckv_dtype_size(table[i].dtype), table[i].size);
        assert_string_equal(ckv_dtype_name(table[i].dtype), table[i].name);
    }
}

static void other_numbers_are_invalid(void **state)
{
    static const uint64_t values[] = {
        14, 15, 255, 256, UINT32_MAX, UINT64_C(1) << 32, UINT64_MAX};
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(values); i++)
        assert_false(ckv_dtype_valid(values[i]));
    assert_int_equal(ckv_dtype_size((enum ckv_dtype)14), 0);
    assert_string_equal(ckv_dtype_name((enum ckv_dtype)14), "invalid");
    assert_int_equal(ckv_dtype_size((enum ckv_dtype) - 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_sizes_and_names),
        cmocka_unit_test(other_numbers_are_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

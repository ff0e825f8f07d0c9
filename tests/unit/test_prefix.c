/* The first 26 bytes of a file, and the alignment rule. */
#include "unit/file_support.h"

static struct ckv_prefix decoded(const uint8_t bytes[CKV_PREFIX_BYTES],
                                 uint64_t file_size)
{
    struct ckv_prefix prefix;
    struct ckv_error error;
    assert_ok(ckv_prefix_decode(bytes, file_size, &prefix, &error), error);
    return prefix;
}

static void expect_refused(const uint8_t *bytes, uint64_t file_size,
                           enum ckv_status status, const char *part, int64_t offset)
{
    struct ckv_prefix prefix = {1, 1, 1};
    struct ckv_error error;
    ckv_error_clear(&error);
    assert_status(ckv_prefix_decode(bytes, file_size, &prefix, &error), status);
    assert_status(error.status, status);
    assert_int_equal(error.file_offset, offset);
    if (!strstr(error.text, part))
        fail_msg("\"%s\" does not name \"%s\"", error.text, part);
    assert_int_equal(prefix.header_bytes, 0);
}

static void make(uint8_t bytes[CKV_PREFIX_BYTES], uint32_t header_bytes,
                 uint32_t data_start)
{
    struct ckv_prefix prefix = {header_bytes, data_start, UINT64_C(0x0123456789abcdef)};
    ckv_prefix_encode(&prefix, bytes);
}

static void sizes_are_aligned_up(void **state)
{
    (void)state;
    assert_int_equal(ckv_file_align(0), 0);
    assert_int_equal(ckv_file_align(1), 16384);
    assert_int_equal(ckv_file_align(16384), 16384);
    assert_int_equal(ckv_file_align(16385), 32768);
    assert_true(ckv_file_align(UINT64_MAX - 16383) == UINT64_MAX - 16383);
    assert_true(ckv_file_align(UINT64_MAX - 16382) == UINT64_MAX);
    assert_true(ckv_file_align(UINT64_MAX) == UINT64_MAX);
}

static void the_bytes_stand_as_the_format_says(void **state)
{
    static const uint8_t expected[CKV_PREFIX_BYTES] = {
        'M', 'L', 'X',  'B', 'U', 'N',  'K',  'V',  '2',  '\n', 0x20, 0x02, 0,
        0,   0,   0x40, 0,   0,   0x02, 0x5e, 0xad, 0x10, 0x0b, 0x07, 0x45, 0x00};
    struct ckv_prefix prefix = {544, 16384, UINT64_C(0x0045070b10ad5e02)};
    uint8_t bytes[CKV_PREFIX_BYTES];
    (void)state;
    ckv_prefix_encode(&prefix, bytes);
    assert_memory_equal(bytes, expected, sizeof expected);
    prefix = decoded(expected, 65664);
    assert_int_equal(prefix.header_bytes, 544);
    assert_int_equal(prefix.data_start, 16384);
    assert_true(prefix.header_hash == UINT64_C(0x0045070b10ad5e02));
}

static void another_magic_is_foreign(void **state)
{
    uint8_t bytes[CKV_PREFIX_BYTES];
    (void)state;
    for (size_t i = 0; i < 10; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            make(bytes, 100, 16384);
            bytes[i] ^= (uint8_t)(1u << bit);
            expect_refused(bytes, 16384, CKV_FOREIGN, "magic: expected MLXBUNKV2", 0);
        }
    }
    make(bytes, 100, 16384);
    memcpy(bytes, "MLXBUNKV1\n", 10);
    expect_refused(bytes, 16384, CKV_FOREIGN, "found MLXBUNKV1\\x0a (another container",
                   0);
    memcpy(bytes, "GGUF", 4);
    expect_refused(bytes, 3, CKV_FOREIGN, "found GGU", 0);
}

static void a_file_that_ends_in_the_prefix_is_corrupt(void **state)
{
    uint8_t bytes[CKV_PREFIX_BYTES];
    (void)state;
    for (uint64_t size = 0; size < CKV_PREFIX_BYTES; size++) {
        make(bytes, 100, 16384);
        memset(bytes + size, 0, CKV_PREFIX_BYTES - (size_t)size);
        expect_refused(bytes, size, CKV_CORRUPT, "prefix: expected 26 bytes",
                       (int64_t)size);
    }
}

static void header_lengths_are_bounded_by_file_and_limit(void **state)
{
    const uint64_t limit = CKV_HEADER_BYTES_MAX;
    uint8_t bytes[CKV_PREFIX_BYTES];
    (void)state;
    make(bytes, UINT32_MAX, 16384); /* 4 GiB asked of a file of 26 bytes */
    expect_refused(bytes, 26, CKV_CORRUPT, "headerLen: 4294967295 bytes, but", 10);
    make(bytes, 16384 - 25, 16384);
    expect_refused(bytes, 16384, CKV_CORRUPT, "headerLen", 10);
    make(bytes, 0, 16384);
    expect_refused(bytes, 16384, CKV_CORRUPT, "headerLen: expected at least 2", 10);
    make(bytes, CKV_HEADER_BYTES_MAX + 1, (uint32_t)ckv_file_align(27 + limit));
    expect_refused(bytes, UINT64_C(1) << 40, CKV_TOOBIG, "headerLen: 67108865 is over",
                   10);
    make(bytes, CKV_HEADER_BYTES_MAX, (uint32_t)ckv_file_align(26 + limit));
    assert_int_equal(decoded(bytes, UINT64_C(1) << 40).header_bytes,
                     CKV_HEADER_BYTES_MAX);
}

static void the_data_start_is_what_the_formula_says(void **state)
{
    uint8_t bytes[CKV_PREFIX_BYTES];
    (void)state;
    make(bytes, 16384 - 26, 16384);
    assert_int_equal(decoded(bytes, 16384).data_start, 16384);
    make(bytes, 16384 - 25, 32768);
    assert_int_equal(decoded(bytes, 32768).data_start, 32768);
    expect_refused(bytes, 32767, CKV_CORRUPT, "dataStart: 32768, but the file has 32767",
                   32767);
    make(bytes, 16384 - 25, 16384);
    expect_refused(bytes, 65536, CKV_CORRUPT, "dataStart: expected 32768, found 16384",
                   14);
    make(bytes, 100, 32768);
    expect_refused(bytes, 65536, CKV_CORRUPT, "found 32768", 14);
    make(bytes, 100, 0);
    expect_refused(bytes, 65536, CKV_CORRUPT, "found 0", 14);
}

static void no_error_is_needed(void **state)
{
    uint8_t bytes[CKV_PREFIX_BYTES] = {0};
    struct ckv_prefix prefix;
    (void)state;
    assert_status(ckv_prefix_decode(bytes, 26, &prefix, NULL), CKV_FOREIGN);
    make(bytes, 100, 1);
    assert_status(ckv_prefix_decode(bytes, 26, &prefix, NULL), CKV_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_aligned_up),
        cmocka_unit_test(the_bytes_stand_as_the_format_says),
        cmocka_unit_test(another_magic_is_foreign),
        cmocka_unit_test(a_file_that_ends_in_the_prefix_is_corrupt),
        cmocka_unit_test(header_lengths_are_bounded_by_file_and_limit),
        cmocka_unit_test(the_data_start_is_what_the_formula_says),
        cmocka_unit_test(no_error_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

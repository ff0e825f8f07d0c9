/*
 * Damaged files: cut at every place that matters, every bit of prefix and header flipped,
 * tensor bytes flipped. A damaged file is never opened with other contents, the status is
 * one of those that speak of the contents, and the text names the file.
 */
#include "unit/file_support.h"

#include "lib/counting_alloc.h"
#include "lib/temp_dir.h"
#include <stdio.h>

#define NAME "damaged.mlxkv"

/* The bytes of a whole file, and the borders in it. */
struct victim {
    struct disk disk;
    unsigned char *bytes;
    size_t size;
    size_t header_end;
    size_t borders[64]; /* where tensors begin and end */
    size_t border_count;
};

static void victim_init(struct victim *victim, const void *bytes, size_t size)
{
    struct ckv_reader *reader = NULL;
    struct ckv_error error;
    const struct ckv_header *header;
    memset(victim, 0, sizeof *victim);
    disk_init(&victim->disk);
    victim->bytes = malloc(size);
    TEST_REQUIRE(victim->bytes);
    memcpy(victim->bytes, bytes, size);
    victim->size = size;
    test_io_write_file(victim->disk.io, victim->disk.dir, NAME, bytes, size);
    assert_ok(
        ckv_reader_open(victim->disk.io, victim->disk.dir, NAME, NULL, &reader, &error),
        error);
    header = ckv_reader_header(reader);
    victim->header_end = CKV_PREFIX_BYTES + header->prefix.header_bytes;
    for (size_t i = 0; i < header->entry.cache_count; i++) {
        for (size_t j = 0; j < header->entry.caches[i].tensor_count; j++) {
            const struct ckv_tensor *tensor = &header->entry.caches[i].tensors[j];
            size_t start = (size_t)(header->prefix.data_start + tensor->offset);
            TEST_REQUIRE(victim->border_count + 2 <= TEST_COUNT_OF(victim->borders));
            victim->borders[victim->border_count++] = start;
            victim->borders[victim->border_count++] = start + (size_t)tensor->bytes;
        }
    }
    ckv_reader_close(reader);
}

/* The golden file of that name. */
static void victim_init_golden(struct victim *victim, const char *name)
{
    size_t size;
    void *bytes = test_read_file(test_data_path(COLDKV_TEST_DATA, name), &size);
    victim_init(victim, bytes, size);
    free(bytes);
}

static void victim_deinit(struct victim *victim)
{
    free(victim->bytes);
    disk_deinit(&victim->disk);
}

/* Puts these bytes where the file was; opens and verifies. */
static enum ckv_status examine(struct victim *victim, const void *bytes, size_t size,
                               struct ckv_error *error)
{
    struct ckv_reader *reader = NULL;
    struct test_alloc alloc;
    enum ckv_status status;
    test_io_write_file(victim->disk.io, victim->disk.dir, NAME, bytes, size);
    test_alloc_init(&alloc);
    alloc.bytes_max = 4 * victim->header_end + (512u << 10);
    status = ckv_reader_open(victim->disk.io, victim->disk.dir, NAME, &alloc.alloc,
                             &reader, error);
    if (!status)
        status = ckv_reader_verify(reader, NULL, NULL, NULL, error);
    ckv_reader_close(reader);
    assert_true(test_alloc_clean(&alloc));
    test_alloc_deinit(&alloc);
    if (status)
        assert_non_null(strstr(error->text, NAME));
    return status;
}

static void expect_cut_is_corrupt(struct victim *victim, size_t size)
{
    struct ckv_error error;
    assert_status(examine(victim, victim->bytes, size, &error), CKV_CORRUPT);
}

static void every_cut_is_corrupt(void **state)
{
    static const char *const names[] = {
        "two-kv-zero.mlxkv", "reference/meta-escapes.mlxkv", "reference/all-kinds.mlxkv"};
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(names); i++) {
        struct victim victim;
        struct ckv_error error;
        victim_init_golden(&victim, names[i]);
        for (size_t size = 0; size <= victim.header_end + 1; size++)
            expect_cut_is_corrupt(&victim, size);
        for (size_t j = 0; j < victim.border_count; j++)
            for (size_t size = victim.borders[j] - 1; size <= victim.borders[j] + 1;
                 size++)
                if (size < victim.size)
                    expect_cut_is_corrupt(&victim, size);
        assert_status(examine(&victim, victim.bytes, victim.size, &error), CKV_OK);
        victim_deinit(&victim);
    }
}

static void bytes_behind_the_end_are_corrupt(void **state)
{
    struct victim victim;
    struct ckv_error error;
    unsigned char *longer;
    (void)state;
    victim_init_golden(&victim, "two-kv-zero.mlxkv");
    longer = calloc(1, victim.size + 16384);
    memcpy(longer, victim.bytes, victim.size);
    assert_status(examine(&victim, longer, victim.size + 1, &error), CKV_CORRUPT);
    assert_non_null(strstr(error.text, "file size: expected 65664"));
    assert_status(examine(&victim, longer, victim.size + 16384, &error), CKV_CORRUPT);
    free(longer);
    victim_deinit(&victim);
}

/* M9 and more: every bit of prefix and header. */
static void every_flipped_bit_of_prefix_and_header_is_found(void **state)
{
    static const char *const names[] = {"two-kv-zero.mlxkv", "reference/ssm.mlxkv",
                                        "reference/all-kinds.mlxkv"};
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(names); i++) {
        struct victim victim;
        victim_init_golden(&victim, names[i]);
        for (size_t at = 0; at < victim.header_end; at++) {
            for (unsigned bit = 0; bit < 8; bit++) {
                struct ckv_error error;
                enum ckv_status status;
                victim.bytes[at] ^= (unsigned char)(1u << bit);
                status = examine(&victim, victim.bytes, victim.size, &error);
                assert_status(status, at < 10 ? CKV_FOREIGN : CKV_CORRUPT);
                victim.bytes[at] ^= (unsigned char)(1u << bit);
            }
        }
        victim_deinit(&victim);
    }
}

static void m09_a_changed_header_byte_names_the_hash(void **state)
{
    struct victim victim;
    struct ckv_error error;
    (void)state;
    victim_init_golden(&victim, "two-kv-zero.mlxkv");
    victim.bytes[100] ^= 1;
    assert_status(examine(&victim, victim.bytes, victim.size, &error), CKV_CORRUPT);
    assert_non_null(
        strstr(error.text, "damaged.mlxkv: header hash: expected 0045070b10ad5e02"));
    victim_deinit(&victim);
}

/* First, last and one middle byte of every tensor. */
static void every_flipped_tensor_byte_is_found_and_its_tensor_named(void **state)
{
    struct victim victim;
    (void)state;
    victim_init_golden(&victim, "reference/all-kinds.mlxkv");
    for (size_t i = 0; i < victim.border_count; i += 2) {
        size_t start = victim.borders[i];
        size_t end = victim.borders[i + 1];
        size_t places[3] = {start, start + (end - start) / 2, end - 1};
        for (size_t j = 0; j < 3; j++) {
            struct ckv_error error;
            victim.bytes[places[j]] ^= 0x80;
            assert_status(examine(&victim, victim.bytes, victim.size, &error),
                          CKV_CORRUPT);
            assert_non_null(strstr(error.text, "].hash: expected"));
            assert_int_equal(error.file_offset, start);
            victim.bytes[places[j]] ^= 0x80;
        }
    }
    victim_deinit(&victim);
}

/* A whole file around a text that is not a header of ours. */
static enum ckv_status examine_text(struct victim *victim, const char *text,
                                    struct ckv_error *error)
{
    struct text_header header = text_header(text, strlen(text));
    unsigned char *bytes = calloc(1, header.prefix.data_start);
    enum ckv_status status;
    TEST_REQUIRE(bytes);
    ckv_prefix_encode(&header.prefix, bytes);
    memcpy(bytes + CKV_PREFIX_BYTES, text, strlen(text));
    status = examine(victim, bytes, header.prefix.data_start, error);
    free(bytes);
    return status;
}

static void other_versions_are_told_apart_from_damage(void **state)
{
    static const int versions[] = {1, 2, 4, 5};
    struct victim victim;
    struct ckv_error error;
    (void)state;
    victim_init_golden(&victim, "two-kv-zero.mlxkv");
    for (size_t i = 0; i < TEST_COUNT_OF(versions); i++) {
        char text[128];
        char part[64];
        (void)snprintf(text, sizeof text, "{\"formatVersion\":%d,\"blocks\":{\"a\":[1]}}",
                       versions[i]);
        (void)snprintf(part, sizeof part, "formatVersion: expected 3, found %d",
                       versions[i]);
        assert_status(examine_text(&victim, text, &error), CKV_VERSION);
        assert_non_null(strstr(error.text, part));
    }
    memcpy(victim.bytes, "MLXBUNKV1\n", 10);
    assert_status(examine(&victim, victim.bytes, victim.size, &error), CKV_FOREIGN);
    victim_deinit(&victim);
}

/* Claims that do not fit the file, each with a hash that does. */
static void crafted_headers_never_read_beyond_the_file(void **state)
{
    static const char *const slots[] = {
        /* a tensor of 2^52 bytes; an offset far away; a product that overflows */
        "{\"off\":0,\"bytes\":4503599627370496,\"shape\":[4503599627370496],\"dtype\":1,",
        "{\"off\":9007199254732800,\"bytes\":1,\"shape\":[1],\"dtype\":1,",
        "{\"off\":0,\"bytes\":0,\"shape\":[4294967296,4294967296],\"dtype\":1,",
        "{\"off\":0,\"bytes\":9007199254740991,\"shape\":[9007199254740991],\"dtype\":1,",
    };
    struct victim victim;
    struct ckv_error error;
    (void)state;
    victim_init_golden(&victim, "two-kv-zero.mlxkv");
    for (size_t i = 0; i < TEST_COUNT_OF(slots); i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "{\"formatVersion\":3,\"createdAt\":1,\"tokens\":[],\"caches\":["
                       "{\"kind\":\"ssm\",\"offset\":0,\"tensors\":[%s"
                       "\"hash\":\"0000000000000000\"}]}]}",
                       slots[i]);
        assert_status(examine_text(&victim, text, &error), CKV_CORRUPT);
    }
    victim_deinit(&victim);
}

/* The same on a real disk, where reading past the end or keeping a descriptor would show.
 */
static void a_real_disk_shows_the_same(void **state)
{
    struct test_dir folder;
    struct ckv_io_dir dir;
    struct ckv_error error;
    unsigned char *bytes;
    size_t size;
    int before = test_count_fds();
    (void)state;
    test_dir_init(&folder);
    bytes = test_read_file(test_data_path(COLDKV_TEST_DATA, "two-kv-zero.mlxkv"), &size);
    assert_ok(ckv_io_open_root(ckv_io_posix(), folder.path, false, NULL, &dir, &error),
              error);
    for (size_t length = 0; length < 600; length += 13) {
        struct ckv_reader *reader = NULL;
        test_write_file(test_dir_path(&folder, NAME), bytes, length);
        assert_status(ckv_reader_open(ckv_io_posix(), dir, NAME, NULL, &reader, &error),
                      CKV_CORRUPT);
        assert_non_null(strstr(error.text, NAME));
    }
    ckv_io_close_dir(ckv_io_posix(), &dir);
    assert_int_equal(test_count_fds(), before);
    free(bytes);
    test_dir_deinit(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_is_corrupt),
        cmocka_unit_test(bytes_behind_the_end_are_corrupt),
        cmocka_unit_test(every_flipped_bit_of_prefix_and_header_is_found),
        cmocka_unit_test(m09_a_changed_header_byte_names_the_hash),
        cmocka_unit_test(every_flipped_tensor_byte_is_found_and_its_tensor_named),
        cmocka_unit_test(other_versions_are_told_apart_from_damage),
        cmocka_unit_test(crafted_headers_never_read_beyond_the_file),
        cmocka_unit_test(a_real_disk_shows_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

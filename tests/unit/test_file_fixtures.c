/*
 * The golden files of the original implementation: what is read out of them agrees with
 * their manifest, every tensor verifies, and written again they are the same bytes.
 */
#include "unit/file_support.h"

#include "lib/temp_dir.h"
#include <stdio.h>

struct golden {
    const char *file;
    uint64_t size;
    uint32_t data_start;
    size_t tokens;
    size_t tensors;
    const char *kinds; /* separated by blanks */
    const char *sha256;
};

/* As tests/data/reference/manifest.json says; the last one is spec and README. */
static const struct golden goldens[] = {
    {"kv.mlxkv", 33024, 16384, 4, 2, "kv",
     "f89abccca27135f915e6478b3ab6f32fb17d22411eedc958237f9381fe735131"},
    {"kv-full-capacity.mlxkv", 33280, 16384, 8, 2, "kv",
     "b80c4e5a8b05a3f270d2dd72561aae92c4f3f02422c21f31e250ccce4756e535"},
    {"kv-batch2-kdim-ne-vdim.mlxkv", 35168, 16384, 5, 2, "kv",
     "d2e6346e2ff3bc36eac64694b4cbd83e8621ea842b578fa7e8545fb6ae791ec1"},
    {"kv-f32.mlxkv", 32864, 16384, 3, 2, "kv",
     "ee25383bbfebb628a679491c4cd0ddaacdb165a82277e6a9a60d9ab2f442f2f5"},
    {"rotating-prewrap.mlxkv", 33088, 16384, 5, 2, "rotating",
     "badf479d9de5b91e39903860aefbc55a004f55bfdaf990ae0cb346e6357f8b82"},
    {"rotating-wrapped.mlxkv", 33280, 16384, 10, 2, "rotating",
     "f7a42d4bac295f8e8c0044302fd9eccfdf8cca1d641d4e7fea0cc02f72b25258"},
    {"qkv-b2g64.mlxkv", 98328, 16384, 6, 6, "qkv",
     "43ccc5185e4c45a06f5c6eb2c03ffcae62ea075e88084953a4037670780a1d73"},
    {"qkv-b3g64.mlxkv", 98328, 16384, 6, 6, "qkv",
     "db3f563a4b16ccf0d569077c375f74c236de3287bc57f0ca9dc167a0cfd9a3e5"},
    {"qkv-b4g64.mlxkv", 98328, 16384, 6, 6, "qkv",
     "faeb771c6e764a4b39d0fd4f27dea0e5e6c2c3ba445333cb38ae81ba11759834"},
    {"qkv-b5g64.mlxkv", 98328, 16384, 6, 6, "qkv",
     "884ecd7e7e0a9bc4f4a1ebf695cc1c05b5b7814c7fcb476dac21c0a8f42605b0"},
    {"qkv-b6g64.mlxkv", 98328, 16384, 6, 6, "qkv",
     "e90eba5fc9492bb0e1058d0a092aedef3deee82f103e857e47ce4f6a3f23433c"},
    {"qkv-b8g64.mlxkv", 98328, 16384, 6, 6, "qkv",
     "d090d0f0cd65bb17ea184e46d942f1c53876f274efa8b154f6c87cb769190af9"},
    {"qkv-b4g32-f16scales.mlxkv", 98400, 16384, 6, 6, "qkv",
     "2b9a4e71a62159e2294fe5a0c54fe54fba17d1faac332b622dcaa9dade2692ba"},
    {"rotating-qkv.mlxkv", 98336, 16384, 12, 6, "rotating-qkv",
     "92614fa9aba1306c745c20bbd7ffbee09d5df95f19156722dab5fb8c9c2c2b50"},
    {"ssm.mlxkv", 36864, 16384, 5, 2, "ssm",
     "dd586cd8b93c2f3ff2f76f22da488ddbee430d3b8e4bf5c76c43294fa4190069"},
    {"turboquant-k8v3.mlxkv", 81976, 16384, 7, 5, "turboquant",
     "89a329ddd4b8480c6d6a841b4f62289670fa45fee476ada30d6db2ae47183333"},
    {"turboquant-k4v2.mlxkv", 82032, 16384, 7, 5, "turboquant",
     "e875f8265dc906d06e7e3763f0d60dd9321a4423ee240c324067bb1514ba2193"},
    {"rotating-oversize.mlxkv", 35296, 16384, 79, 2, "rotating",
     "b0432597317851a00b2a198f34243b8b0dbfa8709272e4a792763490d5e9f9fc"},
    {"all-kinds.mlxkv", 376928, 16384, 12, 23,
     "kv rotating qkv rotating-qkv ssm turboquant",
     "c793379dada31de1ba99a7fa6647e5b388e6695ff838cdbe4729b88c337b4066"},
    {"meta-none.mlxkv", 32776, 16384, 1, 2, "kv",
     "e04a77d7938b3d7995719a02f9a13260d1e6c0bead29c6e98f76e5f8e66398b0"},
    {"meta-escapes.mlxkv", 32784, 16384, 2, 2, "kv",
     "850e415443a9b2cb0f019f234e827e312550935fb6b848213dda6afb718772e9"},
    {"tokens-empty.mlxkv", 32784, 16384, 0, 2, "kv",
     "829e6858e8d392cb7a1f592454e337e07d7d30a45f60ca4e10089e5252040d5a"},
    {"tokens-70k.mlxkv", 491536, 475136, 70000, 2, "kv",
     "bc4be0550f6b76ffad528a69a4d187b08eb3c65f95b746f0340f365acc98e6e8"},
    {"gemma3-270m-shape.mlxkv", 1183744, 16384, 40, 36,
     "rotating rotating rotating rotating rotating kv rotating rotating rotating "
     "rotating rotating kv rotating rotating rotating rotating rotating kv",
     "83240db4bd80d952d7b89e982ba4e29f86b06c3e7edfe98af52724f8ca20a4b2"},
    {"../two-kv-zero.mlxkv", 65664, 16384, 4, 4, "kv kv",
     "951ab341e525514933a4a67c2b41d081add719e0f7b508b2825bf09e5634bb0c"},
};

static const char *golden_path(const struct golden *golden)
{
    char name[128];
    (void)snprintf(name, sizeof name, "reference/%s", golden->file);
    return test_data_path(COLDKV_TEST_DATA, name);
}

/* Opens a folder by path through the POSIX table. */
static struct ckv_io_dir open_folder(const char *path)
{
    struct ckv_io_dir dir;
    struct ckv_error error;
    assert_ok(ckv_io_open_root(ckv_io_posix(), path, false, NULL, &dir, &error), error);
    return dir;
}

static struct ckv_reader *open_golden(const struct golden *golden)
{
    bool above = strncmp(golden->file, "../", 3) == 0;
    struct ckv_io_dir dir =
        open_folder(test_data_path(COLDKV_TEST_DATA, above ? "." : "reference"));
    struct ckv_reader *reader = NULL;
    struct ckv_error error;
    assert_ok(ckv_reader_open(ckv_io_posix(), dir, golden->file + (above ? 3 : 0), NULL,
                              &reader, &error),
              error);
    ckv_io_close_dir(ckv_io_posix(), &dir);
    return reader;
}

static void headers_agree_with_the_manifest(void **state)
{
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(goldens); i++) {
        struct ckv_reader *reader = open_golden(&goldens[i]);
        const struct ckv_header *header = ckv_reader_header(reader);
        char kinds[256] = "";
        size_t tensors = 0;
        for (size_t j = 0; j < header->entry.cache_count; j++) {
            const struct ckv_cache *cache = &header->entry.caches[j];
            (void)snprintf(kinds + strlen(kinds), sizeof kinds - strlen(kinds), "%s%s",
                           j ? " " : "", ckv_cache_kind_name(cache->kind));
            tensors += cache->tensor_count;
        }
        assert_int_equal(header->file_size, goldens[i].size);
        assert_int_equal(ckv_reader_stat(reader)->size_bytes, goldens[i].size);
        assert_int_equal(header->prefix.data_start, goldens[i].data_start);
        assert_int_equal(header->entry.token_count, goldens[i].tokens);
        assert_int_equal(tensors, goldens[i].tensors);
        assert_string_equal(kinds, goldens[i].kinds);
        assert_true(header->canonical);
        ckv_reader_close(reader);
    }
}

static void every_tensor_verifies_and_the_gaps_are_zero(void **state)
{
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(goldens); i++) {
        struct ckv_reader *reader = open_golden(&goldens[i]);
        struct ckv_error error;
        bool nonzero = true;
        assert_ok(ckv_reader_verify(reader, NULL, NULL, &nonzero, &error), error);
        assert_false(nonzero);
        ckv_reader_close(reader);
    }
}

/* Writes the entry as "out.mlxkv" and compares its digest. */
static void expect_same_file(const struct golden *golden, const struct ckv_entry *entry,
                             const struct ckv_source *source)
{
    struct test_dir folder;
    struct ckv_io_dir dir;
    struct ckv_error error;
    char digest[CKV_SHA256_TEXT_SIZE];
    test_dir_init(&folder);
    dir = open_folder(folder.path);
    assert_ok(ckv_save(ckv_io_posix(), dir, "out.mlxkv", entry, source, NULL, &error),
              error);
    test_sha256_file(test_dir_path(&folder, "out.mlxkv"), digest);
    assert_string_equal(digest, golden->sha256);
    assert_int_equal(test_io_count(ckv_io_posix(), dir, ""), 1);
    ckv_io_close_dir(ckv_io_posix(), &dir);
    test_dir_deinit(&folder);
}

static void files_on_disk_are_the_ones_meant(void **state)
{
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(goldens); i++) {
        char digest[CKV_SHA256_TEXT_SIZE];
        test_sha256_file(golden_path(&goldens[i]), digest);
        assert_string_equal(digest, goldens[i].sha256);
    }
}

static void repacking_gives_the_same_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(goldens); i++) {
        unsigned char buffer[4096];
        struct ckv_reader *reader = open_golden(&goldens[i]);
        struct ckv_reader_source storage = {reader, buffer, sizeof buffer};
        struct ckv_source source;
        ckv_source_from_reader(&storage, &source);
        assert_false(source.any_thread);
        expect_same_file(&goldens[i], &ckv_reader_header(reader)->entry, &source);
        ckv_reader_close(reader);
    }
}

static void restoring_and_saving_gives_the_same_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(goldens); i++) {
        struct ckv_reader *reader = open_golden(&goldens[i]);
        const struct ckv_entry *entry = &ckv_reader_header(reader)->entry;
        struct test_sink *sink = test_sink_create(entry);
        struct ckv_memory_source memory = {entry, (const void *const *)sink->tensors};
        struct ckv_source source;
        struct ckv_restore *restore = NULL;
        struct ckv_error error;
        assert_ok(ckv_restore_begin(reader, &sink->sink, NULL, &restore, &error), error);
        assert_ok(ckv_restore_finish(restore, &error), error);
        assert_int_equal(sink->drop_count, 0);
        ckv_source_from_memory(&memory, &source);
        expect_same_file(&goldens[i], entry, &source);
        test_sink_destroy(sink);
        ckv_reader_close(reader);
    }
}

/* The worked file, made from its description alone. */
static void the_worked_file_is_made_from_nothing(void **state)
{
    static const unsigned char zeros[128];
    static const uint32_t tokens[4] = {1, 2, 3, 4};
    const void *tensors[4] = {zeros, zeros, zeros, zeros};
    struct ckv_tensor slots[4];
    struct ckv_cache caches[2] = {
        {.kind = CKV_CACHE_KV, .offset = 4, .tensors = slots, .tensor_count = 2},
        {.kind = CKV_CACHE_KV, .offset = 4, .tensors = slots + 2, .tensor_count = 2}};
    struct ckv_entry entry = {.created_at_ms = 1751900000000,
                              .meta = {{CKV_META_MODEL_ID, "stub"},
                                       {CKV_META_FINGERPRINT, "fp-a"},
                                       {CKV_META_TOKENIZER_HASH, "tk-a"},
                                       {CKV_META_NAMESPACE, ""}},
                              .meta_count = 4,
                              .tokens = tokens,
                              .token_count = 4,
                              .caches = caches,
                              .cache_count = 2};
    struct ckv_memory_source memory = {&entry, tensors};
    struct ckv_source source;
    (void)state;
    for (size_t i = 0; i < 4; i++)
        slots[i] = (struct ckv_tensor){
            .dtype = CKV_DTYPE_BFLOAT16, .rank = 4, .shape = {1, 2, 4, 8}, .bytes = 128};
    ckv_source_from_memory(&memory, &source);
    expect_same_file(&goldens[TEST_COUNT_OF(goldens) - 1], &entry, &source);
}

static void the_worked_file_has_the_numbers_of_its_description(void **state)
{
    static const unsigned char first[32] = {
        0x4d, 0x4c, 0x58, 0x42, 0x55, 0x4e, 0x4b, 0x56, 0x32, 0x0a, 0x20,
        0x02, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x02, 0x5e, 0xad, 0x10,
        0x0b, 0x07, 0x45, 0x00, 0x7b, 0x22, 0x66, 0x6f, 0x72, 0x6d};
    static const uint64_t offsets[4] = {0, 16384, 32768, 49152};
    struct ckv_reader *reader = open_golden(&goldens[TEST_COUNT_OF(goldens) - 1]);
    const struct ckv_header *header = ckv_reader_header(reader);
    size_t size;
    unsigned char *bytes =
        test_read_file(test_data_path(COLDKV_TEST_DATA, "two-kv-zero.mlxkv"), &size);
    (void)state;
    assert_int_equal(size, 65664);
    assert_memory_equal(bytes, first, sizeof first);
    assert_true(ckv_wyhash(bytes, size, 0) == UINT64_C(0xbb7cdf5a0bac5e3b));
    assert_int_equal(header->prefix.header_bytes, 544);
    assert_int_equal(header->prefix.data_start, 16384);
    assert_true(header->prefix.header_hash == UINT64_C(0x0045070b10ad5e02));
    assert_int_equal(header->entry.created_at_ms, 1751900000000);
    assert_int_equal(header->entry.meta_count, 4);
    assert_string_equal(ckv_entry_meta(&header->entry, CKV_META_MODEL_ID), "stub");
    assert_string_equal(ckv_entry_meta(&header->entry, CKV_META_FINGERPRINT), "fp-a");
    assert_string_equal(ckv_entry_meta(&header->entry, CKV_META_TOKENIZER_HASH), "tk-a");
    assert_string_equal(ckv_entry_meta(&header->entry, CKV_META_NAMESPACE), "");
    for (size_t i = 0; i < 4; i++) {
        const struct ckv_tensor *slot = &header->entry.caches[i / 2].tensors[i % 2];
        assert_int_equal(header->entry.tokens[i], i + 1);
        assert_int_equal(slot->offset, offsets[i]);
        assert_int_equal(slot->bytes, 128);
        assert_true(slot->hash == UINT64_C(0xb06da037eb85a067));
    }
    free(bytes);
    ckv_reader_close(reader);
}

static void escaped_metadata_keeps_its_order_and_its_bytes(void **state)
{
    static const struct golden golden = {.file = "meta-escapes.mlxkv"};
    struct ckv_reader *reader = open_golden(&golden);
    const struct ckv_entry *entry = &ckv_reader_header(reader)->entry;
    (void)state;
    assert_int_equal(entry->meta_count, 4);
    assert_int_equal(entry->meta[0].key, CKV_META_MODEL_ID);
    assert_int_equal(entry->meta[1].key, CKV_META_NAMESPACE);
    assert_int_equal(entry->meta[2].key, CKV_META_FINGERPRINT);
    assert_int_equal(entry->meta[3].key, CKV_META_TOKENIZER_HASH);
    assert_string_equal(entry->meta[0].value,
                        "q\"uote\\back/slash\b\f\n\r\t\x01\x1f\x7f");
    assert_string_equal(entry->meta[1].value,
                        "lora-\xc3\xa4+\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e"
                        "+\xf0\x9f\x99\x82\xe2\x80\xa8");
    assert_string_equal(entry->meta[2].value, "");
    assert_int_equal(entry->tokens[1], 4294967295u);
    ckv_reader_close(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_on_disk_are_the_ones_meant),
        cmocka_unit_test(headers_agree_with_the_manifest),
        cmocka_unit_test(every_tensor_verifies_and_the_gaps_are_zero),
        cmocka_unit_test(repacking_gives_the_same_bytes),
        cmocka_unit_test(restoring_and_saving_gives_the_same_bytes),
        cmocka_unit_test(the_worked_file_is_made_from_nothing),
        cmocka_unit_test(the_worked_file_has_the_numbers_of_its_description),
        cmocka_unit_test(escaped_metadata_keeps_its_order_and_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

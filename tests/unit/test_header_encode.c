/*
 * The spelling of a header, letter by letter, and the layout behind it. The expected
 * texts are written from the format's description.
 */
#include "unit/file_support.h"

#include <stdio.h>

/* Plans and encodes; the text is to be freed. */
static char *encoded(struct ckv_entry *entry, struct ckv_prefix *prefix,
                     uint64_t *file_size)
{
    struct ckv_error error;
    char *text;
    assert_ok(ckv_header_plan(entry, prefix, file_size, &error), error);
    text = calloc(1, (size_t)prefix->header_bytes + 1);
    TEST_REQUIRE(text);
    assert_ok(ckv_header_encode(entry, prefix, (uint8_t *)text, &error), error);
    assert_int_equal(strlen(text), prefix->header_bytes);
    assert_true(prefix->header_hash == ckv_wyhash(text, prefix->header_bytes, 0));
    return text;
}

static void expect_text(struct ckv_entry *entry, const char *expected)
{
    struct ckv_prefix prefix;
    uint64_t file_size;
    char *text = encoded(entry, &prefix, &file_size);
    assert_string_equal(text, expected);
    free(text);
}

static struct ckv_tensor tensor(enum ckv_dtype dtype, uint32_t rank,
                                const uint64_t *shape)
{
    struct ckv_tensor made = {
        .dtype = dtype, .rank = rank, .bytes = ckv_dtype_size(dtype)};
    for (uint32_t i = 0; i < rank; i++) {
        made.shape[i] = shape[i];
        made.bytes *= shape[i];
    }
    return made;
}

static struct ckv_tensor rows(enum ckv_dtype dtype, uint64_t row_count, uint64_t width)
{
    uint64_t shape[4] = {1, 1, row_count, width};
    return tensor(dtype, 4, shape);
}

/* One cache in an entry without tokens and metadata. */
static void expect_cache(struct ckv_cache cache, struct ckv_tensor *tensors, size_t count,
                         const char *expected)
{
    struct ckv_entry entry = {.created_at_ms = 7, .caches = &cache, .cache_count = 1};
    char text[2048];
    cache.tensors = tensors;
    cache.tensor_count = count;
    (void)snprintf(text, sizeof text,
                   "{\"formatVersion\":3,\"createdAt\":7,\"tokens\":[],\"caches\":[%s]}",
                   expected);
    expect_text(&entry, text);
}

static void an_empty_entry_has_the_shortest_text(void **state)
{
    struct ckv_entry entry = {0};
    struct ckv_prefix prefix;
    uint64_t file_size;
    char *text = encoded(&entry, &prefix, &file_size);
    (void)state;
    assert_string_equal(
        text, "{\"formatVersion\":3,\"createdAt\":0,\"tokens\":[],\"caches\":[]}");
    assert_int_equal(prefix.data_start, 16384);
    assert_int_equal(file_size, 16384); /* no tensors: the file ends at its data start */
    free(text);
}

static void plain_and_ring_caches_are_spelled(void **state)
{
    struct ckv_tensor pair[2] = {rows(CKV_DTYPE_BFLOAT16, 2, 4),
                                 rows(CKV_DTYPE_BFLOAT16, 2, 3)};
    struct ckv_cache kv = {.kind = CKV_CACHE_KV, .offset = 2};
    struct ckv_cache ring = {
        .kind = CKV_CACHE_ROTATING, .offset = 5, .idx = 1, .max_size = 2};
    (void)state;
    pair[0].hash = UINT64_C(0xfedcba9876543210);
    pair[1].hash = 0xab; /* always 16 digits */
    expect_cache(kv, pair, 2,
                 "{\"kind\":\"kv\",\"offset\":2,\"tensors\":["
                 "{\"off\":0,\"bytes\":16,\"shape\":[1,1,2,4],\"dtype\":12,"
                 "\"hash\":\"fedcba9876543210\"},"
                 "{\"off\":16384,\"bytes\":12,\"shape\":[1,1,2,3],\"dtype\":12,"
                 "\"hash\":\"00000000000000ab\"}]}");
    expect_cache(
        ring, pair, 2,
        "{\"kind\":\"rotating\",\"offset\":5,\"idx\":1,\"maxSize\":2,\"tensors\":["
        "{\"off\":0,\"bytes\":16,\"shape\":[1,1,2,4],\"dtype\":12,"
        "\"hash\":\"fedcba9876543210\"},"
        "{\"off\":16384,\"bytes\":12,\"shape\":[1,1,2,3],\"dtype\":12,"
        "\"hash\":\"00000000000000ab\"}]}");
}

#define SIX_SLOTS                                                                        \
    "{\"off\":0,\"bytes\":16,\"shape\":[1,1,1,4],\"dtype\":3,"                           \
    "\"hash\":\"0000000000000000\"},"                                                    \
    "{\"off\":16384,\"bytes\":2,\"shape\":[1,1,1,1],\"dtype\":9,"                        \
    "\"hash\":\"0000000000000000\"},"                                                    \
    "{\"off\":32768,\"bytes\":2,\"shape\":[1,1,1,1],\"dtype\":9,"                        \
    "\"hash\":\"0000000000000000\"},"                                                    \
    "{\"off\":49152,\"bytes\":16,\"shape\":[1,1,1,4],\"dtype\":3,"                       \
    "\"hash\":\"0000000000000000\"},"                                                    \
    "{\"off\":65536,\"bytes\":2,\"shape\":[1,1,1,1],\"dtype\":9,"                        \
    "\"hash\":\"0000000000000000\"},"                                                    \
    "{\"off\":81920,\"bytes\":2,\"shape\":[1,1,1,1],\"dtype\":9,"                        \
    "\"hash\":\"0000000000000000\"}"

static void quantized_caches_are_spelled(void **state)
{
    struct ckv_tensor six[6];
    struct ckv_cache qkv = {
        .kind = CKV_CACHE_QKV, .offset = 1, .group_size = 32, .bits = 4};
    struct ckv_cache ring = {.kind = CKV_CACHE_ROTATING_QKV,
                             .offset = 9,
                             .idx = 0,
                             .max_size = 1,
                             .group_size = 32,
                             .bits = 4};
    (void)state;
    for (size_t i = 0; i < 6; i++)
        six[i] = rows(i % 3 ? CKV_DTYPE_FLOAT16 : CKV_DTYPE_UINT32, 1, i % 3 ? 1 : 4);
    expect_cache(qkv, six, 6,
                 "{\"kind\":\"qkv\",\"offset\":1,\"groupSize\":32,\"bits\":4,"
                 "\"tensors\":[" SIX_SLOTS "]}");
    expect_cache(ring, six, 6,
                 "{\"kind\":\"rotating-qkv\",\"offset\":9,\"idx\":0,\"maxSize\":1,"
                 "\"groupSize\":32,\"bits\":4,\"tensors\":[" SIX_SLOTS "]}");
}

static void the_other_kinds_are_spelled(void **state)
{
    static const uint64_t conv[3] = {1, 3, 2};
    static const uint64_t bytes[1] = {5};
    struct ckv_tensor slot = tensor(CKV_DTYPE_FLOAT32, 3, conv);
    struct ckv_tensor turbo[5] = {
        rows(CKV_DTYPE_INT8, 0, 64), rows(CKV_DTYPE_FLOAT16, 0, 2),
        rows(CKV_DTYPE_FLOAT16, 0, 2), rows(CKV_DTYPE_UINT8, 0, 24),
        rows(CKV_DTYPE_FLOAT16, 0, 2)};
    struct ckv_cache ssm = {.kind = CKV_CACHE_SSM, .offset = 5};
    struct ckv_cache state_cache = {
        .kind = CKV_CACHE_STATE, .offset = 9, .engine = "llama.cpp", .floor = 8};
    struct ckv_cache turboquant = {
        .kind = CKV_CACHE_TURBOQUANT, .k_bits = 8, .v_bits = 3, .head_dim = 64};
    (void)state;
    expect_cache(ssm, &slot, 1,
                 "{\"kind\":\"ssm\",\"offset\":5,\"tensors\":[{\"off\":0,\"bytes\":24,"
                 "\"shape\":[1,3,2],\"dtype\":10,\"hash\":\"0000000000000000\"}]}");
    slot = tensor(CKV_DTYPE_UINT8, 1, bytes);
    expect_cache(state_cache, &slot, 1,
                 "{\"kind\":\"state\",\"offset\":9,\"engine\":\"llama.cpp\",\"floor\":8,"
                 "\"tensors\":[{\"off\":0,\"bytes\":5,\"shape\":[5],\"dtype\":1,"
                 "\"hash\":\"0000000000000000\"}]}");
    expect_cache(turboquant, turbo, 5,
                 "{\"kind\":\"turboquant\",\"offset\":0,\"kBits\":8,\"vBits\":3,"
                 "\"headDim\":64,\"tensors\":["
                 "{\"off\":0,\"bytes\":0,\"shape\":[1,1,0,64],\"dtype\":5,"
                 "\"hash\":\"0000000000000000\"},"
                 "{\"off\":0,\"bytes\":0,\"shape\":[1,1,0,2],\"dtype\":9,"
                 "\"hash\":\"0000000000000000\"},"
                 "{\"off\":0,\"bytes\":0,\"shape\":[1,1,0,2],\"dtype\":9,"
                 "\"hash\":\"0000000000000000\"},"
                 "{\"off\":0,\"bytes\":0,\"shape\":[1,1,0,24],\"dtype\":1,"
                 "\"hash\":\"0000000000000000\"},"
                 "{\"off\":0,\"bytes\":0,\"shape\":[1,1,0,2],\"dtype\":9,"
                 "\"hash\":\"0000000000000000\"}]}");
}

static void metadata_stands_in_the_callers_order(void **state)
{
    static const uint32_t tokens[3] = {0, 10, UINT32_MAX};
    struct ckv_entry entry = {
        .created_at_ms = 1783400000026,
        .meta = {{CKV_META_NAMESPACE, ""}, {CKV_META_MODEL_ID, "m"}},
        .meta_count = 2,
        .tokens = tokens,
        .token_count = 3};
    (void)state;
    expect_text(&entry, "{\"formatVersion\":3,\"createdAt\":1783400000026,\"ns\":\"\","
                        "\"modelId\":\"m\",\"tokens\":[0,10,4294967295],\"caches\":[]}");
}

static void strings_are_escaped_as_ecmascript_does(void **state)
{
    /* Every character below 0x20, then quote, backslash, slash, DEL, and text beyond
     * ASCII, line separators included. */
    char value[64];
    struct ckv_entry entry = {.meta = {{CKV_META_MODEL_ID, value}}, .meta_count = 1};
    (void)state;
    for (char c = 1; c < 0x20; c++)
        value[c - 1] = c;
    (void)snprintf(value + 31, sizeof value - 31,
                   "\"\\/\x7f\xc3\xa4\xe2\x80\xa8\xe2\x80\xa9\xf0\x9f\x99\x82");
    expect_text(
        &entry,
        "{\"formatVersion\":3,\"createdAt\":0,\"modelId\":\""
        "\\u0001\\u0002\\u0003\\u0004\\u0005\\u0006\\u0007\\b\\t\\n\\u000b\\f\\r\\u000e\\"
        "u000f"
        "\\u0010\\u0011\\u0012\\u0013\\u0014\\u0015\\u0016\\u0017\\u0018\\u0019\\u001a\\u"
        "001b"
        "\\u001c\\u001d\\u001e\\u001f\\\"\\\\/\x7f\xc3\xa4\xe2\x80\xa8\xe2\x80\xa9"
        "\xf0\x9f\x99\x82\",\"tokens\":[],\"caches\":[]}");
}

static void tensors_follow_each_other_on_16_kib_borders(void **state)
{
    static const uint64_t sizes[6] = {16384, 1, 0, 16385, 0, 0};
    static const uint64_t offsets[6] = {0, 16384, 32768, 32768, 65536, 65536};
    struct ckv_tensor tensors[6];
    struct ckv_cache caches[2] = {
        {.kind = CKV_CACHE_SSM, .tensors = tensors, .tensor_count = 2},
        {.kind = CKV_CACHE_SSM, .tensors = tensors + 2, .tensor_count = 4}};
    struct ckv_entry entry = {.caches = caches, .cache_count = 2};
    struct ckv_prefix prefix;
    struct ckv_error error;
    uint64_t file_size;
    (void)state;
    for (size_t i = 0; i < 6; i++)
        tensors[i] = tensor(CKV_DTYPE_UINT8, 1, &sizes[i]);
    assert_ok(ckv_header_plan(&entry, &prefix, &file_size, &error), error);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(tensors[i].offset, offsets[i]);
    assert_int_equal(prefix.data_start, 16384);
    assert_int_equal(file_size, 16384 + 65536); /* an empty last tensor counts */
}

/* Metadata makes the header exactly as long as wanted. */
static void the_data_start_moves_when_the_text_outgrows_a_page(void **state)
{
    static const struct {
        size_t header_bytes;
        uint32_t data_start;
    } cases[] = {
        {16358, 16384}, {16359, 32768}, {16360, 32768}, {32742, 32768}, {32743, 49152}};
    char *value = calloc(1, 40000);
    struct ckv_entry entry = {.meta = {{CKV_META_MODEL_ID, value}}, .meta_count = 1};
    struct ckv_prefix prefix;
    struct ckv_error error;
    uint64_t file_size;
    (void)state;
    TEST_REQUIRE(value);
    assert_ok(ckv_header_plan(&entry, &prefix, &file_size, &error), error);
    for (size_t i = 0; i < TEST_COUNT_OF(cases); i++) {
        struct ckv_prefix larger;
        memset(value, 'x', cases[i].header_bytes - prefix.header_bytes);
        value[cases[i].header_bytes - prefix.header_bytes] = '\0';
        assert_ok(ckv_header_plan(&entry, &larger, &file_size, &error), error);
        assert_int_equal(larger.header_bytes, cases[i].header_bytes);
        assert_int_equal(larger.data_start, cases[i].data_start);
        assert_int_equal(file_size, cases[i].data_start);
    }
    free(value);
}

static void what_does_not_fit_into_numbers_is_too_big(void **state)
{
    uint64_t half = UINT64_C(1) << 52;
    uint64_t sizes[2] = {half - 1, half};
    struct ckv_tensor tensors[2];
    struct ckv_cache cache = {
        .kind = CKV_CACHE_SSM, .tensors = tensors, .tensor_count = 2};
    struct ckv_entry entry = {.caches = &cache, .cache_count = 1};
    struct ckv_prefix prefix;
    struct ckv_error error;
    uint64_t file_size;
    (void)state;
    for (size_t i = 0; i < 2; i++)
        tensors[i] = tensor(CKV_DTYPE_UINT8, 1, &sizes[i]);
    /* In sum below 2^53, but not behind the padding. */
    assert_status(ckv_header_plan(&entry, &prefix, &file_size, &error), CKV_TOOBIG);
    assert_non_null(strstr(error.text, "caches[0].tensors[1]"));
    sizes[1] = half - 16384;
    tensors[1] = tensor(CKV_DTYPE_UINT8, 1, &sizes[1]);
    assert_ok(ckv_header_plan(&entry, &prefix, &file_size, &error), error);
    assert_true(file_size == 16384 + 2 * half - 16384);
}

/* S39: what a reader would refuse is refused here. */
static void s39_a_header_beyond_the_limit_is_too_big(void **state)
{
    size_t count = CKV_HEADER_BYTES_MAX / 11 + 1;
    uint32_t *tokens = malloc(count * sizeof *tokens);
    struct ckv_entry entry = {.tokens = tokens, .token_count = count};
    struct ckv_prefix prefix;
    struct ckv_error error;
    uint64_t file_size = 1;
    (void)state;
    TEST_REQUIRE(tokens);
    for (size_t i = 0; i < count; i++)
        tokens[i] = UINT32_MAX;
    assert_status(ckv_header_plan(&entry, &prefix, &file_size, &error), CKV_TOOBIG);
    assert_non_null(strstr(error.text, "header: "));
    assert_int_equal(file_size, 0);
    entry.token_count -= 6;
    assert_ok(ckv_header_plan(&entry, &prefix, &file_size, &error), error);
    assert_true(prefix.header_bytes <= CKV_HEADER_BYTES_MAX);
    assert_true(prefix.header_bytes > CKV_HEADER_BYTES_MAX - 64);
    free(tokens);
}

static void an_invalid_entry_is_not_planned(void **state)
{
    struct test_entry *made = test_entry_of_kind(CKV_CACHE_KV, 3, 1);
    struct ckv_prefix prefix;
    struct ckv_error error;
    uint64_t file_size;
    (void)state;
    made->entry.caches[0].offset = 4;
    assert_status(ckv_header_plan(&made->entry, &prefix, &file_size, &error),
                  CKV_CORRUPT);
    assert_non_null(strstr(error.text, "shape[2]"));
    test_entry_destroy(made);
}

static void an_entry_that_changed_is_not_written_beyond_its_plan(void **state)
{
    struct test_entry *made = test_entry_of_kind(CKV_CACHE_KV, 3, 1);
    struct ckv_prefix prefix;
    struct ckv_error error;
    uint64_t file_size;
    uint8_t *json;
    (void)state;
    assert_ok(ckv_header_plan(&made->entry, &prefix, &file_size, &error), error);
    json = malloc(prefix.header_bytes);
    TEST_REQUIRE(json);
    made->entry.created_at_ms = 123456;
    assert_status(ckv_header_encode(&made->entry, &prefix, json, &error), CKV_INVALID);
    made->entry.created_at_ms = 0;
    made->entry.token_count = 0;
    assert_status(ckv_header_encode(&made->entry, &prefix, json, &error), CKV_INVALID);
    made->entry.token_count = 3;
    assert_ok(ckv_header_encode(&made->entry, &prefix, json, &error), error);
    free(json);
    test_entry_destroy(made);
}

static void every_kind_comes_back_from_its_text(void **state)
{
    (void)state;
    for (size_t tokens = 1; tokens < 20; tokens++) {
        struct test_entry *made = test_entry_of_all_kinds(tokens, 1);
        struct ckv_prefix prefix;
        struct ckv_header *header = NULL;
        struct ckv_error error;
        uint64_t file_size;
        char *text = encoded(&made->entry, &prefix, &file_size);
        assert_ok(
            ckv_header_decode(NULL, &prefix, (uint8_t *)text, file_size, &header, &error),
            error);
        assert_true(test_entry_same(&made->entry, &header->entry));
        assert_true(header->canonical);
        assert_int_equal(header->file_size, file_size);
        ckv_header_destroy(header);
        free(text);
        test_entry_destroy(made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_entry_has_the_shortest_text),
        cmocka_unit_test(plain_and_ring_caches_are_spelled),
        cmocka_unit_test(quantized_caches_are_spelled),
        cmocka_unit_test(the_other_kinds_are_spelled),
        cmocka_unit_test(metadata_stands_in_the_callers_order),
        cmocka_unit_test(strings_are_escaped_as_ecmascript_does),
        cmocka_unit_test(tensors_follow_each_other_on_16_kib_borders),
        cmocka_unit_test(the_data_start_moves_when_the_text_outgrows_a_page),
        cmocka_unit_test(what_does_not_fit_into_numbers_is_too_big),
        cmocka_unit_test(s39_a_header_beyond_the_limit_is_too_big),
        cmocka_unit_test(an_invalid_entry_is_not_planned),
        cmocka_unit_test(an_entry_that_changed_is_not_written_beyond_its_plan),
        cmocka_unit_test(every_kind_comes_back_from_its_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

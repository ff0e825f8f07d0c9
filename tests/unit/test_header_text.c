/*
 * Reading a header's text: the order of the checks, JSON syntax, nesting, token lists,
 * and the memory it takes.
 */
#include "unit/header_texts.h"

#include "lib/counting_alloc.h"
#include "lib/random.h"

/* formatVersion is looked for before any other rule is applied. */
static void other_versions_win_over_every_rule(void **state)
{
    static const char *const versions[] = {"1", "2", "4", "5", "0", "9007199254740991"};
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(versions); i++) {
        char text[512];
        char part[64];
        (void)snprintf(part, sizeof part, "formatVersion: expected 3, found %s",
                       versions[i]);
        (void)snprintf(text, sizeof text, "{\"formatVersion\":%s}", versions[i]);
        expect_refused_text(text, 16384, CKV_VERSION, part);
        (void)snprintf(text, sizeof text,
                       "{\"createdAt\":\"x\",\"createdAt\":2,\"tokens\":[[]],\"caches\":["
                       "{\"kind\":\"?\",\"tensors\":7}],\"ns\":\"\\u0000\","
                       "\"formatVersion\":%s,\"attachments\":{}}",
                       versions[i]);
        expect_refused_text(text, 1, CKV_VERSION, part);
        (void)snprintf(text, sizeof text, "{\"formatVersion\":%s,\"caches\":[}",
                       versions[i]);
        expect_refused_text(text, 16384, CKV_CORRUPT, "header: expected");
    }
    expect_refused_text("{\"tokens\":5}", 16384, CKV_CORRUPT,
                        "formatVersion: the key is");
}

static void the_header_hash_is_checked_first(void **state)
{
    struct text_header header = text_header(kv_text, sizeof kv_text - 1);
    struct ckv_header *out = NULL;
    struct ckv_error error;
    (void)state;
    for (unsigned bit = 0; bit < 64; bit++) {
        struct ckv_prefix prefix = header.prefix;
        prefix.header_hash ^= UINT64_C(1) << bit;
        assert_status(
            ckv_header_decode(NULL, &prefix, header.json, KV_FILE, &out, &error),
            CKV_CORRUPT);
        assert_non_null(strstr(error.text, "header hash: expected "));
        assert_null(out);
    }
    header.prefix.header_bytes = CKV_HEADER_BYTES_MAX + 1;
    assert_status(
        ckv_header_decode(NULL, &header.prefix, header.json, KV_FILE, &out, &error),
        CKV_TOOBIG);
}

static void what_is_not_json_is_corrupt(void **state)
{
    static const char *const texts[] = {"",
                                        " ",
                                        "{",
                                        "}",
                                        "{]",
                                        "nul",
                                        "{\"a\"}",
                                        "{\"a\":}",
                                        "{a:1}",
                                        "{'a':1}",
                                        "{\"a\":1,}",
                                        "[1,]",
                                        "[,1]",
                                        "{\"a\":1}{}",
                                        "{\"a\":1}x",
                                        "\xef\xbb\xbf{}",
                                        "{\"a\":1 \"b\":2}",
                                        "{\"a\" 1}",
                                        "{\"a\":tru}",
                                        "{\"a\":+1}",
                                        "{\"a\":.5}",
                                        "{\"a\":1.}",
                                        "{\"a\":1e}",
                                        "{\"a\":00}",
                                        "{\"a\":0x1}",
                                        "{\"a\":NaN}",
                                        "{\"a\":\"\n\"}",
                                        "{\"a\":\"\\x\"}",
                                        "{\"a\":\"\\u12g4\"}",
                                        "{\"a\":\"\\u12\"}",
                                        "{\"a\":\"\\ud800\"}",
                                        "{\"a\":\"\\udc00\"}",
                                        "{\"a\":\"\\ud800\\u0041\"}",
                                        "{\"a\":\"\\ud800\\ud800\"}",
                                        "{\"a\":\"\xff\"}",
                                        "{\"a\":\"\xc0\x80\"}",
                                        "{\"a\":\"\xed\xa0\x80\"}",
                                        "{\"a\":\"\xf4\x90\x80\x80\"}",
                                        "{\"a\":\"\xe2\x80\"}",
                                        "{\"a\":\"\xe0\x80\x80\"}",
                                        "{\"a\":\"\xf0\x80\x80\x80\"}",
                                        "{\"a\":\xc3\xa4}",
                                        "{\"a\":\"x}",
                                        "{\"a\":\"\\\"}",
                                        "{/**/\"a\":1}",
                                        "{\"a\":[1 2]}",
                                        "{\"a\":[1}",
                                        "{\"\xff\":1}",
                                        "{\"\\ud800\":1}",
                                        "{\"a\":--1}"};
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(texts); i++)
        expect_refused_text(texts[i], 16384, CKV_CORRUPT, "header: expected ");
    expect_refused_text("{\"a\":tru}", 16384, CKV_CORRUPT,
                        "header: expected true, false or null at byte 5, found tru}");
    expect_refused_text("{\"a\":1", 16384, CKV_CORRUPT,
                        "header: expected ',' or '}' at byte 6, found its end");
}

static void a_nul_byte_in_the_text_is_corrupt(void **state)
{
    struct ckv_header *header = NULL;
    struct ckv_error error;
    (void)state;
    /* With its terminator. */
    assert_status(decode_bytes(kv_text, sizeof kv_text, KV_FILE, &header, &error),
                  CKV_CORRUPT);
    assert_non_null(strstr(error.text, "the end of the text"));
}

static void every_cut_text_is_corrupt(void **state)
{
    struct ckv_header *header = NULL;
    (void)state;
    for (size_t size = 0; size < sizeof kv_text - 1; size++)
        assert_status(decode_bytes(kv_text, size, KV_FILE, &header, NULL), CKV_CORRUPT);
}

static void nesting_is_bounded(void **state)
{
    char text[256];
    (void)state;
    for (int depth = 1; depth < 40; depth++) {
        int at = snprintf(text, sizeof text, "\"x\":");
        for (int i = 0; i < depth; i++)
            text[at++] = '[';
        for (int i = 0; i < depth; i++)
            text[at++] = ']';
        (void)snprintf(text + at, sizeof text - (size_t)at, ",\"createdAt\"");
        if (depth <= CKV_JSON_DEPTH_MAX - 1) /* the header itself is the first level */
            take_kv("\"createdAt\"", text, false);
        else
            refuse_kv("\"createdAt\"", text, CKV_TOOBIG, "nesting (limit 16)");
    }
}

static void deep_nonsense_uses_no_stack(void **state)
{
    size_t size = 1u << 20;
    char *text = malloc(size);
    struct ckv_header *header = NULL;
    (void)state;
    TEST_REQUIRE(text);
    memset(text, '[', size);
    assert_status(decode_bytes(text, size, 1u << 21, &header, NULL), CKV_TOOBIG);
    memcpy(text, "{\"a\":", 5);
    assert_status(decode_bytes(text, size, 1u << 21, &header, NULL), CKV_TOOBIG);
    free(text);
}

/* A list of tokens, spelled as the format does, decoded and compared. */
static void expect_tokens(const uint32_t *tokens, size_t count, const char *between,
                          bool canonical)
{
    size_t capacity = 128 + count * (12 + strlen(between));
    char *text = malloc(capacity);
    struct ckv_header *header = NULL;
    struct ckv_error error;
    size_t used;
    TEST_REQUIRE(text);
    used = (size_t)snprintf(text, capacity,
                            "{\"formatVersion\":3,\"createdAt\":1,\"tokens\":[");
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, capacity - used, "%s%u", i ? between : "",
                                 (unsigned)tokens[i]);
    used += (size_t)snprintf(text + used, capacity - used, "],\"caches\":[]}");
    assert_ok(decode_bytes(text, used, ckv_file_align(26 + used), &header, &error),
              error);
    assert_int_equal(header->entry.token_count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(header->entry.tokens[i], tokens[i]);
    assert_int_equal(header->canonical, canonical);
    ckv_header_destroy(header);
    free(text);
}

static void tokens_of_every_length_are_read(void **state)
{
    static const uint32_t edges[] = {0,          9,         10,         99,
                                     100,        999,       1000,       9999,
                                     10000,      99999,     100000,     999999,
                                     1000000,    9999999,   10000000,   99999999,
                                     100000000,  999999999, 1000000000, UINT32_MAX - 1,
                                     UINT32_MAX, 0,         7};
    struct test_random random;
    uint32_t *tokens = malloc(20000 * sizeof *tokens);
    (void)state;
    TEST_REQUIRE(tokens);
    for (size_t i = 0; i <= TEST_COUNT_OF(edges); i++)
        expect_tokens(edges, i, ",", true);
    expect_tokens(edges, TEST_COUNT_OF(edges), " ,\n", false);
    test_random_init(&random, 20240601);
    for (size_t i = 0; i < 20000; i++)
        tokens[i] = (uint32_t)(test_random_next(&random) >>
                               (32 + test_random_below(&random, 32)));
    expect_tokens(tokens, 20000, ",", true);
    free(tokens);
}

/* A text of many small caches and tensors, the worst case for memory per byte. */
static char *crowded_text(size_t caches, size_t tensors, uint64_t *file_size)
{
    static const char slot[] = "{\"off\":0,\"bytes\":0,\"shape\":[0],\"dtype\":1,"
                               "\"hash\":\"0000000000000000\"}";
    size_t capacity = 128 + caches * (64 + tensors * (sizeof slot + 1));
    char *text = malloc(capacity);
    size_t used;
    TEST_REQUIRE(text);
    used = (size_t)snprintf(
        text, capacity,
        "{\"formatVersion\":3,\"createdAt\":1,\"tokens\":[],\"caches\":[");
    for (size_t i = 0; i < caches; i++) {
        used += (size_t)snprintf(text + used, capacity - used,
                                 "%s{\"kind\":\"ssm\",\"offset\":0,\"tensors\":[",
                                 i ? "," : "");
        for (size_t j = 0; j < tensors; j++)
            used += (size_t)snprintf(text + used, capacity - used, "%s%s", j ? "," : "",
                                     slot);
        used += (size_t)snprintf(text + used, capacity - used, "]}");
    }
    (void)snprintf(text + used, capacity - used, "]}");
    *file_size = ckv_file_align(26 + strlen(text));
    return text;
}

static void counts_are_bounded(void **state)
{
    uint64_t file_size;
    char *text = crowded_text(CKV_CACHES_MAX, 16, &file_size);
    (void)state;
    expect_taken(text, file_size, true);
    free(text);
    text = crowded_text(CKV_CACHES_MAX + 1, 1, &file_size);
    expect_refused_text(text, file_size, CKV_TOOBIG, "caches: more than 4096");
    free(text);
    text = crowded_text(1, CKV_TENSORS_MAX + 1, &file_size);
    expect_refused_text(text, file_size, CKV_TOOBIG,
                        "caches[0].tensors: more than 65536");
    free(text);
}

static enum ckv_status decode_with(struct test_alloc *alloc, const char *text,
                                   uint64_t file_size, struct ckv_header **out)
{
    struct text_header header = text_header(text, strlen(text));
    return ckv_header_decode(&alloc->alloc, &header.prefix, header.json, file_size, out,
                             NULL);
}

/* At most `times` the text, and a little for small ones. */
static void expect_bounded_memory(const char *text, uint64_t file_size, size_t times)
{
    struct test_alloc alloc;
    struct ckv_header *header = NULL;
    test_alloc_init(&alloc);
    (void)decode_with(&alloc, text, file_size, &header);
    assert_true(alloc.peak_bytes <= times * strlen(text) + 8192);
    ckv_header_destroy(header);
    assert_true(test_alloc_clean(&alloc));
    test_alloc_deinit(&alloc);
}

static void memory_is_a_small_multiple_of_the_text(void **state)
{
    size_t size = 200000;
    uint64_t file_size;
    char *text;
    (void)state;
    text = crowded_text(4096, 1, &file_size);
    expect_bounded_memory(text, file_size, 6);
    free(text);
    text = crowded_text(1, 40000, &file_size);
    expect_bounded_memory(text, file_size, 6);
    free(text);
    text = malloc(size + 1);
    TEST_REQUIRE(text);
    for (size_t i = 0; i < size; i++)
        text[i] = i % 2 ? ',' : '7';
    text[size] = '\0';
    memcpy(text, "{\"tokens\":[ ", 12);
    expect_bounded_memory(text, 1u << 20, 3);
    memset(text, ',', size);
    memcpy(text, "{\"tokens\":[ ", 12);
    expect_bounded_memory(text, 1u << 20, 5);
    memset(text, '{', size);
    memcpy(text, "{\"caches\":[", 11);
    expect_bounded_memory(text, 1u << 20, 1);
    free(text);
}

static void every_failing_allocation_is_out_of_memory(void **state)
{
    static const char *const texts[] = {kv_text, wide_text};
    static const uint64_t sizes[] = {KV_FILE, WIDE_FILE};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct test_alloc alloc;
        struct ckv_header *header = NULL;
        size_t calls;
        test_alloc_init(&alloc);
        assert_status(decode_with(&alloc, texts[i], sizes[i], &header), CKV_OK);
        ckv_header_destroy(header);
        calls = alloc.call_count;
        assert_true(calls > 3);
        for (size_t nth = 1; nth <= calls; nth++) {
            test_alloc_reset(&alloc);
            alloc.fail_at = nth;
            assert_status(decode_with(&alloc, texts[i], sizes[i], &header), CKV_NOMEM);
            assert_null(header);
            assert_true(test_alloc_clean(&alloc));
        }
        test_alloc_deinit(&alloc);
    }
}

/* Texts with one byte changed (hash made to fit): no crash, and what is taken says of
 * itself truly whether it is canonical. */
static void changed_texts_are_taken_or_refused_but_never_misread(void **state)
{
    static const unsigned char values[] = {0,   '"', '\\', '{', '}', '[', ']', ',',
                                           ':', '0', '9',  ' ', 'a', '-', 0xff};
    char *text = strdup(kv_text);
    (void)state;
    for (size_t i = 0; i < sizeof kv_text - 1; i++) {
        for (size_t j = 0; j < sizeof values; j++) {
            struct ckv_header *header = NULL;
            text[i] = (char)values[j];
            if (decode_bytes(text, sizeof kv_text - 1, KV_FILE, &header, NULL) ==
                    CKV_OK &&
                header->canonical) {
                char *again = calloc(1, sizeof kv_text);
                struct ckv_prefix prefix = header->prefix;
                assert_status(
                    ckv_header_encode(&header->entry, &prefix, (uint8_t *)again, NULL),
                    CKV_OK);
                assert_memory_equal(again, text, sizeof kv_text - 1);
                free(again);
            }
            ckv_header_destroy(header);
        }
        text[i] = kv_text[i];
    }
    free(text);
}

static void destroying_nothing_is_fine(void **state)
{
    (void)state;
    ckv_header_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_versions_win_over_every_rule),
        cmocka_unit_test(the_header_hash_is_checked_first),
        cmocka_unit_test(what_is_not_json_is_corrupt),
        cmocka_unit_test(a_nul_byte_in_the_text_is_corrupt),
        cmocka_unit_test(every_cut_text_is_corrupt),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(deep_nonsense_uses_no_stack),
        cmocka_unit_test(tokens_of_every_length_are_read),
        cmocka_unit_test(counts_are_bounded),
        cmocka_unit_test(memory_is_a_small_multiple_of_the_text),
        cmocka_unit_test(every_failing_allocation_is_out_of_memory),
        cmocka_unit_test(changed_texts_are_taken_or_refused_but_never_misread),
        cmocka_unit_test(destroying_nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

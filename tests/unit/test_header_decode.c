/*
 * What a header may claim: one refusal per field and kind of nonsense, each with its
 * status and the field named, and what is tolerated.
 *
 * Most cases change one place of a good text ("from" becomes "to").
 */
#include "unit/header_texts.h"

static void good_texts_are_taken(void **state)
{
    struct ckv_header *header = NULL;
    struct ckv_error error;
    const struct ckv_entry *entry;
    (void)state;
    expect_taken(wide_text, WIDE_FILE, true);
    assert_ok(decode_text(kv_text, KV_FILE, &header, &error), error);
    entry = &header->entry;
    assert_true(header->canonical);
    assert_int_equal(header->file_size, KV_FILE);
    assert_int_equal(entry->created_at_ms, 1783400000000);
    assert_int_equal(entry->meta_count, 4);
    assert_string_equal(ckv_entry_meta(entry, CKV_META_FINGERPRINT), "f");
    assert_string_equal(ckv_entry_meta(entry, CKV_META_NAMESPACE), "");
    assert_int_equal(entry->token_count, 2);
    assert_int_equal(entry->tokens[1], 2);
    assert_int_equal(entry->cache_count, 1);
    assert_int_equal(entry->caches[0].kind, CKV_CACHE_KV);
    assert_int_equal(entry->caches[0].offset, 2);
    assert_int_equal(entry->caches[0].tensor_count, 2);
    assert_int_equal(entry->caches[0].tensors[1].offset, 16384);
    assert_int_equal(entry->caches[0].tensors[1].bytes, 16);
    assert_int_equal(entry->caches[0].tensors[1].rank, 4);
    assert_int_equal(entry->caches[0].tensors[1].shape[3], 4);
    assert_int_equal(entry->caches[0].tensors[1].dtype, CKV_DTYPE_BFLOAT16);
    assert_true(entry->caches[0].tensors[1].hash == UINT64_C(0xfedcba9876543210));
    ckv_header_destroy(header);
}

/* Every number: what may stand there instead, and is refused with the field's name. */
static void expect_plain_integer(const char *text, uint64_t file_size, const char *member,
                                 const char *field)
{
    static const char *const wrong[] = {"-1",
                                        "1.0",
                                        "1e3",
                                        "01",
                                        "\"1\"",
                                        "null",
                                        "true",
                                        "[1]",
                                        "{}",
                                        "1.",
                                        "9007199254740992",
                                        "-0",
                                        "1E+2",
                                        "18446744073709551616"};
    const char *value = strchr(member, ':') + 1;
    for (size_t i = 0; i < TEST_COUNT_OF(wrong); i++) {
        char changed[128];
        char part[128];
        char *made;
        (void)snprintf(changed, sizeof changed, "%.*s%s%s", (int)(value - member), member,
                       wrong[i], strchr(value, ',') ? "," : "");
        (void)snprintf(part, sizeof part, "%s: expected a plain integer from 0 to ",
                       field);
        made = replaced(text, member, changed);
        expect_refused_text(made, file_size, CKV_CORRUPT, part);
        free(made);
    }
}

static void numbers_are_plain_integers_everywhere(void **state)
{
    (void)state;
    expect_plain_integer(kv_text, KV_FILE, "\"formatVersion\":3,", "formatVersion");
    expect_plain_integer(kv_text, KV_FILE, "\"createdAt\":1783400000000,", "createdAt");
    expect_plain_integer(kv_text, KV_FILE, "\"offset\":2,", "caches[0].offset");
    expect_plain_integer(kv_text, KV_FILE, "\"off\":0,", "caches[0].tensors[0].off");
    expect_plain_integer(kv_text, KV_FILE, "\"bytes\":16,", "caches[0].tensors[0].bytes");
    expect_plain_integer(kv_text, KV_FILE, "\"dtype\":12,", "caches[0].tensors[0].dtype");
    expect_plain_integer(wide_text, WIDE_FILE, "\"idx\":0,", "caches[0].idx");
    expect_plain_integer(wide_text, WIDE_FILE, "\"maxSize\":1,", "caches[0].maxSize");
    expect_plain_integer(wide_text, WIDE_FILE, "\"groupSize\":32,",
                         "caches[0].groupSize");
    expect_plain_integer(wide_text, WIDE_FILE, "\"bits\":4,", "caches[0].bits");
    expect_plain_integer(wide_text, WIDE_FILE, "\"floor\":8,", "caches[1].floor");
    expect_plain_integer(wide_text, WIDE_FILE, "\"kBits\":8,", "caches[2].kBits");
    expect_plain_integer(wide_text, WIDE_FILE, "\"vBits\":3,", "caches[2].vBits");
    expect_plain_integer(wide_text, WIDE_FILE, "\"headDim\":64,", "caches[2].headDim");
}

static void a_refusal_says_what_was_expected_and_found(void **state)
{
    struct ckv_header *header = NULL;
    struct ckv_error error;
    char *text = replaced(kv_text, "\"bytes\":16", "\"bytes\":\"16\"");
    (void)state;
    assert_status(decode_text(text, KV_FILE, &header, &error), CKV_CORRUPT);
    assert_string_equal(error.text,
                        "caches[0].tensors[0].bytes: expected a plain integer from "
                        "0 to 9007199254740991, found \"16\"");
    assert_int_equal(error.file_offset, 26 + (strstr(text, "\"16\"") - text));
    free(text);
    refuse_kv(
        "[1,2]", "[1,4294967296]", CKV_CORRUPT,
        "tokens[1]: expected a plain integer from 0 to 4294967295, found 4294967296");
    refuse_kv("[1,2]", "[1,{\"a\":1}]", CKV_CORRUPT,
              "tokens[1]: expected a plain integer");
    refuse_kv("[1,2]", "[1,{\"a\":1}]", CKV_CORRUPT, "found an object");
    refuse_kv("[1,2]", "[[1],2]", CKV_CORRUPT, "tokens[0]");
    refuse_kv("[1,2]", "[\"]\",2]", CKV_CORRUPT, "tokens[0]");
    refuse_kv("[1,2]", "[12345678901,2]", CKV_CORRUPT, "tokens[0]");
    refuse_kv("[1,2]", "[1,02]", CKV_CORRUPT, "tokens[1]");
    refuse_kv("[1,2]", "[00000001,2]", CKV_CORRUPT, "tokens[0]");
    refuse_kv("[1,2]", "[-1,2]", CKV_CORRUPT, "tokens[0]");
    refuse_kv("[1,2]", "[1.5,2]", CKV_CORRUPT, "tokens[0]");
    refuse_kv("[1,2]", "{}", CKV_CORRUPT, "tokens: expected an array, found an object");
    refuse_kv("[1,1,2,4]", "[1,1,2,\"4\"]", CKV_CORRUPT, "caches[0].tensors[0].shape[3]");
    refuse_kv("[1,1,2,4]", "4", CKV_CORRUPT, "shape: expected an array, found 4");
}

static void strings_are_strings(void **state)
{
    (void)state;
    refuse_kv("\"modelId\":\"m\"", "\"modelId\":1", CKV_CORRUPT,
              "modelId: expected a string, found 1");
    refuse_kv("\"configFingerprint\":\"f\"", "\"configFingerprint\":null", CKV_CORRUPT,
              "configFingerprint: expected a string, found null");
    refuse_kv("\"tokenizerHash\":\"t\"", "\"tokenizerHash\":[]", CKV_CORRUPT,
              "tokenizerHash: expected a string, found an array");
    refuse_kv("\"ns\":\"\"", "\"ns\":{}", CKV_CORRUPT, "ns: expected a string");
    refuse_kv("\"ns\":\"\"", "\"ns\":\"a\\u0000b\"", CKV_CORRUPT, "ns: expected no NUL");
    refuse_kv("\"kind\":\"kv\"", "\"kind\":3", CKV_CORRUPT,
              "caches[0].kind: expected a string");
    refuse_wide("\"llama.cpp\"", "7", CKV_CORRUPT, "caches[1].engine: expected a string");
    refuse_wide("llama.cpp", "", CKV_CORRUPT, "engine: expected [A-Za-z0-9._-]{1,63}");
    refuse_wide("llama.cpp", "llama cpp", CKV_CORRUPT, "engine: expected");
    refuse_wide("llama.cpp", "a\\u0000b", CKV_CORRUPT, "engine: expected");
    refuse_wide("llama.cpp",
                "a234567890123456789012345678901234567890123456789012345678901234",
                CKV_CORRUPT, "engine: expected");
}

/* The value of `ns` when it is spelled like this. */
static void expect_meaning(const char *spelled, const char *value)
{
    char member[256];
    char *text;
    struct ckv_header *header = NULL;
    struct ckv_error error;
    (void)snprintf(member, sizeof member, "\"ns\":\"%s\"", spelled);
    text = replaced(kv_text, "\"ns\":\"\"", member);
    assert_ok(decode_text(text, KV_FILE, &header, &error), error);
    assert_string_equal(ckv_entry_meta(&header->entry, CKV_META_NAMESPACE), value);
    ckv_header_destroy(header);
    free(text);
}

static void strings_mean_what_their_escapes_say(void **state)
{
    /* The first and the last code point of each length of UTF-8. */
    static const char *const raw[] = {"\x7f",
                                      "\xc2\x80",
                                      "\xdf\xbf",
                                      "\xe0\xa0\x80",
                                      "\xed\x9f\xbf",
                                      "\xee\x80\x80",
                                      "\xef\xbf\xbf",
                                      "\xf0\x90\x80\x80",
                                      "\xf3\xbf\xbf\xbf",
                                      "\xf4\x8f\xbf\xbf"};
    static const char *const escaped[] = {
        "\\u007f", "\\u0080", "\\u07ff",        "\\u0800",        "\\ud7ff",
        "\\ue000", "\\uffff", "\\ud800\\udc00", "\\udbbf\\udfff", "\\uDBFF\\uDFFF"};
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(raw); i++) {
        expect_meaning(raw[i], raw[i]);
        expect_meaning(escaped[i], raw[i]);
    }
    expect_meaning("\\\"\\\\\\/\\b\\f\\n\\r\\t\\u001F", "\"\\/\b\f\n\r\t\x1f");
}

static void hashes_are_16_lower_case_digits(void **state)
{
    (void)state;
    refuse_kv("0123456789abcdef", "0123456789abcde", CKV_CORRUPT,
              "caches[0].tensors[0].hash: expected 16 lower-case hex digits");
    refuse_kv("0123456789abcdef", "0123456789abcdef0", CKV_CORRUPT, "hash: expected 16");
    refuse_kv("0123456789abcdef", "0123456789ABCDEF", CKV_CORRUPT, "hash: expected 16");
    refuse_kv("0123456789abcdef", "0123456789abcdeg", CKV_CORRUPT, "hash: expected 16");
    refuse_kv("\"0123456789abcdef\"", "81985529216486895", CKV_CORRUPT,
              "hash: expected a string");
    take_kv("\"0123456789abcdef", "\"\\u00301234567\\u00389abcdef", false);
}

static void missing_keys_are_named(void **state)
{
    (void)state;
    refuse_kv("\"formatVersion\":3,", "", CKV_CORRUPT,
              "formatVersion: the key is missing");
    refuse_kv("\"createdAt\":1783400000000,", "", CKV_CORRUPT,
              "createdAt: the key is missing");
    refuse_kv("\"tokens\":[1,2],", "", CKV_CORRUPT, "tokens: the key is missing");
    refuse_kv("\"kind\":\"kv\",", "", CKV_CORRUPT, "caches[0].kind: the key is missing");
    refuse_kv("\"offset\":2,", "", CKV_CORRUPT, "caches[0].offset: the key is missing");
    refuse_kv("\"off\":0,", "", CKV_CORRUPT,
              "caches[0].tensors[0].off: the key is missing");
    refuse_kv("\"bytes\":16,", "", CKV_CORRUPT, "tensors[0].bytes: the key is missing");
    refuse_kv("\"shape\":[1,1,2,4],", "", CKV_CORRUPT,
              "tensors[0].shape: the key is missing");
    refuse_kv("\"dtype\":12,", "", CKV_CORRUPT, "tensors[0].dtype: the key is missing");
    refuse_kv(",\"hash\":\"0123456789abcdef\"", "", CKV_CORRUPT,
              "tensors[0].hash: the key");
    refuse_wide("\"idx\":0,", "", CKV_CORRUPT, "caches[0].idx: the key is missing");
    refuse_wide("\"maxSize\":1,", "", CKV_CORRUPT,
                "caches[0].maxSize: the key is missing");
    refuse_wide("\"groupSize\":32,", "", CKV_CORRUPT, "caches[0].groupSize: the key");
    refuse_wide("\"bits\":4,", "", CKV_CORRUPT, "caches[0].bits: the key is missing");
    refuse_wide("\"engine\":\"llama.cpp\",", "", CKV_CORRUPT,
                "caches[1].engine: the key");
    refuse_wide("\"floor\":8,", "", CKV_CORRUPT, "caches[1].floor: the key is missing");
    refuse_wide("\"kBits\":8,", "", CKV_CORRUPT, "caches[2].kBits: the key is missing");
    refuse_wide("\"vBits\":3,", "", CKV_CORRUPT, "caches[2].vBits: the key is missing");
    refuse_wide("\"headDim\":64,", "", CKV_CORRUPT, "caches[2].headDim: the key");
    expect_refused_text("{\"formatVersion\":3,\"createdAt\":1,\"tokens\":[]}", 16384,
                        CKV_CORRUPT, "caches: the key is missing");
    expect_refused_text("[]", 16384, CKV_CORRUPT,
                        "header: expected an object, found an array");
    refuse_kv("[{\"kind\"", "[5,{\"kind\"", CKV_CORRUPT, "expected an object, found 5");
}

/* Metadata is optional, each key for itself. */
static void any_subset_and_order_of_the_metadata_is_taken(void **state)
{
    (void)state;
    take_kv("\"modelId\":\"m\",", "", true);
    take_kv("\"ns\":\"\",", "", true);
    take_kv("\"modelId\":\"m\",\"configFingerprint\":\"f\",\"tokenizerHash\":\"t\","
            "\"ns\":\"\"",
            "\"ns\":\"\",\"configFingerprint\":\"f\",\"modelId\":\"m\"", true);
}

static void duplicate_keys_are_refused_at_every_level(void **state)
{
    (void)state;
    refuse_kv("\"createdAt\":1783400000000,", "\"createdAt\":1,\"createdAt\":1,",
              CKV_CORRUPT, "createdAt: the key stands twice");
    refuse_kv("\"formatVersion\":3,", "\"formatVersion\":3,\"formatVersion\":3,",
              CKV_CORRUPT, "formatVersion: the key stands twice");
    refuse_kv("\"ns\":\"\",", "\"ns\":\"\",\"n\\u0073\":\"\",", CKV_CORRUPT,
              "the key stands twice");
    refuse_kv("\"tokens\":[1,2],", "\"tokens\":[1,2],\"tokens\":[1,2],", CKV_CORRUPT,
              "tokens: the key stands twice");
    refuse_kv("\"offset\":2,", "\"offset\":2,\"offset\":2,", CKV_CORRUPT,
              "caches[0].offset: the key stands twice");
    refuse_kv("\"off\":0,", "\"off\":0,\"off\":0,", CKV_CORRUPT,
              "caches[0].tensors[0].off: the key stands twice");
    refuse_kv("\"createdAt\"", "\"later\":1,\"later\":2,\"createdAt\"", CKV_CORRUPT,
              "later: the key stands twice");
    refuse_kv("\"off\":0,", "\"x\":1,\"\\u0078\":1,\"off\":0,", CKV_CORRUPT,
              "caches[0].tensors[0].\\x5cu0078: the key stands twice");
}

static void unknown_keys_are_skipped_but_seen(void **state)
{
    char many[4096];
    size_t used = 0;
    (void)state;
    take_kv("\"tokens\"",
            "\"codecProvider\":{\"a\":[1,-2.5e3,true,null,\"x\"]},\"tokens\"", false);
    take_kv("\"offset\":2,", "\"offset\":2,\"later\":[[],{}],", false);
    take_kv("\"off\":0,", "\"off\":0,\"codec\":\"\\ud83d\\ude42\",", false);
    for (int i = 0; i < 64; i++)
        used += (size_t)snprintf(many + used, sizeof many - used, "\"k%d\":%d,", i, i);
    (void)snprintf(many + used, sizeof many - used, "\"createdAt\"");
    take_kv("\"createdAt\"", many, false);
    (void)snprintf(many + used, sizeof many - used, "\"one more\":0,\"createdAt\"");
    refuse_kv("\"createdAt\"", many, CKV_TOOBIG, "more than 64 that are not known");
}

static void keys_of_another_kind_are_refused(void **state)
{
    (void)state;
    refuse_kv("\"offset\":2,", "\"offset\":2,\"idx\":2,", CKV_CORRUPT,
              "caches[0].idx: kind kv has no such key");
    refuse_wide("\"floor\":8,", "\"floor\":8,\"bits\":8,", CKV_CORRUPT,
                "caches[1].bits: kind state has no such key");
}

static void unknown_kinds_are_foreign(void **state)
{
    (void)state;
    refuse_kv("\"kind\":\"kv\"", "\"kind\":\"mla\",\"kvLoraRank\":512", CKV_FOREIGN,
              "caches[0].kind: unknown kind mla");
    refuse_kv("\"kind\":\"kv\"", "\"kind\":\"\"", CKV_FOREIGN,
              "caches[0].kind: unknown kind");
    refuse_kv("\"kind\":\"kv\"", "\"kind\":\"KV\"", CKV_FOREIGN,
              "caches[0].kind: unknown kind");
}

static void other_spellings_are_taken_but_not_canonical(void **state)
{
    (void)state;
    take_kv("[1,2]", "[ 1 ,\t2\r\n]", false);
    take_kv("[1,2]", "[1, 2]", false);
    take_kv("\"createdAt\":", "\"createdAt\" : ", false);
    take_kv("{\"formatVersion\"", " {\"formatVersion\"", false);
    take_kv("\"fedcba9876543210\"}]}]}", "\"fedcba9876543210\"}]}]} \n", false);
    take_kv("\"modelId\":\"m\"", "\"modelId\":\"\\u006d\"", false);
    take_kv("\"modelId\":\"m\"", "\"mode\\u006cId\":\"m\"", false);
    take_kv("\"modelId\":\"m\"", "\"modelId\":\"\\/\"", false);
    take_kv("\"modelId\":\"m\"", "\"modelId\":\"\\u000A\"", false);
    take_kv("\"modelId\":\"m\"", "\"modelId\":\"\\ud83d\\ude42\"", false);
    take_kv("\"offset\":2,\"tensors\"", "\"offset\":2 ,\"tensors\"", false);
    take_kv("\"off\":0,\"bytes\":16,", "\"bytes\":16,\"off\":0,", false);
    take_kv("\"kind\":\"kv\",\"offset\":2,", "\"offset\":2,\"kind\":\"kv\",", false);
    take_kv("\"ns\":\"\",\"tokens\":[1,2],", "\"tokens\":[1,2],\"ns\":\"\",", false);
}

static void limits_are_kept(void **state)
{
    (void)state;
    refuse_kv("[1,1,2,4]", "[1,1,1,1,1,1,1,2,4]", CKV_TOOBIG,
              "caches[0].tensors[0].shape: the rank is over the limit of 8");
    refuse_kv("[1,1,2,4]", "[]", CKV_CORRUPT,
              "tensors[0] (keys).shape: expected 1 to 8 axes");
    refuse_kv(
        "\"dtype\":12", "\"dtype\":14", CKV_CORRUPT,
        "caches[0].tensors[0].dtype: expected a plain integer from 0 to 13, found 14");
    refuse_wide("\"bits\":4", "\"bits\":4294967296", CKV_CORRUPT,
                "caches[0].bits: expected a plain integer from 0 to 4294967295");
}

static void values_of_metadata_are_bounded(void **state)
{
    char *value = malloc(CKV_META_VALUE_MAX + 64);
    size_t used;
    (void)state;
    TEST_REQUIRE(value);
    used = (size_t)snprintf(value, 64, "\"ns\":\"\\u0041");
    memset(value + used, 'a', CKV_META_VALUE_MAX - 1);
    (void)snprintf(value + used + CKV_META_VALUE_MAX - 1, 8, "\"");
    {
        char *text = replaced(kv_text, "\"ns\":\"\"", value);
        struct ckv_header *header = NULL;
        struct ckv_error error;
        assert_ok(
            decode_text(text, ckv_file_align(26 + strlen(text)) + 16400, &header, &error),
            error);
        assert_int_equal(strlen(ckv_entry_meta(&header->entry, CKV_META_NAMESPACE)),
                         CKV_META_VALUE_MAX);
        ckv_header_destroy(header);
        free(text);
    }
    (void)snprintf(value + used + CKV_META_VALUE_MAX - 1, 8, "b\"");
    refuse_kv("\"ns\":\"\"", value, CKV_TOOBIG, "ns: 65536 bytes are over the limit");
    free(value);
}

/* Shapes, scalars and layout against each other: the rules of ckv_entry_validate hold. */
static void claims_are_compared_with_each_other(void **state)
{
    (void)state;
    refuse_kv("\"bytes\":16", "\"bytes\":17", CKV_CORRUPT,
              "caches[0] (kv).tensors[0] (keys).bytes: expected 16");
    refuse_kv("\"offset\":2", "\"offset\":3", CKV_CORRUPT, "(keys).shape[2]: expected 3");
    refuse_kv("\"off\":0", "\"off\":16384", CKV_CORRUPT,
              "caches[0].tensors[0].off: expected 0");
    refuse_kv("\"off\":16384", "\"off\":16", CKV_CORRUPT,
              "caches[0].tensors[1].off: expected 16384");
    refuse_kv("\"off\":16384", "\"off\":0", CKV_CORRUPT, "caches[0].tensors[1].off");
    refuse_kv("\"off\":16384", "\"off\":32768", CKV_CORRUPT, "caches[0].tensors[1].off");
    refuse_wide("\"idx\":0", "\"idx\":2", CKV_CORRUPT, "caches[0] (rotating-qkv).idx");
    refuse_wide("\"maxSize\":1", "\"maxSize\":0", CKV_CORRUPT,
                "maxSize: expected at least 1");
    refuse_wide("\"groupSize\":32", "\"groupSize\":64", CKV_CORRUPT,
                "(keys packed).shape[3]");
    refuse_wide("\"bits\":4", "\"bits\":8", CKV_CORRUPT, "(keys packed).shape[3]");
    refuse_wide("\"floor\":8", "\"floor\":10", CKV_CORRUPT, "floor: expected at most 9");
    refuse_wide("\"kBits\":8", "\"kBits\":4", CKV_CORRUPT, "(kIdx).dtype");
    refuse_wide("\"vBits\":3", "\"vBits\":4", CKV_CORRUPT, "(vPacked).shape[3]");
    refuse_wide("\"headDim\":64", "\"headDim\":128", CKV_CORRUPT, "(kIdx).shape[3]");
}

static void the_file_has_exactly_the_size_of_its_header(void **state)
{
    (void)state;
    expect_refused_text(kv_text, KV_FILE - 1, CKV_CORRUPT,
                        "file size: expected 32784 bytes by the header, found 32783");
    expect_refused_text(kv_text, KV_FILE + 1, CKV_CORRUPT, "file size: expected 32784");
    expect_refused_text(kv_text, 0, CKV_CORRUPT, "file size");
    expect_refused_text(kv_text, UINT64_MAX, CKV_CORRUPT, "file size");
}

/* Its array of tensors is empty: nothing may be counted from where it would begin. */
static void an_entry_without_any_tensor_is_refused(void **state)
{
    (void)state;
    expect_refused_text("{\"formatVersion\":3,\"createdAt\":1,\"tokens\":[1,2,3],"
                        "\"caches\":[{\"kind\":\"state\",\"offset\":3,\"engine\":"
                        "\"llama.cpp\",\"floor\":2,\"tensors\":[]}]}",
                        16384, CKV_CORRUPT,
                        "caches[0] (state).tensors: expected at least 1 tensor");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_texts_are_taken),
        cmocka_unit_test(numbers_are_plain_integers_everywhere),
        cmocka_unit_test(a_refusal_says_what_was_expected_and_found),
        cmocka_unit_test(strings_are_strings),
        cmocka_unit_test(strings_mean_what_their_escapes_say),
        cmocka_unit_test(hashes_are_16_lower_case_digits),
        cmocka_unit_test(missing_keys_are_named),
        cmocka_unit_test(any_subset_and_order_of_the_metadata_is_taken),
        cmocka_unit_test(duplicate_keys_are_refused_at_every_level),
        cmocka_unit_test(unknown_keys_are_skipped_but_seen),
        cmocka_unit_test(keys_of_another_kind_are_refused),
        cmocka_unit_test(unknown_kinds_are_foreign),
        cmocka_unit_test(other_spellings_are_taken_but_not_canonical),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(values_of_metadata_are_bounded),
        cmocka_unit_test(claims_are_compared_with_each_other),
        cmocka_unit_test(the_file_has_exactly_the_size_of_its_header),
        cmocka_unit_test(an_entry_without_any_tensor_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which names are the store's own (spec I, design "The cap"). */
#include "store/names.h"
#include <coldkv/hash.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define UUID "01234567-89ab-4def-8123-456789abcdef"

static void classify_knows_exactly_four_forms(void **state)
{
    char uuid[CKVI_UUID_SIZE] = "";
    (void)state;
    assert_int_equal(ckvi_name_classify(UUID ".mlxkv", uuid), CKVI_NAME_ENTRY);
    assert_string_equal(uuid, UUID);
    assert_int_equal(ckvi_name_classify(UUID ".bad", uuid), CKVI_NAME_BAD);
    assert_int_equal(ckvi_name_classify("." UUID ".part", uuid), CKVI_NAME_PART);
    assert_string_equal(uuid, UUID);
    assert_int_equal(ckvi_name_classify(UUID ".mlxkv.tmp", NULL), CKVI_NAME_TMP);
}

static void classify_leaves_everything_else(void **state)
{
    static const char *const others[] = {
        "",
        ".",
        "..",
        ".lock",
        "identity.json",
        "base",
        UUID,
        "." UUID,
        UUID ".",
        UUID ".mlxk",
        UUID ".mlxkv2",
        UUID ".MLXKV",
        UUID ".bad.mlxkv",
        UUID ".part",
        UUID ".tmp",
        "." UUID ".mlxkv",
        "." UUID ".bad",
        ".." UUID ".part",
        "x" UUID ".mlxkv",
        "01234567-89AB-4def-8123-456789abcdef.mlxkv",
        "01234567-89ab-4def-8123-456789abcde.mlxkv",
        "01234567-89ab-4def-8123-456789abcdef0.mlxkv",
        "0123456789ab-4def-8123-456789abcdef.mlxkv",
        "01234567_89ab-4def-8123-456789abcdef.mlxkv",
        "g1234567-89ab-4def-8123-456789abcdef.mlxkv",
        "my-notes.mlxkv",
    };
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(ckvi_name_classify(others[i], NULL), CKVI_NAME_OTHER);
}

static void names_are_made_from_uuids(void **state)
{
    char name[CKVI_FILE_NAME_SIZE];
    (void)state;
    ckvi_name_entry(UUID, name);
    assert_string_equal(name, UUID ".mlxkv");
    ckvi_name_bad(UUID, name);
    assert_string_equal(name, UUID ".bad");
}

static void fingerprints_are_harmless_folder_names(void **state)
{
    char longest[131];
    (void)state;
    memset(longest, 'a', sizeof longest);
    longest[128] = '\0';
    assert_true(ckvi_fingerprint_valid(longest));
    longest[128] = 'a';
    longest[129] = '\0';
    assert_false(ckvi_fingerprint_valid(longest));
    assert_true(ckvi_fingerprint_valid("a"));
    assert_true(ckvi_fingerprint_valid("sha256-0af._-Z"));
    assert_true(ckvi_fingerprint_valid("-"));
    assert_false(ckvi_fingerprint_valid(NULL));
    assert_false(ckvi_fingerprint_valid(""));
    assert_false(ckvi_fingerprint_valid("."));
    assert_false(ckvi_fingerprint_valid(".."));
    assert_false(ckvi_fingerprint_valid(".lock"));
    assert_false(ckvi_fingerprint_valid("a/b"));
    assert_false(ckvi_fingerprint_valid("../a"));
    assert_false(ckvi_fingerprint_valid("a b"));
    assert_false(ckvi_fingerprint_valid("a\n"));
    assert_false(ckvi_fingerprint_valid("\xc3\xa4"));
}

static void folder_of_a_namespace_is_its_hash_unpadded(void **state)
{
    char name[CKVI_FOLDER_NAME_SIZE];
    char expected[32];
    char ns[16];
    size_t shortest = 16;
    (void)state;
    ckvi_folder_name("", name);
    assert_string_equal(name, "base");
    for (int i = 0; i < 2000; i++) {
        snprintf(ns, sizeof ns, "user-%d", i);
        ckvi_folder_name(ns, name);
        snprintf(expected, sizeof expected, "%llx",
                 (unsigned long long)ckv_wyhash(ns, strlen(ns), 0));
        assert_string_equal(name, expected);
        assert_true(ckvi_folder_name_valid(name));
        if (strlen(name) < shortest)
            shortest = strlen(name);
    }
    assert_true(shortest < 16); /* a leading zero was left out somewhere */
}

static void folder_names_have_one_spelling(void **state)
{
    (void)state;
    assert_true(ckvi_folder_name_valid("base"));
    assert_true(ckvi_folder_name_valid("0"));
    assert_true(ckvi_folder_name_valid("f00"));
    assert_true(ckvi_folder_name_valid("ffffffffffffffff"));
    assert_false(ckvi_folder_name_valid(""));
    assert_false(ckvi_folder_name_valid("00"));
    assert_false(ckvi_folder_name_valid("0f"));
    assert_false(ckvi_folder_name_valid("fffffffffffffffff"));
    assert_false(ckvi_folder_name_valid("F00"));
    assert_false(ckvi_folder_name_valid("base2"));
    assert_false(ckvi_folder_name_valid("lost+found"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classify_knows_exactly_four_forms),
        cmocka_unit_test(classify_leaves_everything_else),
        cmocka_unit_test(names_are_made_from_uuids),
        cmocka_unit_test(fingerprints_are_harmless_folder_names),
        cmocka_unit_test(folder_of_a_namespace_is_its_hash_unpadded),
        cmocka_unit_test(folder_names_have_one_spelling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

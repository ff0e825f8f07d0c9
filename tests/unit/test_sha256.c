/* SHA-256 against the published vectors. */
#include <coldkv/sha256.h>

#include "lib/counting_alloc.h"
#include "lib/files.h"
#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

static void digest(const struct ckv_alloc *alloc, const void *data, size_t size,
                   size_t piece, char text[CKV_SHA256_TEXT_SIZE])
{
    struct ckv_sha256 *sha = NULL;
    struct ckv_error error;
    const char *bytes = data;
    assert_ok(ckv_sha256_create(alloc, &sha, &error), error);
    for (size_t at = 0; at < size; at += piece) {
        size_t part = size - at < piece ? size - at : piece;
        assert_ok(ckv_sha256_update(sha, bytes + at, part, &error), error);
    }
    assert_ok(ckv_sha256_update(sha, NULL, 0, &error), error);
    assert_ok(ckv_sha256_finish(sha, text, &error), error);
    ckv_sha256_destroy(sha);
}

static void published_vectors(void **state)
{
    static const struct {
        const char *text;
        const char *digest;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char text[CKV_SHA256_TEXT_SIZE];
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(cases); i++) {
        digest(NULL, cases[i].text, strlen(cases[i].text), 7, text);
        assert_string_equal(text, cases[i].digest);
    }
}

static void a_million_letters_in_any_pieces(void **state)
{
    static const size_t pieces[] = {1000000, 64, 1013};
    char *data = malloc(1000000);
    char text[CKV_SHA256_TEXT_SIZE];
    (void)state;
    memset(data, 'a', 1000000);
    for (size_t i = 0; i < TEST_COUNT_OF(pieces); i++) {
        digest(NULL, data, 1000000, pieces[i], text);
        assert_string_equal(
            text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }
    free(data);
}

static void memory_comes_from_the_hook_and_running_out_is_a_status(void **state)
{
    struct test_alloc counting;
    struct ckv_sha256 *sha = (struct ckv_sha256 *)(void *)&counting;
    struct ckv_error error;
    char text[CKV_SHA256_TEXT_SIZE];
    (void)state;
    test_alloc_init(&counting);
    digest(&counting.alloc, "abc", 3, 3, text);
    assert_true(counting.call_count > 0);
    counting.fail_at = counting.call_count + 1;
    assert_status(ckv_sha256_create(&counting.alloc, &sha, &error), CKV_NOMEM);
    assert_null(sha);
    assert_true(test_alloc_clean(&counting));
    test_alloc_deinit(&counting);
    ckv_sha256_destroy(NULL);
}

static void a_golden_file_has_its_digest(void **state)
{
    char text[CKV_SHA256_TEXT_SIZE];
    (void)state;
    test_sha256_file(test_data_path(COLDKV_TEST_DATA, "two-kv-zero.mlxkv"), text);
    assert_string_equal(
        text, "951ab341e525514933a4a67c2b41d081add719e0f7b508b2825bf09e5634bb0c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(a_million_letters_in_any_pieces),
        cmocka_unit_test(memory_comes_from_the_hook_and_running_out_is_a_status),
        cmocka_unit_test(a_golden_file_has_its_digest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

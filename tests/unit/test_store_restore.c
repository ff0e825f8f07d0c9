/* Restoring: candidates, comparison with what was read, failures of every kind (S26, S30,
 * S32-S34, S37, S60, S61). */
#include "lib/store_world.h"
#include "lib/unit.h"

#include <coldkv/writer.h>
#include <stdlib.h>
#include <string.h>

#define T TEST_TOKENS
#define BASE TEST_FINGERPRINT "/base"

struct fixture {
    struct test_world world;
    struct ckv_store *store;
    struct test_target target;
    struct ckv_restored restored;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    test_world_init(&f->world);
    f->store = test_world_open(&f->world);
    test_target_init(&f->target);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int result;
    test_target_deinit(&f->target);
    ckv_store_close(f->store);
    result = test_world_deinit(&f->world);
    free(f);
    return result;
}

static enum ckv_status restore(struct fixture *f, const uint32_t *prompt, size_t length)
{
    ckv_error_clear(&f->world.error);
    return ckv_store_restore(f->store, "", prompt, length, &f->target.target,
                             &f->restored, &f->world.error);
}

/* Two entries that serve T(1, 2, 3, 4, 9): first the longer, then the shorter. */
static void put_two(struct fixture *f)
{
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2));
}

/* The name of the entry with so many tokens: its file ends with that many rows. */
static const char *name_of(struct fixture *f, uint64_t token_count)
{
    static char name[CKV_IO_NAME_MAX + 1];
    struct test_names names;
    struct ckv_io_dir dir = test_world_dir(&f->world, BASE);
    test_names_init(&names, test_memory_io_table(f->world.memory), dir);
    name[0] = '\0';
    for (size_t i = 0; i < names.count; i++) {
        struct ckv_io_stat stat = test_world_stat(&f->world, BASE, names.names[i]);
        if (stat.size_bytes == 16384 * 2 + token_count * 32)
            strcpy(name, names.names[i]);
    }
    test_names_deinit(&names);
    test_world_close_dir(&f->world, &dir);
    assert_true(name[0] != '\0');
    return name;
}

#define LONGER 4
#define SHORTER 2

static void a_miss_is_notfound_and_counted(void **state)
{
    struct fixture *f = *state;
    put_two(f);
    assert_status(restore(f, T(9, 9)), CKV_NOTFOUND);
    assert_status(restore(f, T(1)), CKV_NOTFOUND);
    assert_status(restore(f, NULL, 0), CKV_NOTFOUND);
    assert_true(f->world.error.text[0] != '\0');
    assert_int_equal(test_stats(f->store).misses, 3);
    assert_int_equal(test_stats(f->store).restores, 0);
    assert_int_equal(f->target.prepared, 0);
}

static void s61_a_miss_allocates_nothing_and_reads_nothing(void **state)
{
    struct fixture *f = *state;
    size_t allocations;
    size_t calls;
    put_two(f);
    allocations = f->world.alloc.call_count;
    calls = f->world.faulty.counts[TEST_CALL_ANY];
    assert_status(restore(f, T(9, 9)), CKV_NOTFOUND);
    assert_int_equal(test_find(f->store, "", T(1, 2, 3), NULL, NULL), 2);
    assert_int_equal(test_find(f->store, "unknown", T(1, 2, 3), NULL, NULL), 0);
    assert_int_equal(f->world.alloc.call_count, allocations);
    assert_int_equal(f->world.faulty.counts[TEST_CALL_ANY], calls);
}

static void a_hit_tells_what_was_done(void **state)
{
    struct fixture *f = *state;
    struct ckv_store_stats stats;
    put_two(f);
    assert_ok(restore(f, T(1, 2, 3, 4, 9)), f->world.error);
    assert_true(f->target.equal);
    assert_int_equal(f->target.dropped, 0);
    assert_int_equal(f->restored.prefix, 4);
    assert_int_equal(f->restored.token_count, 4);
    assert_int_equal(f->restored.tried, 1);
    assert_int_equal(f->restored.read_bytes, 256);
    stats = test_stats(f->store);
    assert_int_equal(stats.restores, 1);
    assert_int_equal(stats.restored_bytes, 256);
    assert_int_equal(stats.restore_failures, 0);
    assert_int_equal(stats.misses, 0);
}

static void s60_an_equal_prompt_reuses_all_but_one_token(void **state)
{
    struct fixture *f = *state;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    assert_ok(restore(f, T(1, 2, 3, 4)), f->world.error);
    assert_int_equal(f->restored.prefix, 3);
    assert_int_equal(f->restored.token_count, 4);
}

static void accept_is_optional(void **state)
{
    struct fixture *f = *state;
    put_two(f);
    f->target.target.accept = NULL;
    assert_ok(restore(f, T(1, 2, 3, 4, 9)), f->world.error);
    assert_int_equal(f->restored.prefix, 4);
}

static void out_and_error_are_optional(void **state)
{
    struct fixture *f = *state;
    put_two(f);
    assert_status(ckv_store_restore(f->store, NULL, T(1, 2, 3, 4, 9), &f->target.target,
                                    NULL, NULL),
                  CKV_OK);
    assert_status(
        ckv_store_restore(f->store, NULL, T(9, 9), &f->target.target, NULL, NULL),
        CKV_NOTFOUND);
    assert_status(ckv_store_restore(NULL, NULL, T(9, 9), &f->target.target, NULL, NULL),
                  CKV_INVALID);
    assert_status(ckv_store_restore(f->store, NULL, T(9, 9), NULL, NULL, NULL),
                  CKV_INVALID);
    f->target.target.prepare = NULL;
    assert_status(
        ckv_store_restore(f->store, NULL, T(9, 9), &f->target.target, NULL, NULL),
        CKV_INVALID);
}

static void s32_a_vanished_file_is_a_miss_and_the_next_is_tried(void **state)
{
    struct fixture *f = *state;
    put_two(f);
    test_world_remove(&f->world, BASE, name_of(f, LONGER));
    assert_ok(restore(f, T(1, 2, 3, 4, 9)), f->world.error);
    assert_int_equal(f->restored.prefix, 2);
    assert_int_equal(f->restored.tried, 2);
    assert_int_equal(test_stats(f->store).entries, 1);
    assert_int_equal(test_stats(f->store).restore_failures, 1);
    assert_int_equal(test_stats(f->store).set_aside, 0);
    test_world_remove(&f->world, BASE, name_of(f, SHORTER));
    assert_status(restore(f, T(1, 2, 3, 4, 9)), CKV_NOTFOUND);
    assert_int_equal(test_stats(f->store).entries, 0);
}

static void a_vanished_folder_is_a_miss(void **state)
{
    struct fixture *f = *state;
    put_two(f);
    test_world_rename(&f->world, TEST_FINGERPRINT, "base", "elsewhere");
    assert_status(restore(f, T(1, 2, 3, 4, 9)), CKV_NOTFOUND);
    assert_int_equal(test_stats(f->store).entries, 0);
}

static void s30_flipped_tensor_bytes_give_nothing_and_set_the_file_aside(void **state)
{
    struct fixture *f = *state;
    put_two(f);
    test_world_flip(&f->world, BASE, name_of(f, LONGER), 32768 + 5);
    assert_ok(restore(f, T(1, 2, 3, 4, 9)), f->world.error);
    assert_true(f->target.equal);
    assert_int_equal(f->restored.prefix, 2);
    assert_int_equal(f->target.prepared, 2);
    assert_int_equal(f->target.dropped, 1);
    assert_int_equal(f->target.accepted, 1);
    assert_int_equal(test_world_count(&f->world, BASE, ".bad"), 1);
    assert_int_equal(test_stats(f->store).set_aside, 1);
    assert_int_equal(test_stats(f->store).restores, 1);
    assert_int_equal(test_stats(f->store).restored_bytes, 128);
    assert_true(test_log_contains(&f->world.log, "store.set_aside", "hash"));
    assert_int_equal(test_find(f->store, "", T(1, 2, 3, 4, 9), NULL, NULL), 2);
}

static void s33_a_corrupt_header_is_set_aside(void **state)
{
    struct fixture *f = *state;
    put_two(f);
    test_world_flip(&f->world, BASE, name_of(f, LONGER), 40);
    assert_ok(restore(f, T(1, 2, 3, 4, 9)), f->world.error);
    assert_int_equal(f->restored.prefix, 2);
    assert_int_equal(f->target.prepared, 1);
    assert_int_equal(test_world_count(&f->world, BASE, ".bad"), 1);
}

static void s37_what_the_engine_calls_corrupt_is_never_offered_again(void **state)
{
    struct fixture *f = *state;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    f->target.accept_status = CKV_CORRUPT;
    assert_status(restore(f, T(1, 2, 3, 4, 9)), CKV_NOTFOUND);
    assert_int_equal(f->target.dropped, 0);
    assert_int_equal(test_world_count(&f->world, BASE, ".bad"), 1);
    assert_true(
        test_log_contains(&f->world.log, "store.set_aside", "accept answers as told"));
    ckv_store_close(f->store);
    f->store = test_world_open(&f->world);
    f->target.accept_status = CKV_OK;
    assert_status(restore(f, T(1, 2, 3, 4, 9)), CKV_NOTFOUND);
}

static void other_answers_of_the_engine_leave_the_entry(void **state)
{
    static const enum ckv_status answers[] = {CKV_REFUSED,   CKV_ENGINE,   CKV_NOMEM,
                                              CKV_CANCELLED, CKV_NOTFOUND, CKV_FOREIGN,
                                              CKV_VERSION};
    struct fixture *f = *state;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    for (size_t i = 0; i < TEST_COUNT_OF(answers); i++) {
        f->target.prepare_status = answers[i];
        f->target.accept_status = CKV_OK;
        assert_status(restore(f, T(1, 2, 3, 4, 9)), CKV_NOTFOUND);
        assert_non_null(strstr(f->world.error.text, "prepare answers"));
        f->target.prepare_status = CKV_OK;
        f->target.accept_status = answers[i];
        assert_status(restore(f, T(1, 2, 3, 4, 9)), CKV_NOTFOUND);
        assert_non_null(strstr(f->world.error.text, "accept answers"));
    }
    assert_int_equal(f->target.dropped, 0);
    assert_int_equal(test_stats(f->store).entries, 1);
    assert_int_equal(test_stats(f->store).restore_failures, 2 * TEST_COUNT_OF(answers));
    f->target.accept_status = CKV_OK;
    assert_ok(restore(f, T(1, 2, 3, 4, 9)), f->world.error);
}

static void an_engine_that_saw_no_bytes_proves_no_corruption(void **state)
{
    struct fixture *f = *state;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    f->target.prepare_status = CKV_CORRUPT;
    assert_status(restore(f, T(1, 2, 3, 4, 9)), CKV_NOTFOUND);
    assert_int_equal(test_stats(f->store).set_aside, 0);
    assert_int_equal(test_stats(f->store).entries, 1);
}

static void a_refusing_engine_gets_the_next_candidate(void **state)
{
    struct fixture *f = *state;
    put_two(f);
    f->target.accept_status = CKV_REFUSED;
    assert_status(restore(f, T(1, 2, 3, 4, 9)), CKV_NOTFOUND);
    assert_int_equal(f->target.prepared, 2);
    assert_int_equal(f->target.accepted, 2);
}

static void a_cancelled_restore_tries_no_other(void **state)
{
    struct fixture *f = *state;
    put_two(f);
    f->target.prepare_status = CKV_CANCELLED;
    assert_status(restore(f, T(1, 2, 3, 4, 9)), CKV_NOTFOUND);
    assert_int_equal(f->target.prepared, 1);
    assert_int_equal(test_stats(f->store).entries, 2);
}

static void at_most_three_entries_are_tried(void **state)
{
    struct fixture *f = *state;
    for (uint32_t i = 0; i < 5; i++)
        test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 100 + i));
    f->target.prepare_status = CKV_REFUSED;
    assert_status(restore(f, T(1, 2, 3, 9)), CKV_NOTFOUND);
    assert_int_equal(f->target.prepared, 3);
    assert_int_equal(test_stats(f->store).entries, 5);
}

static void s30_a_sink_that_fails_is_dropped_once(void **state)
{
    struct fixture *f = *state;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    f->target.fail_took = 2;
    assert_status(restore(f, T(1, 2, 3, 4, 9)), CKV_NOTFOUND);
    assert_int_equal(f->target.dropped, 1);
    assert_int_equal(f->target.accepted, 0);
    assert_int_equal(test_stats(f->store).entries, 1);
    assert_int_equal(test_stats(f->store).restores, 0);
    assert_int_equal(test_stats(f->store).restored_bytes, 0);
}

static void s34_read_errors_leave_the_entry(void **state)
{
    static const int errors[] = {5 /* EIO */, 13 /* EACCES */, 24 /* EMFILE */, 12};
    static const enum test_call calls[] = {TEST_CALL_OPEN_FILE, TEST_CALL_READ,
                                           TEST_CALL_STAT_FILE, TEST_CALL_OPEN_DIR,
                                           TEST_CALL_STAT_NAME};
    struct fixture *f = *state;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    for (size_t i = 0; i < TEST_COUNT_OF(errors); i++) {
        for (size_t c = 0; c < TEST_COUNT_OF(calls); c++) {
            test_faulty_io_reset(&f->world.faulty);
            test_faulty_io_fail(
                &f->world.faulty,
                &(struct test_fault){.call = calls[c], .nth = 1, .os_errno = errors[i]});
            assert_status(restore(f, T(1, 2, 3, 4, 9)), CKV_NOTFOUND);
            assert_int_equal(test_stats(f->store).entries, 1);
            assert_int_equal(test_world_count(&f->world, BASE, ".mlxkv"), 1);
        }
    }
    assert_int_equal(test_stats(f->store).set_aside, 0);
    assert_ok(restore(f, T(1, 2, 3, 4, 9)), f->world.error);
}

static void a_touch_that_fails_is_only_logged(void **state)
{
    struct fixture *f = *state;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    test_faulty_io_fail(
        &f->world.faulty,
        &(struct test_fault){.call = TEST_CALL_SET_MTIME, .nth = 1, .os_errno = 1});
    assert_ok(restore(f, T(1, 2, 3, 4, 9)), f->world.error);
    assert_int_equal(test_log_count(&f->world.log, "store.touch_failed"), 1);
}

static void a_restore_makes_the_file_the_newest(void **state)
{
    struct fixture *f = *state;
    int64_t before;
    int64_t newest;
    put_two(f);
    before = test_world_stat(&f->world, BASE, name_of(f, LONGER)).mtime_ns;
    newest = test_world_stat(&f->world, BASE, name_of(f, SHORTER)).mtime_ns;
    assert_true(newest > before);
    assert_ok(restore(f, T(1, 2, 3, 4, 9)), f->world.error);
    assert_int_equal(test_world_stat(&f->world, BASE, name_of(f, LONGER)).mtime_ns,
                     newest + 1000);
    test_clock_advance(&f->world.clock, TEST_NS_PER_S);
    assert_ok(restore(f, T(1, 2, 9)), f->world.error);
    assert_int_equal(test_world_stat(&f->world, BASE, name_of(f, SHORTER)).mtime_ns,
                     test_clock_realtime(&f->world.clock));
}

/* Puts a file with another content under the name of an indexed entry. */
static void replace(struct fixture *f, const char *name,
                    const struct test_entry_options *made_of)
{
    struct test_entry *made = test_entry_create(made_of);
    struct ckv_io_dir dir = test_world_dir(&f->world, BASE);
    struct ckv_writer_options options;
    ckv_writer_options_init(&options);
    options.replace = true;
    assert_ok(ckv_save(test_memory_io_table(f->world.memory), dir, name, &made->entry,
                       &made->source, &options, &f->world.error),
              f->world.error);
    test_world_close_dir(&f->world, &dir);
    test_entry_destroy(made);
}

static void s26_identity_is_compared_with_what_was_read(void **state)
{
    static const struct test_entry_options others[] = {
        {.token_count = 4, .fingerprint = "fp-x"},
        {.token_count = 4, .tokenizer_hash = "tok-x"},
        {.token_count = 4, .ns = "x"},
        {.token_count = 4, .no_meta = true},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < TEST_COUNT_OF(others); i++) {
        struct test_entry_options made_of = others[i];
        uint32_t tokens[4] = {1, 2, 3, 4};
        made_of.tokens = tokens;
        test_put(&f->world, f->store, "", CKV_CACHE_KV, tokens, 4);
        replace(f, test_world_only(&f->world, BASE, ".mlxkv"), &made_of);
        assert_status(restore(f, T(1, 2, 3, 4, 9)), CKV_NOTFOUND);
        assert_int_equal(f->target.prepared, 0);
        assert_int_equal(test_stats(f->store).entries, 0);
        assert_int_equal(test_stats(f->store).set_aside, 0);
        assert_int_equal(test_world_count(&f->world, BASE, ".mlxkv"), 1);
        test_world_remove(&f->world, BASE, test_world_only(&f->world, BASE, ".mlxkv"));
    }
    assert_int_equal(test_stats(f->store).foreign, TEST_COUNT_OF(others));
}

static void s26_tokens_are_compared_with_what_was_read(void **state)
{
    struct fixture *f = *state;
    uint32_t tokens[4] = {1, 2, 7, 4};
    static const enum ckv_cache_kind ssm = CKV_CACHE_SSM;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    replace(f, test_world_only(&f->world, BASE, ".mlxkv"),
            &(struct test_entry_options){.token_count = 4, .tokens = tokens});
    assert_status(restore(f, T(1, 2, 3, 4, 9)), CKV_NOTFOUND);
    assert_int_equal(f->target.prepared, 0);
    /* The same tokens, but it cannot be cut any more. */
    test_world_remove(&f->world, BASE, test_world_only(&f->world, BASE, ".mlxkv"));
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    tokens[2] = 3;
    replace(f, test_world_only(&f->world, BASE, ".mlxkv"),
            &(struct test_entry_options){
                .token_count = 4, .tokens = tokens, .kinds = &ssm, .kind_count = 1});
    assert_status(restore(f, T(1, 2, 3, 4)), CKV_NOTFOUND);
    assert_int_equal(f->target.prepared, 0);
    /* Shorter than the index remembers. */
    test_world_remove(&f->world, BASE, test_world_only(&f->world, BASE, ".mlxkv"));
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    replace(f, test_world_only(&f->world, BASE, ".mlxkv"),
            &(struct test_entry_options){.token_count = 2, .tokens = tokens});
    assert_status(restore(f, T(1, 2, 3, 4)), CKV_NOTFOUND);
    assert_int_equal(f->target.prepared, 0);
}

static void a_file_that_lost_trust_is_not_read(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_dir dir;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    dir = test_world_dir(&f->world, BASE);
    test_memory_io_set_owner(f->world.memory, dir,
                             test_world_only(&f->world, BASE, ".mlxkv"), 7, 0666);
    test_world_close_dir(&f->world, &dir);
    assert_status(restore(f, T(1, 2, 3, 4, 9)), CKV_NOTFOUND);
    assert_int_equal(f->target.prepared, 0);
    assert_int_equal(test_stats(f->store).entries, 0);
}

static void remove_all(void *ctx)
{
    struct fixture *f = ctx;
    struct ckv_candidate found;
    size_t count;
    assert_ok(ckv_store_find(f->store, "", T(1, 2, 3, 4, 9), &found, 1, &count,
                             &f->world.error),
              f->world.error);
    assert_ok(ckv_store_remove(f->store, found.id, &f->world.error), f->world.error);
}

static void an_entry_removed_during_its_restore_is_read_to_the_end(void **state)
{
    struct fixture *f = *state;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    f->target.on_prepare = remove_all;
    f->target.on_prepare_ctx = f;
    assert_ok(restore(f, T(1, 2, 3, 4, 9)), f->world.error);
    assert_true(f->target.equal);
    assert_int_equal(test_stats(f->store).entries, 0);
}

static void find_checks_its_arguments(void **state)
{
    struct fixture *f = *state;
    struct ckv_candidate out[64];
    size_t count = 7;
    assert_status(ckv_store_find(NULL, "", T(1), out, 1, &count, NULL), CKV_INVALID);
    assert_status(ckv_store_find(f->store, "", NULL, 1, out, 1, &count, NULL),
                  CKV_INVALID);
    assert_status(ckv_store_find(f->store, "", T(1), NULL, 1, &count, NULL), CKV_INVALID);
    assert_status(ckv_store_find(f->store, "", T(1), out, 1, NULL, NULL), CKV_INVALID);
    put_two(f);
    assert_status(ckv_store_find(f->store, "", T(1, 2, 3), NULL, 0, &count, NULL),
                  CKV_OK);
    assert_int_equal(count, 0);
    assert_status(ckv_store_find(f->store, "", T(1, 2, 3), out, 64, &count, NULL),
                  CKV_OK);
    assert_int_equal(count, 2);
    assert_int_equal(out[0].tensor_bytes, 128); /* fewer bytes at the same prefix */
    assert_int_equal(out[0].token_count, 2);
    assert_int_equal(out[1].tensor_bytes, 256);
    assert_false(ckv_store_covers(f->store, "", NULL, 3));
    assert_false(ckv_store_covers(NULL, "", T(1)));
    assert_false(ckv_store_covers(f->store, "", (uint32_t[]){1}, 0));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_miss_is_notfound_and_counted),
        TEST(s61_a_miss_allocates_nothing_and_reads_nothing),
        TEST(a_hit_tells_what_was_done),
        TEST(s60_an_equal_prompt_reuses_all_but_one_token),
        TEST(accept_is_optional),
        TEST(out_and_error_are_optional),
        TEST(s32_a_vanished_file_is_a_miss_and_the_next_is_tried),
        TEST(a_vanished_folder_is_a_miss),
        TEST(s30_flipped_tensor_bytes_give_nothing_and_set_the_file_aside),
        TEST(s33_a_corrupt_header_is_set_aside),
        TEST(s37_what_the_engine_calls_corrupt_is_never_offered_again),
        TEST(other_answers_of_the_engine_leave_the_entry),
        TEST(an_engine_that_saw_no_bytes_proves_no_corruption),
        TEST(a_refusing_engine_gets_the_next_candidate),
        TEST(a_cancelled_restore_tries_no_other),
        TEST(at_most_three_entries_are_tried),
        TEST(s30_a_sink_that_fails_is_dropped_once),
        TEST(s34_read_errors_leave_the_entry),
        TEST(a_touch_that_fails_is_only_logged),
        TEST(a_restore_makes_the_file_the_newest),
        TEST(s26_identity_is_compared_with_what_was_read),
        TEST(s26_tokens_are_compared_with_what_was_read),
        TEST(a_file_that_lost_trust_is_not_read),
        TEST(an_entry_removed_during_its_restore_is_read_to_the_end),
        TEST(find_checks_its_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Storing entries: spec M27-M36 as the design has them, steps, metadata, refusals. */
#include "lib/store_world.h"
#include "lib/unit.h"

#include <coldkv/reader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define T TEST_TOKENS
#define BASE TEST_FINGERPRINT "/base"

struct fixture {
    struct test_world world;
    struct ckv_store *store;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    test_world_init(&f->world);
    f->store = test_world_open(&f->world);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int result;
    ckv_store_close(f->store);
    result = test_world_deinit(&f->world);
    free(f);
    return result;
}

static void reopen(struct fixture *f)
{
    ckv_store_close(f->store);
    f->store = test_world_open(&f->world);
}

static void m27_stored_found_and_restored_by_a_new_store(void **state)
{
    struct fixture *f = *state;
    struct test_target target;
    struct ckv_restored restored;
    uint64_t length;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    reopen(f);
    assert_int_equal(test_stats(f->store).entries, 1);
    assert_int_equal(test_stats(f->store).longest_prefix_tokens, 4);
    assert_int_equal(test_find(f->store, "", T(1, 2, 3, 4, 5), NULL, &length), 4);
    assert_int_equal(length, 4);
    test_target_init(&target);
    assert_ok(ckv_store_restore(f->store, "", T(1, 2, 3, 4, 5), &target.target, &restored,
                                &f->world.error),
              f->world.error);
    assert_true(target.equal);
    assert_int_equal(restored.prefix, 4);
    assert_int_equal(restored.token_count, 4);
    assert_int_equal(restored.tried, 1);
    assert_int_equal(restored.read_bytes, 2 * 2 * 4 * 8 * 2);
    test_target_deinit(&target);
    assert_true(ckv_store_covers(f->store, "", T(1, 2, 3, 4)));
    assert_true(ckv_store_covers(f->store, "", T(1, 2, 3)));
    assert_false(ckv_store_covers(f->store, "", T(1, 2, 3, 4, 5)));
    assert_false(ckv_store_covers(f->store, "other", T(1, 2, 3, 4)));
}

static void m28_shorter_entry_stays_beside_the_longer(void **state)
{
    struct fixture *f = *state;
    uint64_t length;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2));
    assert_int_equal(test_stats(f->store).entries, 2);
    assert_int_equal(test_find(f->store, "", T(1, 2, 3, 4, 5), NULL, &length), 4);
    assert_int_equal(length, 4);
    assert_int_equal(test_find(f->store, "", T(1, 2, 9), NULL, NULL), 2);
    assert_int_equal(test_find(f->store, "other", T(1, 2, 9), NULL, NULL), 0);
    assert_int_equal(test_find(f->store, "", T(1, 2), NULL, NULL), 1);
    assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 9)), 2);
}

static void m30_longer_trimmable_entry_replaces_its_prefix(void **state)
{
    struct fixture *f = *state;
    struct ckv_stored stored;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    stored = test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4, 5, 6));
    assert_int_equal(stored.superseded_count, 1);
    assert_int_equal(test_stats(f->store).superseded, 1);
    assert_int_equal(test_stats(f->store).entries, 1);
    assert_int_equal(test_world_count(&f->world, BASE, ""), 1);
    assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3, 9)), 3);
}

static void m31_entry_over_the_cap_is_refused_up_front(void **state)
{
    struct fixture *f = *state;
    struct ckv_stored stored;
    ckv_store_close(f->store);
    f->world.options.cap_bytes = 64;
    f->store = test_world_open(&f->world);
    assert_status(test_try_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2), &stored),
                  CKV_FULL);
    assert_non_null(strstr(f->world.error.text, "64"));
    assert_int_equal(test_stats(f->store).entries, 0);
    assert_int_equal(test_stats(f->store).put_failures, 1);
    assert_int_equal(test_stats(f->store).refused_full, 1);
    assert_false(test_world_has_dir(&f->world, BASE));
    assert_int_equal(test_log_count(&f->world.log, "store.put_failed"), 1);
}

static void m32_untrimmable_longer_entry_keeps_the_prefix(void **state)
{
    struct fixture *f = *state;
    uint64_t length;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3, 4));
    test_put(&f->world, f->store, "", CKV_CACHE_SSM, T(1, 2, 3, 4, 5, 6));
    assert_int_equal(test_stats(f->store).entries, 2);
    assert_int_equal(test_find(f->store, "", T(1, 2, 3, 4, 5), NULL, &length), 4);
    assert_int_equal(length, 4);
    reopen(f);
    assert_int_equal(test_stats(f->store).entries, 2);
    assert_int_equal(test_find(f->store, "", T(1, 2, 3, 4, 5), NULL, &length), 4);
    assert_int_equal(length, 4);
    assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3, 4, 5, 6, 7)), 6);
}

static void m33_turboquant_serves_a_shorter_prefix(void **state)
{
    struct fixture *f = *state;
    test_put(&f->world, f->store, "", CKV_CACHE_TURBOQUANT, T(1, 2, 3, 4));
    assert_int_equal(test_find(f->store, "", T(1, 2, 3, 9), NULL, NULL), 3);
    reopen(f);
    assert_int_equal(test_find(f->store, "", T(1, 2, 3, 9), NULL, NULL), 3);
    assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3, 9)), 3);
}

static void m34_same_tokens_twice_are_one_entry(void **state)
{
    struct fixture *f = *state;
    struct test_entry *made =
        test_entry_with_tokens(CKV_CACHE_SSM, (const uint32_t[]){1, 2, 3}, 3);
    struct ckv_stored first =
        test_put(&f->world, f->store, "", CKV_CACHE_SSM, T(1, 2, 3));
    struct ckv_stored second =
        test_put(&f->world, f->store, "", CKV_CACHE_SSM, T(1, 2, 3));
    struct ckv_put *put;
    assert_true(first.written_bytes > 0);
    assert_int_equal(first.written_bytes, first.file_bytes);
    assert_int_equal(second.written_bytes, 0);
    assert_int_equal(second.id, first.id);
    assert_int_equal(test_stats(f->store).puts, 1);
    /* A put that is asked for step by step writes, and replaces the first. */
    assert_ok(ckv_put_begin(f->store, "", &made->entry, &made->source, NULL, &put,
                            &f->world.error),
              f->world.error);
    assert_ok(ckv_put_commit(put, &second, &f->world.error), f->world.error);
    assert_int_equal(second.superseded_count, 1);
    assert_int_equal(test_stats(f->store).entries, 1);
    assert_int_equal(test_world_count(&f->world, BASE, ""), 1);
    test_entry_destroy(made);
}

static void same_tokens_are_written_again_when_the_file_is_gone(void **state)
{
    struct fixture *f = *state;
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3));
    test_world_remove(&f->world, BASE, test_world_only(&f->world, BASE, ".mlxkv"));
    assert_false(ckv_store_covers(f->store, "", T(1, 2, 3)));
    assert_int_equal(test_stats(f->store).entries, 0);
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3));
    test_world_remove(&f->world, BASE, test_world_only(&f->world, BASE, ".mlxkv"));
    assert_true(
        test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2, 3)).written_bytes > 0);
    assert_int_equal(test_stats(f->store).entries, 1);
    assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3, 4)), 3);
}

struct gate {
    struct fixture *fixture;
    enum ckv_writer_step steps[32];
    size_t calls;
    size_t names_at_first; /* in the fingerprint's folder */
    enum ckv_status answer;
};

static enum ckv_status run_gate(void *ctx, enum ckv_writer_step next)
{
    struct gate *gate = ctx;
    if (gate->calls == 0)
        gate->names_at_first =
            test_world_count(&gate->fixture->world, TEST_FINGERPRINT, "");
    if (gate->calls < 32)
        gate->steps[gate->calls] = next;
    gate->calls++;
    return gate->answer;
}

static void put_with_gate(struct fixture *f, struct gate *gate)
{
    static const enum ckv_cache_kind kinds[2] = {CKV_CACHE_KV, CKV_CACHE_KV};
    struct test_entry_options made_of = {
        .token_count = 4, .kinds = kinds, .kind_count = 2, .no_meta = true};
    struct test_entry *made = test_entry_create(&made_of);
    struct ckv_put_options options;
    gate->fixture = f;
    ckv_put_options_init(&options);
    options.gate = run_gate;
    options.gate_ctx = gate;
    assert_ok(ckv_store_put(f->store, "", &made->entry, &made->source, &options, NULL,
                            &f->world.error),
              f->world.error);
    test_entry_destroy(made);
}

static void m35_gate_is_asked_before_every_step(void **state)
{
    static const enum ckv_writer_step expected[] = {
        CKV_STEP_OPEN,   CKV_STEP_COPY, CKV_STEP_COPY,    CKV_STEP_COPY,    CKV_STEP_COPY,
        CKV_STEP_HEADER, CKV_STEP_SYNC, CKV_STEP_PUBLISH, CKV_STEP_SYNC_DIR};
    struct fixture *f = *state;
    struct gate gate = {.answer = CKV_OK};
    put_with_gate(f, &gate);
    assert_int_equal(gate.names_at_first, 0);
    assert_int_equal(gate.calls, TEST_COUNT_OF(expected));
    assert_memory_equal(gate.steps, expected, sizeof expected);
    assert_int_equal(test_stats(f->store).entries, 1);
}

static void m36_failing_gate_stops_nothing(void **state)
{
    struct fixture *f = *state;
    struct gate gate = {.answer = CKV_CANCELLED};
    put_with_gate(f, &gate);
    assert_int_equal(gate.calls, 9);
    assert_int_equal(test_stats(f->store).entries, 1);
    assert_int_equal(test_find(f->store, "", T(1000, 1001, 1002, 7), NULL, NULL), 3);
}

static struct ckv_reader *open_only(struct fixture *f, const char *path)
{
    struct ckv_io_dir dir = test_world_dir(&f->world, path);
    struct ckv_reader *reader;
    assert_ok(ckv_reader_open(test_memory_io_table(f->world.memory), dir,
                              test_world_only(&f->world, path, ".mlxkv"), NULL, &reader,
                              &f->world.error),
              f->world.error);
    test_world_close_dir(&f->world, &dir);
    return reader;
}

static void metadata_is_the_stores_in_its_order(void **state)
{
    static const char *const expected[4] = {"test-model", TEST_FINGERPRINT, "tok-test",
                                            ""};
    struct fixture *f = *state;
    struct test_entry_options made_of = {
        .token_count = 2, .fingerprint = "other", .ns = "other", .created_at_ms = 5};
    struct test_entry *made = test_entry_create(&made_of);
    struct ckv_reader *reader;
    const struct ckv_entry *entry;
    assert_ok(ckv_store_put(f->store, NULL, &made->entry, &made->source, NULL, NULL,
                            &f->world.error),
              f->world.error);
    reader = open_only(f, BASE);
    entry = &ckv_reader_header(reader)->entry;
    assert_int_equal(entry->meta_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(entry->meta[i].key, i);
        assert_string_equal(entry->meta[i].value, expected[i]);
    }
    assert_int_equal(entry->created_at_ms, TEST_CLOCK_START_NS / TEST_NS_PER_MS);
    assert_true(ckv_reader_header(reader)->canonical);
    ckv_reader_close(reader);
    assert_string_equal(made->entry.meta[1].value, "other"); /* only read */
    assert_int_equal(made->entry.created_at_ms, 5);
    test_entry_destroy(made);
}

static void namespaces_are_kept_apart(void **state)
{
    struct fixture *f = *state;
    struct ckv_restored restored;
    struct test_target target;
    test_put(&f->world, f->store, "alice", CKV_CACHE_KV, T(1, 2, 3));
    test_put(&f->world, f->store, "bob", CKV_CACHE_KV, T(1, 2));
    assert_int_equal(test_find(f->store, "alice", T(1, 2, 3, 4), NULL, NULL), 3);
    assert_int_equal(test_find(f->store, "bob", T(1, 2, 3, 4), NULL, NULL), 2);
    assert_int_equal(test_find(f->store, "", T(1, 2, 3, 4), NULL, NULL), 0);
    assert_int_equal(test_find(f->store, "carol", T(1, 2, 3, 4), NULL, NULL), 0);
    assert_int_equal(test_world_count(&f->world, TEST_FINGERPRINT, ""), 2);
    reopen(f);
    test_target_init(&target);
    assert_ok(ckv_store_restore(f->store, "bob", T(1, 2, 3, 4), &target.target, &restored,
                                &f->world.error),
              f->world.error);
    assert_string_equal(target.ns, "bob");
    assert_string_equal(target.model_id, "test-model");
    assert_int_equal(restored.prefix, 2);
    test_target_deinit(&target);
}

static void same_tokens_in_two_namespaces_do_not_supersede(void **state)
{
    struct fixture *f = *state;
    test_put(&f->world, f->store, "a", CKV_CACHE_KV, T(1, 2));
    test_put(&f->world, f->store, "b", CKV_CACHE_KV, T(1, 2, 3));
    assert_int_equal(test_stats(f->store).entries, 2);
}

static void entries_that_break_a_rule_are_refused(void **state)
{
    struct fixture *f = *state;
    struct test_entry *made =
        test_entry_with_tokens(CKV_CACHE_KV, (const uint32_t[]){1, 2, 3}, 3);
    struct test_entry_options empty = {.no_tokens = true};
    struct test_entry *none = test_entry_create(&empty);
    made->entry.token_count = 2; /* the cache has seen 3 */
    assert_status(ckv_store_put(f->store, "", &made->entry, &made->source, NULL, NULL,
                                &f->world.error),
                  CKV_FOREIGN);
    made->entry.token_count = 3;
    made->entry.caches[0].tensor_count = 1;
    assert_status(ckv_store_put(f->store, "", &made->entry, &made->source, NULL, NULL,
                                &f->world.error),
                  CKV_CORRUPT);
    made->entry.caches[0].tensor_count = 2;
    assert_status(ckv_store_put(f->store, "\xff", &made->entry, &made->source, NULL, NULL,
                                &f->world.error),
                  CKV_CORRUPT); /* not UTF-8: could never be found again */
    assert_status(ckv_store_put(f->store, "", &none->entry, &none->source, NULL, NULL,
                                &f->world.error),
                  CKV_FOREIGN);
    assert_int_equal(test_world_count(&f->world, TEST_FINGERPRINT, ""), 0);
    assert_int_equal(test_stats(f->store).put_failures, 4);
    test_entry_destroy(made);
    test_entry_destroy(none);
}

static void steps_are_told_and_abort_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    struct test_entry *made =
        test_entry_with_tokens(CKV_CACHE_KV, (const uint32_t[]){1, 2, 3}, 3);
    for (size_t steps = 0; steps <= 7; steps++) {
        struct ckv_put *put;
        enum ckv_writer_step next = CKV_STEP_OPEN;
        assert_ok(ckv_put_begin(f->store, "", &made->entry, &made->source, NULL, &put,
                                &f->world.error),
                  f->world.error);
        assert_int_equal(ckv_put_next(put), CKV_STEP_OPEN);
        for (size_t i = 0; i < steps; i++) {
            next = ckv_put_next(put);
            assert_ok(ckv_put_step(put, &f->world.error), f->world.error);
        }
        if (steps > 0)
            assert_int_equal(test_world_count(&f->world, BASE, ""), 1);
        if (steps < 7) {
            assert_int_equal(test_stats(f->store).entries, 0);
            ckv_put_abort(put);
            assert_int_equal(test_world_count(&f->world, BASE, ""), 0);
            continue;
        }
        /* OPEN, COPY x 2, HEADER, SYNC, PUBLISH, SYNC_DIR: durable, abort is too late */
        assert_int_equal(next, CKV_STEP_SYNC_DIR);
        assert_int_equal(ckv_put_next(put), CKV_STEP_DONE);
        assert_int_equal(test_stats(f->store).entries, 1);
        ckv_put_abort(put);
        assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3, 4)), 3);
    }
    test_entry_destroy(made);
}

static void begin_touches_no_disk(void **state)
{
    struct fixture *f = *state;
    struct test_entry *made =
        test_entry_with_tokens(CKV_CACHE_KV, (const uint32_t[]){1, 2, 3}, 3);
    struct ckv_put *put;
    size_t randoms;
    test_faulty_io_reset(&f->world.faulty);
    assert_ok(ckv_put_begin(f->store, "new", &made->entry, &made->source, NULL, &put,
                            &f->world.error),
              f->world.error);
    randoms = f->world.faulty.counts[TEST_CALL_RANDOM];
    assert_int_equal(f->world.faulty.counts[TEST_CALL_ANY], randoms);
    assert_int_equal(made->view_count, 0);
    ckv_put_abort(put);
    assert_int_equal(f->world.faulty.counts[TEST_CALL_ANY], randoms);
    test_entry_destroy(made);
}

static void a_source_that_fails_stores_nothing(void **state)
{
    struct fixture *f = *state;
    struct test_entry *made =
        test_entry_with_tokens(CKV_CACHE_KV, (const uint32_t[]){1, 2, 3, 4}, 4);
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2));
    made->fail_view = 2;
    made->fail_status = CKV_ENGINE;
    assert_status(ckv_store_put(f->store, "", &made->entry, &made->source, NULL, NULL,
                                &f->world.error),
                  CKV_ENGINE);
    assert_int_equal(test_world_count(&f->world, BASE, ""), 1);
    assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3)), 2);
    assert_int_equal(test_stats(f->store).put_failures, 1);
    assert_int_equal(test_stats(f->store).used_bytes, test_world_used(&f->world));
    test_entry_destroy(made);
}

static void a_new_entry_counts_as_most_recent(void **state)
{
    struct fixture *f = *state;
    struct ckv_io_stat first;
    struct ckv_io_stat second;
    char name[CKV_IO_NAME_MAX + 1];
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2));
    strcpy(name, test_world_only(&f->world, BASE, ".mlxkv"));
    /* The clock goes back a day: still newer than the newest known. */
    test_clock_set_realtime(&f->world.clock,
                            TEST_CLOCK_START_NS - 24 * 3600 * TEST_NS_PER_S);
    test_put(&f->world, f->store, "x", CKV_CACHE_KV, T(1, 2));
    first = test_world_stat(&f->world, BASE, name);
    assert_int_equal(first.mtime_ns, TEST_CLOCK_START_NS);
    test_world_remove(&f->world, BASE, name);
    test_put(&f->world, f->store, "", CKV_CACHE_KV, T(7, 8));
    second = test_world_stat(&f->world, BASE, test_world_only(&f->world, BASE, ".mlxkv"));
    assert_int_equal(second.mtime_ns, TEST_CLOCK_START_NS + 2000);
    assert_int_equal(second.mode, 0600);
}

static void put_arguments_are_checked(void **state)
{
    struct fixture *f = *state;
    struct test_entry *made =
        test_entry_with_tokens(CKV_CACHE_KV, (const uint32_t[]){1, 2, 3}, 3);
    struct ckv_put_options options = {0};
    struct ckv_put *put;
    assert_status(ckv_store_put(NULL, "", &made->entry, &made->source, NULL, NULL, NULL),
                  CKV_INVALID);
    assert_status(ckv_store_put(f->store, "", NULL, &made->source, NULL, NULL, NULL),
                  CKV_INVALID);
    assert_status(ckv_store_put(f->store, "", &made->entry, NULL, NULL, NULL, NULL),
                  CKV_INVALID);
    assert_status(
        ckv_put_begin(f->store, "", &made->entry, &made->source, &options, &put, NULL),
        CKV_INVALID);
    assert_null(put);
    assert_status(ckv_put_commit(NULL, NULL, NULL), CKV_INVALID);
    ckv_put_abort(NULL);
    test_entry_destroy(made);
}

static void remove_forgets_and_deletes(void **state)
{
    struct fixture *f = *state;
    struct ckv_stored stored = test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2));
    assert_ok(ckv_store_remove(f->store, stored.id, &f->world.error), f->world.error);
    assert_int_equal(test_world_count(&f->world, BASE, ""), 0);
    assert_int_equal(test_stats(f->store).entries, 0);
    assert_int_equal(test_find(f->store, "", T(1, 2, 3), NULL, NULL), 0);
    assert_status(ckv_store_remove(f->store, stored.id, &f->world.error), CKV_NOTFOUND);
    assert_status(ckv_store_remove(NULL, stored.id, NULL), CKV_INVALID);
    assert_int_equal(test_stats(f->store).used_bytes, 0);
}

static void failed_remove_keeps_the_entry(void **state)
{
    struct fixture *f = *state;
    struct ckv_stored stored = test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2));
    test_faulty_io_fail(
        &f->world.faulty,
        &(struct test_fault){.call = TEST_CALL_REMOVE, .nth = 1, .os_errno = 5});
    assert_status(ckv_store_remove(f->store, stored.id, &f->world.error), CKV_IO);
    assert_int_equal(test_stats(f->store).entries, 1);
    assert_int_equal(test_restore(&f->world, f->store, "", T(1, 2, 3)), 2);
    assert_ok(ckv_store_remove(f->store, stored.id, &f->world.error), f->world.error);
}

static void set_aside_is_never_offered_again(void **state)
{
    struct fixture *f = *state;
    struct ckv_stored stored = test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2));
    test_clock_advance(&f->world.clock, 3600 * TEST_NS_PER_S);
    assert_ok(
        ckv_store_set_aside(f->store, stored.id, "the engine says so", &f->world.error),
        f->world.error);
    assert_int_equal(test_find(f->store, "", T(1, 2, 3), NULL, NULL), 0);
    assert_int_equal(test_world_count(&f->world, BASE, ".bad"), 1);
    assert_int_equal(test_world_count(&f->world, BASE, ""), 1);
    assert_int_equal(
        test_world_stat(&f->world, BASE, test_world_only(&f->world, BASE, ".bad"))
            .mtime_ns,
        test_clock_realtime(&f->world.clock));
    assert_true(
        test_log_contains(&f->world.log, "store.set_aside", "the engine says so"));
    assert_int_equal(test_stats(f->store).set_aside, 1);
    assert_status(ckv_store_set_aside(f->store, stored.id, NULL, &f->world.error),
                  CKV_NOTFOUND);
    reopen(f);
    assert_int_equal(test_find(f->store, "", T(1, 2, 3), NULL, NULL), 0);
    assert_int_equal(test_world_count(&f->world, BASE, ".bad"), 1);
}

static void failed_set_aside_is_never_offered_again_either(void **state)
{
    struct fixture *f = *state;
    struct ckv_stored stored = test_put(&f->world, f->store, "", CKV_CACHE_KV, T(1, 2));
    test_faulty_io_fail(
        &f->world.faulty,
        &(struct test_fault){.call = TEST_CALL_RENAME, .nth = 1, .os_errno = 13});
    assert_status(ckv_store_set_aside(f->store, stored.id, "bad", &f->world.error),
                  CKV_DENIED);
    assert_int_equal(test_find(f->store, "", T(1, 2, 3), NULL, NULL), 0);
    assert_ok(ckv_store_refresh(f->store, &f->world.error), f->world.error);
    assert_int_equal(test_find(f->store, "", T(1, 2, 3), NULL, NULL), 0);
    assert_int_equal(test_world_count(&f->world, BASE, ".mlxkv"), 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(m27_stored_found_and_restored_by_a_new_store),
        TEST(m28_shorter_entry_stays_beside_the_longer),
        TEST(m30_longer_trimmable_entry_replaces_its_prefix),
        TEST(m31_entry_over_the_cap_is_refused_up_front),
        TEST(m32_untrimmable_longer_entry_keeps_the_prefix),
        TEST(m33_turboquant_serves_a_shorter_prefix),
        TEST(m34_same_tokens_twice_are_one_entry),
        TEST(same_tokens_are_written_again_when_the_file_is_gone),
        TEST(m35_gate_is_asked_before_every_step),
        TEST(m36_failing_gate_stops_nothing),
        TEST(metadata_is_the_stores_in_its_order),
        TEST(namespaces_are_kept_apart),
        TEST(same_tokens_in_two_namespaces_do_not_supersede),
        TEST(entries_that_break_a_rule_are_refused),
        TEST(steps_are_told_and_abort_leaves_nothing),
        TEST(begin_touches_no_disk),
        TEST(a_source_that_fails_stores_nothing),
        TEST(a_new_entry_counts_as_most_recent),
        TEST(put_arguments_are_checked),
        TEST(remove_forgets_and_deletes),
        TEST(failed_remove_keeps_the_entry),
        TEST(set_aside_is_never_offered_again),
        TEST(failed_set_aside_is_never_offered_again_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

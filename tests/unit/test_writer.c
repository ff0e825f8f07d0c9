/*
 * The stepwise writer: what it writes, in which order it asks the disk, what it refuses
 * before the first byte, and what it leaves behind when it is stopped. Failing calls and
 * allocations are swept in test_writer_faults.c.
 */
#include "unit/file_support.h"

#include "lib/fake_clock.h"
#include "lib/faulty_io.h"
#include <stdio.h>

#define NAME "a.mlxkv"

static struct ckv_writer *begun(struct disk *disk, const struct ckv_io *io,
                                struct test_entry *made,
                                const struct ckv_writer_options *options)
{
    struct ckv_writer *writer = NULL;
    struct ckv_error error;
    assert_ok(ckv_writer_begin(io, disk->dir, NAME, &made->entry, &made->source, options,
                               &writer, &error),
              error);
    return writer;
}

/* Restores the file and compares it with what was made. */
static void expect_restored(struct disk *disk, const char *name, struct test_entry *made)
{
    struct ckv_reader *reader = NULL;
    struct ckv_restore *restore = NULL;
    struct ckv_error error;
    struct test_sink *sink;
    assert_ok(ckv_reader_open(disk->io, disk->dir, name, NULL, &reader, &error), error);
    assert_true(test_entry_same(&ckv_reader_header(reader)->entry, &made->entry));
    assert_true(ckv_reader_header(reader)->canonical);
    sink = test_sink_create(&ckv_reader_header(reader)->entry);
    assert_ok(ckv_restore_begin(reader, &sink->sink, NULL, &restore, &error), error);
    assert_ok(ckv_restore_finish(restore, &error), error);
    assert_true(test_sink_equals(sink, made));
    test_sink_destroy(sink);
    ckv_reader_close(reader);
}

static void entries_of_every_kind_come_back(void **state)
{
    struct disk disk;
    (void)state;
    disk_init(&disk);
    for (size_t i = 0; i < CKV_CACHE_KIND_COUNT; i++) {
        struct test_entry *made = test_entry_of_kind(test_all_kinds[i], 13, i);
        char name[32];
        (void)snprintf(name, sizeof name, "%zu.mlxkv", i);
        disk_save(&disk, name, made);
        expect_restored(&disk, name, made);
        test_entry_destroy(made);
    }
    assert_int_equal(test_io_count(disk.io, disk.dir, ""), CKV_CACHE_KIND_COUNT);
    disk_deinit(&disk);
}

/* Rows scattered in a buffer, chunks that cut them: the same file. */
static void windows_and_chunks_do_not_show_in_the_file(void **state)
{
    static const size_t windows[] = {0, 1, 7, 64, 1000};
    static const size_t chunks[] = {1, 48, 100, 4096, 1u << 20};
    struct test_entry *made = test_entry_of_all_kinds(13, 5);
    unsigned char *expected = NULL;
    size_t expected_size = 0;
    (void)state;
    made->entry.created_at_ms = 42;
    for (size_t i = 0; i < TEST_COUNT_OF(windows); i++) {
        for (size_t j = 0; j < TEST_COUNT_OF(chunks); j++) {
            struct ckv_writer_options options;
            struct disk disk;
            struct ckv_error error;
            unsigned char *bytes;
            size_t size;
            disk_init(&disk);
            ckv_writer_options_init(&options);
            options.chunk_bytes = chunks[j];
            made->max_window = windows[i];
            made->view_count = made->done_count = 0;
            assert_ok(ckv_save(disk.io, disk.dir, NAME, &made->entry, &made->source,
                               &options, &error),
                      error);
            assert_int_equal(made->view_count, made->done_count);
            bytes = test_io_read_file(disk.io, disk.dir, NAME, &size);
            if (!expected) {
                expected = bytes;
                expected_size = size;
            } else {
                assert_int_equal(size, expected_size);
                assert_memory_equal(bytes, expected, size);
                free(bytes);
            }
            disk_deinit(&disk);
        }
    }
    free(expected);
    test_entry_destroy(made);
}

/* The size is known before the disk is touched, and true. */
static void the_size_is_known_from_the_beginning(void **state)
{
    struct disk disk;
    struct test_entry *made = test_entry_of_all_kinds(5, 1);
    struct test_faulty_io faulty;
    struct ckv_writer *writer;
    struct ckv_error error;
    struct ckv_io_stat stat;
    uint64_t size;
    (void)state;
    disk_init(&disk);
    test_faulty_io_init(&faulty, disk.io);
    writer = begun(&disk, &faulty.io, made, NULL);
    assert_int_equal(faulty.counts[TEST_CALL_ANY], 0);
    assert_int_equal(ckv_writer_next(writer), CKV_STEP_OPEN);
    assert_int_equal(ckv_writer_done_bytes(writer), 0);
    size = ckv_writer_file_bytes(writer);
    assert_ok(ckv_writer_commit(writer, &error), error);
    assert_ok(ckv_io_stat_name(disk.io, disk.dir, NAME, &stat, &error), error);
    assert_int_equal(stat.size_bytes, size);
    assert_int_equal(stat.mode, 0600);
    test_faulty_io_deinit(&faulty);
    test_entry_destroy(made);
    disk_deinit(&disk);
}

static void steps_come_in_the_order_of_the_contract(void **state)
{
    /* Two kv tensors of 2 x 5 rows x 8 x 2 bytes = 160 bytes, in chunks of 100. */
    static const enum ckv_writer_step expected[] = {
        CKV_STEP_OPEN,   CKV_STEP_COPY, CKV_STEP_COPY,    CKV_STEP_COPY,    CKV_STEP_COPY,
        CKV_STEP_HEADER, CKV_STEP_SYNC, CKV_STEP_PUBLISH, CKV_STEP_SYNC_DIR};
    static const uint64_t done[] = {0, 100, 160, 260, 320, 320, 320, 320, 320};
    struct disk disk;
    struct test_entry *made = test_entry_of_kind(CKV_CACHE_KV, 5, 1);
    struct ckv_writer_options options;
    struct ckv_writer *writer;
    struct ckv_error error;
    (void)state;
    assert_int_equal(made->entry.caches[0].tensors[0].bytes, 160);
    disk_init(&disk);
    ckv_writer_options_init(&options);
    options.chunk_bytes = 100;
    writer = begun(&disk, disk.io, made, &options);
    for (size_t i = 0; i < TEST_COUNT_OF(expected); i++) {
        /* The header goes in pieces of a chunk as well. */
        do {
            assert_int_equal(ckv_writer_next(writer), expected[i]);
            assert_ok(ckv_writer_step(writer, &error), error);
        } while (expected[i] == CKV_STEP_HEADER &&
                 ckv_writer_next(writer) == CKV_STEP_HEADER);
        assert_int_equal(ckv_writer_done_bytes(writer), done[i]);
    }
    assert_int_equal(ckv_writer_next(writer), CKV_STEP_DONE);
    assert_ok(ckv_writer_step(writer, &error), error);
    assert_ok(ckv_writer_commit(writer, &error), error);
    expect_restored(&disk, NAME, made);
    test_entry_destroy(made);
    disk_deinit(&disk);
}

/* Synced before named, folder synced last. */
static void data_is_synced_before_the_name_and_the_folder_after_it(void **state)
{
    struct disk disk;
    struct test_entry *made = test_entry_of_kind(CKV_CACHE_KV, 5, 1);
    struct ckv_writer_options options;
    (void)state;
    ckv_writer_options_init(&options);
    for (int replace = 0; replace < 2; replace++) {
        struct test_faulty_io faulty;
        struct ckv_error error;
        long sync;
        long publish;
        long sync_dir;
        disk_init(&disk);
        test_faulty_io_init(&faulty, disk.io);
        faulty.tracing = true;
        options.replace = replace;
        assert_ok(ckv_save(&faulty.io, disk.dir, NAME, &made->entry, &made->source,
                           &options, &error),
                  error);
        sync = test_faulty_io_find(&faulty, TEST_CALL_SYNC_FILE, NULL, 0);
        publish = test_faulty_io_find(
            &faulty, replace ? TEST_CALL_RENAME : TEST_CALL_LINK, NAME, 0);
        sync_dir = test_faulty_io_find(&faulty, TEST_CALL_SYNC_DIR, NULL, 0);
        assert_true(sync >= 0);
        assert_int_equal(
            test_faulty_io_find(&faulty, TEST_CALL_WRITE, NULL, (size_t)sync), -1);
        assert_true(sync < publish);
        assert_true(publish < sync_dir);
        assert_int_equal(faulty.counts[TEST_CALL_SYNC_FILE], 1);
        assert_true(test_faulty_io_clean(&faulty));
        test_faulty_io_deinit(&faulty);
        disk_deinit(&disk);
    }
    test_entry_destroy(made);
}

static void syncs_in_between_come_when_they_are_due(void **state)
{
    struct disk disk;
    struct test_entry *made =
        test_entry_of_kind(CKV_CACHE_KV, 50, 1); /* 2 x 1600 bytes */
    struct test_faulty_io faulty;
    struct ckv_writer_options options;
    struct ckv_error error;
    (void)state;
    disk_init(&disk);
    test_faulty_io_init(&faulty, disk.io);
    ckv_writer_options_init(&options);
    options.chunk_bytes = 400;
    options.sync_every_bytes = 1000;
    assert_ok(ckv_save(&faulty.io, disk.dir, NAME, &made->entry, &made->source, &options,
                       &error),
              error);
    /* After 1200 and 2400 bytes, and at the end. */
    assert_int_equal(faulty.counts[TEST_CALL_SYNC_FILE], 3);
    expect_restored(&disk, NAME, made);
    test_faulty_io_deinit(&faulty);
    test_entry_destroy(made);
    disk_deinit(&disk);
}

struct gate {
    struct disk *disk;
    size_t calls;
    enum ckv_writer_step first;
    enum ckv_writer_step last;
    size_t names_at_first;
    enum ckv_status answer;
};

static enum ckv_status count_gate(void *ctx, enum ckv_writer_step next)
{
    struct gate *gate = ctx;
    if (gate->calls++ == 0) {
        gate->first = next;
        gate->names_at_first = test_io_count(gate->disk->io, gate->disk->dir, "");
    }
    gate->last = next;
    return gate->answer;
}

/* M35, M36: asked before every step, the first and the last included; never stops one. */
static void the_gate_is_asked_before_every_step(void **state)
{
    static const enum ckv_status answers[] = {CKV_OK, CKV_IO, CKV_CANCELLED};
    struct test_entry *made = test_entry_of_all_kinds(5, 1);
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(answers); i++) {
        struct disk disk;
        struct gate gate = {.disk = &disk, .answer = answers[i]};
        struct ckv_writer_options options;
        struct ckv_error error;
        disk_init(&disk);
        ckv_writer_options_init(&options);
        options.gate = count_gate;
        options.gate_ctx = &gate;
        assert_ok(ckv_save(disk.io, disk.dir, NAME, &made->entry, &made->source, &options,
                           &error),
                  error);
        /* One per tensor, and open, header, sync, publish, folder sync. */
        assert_int_equal(gate.calls, made->tensor_count + 5);
        assert_int_equal(gate.first, CKV_STEP_OPEN);
        assert_int_equal(gate.last, CKV_STEP_SYNC_DIR);
        assert_int_equal(gate.names_at_first, 0);
        expect_restored(&disk, NAME, made);
        disk_deinit(&disk);
    }
    test_entry_destroy(made);
}

static void a_name_that_is_taken_is_kept_unless_replaced(void **state)
{
    struct disk disk;
    struct test_entry *old = test_entry_of_kind(CKV_CACHE_KV, 5, 1);
    struct test_entry *made = test_entry_of_kind(CKV_CACHE_SSM, 7, 2);
    struct ckv_writer_options options;
    struct ckv_error error;
    (void)state;
    disk_init(&disk);
    disk_save(&disk, NAME, old);
    ckv_writer_options_init(&options);
    assert_status(
        ckv_save(disk.io, disk.dir, NAME, &made->entry, &made->source, &options, &error),
        CKV_EXISTS);
    assert_int_equal(made->view_count, 0); /* looked at before anything is written */
    assert_int_equal(test_io_count(disk.io, disk.dir, ""), 1);
    expect_restored(&disk, NAME, old);
    options.replace = true;
    assert_ok(
        ckv_save(disk.io, disk.dir, NAME, &made->entry, &made->source, &options, &error),
        error);
    assert_int_equal(test_io_count(disk.io, disk.dir, ""), 1);
    expect_restored(&disk, NAME, made);
    test_entry_destroy(old);
    test_entry_destroy(made);
    disk_deinit(&disk);
}

/* Takes the final name just before it is given. */
static void take_the_name(void *ctx, const struct test_call_event *event, size_t nth)
{
    struct disk *disk = ctx;
    (void)event;
    (void)nth;
    test_io_write_file(disk->io, disk->dir, NAME, "other", 5);
}

static void a_name_taken_meanwhile_is_kept(void **state)
{
    struct disk disk;
    struct test_entry *made = test_entry_of_kind(CKV_CACHE_KV, 5, 1);
    struct test_faulty_io faulty;
    struct ckv_error error;
    unsigned char *bytes;
    size_t size;
    (void)state;
    disk_init(&disk);
    test_faulty_io_init(&faulty, disk.io);
    faulty.hook = take_the_name;
    faulty.hook_ctx = &disk;
    faulty.hook_call = TEST_CALL_LINK;
    assert_status(
        ckv_save(&faulty.io, disk.dir, NAME, &made->entry, &made->source, NULL, &error),
        CKV_EXISTS);
    bytes = test_io_read_file(disk.io, disk.dir, NAME, &size);
    assert_int_equal(size, 5);
    assert_memory_equal(bytes, "other", 5);
    assert_int_equal(test_io_count(disk.io, disk.dir, ""), 1);
    free(bytes);
    test_faulty_io_deinit(&faulty);
    test_entry_destroy(made);
    disk_deinit(&disk);
}

static void without_hard_links_a_free_name_is_given_by_rename(void **state)
{
    struct disk disk;
    struct test_entry *made = test_entry_of_kind(CKV_CACHE_KV, 5, 1);
    struct test_faulty_io faulty;
    struct test_fault fault = {.call = TEST_CALL_LINK,
                               .nth = 1,
                               .from_then_on = true,
                               .status = CKV_UNSUPPORTED};
    struct ckv_error error;
    (void)state;
    disk_init(&disk);
    test_faulty_io_init(&faulty, disk.io);
    test_faulty_io_fail(&faulty, &fault);
    assert_ok(
        ckv_save(&faulty.io, disk.dir, NAME, &made->entry, &made->source, NULL, &error),
        error);
    assert_int_equal(faulty.counts[TEST_CALL_RENAME], 1);
    expect_restored(&disk, NAME, made);
    assert_status(
        ckv_save(&faulty.io, disk.dir, NAME, &made->entry, &made->source, NULL, &error),
        CKV_EXISTS);
    assert_int_equal(test_io_count(disk.io, disk.dir, ""), 1);
    test_faulty_io_deinit(&faulty);
    test_entry_destroy(made);
    disk_deinit(&disk);
}

/* An abort at any step leaves nothing; after PUBLISH the file is there and whole. */
static void an_abort_at_any_step_leaves_no_temporary(void **state)
{
    struct test_entry *made = test_entry_of_all_kinds(5, 1);
    bool done = false;
    (void)state;
    for (size_t steps = 0; !done; steps++) {
        struct disk disk;
        struct ckv_writer *writer;
        bool published;
        disk_init(&disk);
        writer = begun(&disk, disk.io, made, NULL);
        for (size_t i = 0; i < steps; i++) {
            struct ckv_error error;
            assert_ok(ckv_writer_step(writer, &error), error);
        }
        published = ckv_writer_next(writer) >= CKV_STEP_SYNC_DIR;
        done = ckv_writer_next(writer) == CKV_STEP_DONE;
        ckv_writer_abort(writer);
        assert_int_equal(test_io_count(disk.io, disk.dir, ""), published);
        assert_int_equal(test_io_count(disk.io, disk.dir, ".part"), 0);
        if (published)
            expect_restored(&disk, NAME, made);
        disk_deinit(&disk);
    }
    ckv_writer_abort(NULL);
    test_entry_destroy(made);
}

static void the_callers_entry_is_only_read(void **state)
{
    struct disk disk;
    struct test_entry *made = test_entry_of_kind(CKV_CACHE_KV, 5, 1);
    struct ckv_tensor before[2];
    (void)state;
    disk_init(&disk);
    for (size_t i = 0; i < 2; i++) {
        made->entry.caches[0].tensors[i].offset = 77;
        made->entry.caches[0].tensors[i].hash = 99;
        before[i] = made->entry.caches[0].tensors[i];
    }
    disk_save(&disk, NAME, made);
    assert_memory_equal(made->entry.caches[0].tensors, before, sizeof before);
    assert_int_equal(made->entry.created_at_ms, 0);
    test_entry_destroy(made);
    disk_deinit(&disk);
}

static uint64_t created_at(struct disk *disk)
{
    struct ckv_reader *reader = NULL;
    struct ckv_error error;
    uint64_t value;
    assert_ok(ckv_reader_open(disk->io, disk->dir, NAME, NULL, &reader, &error), error);
    value = ckv_reader_header(reader)->entry.created_at_ms;
    ckv_reader_close(reader);
    return value;
}

static void the_clock_gives_the_time_when_the_caller_does_not(void **state)
{
    struct disk disk;
    struct test_clock clock;
    struct test_entry *made = test_entry_of_kind(CKV_CACHE_KV, 5, 1);
    struct ckv_writer_options options;
    struct ckv_error error;
    (void)state;
    disk_init(&disk);
    test_clock_init(&clock);
    ckv_writer_options_init(&options);
    options.clock = &clock.clock;
    options.replace = true;
    assert_ok(
        ckv_save(disk.io, disk.dir, NAME, &made->entry, &made->source, &options, &error),
        error);
    assert_int_equal(created_at(&disk),
                     clock.clock.realtime_ns(clock.clock.ctx) / 1000000);
    made->entry.created_at_ms = 5;
    assert_ok(
        ckv_save(disk.io, disk.dir, NAME, &made->entry, &made->source, &options, &error),
        error);
    assert_int_equal(created_at(&disk), 5);
    test_clock_deinit(&clock);
    test_entry_destroy(made);
    disk_deinit(&disk);
}

static enum ckv_status begin_status(struct disk *disk, const char *name,
                                    struct test_entry *made,
                                    const struct ckv_source *source,
                                    const struct ckv_writer_options *options,
                                    struct ckv_error *error)
{
    struct ckv_writer *writer = (struct ckv_writer *)1;
    enum ckv_status status = ckv_writer_begin(disk->io, disk->dir, name, &made->entry,
                                              source, options, &writer, error);
    if (status)
        assert_null(writer);
    else
        ckv_writer_abort(writer);
    return status;
}

static void what_begin_refuses_never_touches_the_disk(void **state)
{
    struct disk disk;
    struct test_entry *made = test_entry_of_kind(CKV_CACHE_KV, 5, 1);
    const struct ckv_source *source = &made->source;
    struct ckv_writer_options options;
    struct ckv_error error;
    (void)state;
    disk_init(&disk);
    assert_status(begin_status(&disk, "a/b", made, source, NULL, &error), CKV_INVALID);
    assert_status(begin_status(&disk, "..", made, source, NULL, &error), CKV_INVALID);
    assert_status(begin_status(&disk, "", made, source, NULL, &error), CKV_INVALID);
    assert_status(begin_status(&disk, NAME, made, NULL, NULL, &error), CKV_INVALID);
    made->entry.caches[0].offset = 6;
    assert_status(begin_status(&disk, NAME, made, source, NULL, &error), CKV_CORRUPT);
    assert_non_null(strstr(error.text, "shape[2]"));
    made->entry.caches[0].offset = 5;
    memset(&options, 0, sizeof options);
    assert_status(begin_status(&disk, NAME, made, source, &options, &error), CKV_INVALID);
    assert_non_null(strstr(error.text, "init"));
    assert_int_equal(test_io_count(disk.io, disk.dir, ""), 0);
    test_entry_destroy(made);
    disk_deinit(&disk);
}

/* Options from a newer header: fine while what we do not know is zero. */
static void newer_options_are_taken_when_they_ask_for_nothing_new(void **state)
{
    struct {
        struct ckv_writer_options options;
        uint64_t later;
    } newer;
    struct disk disk;
    struct test_entry *made = test_entry_of_kind(CKV_CACHE_KV, 5, 1);
    struct ckv_error error;
    (void)state;
    disk_init(&disk);
    memset(&newer, 0, sizeof newer);
    newer.options.size = sizeof newer;
    assert_status(begin_status(&disk, NAME, made, &made->source, &newer.options, &error),
                  CKV_OK);
    newer.later = 1;
    assert_status(begin_status(&disk, NAME, made, &made->source, &newer.options, &error),
                  CKV_INVALID);
    assert_non_null(strstr(error.text, "newer"));
    newer.options.size = offsetof(struct ckv_writer_options, gate); /* an older one */
    newer.options.gate = (ckv_gate_fn)(uintptr_t)1;
    assert_status(begin_status(&disk, NAME, made, &made->source, &newer.options, &error),
                  CKV_OK);
    test_entry_destroy(made);
    disk_deinit(&disk);
}

struct opener {
    struct disk *disk;
    uint64_t file_size;
    size_t calls;
    enum ckv_status answer;
};

static enum ckv_status open_own(void *ctx, uint64_t file_size, struct ckv_temporary *out,
                                struct ckv_error *error)
{
    struct opener *opener = ctx;
    opener->calls++;
    opener->file_size = file_size;
    if (opener->answer)
        return ckv_error_set(error, opener->answer, "no room");
    (void)snprintf(out->name, sizeof out->name, ".own.part");
    return ckv_io_open_file(opener->disk->io, opener->disk->dir, out->name,
                            CKV_IO_CREATE_NEW, &out->file, error);
}

static void a_given_way_to_open_the_temporary_is_used(void **state)
{
    struct disk disk;
    struct opener opener = {.disk = &disk};
    struct test_entry *made = test_entry_of_kind(CKV_CACHE_KV, 5, 1);
    struct ckv_writer_options options;
    struct ckv_writer *writer;
    struct ckv_error error;
    (void)state;
    disk_init(&disk);
    ckv_writer_options_init(&options);
    options.open_temporary = open_own;
    options.open_temporary_ctx = &opener;
    writer = begun(&disk, disk.io, made, &options);
    assert_int_equal(opener.calls, 0);
    assert_ok(ckv_writer_step(writer, &error), error);
    assert_int_equal(opener.file_size, ckv_writer_file_bytes(writer));
    assert_true(test_io_exists(disk.io, disk.dir, ".own.part"));
    assert_ok(ckv_writer_commit(writer, &error), error);
    assert_false(test_io_exists(disk.io, disk.dir, ".own.part"));
    expect_restored(&disk, NAME, made);
    opener.answer = CKV_FULL;
    options.replace = true;
    writer = begun(&disk, disk.io, made, &options);
    assert_status(ckv_writer_step(writer, &error), CKV_FULL);
    assert_non_null(strstr(error.text, "write a.mlxkv: no room"));
    assert_status(ckv_writer_step(writer, &error), CKV_INVALID);
    assert_status(ckv_writer_commit(writer, &error), CKV_INVALID);
    assert_int_equal(test_io_count(disk.io, disk.dir, ""), 1);
    test_entry_destroy(made);
    disk_deinit(&disk);
}

static void an_entry_without_tensors_is_a_file_of_its_header(void **state)
{
    struct disk disk;
    static const uint32_t tokens[2] = {1, 2};
    struct ckv_entry entry = {.tokens = tokens, .token_count = 2};
    struct ckv_reader *reader = NULL;
    struct ckv_error error;
    (void)state;
    disk_init(&disk);
    assert_ok(ckv_save(disk.io, disk.dir, NAME, &entry, NULL, NULL, &error), error);
    assert_ok(ckv_reader_open(disk.io, disk.dir, NAME, NULL, &reader, &error), error);
    assert_int_equal(ckv_reader_stat(reader)->size_bytes, 16384);
    assert_int_equal(ckv_reader_header(reader)->entry.cache_count, 0);
    assert_ok(ckv_reader_verify(reader, NULL, NULL, NULL, &error), error);
    ckv_reader_close(reader);
    disk_deinit(&disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_of_every_kind_come_back),
        cmocka_unit_test(windows_and_chunks_do_not_show_in_the_file),
        cmocka_unit_test(the_size_is_known_from_the_beginning),
        cmocka_unit_test(steps_come_in_the_order_of_the_contract),
        cmocka_unit_test(data_is_synced_before_the_name_and_the_folder_after_it),
        cmocka_unit_test(syncs_in_between_come_when_they_are_due),
        cmocka_unit_test(the_gate_is_asked_before_every_step),
        cmocka_unit_test(a_name_that_is_taken_is_kept_unless_replaced),
        cmocka_unit_test(a_name_taken_meanwhile_is_kept),
        cmocka_unit_test(without_hard_links_a_free_name_is_given_by_rename),
        cmocka_unit_test(an_abort_at_any_step_leaves_no_temporary),
        cmocka_unit_test(the_callers_entry_is_only_read),
        cmocka_unit_test(the_clock_gives_the_time_when_the_caller_does_not),
        cmocka_unit_test(what_begin_refuses_never_touches_the_disk),
        cmocka_unit_test(newer_options_are_taken_when_they_ask_for_nothing_new),
        cmocka_unit_test(a_given_way_to_open_the_temporary_is_used),
        cmocka_unit_test(an_entry_without_tensors_is_a_file_of_its_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

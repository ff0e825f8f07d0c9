/*
 * Opening, touching, verifying and repacking a file, and what each failure is called.
 */
#include "unit/file_support.h"

#include "lib/counting_alloc.h"
#include "lib/faulty_io.h"
#include <errno.h>
#include <stdio.h>

#define NAME "a.mlxkv"

/* A disk with one file of all kinds. */
struct bench {
    struct disk disk;
    struct test_faulty_io faulty;
    struct test_entry *made;
};

static void bench_init(struct bench *bench)
{
    disk_init(&bench->disk);
    test_faulty_io_init(&bench->faulty, bench->disk.io);
    bench->made = test_entry_of_all_kinds(5, 1);
    disk_save(&bench->disk, NAME, bench->made);
}

static void bench_deinit(struct bench *bench)
{
    assert_true(test_faulty_io_clean(&bench->faulty));
    test_faulty_io_deinit(&bench->faulty);
    test_entry_destroy(bench->made);
    disk_deinit(&bench->disk);
}

static struct ckv_reader *opened(struct bench *bench)
{
    struct ckv_reader *reader = NULL;
    struct ckv_error error;
    assert_ok(
        ckv_reader_open(&bench->faulty.io, bench->disk.dir, NAME, NULL, &reader, &error),
        error);
    return reader;
}

/* Opening fails like that; the text begins with the file's name and has `part`. */
static void expect_not_opened(struct bench *bench, const char *name,
                              enum ckv_status status, const char *part)
{
    struct ckv_reader *reader = (struct ckv_reader *)1;
    struct ckv_error error;
    char start[64];
    assert_status(
        ckv_reader_open(&bench->faulty.io, bench->disk.dir, name, NULL, &reader, &error),
        status);
    assert_status(error.status, status);
    assert_null(reader);
    (void)snprintf(start, sizeof start, "%s: ", name);
    if (strncmp(error.text, start, strlen(start)) != 0 || !strstr(error.text, part))
        fail_msg("\"%s\" does not begin with \"%s\" or name \"%s\"", error.text, start,
                 part);
}

/* Changes bytes of the file in place. */
static void overwrite(struct bench *bench, uint64_t offset, const void *data, size_t size)
{
    struct ckv_io_file file;
    struct ckv_error error;
    assert_ok(ckv_io_open_file(bench->disk.io, bench->disk.dir, NAME, CKV_IO_READ_WRITE,
                               &file, &error),
              error);
    assert_ok(ckv_io_write(bench->disk.io, file, data, size, offset, &error), error);
    ckv_io_close_file(bench->disk.io, &file);
}

static void set_length(struct bench *bench, uint64_t size)
{
    struct ckv_io_file file;
    struct ckv_error error;
    assert_ok(ckv_io_open_file(bench->disk.io, bench->disk.dir, NAME, CKV_IO_READ_WRITE,
                               &file, &error),
              error);
    assert_ok(bench->disk.io->truncate(bench->disk.io->ctx, file, size, &error), error);
    ckv_io_close_file(bench->disk.io, &file);
}

static uint64_t file_place(const struct ckv_header *header, size_t cache, size_t tensor)
{
    return header->prefix.data_start + header->entry.caches[cache].tensors[tensor].offset;
}

static void an_open_file_tells_its_header_and_stat(void **state)
{
    struct bench bench;
    struct ckv_reader *reader;
    (void)state;
    bench_init(&bench);
    reader = opened(&bench);
    assert_true(test_entry_same(&ckv_reader_header(reader)->entry, &bench.made->entry));
    assert_int_equal(ckv_reader_stat(reader)->size_bytes,
                     ckv_reader_header(reader)->file_size);
    ckv_reader_close(reader);
    ckv_reader_close(NULL);
    bench_deinit(&bench);
}

static void each_way_not_to_open_has_its_status(void **state)
{
    struct bench bench;
    struct ckv_reader *reader;
    struct ckv_error error;
    static const char other[32] = "GGUF and nothing of ours";
    (void)state;
    bench_init(&bench);
    expect_not_opened(&bench, "missing.mlxkv", CKV_NOTFOUND, "");
    assert_status(
        ckv_reader_open(bench.disk.io, bench.disk.dir, "../x", NULL, &reader, &error),
        CKV_INVALID);
    test_io_write_file(bench.disk.io, bench.disk.dir, "other", other, sizeof other);
    expect_not_opened(&bench, "other", CKV_FOREIGN, "magic: expected");
    test_io_write_file(bench.disk.io, bench.disk.dir, "v1", "MLXBUNKV1\n{}", 12);
    expect_not_opened(&bench, "v1", CKV_FOREIGN, "another container version");
    test_io_write_file(bench.disk.io, bench.disk.dir, "empty", "", 0);
    expect_not_opened(&bench, "empty", CKV_CORRUPT, "prefix: expected 26 bytes");
    test_memory_io_make_other(bench.disk.memory, bench.disk.dir, "pipe");
    expect_not_opened(&bench, "pipe", CKV_DENIED, "");
    test_memory_io_set_owner(bench.disk.memory, bench.disk.dir, NAME, 7, 0600);
    expect_not_opened(&bench, NAME, CKV_DENIED, "");
    bench_deinit(&bench);
}

/* Only a file whose contents were read is called corrupt. */
static void a_file_that_ends_early_while_it_is_read_is_an_io_failure(void **state)
{
    (void)state;
    for (size_t nth = 1; nth <= 2; nth++) {
        struct bench bench;
        struct test_fault fault = {
            .call = TEST_CALL_READ, .nth = nth, .partial_bytes = 5};
        bench_init(&bench);
        test_faulty_io_fail(&bench.faulty, &fault);
        expect_not_opened(&bench, NAME, CKV_IO, "the file ends at byte");
        bench_deinit(&bench);
    }
}

static void every_failing_call_ends_the_opening_with_its_status(void **state)
{
    struct bench bench;
    bool through = false;
    (void)state;
    bench_init(&bench);
    for (size_t nth = 1; !through; nth++) {
        struct ckv_reader *reader = NULL;
        struct ckv_error error;
        enum ckv_status status;
        test_faulty_io_reset(&bench.faulty);
        test_faulty_io_fail_nth(&bench.faulty, nth, EIO, false);
        status = ckv_reader_open(&bench.faulty.io, bench.disk.dir, NAME, NULL, &reader,
                                 &error);
        through = bench.faulty.fired == 0;
        assert_status(status, through ? CKV_OK : CKV_IO);
        ckv_reader_close(reader);
        assert_true(test_faulty_io_clean(&bench.faulty));
    }
    bench_deinit(&bench);
}

static void every_failing_allocation_is_out_of_memory(void **state)
{
    struct bench bench;
    bool through = false;
    (void)state;
    bench_init(&bench);
    for (size_t nth = 1; !through; nth++) {
        struct ckv_reader *reader = NULL;
        struct test_alloc alloc;
        struct ckv_error error;
        enum ckv_status status;
        test_alloc_init(&alloc);
        alloc.fail_at = nth;
        status = ckv_reader_open(&bench.faulty.io, bench.disk.dir, NAME, &alloc.alloc,
                                 &reader, &error);
        if (status == CKV_OK)
            status = ckv_reader_verify(reader, NULL, NULL, NULL, &error);
        through = alloc.failed_count == 0;
        assert_status(status, through ? CKV_OK : CKV_NOMEM);
        ckv_reader_close(reader);
        assert_true(test_alloc_clean(&alloc));
        test_alloc_deinit(&alloc);
    }
    bench_deinit(&bench);
}

/* A file of 26 bytes that asks for 4 GiB gets nothing but the reader itself. */
static void a_header_length_of_4_gib_allocates_nothing(void **state)
{
    struct bench bench;
    struct ckv_prefix prefix = {UINT32_MAX, 16384, 0};
    uint8_t bytes[CKV_PREFIX_BYTES];
    struct test_alloc alloc;
    struct ckv_reader *reader = NULL;
    struct ckv_error error;
    (void)state;
    bench_init(&bench);
    ckv_prefix_encode(&prefix, bytes);
    test_io_write_file(bench.disk.io, bench.disk.dir, "huge", bytes, sizeof bytes);
    test_alloc_init(&alloc);
    assert_status(ckv_reader_open(bench.disk.io, bench.disk.dir, "huge", &alloc.alloc,
                                  &reader, &error),
                  CKV_CORRUPT);
    assert_non_null(strstr(error.text, "huge: headerLen: 4294967295 bytes"));
    assert_int_equal(error.file_offset, 10);
    assert_true(alloc.peak_bytes < 1024);
    assert_true(test_alloc_clean(&alloc));
    test_alloc_deinit(&alloc);
    bench_deinit(&bench);
}

static void a_touch_sets_the_time_through_the_open_file(void **state)
{
    struct bench bench;
    struct ckv_reader *reader;
    struct ckv_io_stat stat;
    struct ckv_error error;
    struct test_fault fault = {.call = TEST_CALL_SET_MTIME, .nth = 2, .os_errno = EPERM};
    (void)state;
    bench_init(&bench);
    test_faulty_io_fail(&bench.faulty, &fault);
    reader = opened(&bench);
    assert_ok(ckv_reader_touch(reader, 123456789, &error), error);
    assert_ok(ckv_io_stat_name(bench.disk.io, bench.disk.dir, NAME, &stat, &error),
              error);
    assert_int_equal(stat.mtime_ns, 123456789);
    assert_status(ckv_reader_touch(reader, 1, &error), CKV_DENIED);
    assert_non_null(strstr(error.text, "a.mlxkv: "));
    ckv_reader_close(reader);
    bench_deinit(&bench);
}

struct progress {
    size_t calls;
    uint64_t done;
    uint64_t total;
    size_t stop_at;
};

static enum ckv_status note_progress(void *ctx, uint64_t done_bytes, uint64_t total_bytes)
{
    struct progress *progress = ctx;
    progress->calls++;
    assert_true(done_bytes > progress->done && done_bytes <= total_bytes);
    progress->done = done_bytes;
    progress->total = total_bytes;
    return progress->calls == progress->stop_at ? CKV_CANCELLED : CKV_OK;
}

static void a_verification_tells_its_progress_and_can_be_ended(void **state)
{
    struct bench bench;
    struct progress progress = {0};
    struct ckv_reader *reader;
    struct ckv_error error;
    uint64_t bytes;
    (void)state;
    bench_init(&bench);
    bytes = ckv_entry_tensor_bytes(&bench.made->entry);
    reader = opened(&bench);
    assert_ok(ckv_reader_verify(reader, note_progress, &progress, NULL, &error), error);
    assert_int_equal(progress.done, bytes);
    assert_int_equal(progress.total, bytes);
    assert_int_equal(progress.calls, bench.made->tensor_count);
    progress = (struct progress){.stop_at = 3};
    assert_status(ckv_reader_verify(reader, note_progress, &progress, NULL, &error),
                  CKV_CANCELLED);
    assert_int_equal(progress.calls, 3);
    ckv_reader_close(reader);
    bench_deinit(&bench);
}

/* M10: the same damage again and again: named each time, and nothing grows. */
static void m10_a_corrupted_tensor_is_named_each_time(void **state)
{
    struct bench bench;
    struct test_alloc alloc;
    struct ckv_reader *reader = NULL;
    struct ckv_error error;
    (void)state;
    bench_init(&bench);
    test_alloc_init(&alloc);
    assert_ok(ckv_reader_open(bench.disk.io, bench.disk.dir, NAME, &alloc.alloc, &reader,
                              &error),
              error);
    overwrite(&bench, file_place(ckv_reader_header(reader), 0, 1), "damage", 6);
    for (int i = 0; i < 11; i++) {
        size_t before = alloc.live_bytes;
        assert_status(ckv_reader_verify(reader, NULL, NULL, NULL, &error), CKV_CORRUPT);
        assert_non_null(
            strstr(error.text, "a.mlxkv: caches[0] (kv).tensors[1].hash: expected"));
        assert_int_equal(error.file_offset, file_place(ckv_reader_header(reader), 0, 1));
        assert_int_equal(alloc.live_bytes, before);
    }
    ckv_reader_close(reader);
    assert_true(test_alloc_clean(&alloc));
    test_alloc_deinit(&alloc);
    bench_deinit(&bench);
}

/* Bytes that mean nothing: told, not refused. */
static void bytes_in_the_padding_are_told(void **state)
{
    struct bench bench;
    struct ckv_reader *reader;
    struct ckv_error error;
    bool nonzero = true;
    uint64_t places[3];
    (void)state;
    bench_init(&bench);
    reader = opened(&bench);
    places[0] = CKV_PREFIX_BYTES + ckv_reader_header(reader)->prefix.header_bytes;
    places[1] = ckv_reader_header(reader)->prefix.data_start - 1;
    places[2] = file_place(ckv_reader_header(reader), 0, 1) - 1;
    assert_ok(ckv_reader_verify(reader, NULL, NULL, &nonzero, &error), error);
    assert_false(nonzero);
    for (size_t i = 0; i < 3; i++) {
        overwrite(&bench, places[i], "\1", 1);
        assert_ok(ckv_reader_verify(reader, NULL, NULL, &nonzero, &error), error);
        assert_true(nonzero);
        assert_ok(ckv_reader_verify(reader, NULL, NULL, NULL, &error), error);
        overwrite(&bench, places[i], "\0", 1);
    }
    ckv_reader_close(reader);
    bench_deinit(&bench);
}

static void a_file_cut_while_open_is_an_io_failure(void **state)
{
    struct bench bench;
    struct ckv_reader *reader;
    struct ckv_error error;
    (void)state;
    bench_init(&bench);
    reader = opened(&bench);
    set_length(&bench, ckv_reader_header(reader)->file_size - 1);
    assert_status(ckv_reader_verify(reader, NULL, NULL, NULL, &error), CKV_IO);
    assert_non_null(strstr(error.text, "a.mlxkv: the file ends at byte"));
    ckv_reader_close(reader);
    expect_not_opened(&bench, NAME, CKV_CORRUPT, "file size: expected");
    bench_deinit(&bench);
}

/* Repacking from one file to another: the same bytes, whatever buffer is lent. */
static void a_reader_as_source_gives_the_same_file(void **state)
{
    static const size_t sizes[] = {4096, 5000, 1u << 20};
    struct bench bench;
    struct ckv_reader *reader;
    unsigned char *expected;
    unsigned char *buffer = malloc(1u << 20);
    size_t expected_size;
    (void)state;
    TEST_REQUIRE(buffer);
    bench_init(&bench);
    reader = opened(&bench);
    expected = test_io_read_file(bench.disk.io, bench.disk.dir, NAME, &expected_size);
    for (size_t i = 0; i < TEST_COUNT_OF(sizes); i++) {
        struct ckv_reader_source storage = {reader, buffer, sizes[i]};
        struct ckv_writer_options options;
        struct ckv_source source;
        struct ckv_error error;
        unsigned char *bytes;
        size_t size;
        ckv_source_from_reader(&storage, &source);
        assert_false(source.any_thread);
        ckv_writer_options_init(&options);
        options.replace = true;
        assert_ok(ckv_save(bench.disk.io, bench.disk.dir, "b",
                           &ckv_reader_header(reader)->entry, &source, &options, &error),
                  error);
        bytes = test_io_read_file(bench.disk.io, bench.disk.dir, "b", &size);
        assert_int_equal(size, expected_size);
        assert_memory_equal(bytes, expected, size);
        free(bytes);
    }
    ckv_reader_close(reader);
    free(expected);
    free(buffer);
    bench_deinit(&bench);
}

static void a_reader_as_source_reports_what_it_cannot_read(void **state)
{
    struct bench bench;
    unsigned char buffer[4096];
    struct ckv_reader *reader;
    struct ckv_reader_source storage;
    struct ckv_source source;
    struct ckv_error error;
    (void)state;
    bench_init(&bench);
    reader = opened(&bench);
    storage = (struct ckv_reader_source){reader, buffer, sizeof buffer};
    ckv_source_from_reader(&storage, &source);
    set_length(&bench, ckv_reader_header(reader)->prefix.data_start + 10);
    assert_status(ckv_save(bench.disk.io, bench.disk.dir, "b",
                           &ckv_reader_header(reader)->entry, &source, NULL, &error),
                  CKV_IO);
    assert_non_null(strstr(error.text, "write b: "));
    assert_non_null(strstr(error.text, "a.mlxkv: the file ends"));
    assert_false(test_io_exists(bench.disk.io, bench.disk.dir, "b"));
    ckv_reader_close(reader);
    bench_deinit(&bench);
}

/* The folder need not stay open. */
static void the_folder_may_be_closed_after_opening(void **state)
{
    struct bench bench;
    struct ckv_reader *reader;
    struct ckv_error error;
    (void)state;
    bench_init(&bench);
    reader = opened(&bench);
    ckv_io_close_dir(bench.disk.io, &bench.disk.dir);
    assert_ok(ckv_reader_verify(reader, NULL, NULL, NULL, &error), error);
    ckv_reader_close(reader);
    bench_deinit(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_open_file_tells_its_header_and_stat),
        cmocka_unit_test(each_way_not_to_open_has_its_status),
        cmocka_unit_test(a_file_that_ends_early_while_it_is_read_is_an_io_failure),
        cmocka_unit_test(every_failing_call_ends_the_opening_with_its_status),
        cmocka_unit_test(every_failing_allocation_is_out_of_memory),
        cmocka_unit_test(a_header_length_of_4_gib_allocates_nothing),
        cmocka_unit_test(a_touch_sets_the_time_through_the_open_file),
        cmocka_unit_test(a_verification_tells_its_progress_and_can_be_ended),
        cmocka_unit_test(m10_a_corrupted_tensor_is_named_each_time),
        cmocka_unit_test(bytes_in_the_padding_are_told),
        cmocka_unit_test(a_file_cut_while_open_is_an_io_failure),
        cmocka_unit_test(a_reader_as_source_gives_the_same_file),
        cmocka_unit_test(a_reader_as_source_reports_what_it_cannot_read),
        cmocka_unit_test(the_folder_may_be_closed_after_opening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

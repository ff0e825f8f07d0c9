/*
 * The writer when something fails: every call of the disk, every allocation, every
 * callback of a source; and races for its temporary. Each time: the status, nothing left
 * behind.
 */
#include "unit/file_support.h"

#include "lib/counting_alloc.h"
#include "lib/faulty_io.h"
#include "lib/temp_dir.h"
#include <errno.h>
#include <stdio.h>

#define NAME "a.mlxkv"

/* A disk behind a table that fails when told. */
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
    bench->made->entry.created_at_ms = 1;
    bench->made->max_window = 40;
}

static void bench_deinit(struct bench *bench)
{
    assert_true(test_faulty_io_clean(&bench->faulty));
    test_faulty_io_deinit(&bench->faulty);
    test_entry_destroy(bench->made);
    disk_deinit(&bench->disk);
}

static enum ckv_status save(struct bench *bench, const struct ckv_writer_options *options,
                            struct ckv_error *error)
{
    ckv_error_clear(error);
    return ckv_save(&bench->faulty.io, bench->disk.dir, NAME, &bench->made->entry,
                    &bench->made->source, options, error);
}

static size_t count_names(struct bench *bench, const char *suffix)
{
    return test_io_count(bench->disk.io, bench->disk.dir, suffix);
}

/* What is there under the final name is a whole file. */
static void expect_whole(struct bench *bench)
{
    struct ckv_reader *reader = NULL;
    struct ckv_error error;
    assert_ok(
        ckv_reader_open(bench->disk.io, bench->disk.dir, NAME, NULL, &reader, &error),
        error);
    assert_ok(ckv_reader_verify(reader, NULL, NULL, NULL, &error), error);
    ckv_reader_close(reader);
}

/* Fails the nth call of the disk, n = 1, 2, ... until a save gets through. */
static void sweep(int os_errno, enum ckv_status expected, bool replace)
{
    struct ckv_writer_options options;
    size_t failures = 0;
    ckv_writer_options_init(&options);
    options.replace = replace;
    options.sync_every_bytes = 1000;
    for (size_t nth = 1;; nth++) {
        struct bench bench;
        struct ckv_error error;
        enum ckv_status status;
        size_t synced;
        bench_init(&bench);
        test_faulty_io_fail_nth(&bench.faulty, nth, os_errno, false);
        status = save(&bench, &options, &error);
        synced = bench.faulty.counts[TEST_CALL_SYNC_DIR];
        assert_int_equal(count_names(&bench, ".part"), 0);
        assert_int_equal(count_names(&bench, ".mlxkv"), status == CKV_OK || synced > 0);
        if (count_names(&bench, ".mlxkv") > 0)
            expect_whole(&bench);
        if (bench.faulty.fired == 0) {
            assert_status(status, CKV_OK);
            bench_deinit(&bench);
            break;
        }
        if (status != CKV_OK) {
            assert_status(status, expected);
            assert_status(error.status, expected);
            assert_int_equal(error.os_errno, os_errno);
            assert_non_null(strstr(error.text, "write a.mlxkv: "));
            failures++;
        }
        bench_deinit(&bench);
    }
    assert_true(failures > 20);
}

static void every_failing_call_ends_the_write_with_its_status(void **state)
{
    (void)state;
    sweep(EIO, CKV_IO, false);
    sweep(EIO, CKV_IO, true);
    sweep(ENOSPC, CKV_NOSPACE, false);
    sweep(EMFILE, CKV_IO, true);
    sweep(ESTALE, CKV_VANISHED, true);
}

/* A disk that stays broken: the status is still right; what it then holds, a sweeper
 * sees. */
static void a_disk_that_stays_broken_is_no_worse(void **state)
{
    (void)state;
    for (size_t nth = 1;; nth++) {
        struct bench bench;
        struct ckv_error error;
        enum ckv_status status;
        bool fired;
        bench_init(&bench);
        test_faulty_io_fail_nth(&bench.faulty, nth, EIO, true);
        status = save(&bench, NULL, &error);
        fired = bench.faulty.fired > 0;
        assert_status(status, fired ? CKV_IO : CKV_OK);
        bench_deinit(&bench);
        if (!fired)
            break;
    }
}

static void a_short_write_is_never_taken_for_a_whole_one(void **state)
{
    (void)state;
    for (size_t nth = 1; nth < 200; nth++) {
        struct bench bench;
        struct ckv_error error;
        struct test_fault fault = {
            .call = TEST_CALL_WRITE, .nth = nth, .os_errno = ENOSPC, .partial_bytes = 7};
        enum ckv_status status;
        bool fired;
        bench_init(&bench);
        test_faulty_io_fail(&bench.faulty, &fault);
        status = save(&bench, NULL, &error);
        fired = bench.faulty.fired > 0;
        assert_status(status, fired ? CKV_NOSPACE : CKV_OK);
        assert_int_equal(count_names(&bench, ""), !fired);
        bench_deinit(&bench);
        if (!fired)
            return;
    }
    fail_msg("the sweep did not end");
}

/* A failed data sync is final: never synced again, the temporary gone, not published. */
static void a_failed_data_sync_is_final(void **state)
{
    struct bench bench;
    struct ckv_error error;
    struct test_fault fault = {.call = TEST_CALL_SYNC_FILE, .nth = 1, .os_errno = EIO};
    (void)state;
    bench_init(&bench);
    test_faulty_io_fail(&bench.faulty, &fault);
    assert_status(save(&bench, NULL, &error), CKV_IO);
    assert_int_equal(bench.faulty.counts[TEST_CALL_SYNC_FILE], 1);
    assert_int_equal(bench.faulty.counts[TEST_CALL_LINK], 0);
    assert_int_equal(count_names(&bench, ""), 0);
    bench_deinit(&bench);
}

/* Published, but nobody may be told so. */
static void a_failed_folder_sync_leaves_the_file_but_is_a_failure(void **state)
{
    struct bench bench;
    struct ckv_error error;
    struct test_fault fault = {.call = TEST_CALL_SYNC_DIR, .nth = 1, .os_errno = EIO};
    (void)state;
    bench_init(&bench);
    test_faulty_io_fail(&bench.faulty, &fault);
    assert_status(save(&bench, NULL, &error), CKV_IO);
    assert_int_equal(count_names(&bench, ""), 1);
    expect_whole(&bench);
    bench_deinit(&bench);
}

static void every_failing_allocation_is_out_of_memory(void **state)
{
    (void)state;
    for (size_t nth = 1;; nth++) {
        struct bench bench;
        struct test_alloc alloc;
        struct ckv_writer_options options;
        struct ckv_error error;
        enum ckv_status status;
        bool fired;
        bench_init(&bench);
        test_alloc_init(&alloc);
        ckv_writer_options_init(&options);
        options.alloc = &alloc.alloc;
        alloc.fail_at = nth;
        status = save(&bench, &options, &error);
        fired = alloc.failed_count > 0;
        assert_status(status, fired ? CKV_NOMEM : CKV_OK);
        assert_true(test_alloc_clean(&alloc));
        assert_int_equal(count_names(&bench, ""), !fired);
        assert_int_equal(bench.made->view_count, bench.made->done_count);
        test_alloc_deinit(&alloc);
        bench_deinit(&bench);
        if (fired)
            continue;
        assert_true(nth > 4);
        break;
    }
}

static void a_failing_source_ends_the_write_with_its_status(void **state)
{
    (void)state;
    for (size_t nth = 1;; nth++) {
        struct bench bench;
        struct ckv_error error;
        enum ckv_status status;
        bench_init(&bench);
        bench.made->max_window = 0;
        bench.made->fail_view = nth;
        bench.made->fail_status = CKV_ENGINE;
        status = save(&bench, NULL, &error);
        if (status == CKV_OK) {
            assert_int_equal(nth, bench.made->tensor_count + 1);
            bench_deinit(&bench);
            break;
        }
        assert_status(status, CKV_ENGINE);
        assert_non_null(strstr(error.text, "caches["));
        assert_int_equal(count_names(&bench, ""), 0);
        bench_deinit(&bench);
    }
}

/* A source that answers nonsense. */
struct liar {
    size_t size;
    const void *data;
    enum ckv_status done_status;
    size_t done_count;
};

static enum ckv_status lie(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                           size_t wanted, const void **data, size_t *size,
                           struct ckv_error *error)
{
    struct liar *liar = ctx;
    (void)cache;
    (void)tensor;
    (void)offset;
    (void)error;
    *data = liar->data;
    *size = liar->size == SIZE_MAX ? wanted + 1 : liar->size ? liar->size : 0;
    return CKV_OK;
}

static enum ckv_status lie_done(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                                size_t size, struct ckv_error *error)
{
    struct liar *liar = ctx;
    (void)cache;
    (void)tensor;
    (void)offset;
    (void)size;
    (void)error;
    liar->done_count++;
    return liar->done_status; /* and no text */
}

static void a_source_that_answers_nonsense_ends_the_write(void **state)
{
    struct bench bench;
    unsigned char byte[64] = {0};
    struct liar liar = {.data = byte};
    struct ckv_source source = {&liar, true, lie, lie_done};
    struct ckv_error error;
    (void)state;
    bench_init(&bench);
    bench.made->source = source;
    assert_status(save(&bench, NULL, &error), CKV_ENGINE); /* no bytes */
    liar.size = SIZE_MAX;
    assert_status(save(&bench, NULL, &error), CKV_ENGINE); /* more than wanted */
    liar.size = 1;
    liar.data = NULL;
    assert_status(save(&bench, NULL, &error), CKV_ENGINE); /* no memory */
    assert_non_null(strstr(error.text, "caches[0].tensors[0]: the source lent"));
    assert_int_equal(liar.done_count, 0);
    liar.data = byte;
    liar.done_status = CKV_CANCELLED;
    assert_status(save(&bench, NULL, &error), CKV_CANCELLED);
    assert_status(error.status, CKV_CANCELLED);
    assert_true(strlen(error.text) > 0);
    assert_int_equal(liar.done_count, 1);
    assert_int_equal(count_names(&bench, ""), 0);
    bench_deinit(&bench);
}

/* A window is given back also when the write of it fails. */
static void windows_are_given_back_when_the_write_fails(void **state)
{
    struct bench bench;
    struct ckv_error error;
    struct test_fault fault = {.call = TEST_CALL_WRITE, .nth = 1, .os_errno = EIO};
    (void)state;
    bench_init(&bench);
    bench.made->max_window = 0;
    test_faulty_io_fail(&bench.faulty, &fault);
    assert_status(save(&bench, NULL, &error), CKV_IO);
    assert_int_equal(bench.made->view_count, 1);
    assert_int_equal(bench.made->done_count, 1);
    bench_deinit(&bench);
}

/* One small buffer lent again and again for a large tensor. */
static enum ckv_status lend_same(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                                 size_t wanted, const void **data, size_t *size,
                                 struct ckv_error *error)
{
    static unsigned char block[64 * 1024];
    size_t limit = *(size_t *)ctx;
    (void)cache;
    (void)tensor;
    (void)offset;
    (void)error;
    *data = block;
    *size = wanted < sizeof block ? wanted : sizeof block;
    if (*size > limit)
        *size = limit;
    return CKV_OK;
}

static size_t peak_of_write(uint64_t tensor_bytes, size_t chunk_bytes, size_t lent)
{
    struct disk disk;
    struct test_alloc alloc;
    struct ckv_tensor tensor = {.dtype = CKV_DTYPE_UINT8,
                                .rank = 1,
                                .shape = {tensor_bytes},
                                .bytes = tensor_bytes};
    struct ckv_cache cache = {
        .kind = CKV_CACHE_SSM, .tensors = &tensor, .tensor_count = 1};
    struct ckv_entry entry = {.caches = &cache, .cache_count = 1};
    struct ckv_source source = {&lent, true, lend_same, NULL};
    struct ckv_writer_options options;
    struct ckv_error error;
    size_t peak;
    disk_init(&disk);
    test_alloc_init(&alloc);
    ckv_writer_options_init(&options);
    options.alloc = &alloc.alloc;
    options.chunk_bytes = chunk_bytes;
    assert_ok(ckv_save(disk.io, disk.dir, NAME, &entry, &source, &options, &error),
              error);
    peak = alloc.peak_bytes;
    assert_true(test_alloc_clean(&alloc));
    test_alloc_deinit(&alloc);
    disk_deinit(&disk);
    return peak;
}

static void memory_is_a_chunk_and_the_header_whatever_the_size(void **state)
{
    const size_t header = 16384 + 8192; /* its block, and the plan */
    (void)state;
    /* 4 MiB chunks by default, lent in pieces: one chunk is gathered. */
    assert_true(peak_of_write(64u << 20, 0, SIZE_MAX) <= (4u << 20) + header);
    assert_true(peak_of_write(64u << 20, 1u << 20, 1000) <= (1u << 20) + header);
    /* Whole chunks lent: nothing but the header. */
    assert_true(peak_of_write(64u << 20, 64u << 10, SIZE_MAX) <= header);
    /* Small tensors need no large chunk. */
    assert_true(peak_of_write(100, 0, 10) <= 100 + header);
}

/* A sweeper takes the temporary's name between its creation and its lock. */
static void sweep_temporary(void *ctx, const struct test_call_event *event, size_t nth)
{
    struct bench *bench = ctx;
    struct test_names names;
    (void)event;
    if (nth != 1)
        return;
    test_names_init(&names, bench->disk.io, bench->disk.dir);
    assert_int_equal(names.count, 1);
    assert_status(ckv_io_remove(bench->disk.io, bench->disk.dir, names.names[0], NULL),
                  CKV_OK);
    test_names_deinit(&names);
}

static void a_temporary_swept_before_its_lock_is_made_anew(void **state)
{
    struct bench bench;
    struct ckv_error error;
    (void)state;
    bench_init(&bench);
    bench.faulty.hook = sweep_temporary;
    bench.faulty.hook_ctx = &bench;
    bench.faulty.hook_call = TEST_CALL_LOCK;
    assert_ok(save(&bench, NULL, &error), error);
    assert_int_equal(bench.faulty.counts[TEST_CALL_LOCK], 2);
    assert_int_equal(count_names(&bench, ""), 1);
    expect_whole(&bench);
    bench_deinit(&bench);
}

static void a_temporary_in_a_sweepers_grip_is_left_to_it(void **state)
{
    struct bench bench;
    struct ckv_error error;
    struct test_fault fault = {
        .call = TEST_CALL_LOCK, .nth = 1, .os_errno = EAGAIN, .status = CKV_AGAIN};
    (void)state;
    bench_init(&bench);
    test_faulty_io_fail(&bench.faulty, &fault);
    assert_ok(save(&bench, NULL, &error), error);
    assert_int_equal(count_names(&bench, ".part"), 1);
    assert_int_equal(count_names(&bench, ".mlxkv"), 1);
    bench_deinit(&bench);
}

static void locks_that_never_come_end_in_again(void **state)
{
    struct bench bench;
    struct ckv_error error;
    struct test_fault fault = {
        .call = TEST_CALL_LOCK, .nth = 1, .from_then_on = true, .status = CKV_AGAIN};
    (void)state;
    bench_init(&bench);
    test_faulty_io_fail(&bench.faulty, &fault);
    assert_status(save(&bench, NULL, &error), CKV_AGAIN);
    assert_int_equal(count_names(&bench, ".mlxkv"), 0);
    bench_deinit(&bench);
}

static void where_there_are_no_locks_a_file_is_written_all_the_same(void **state)
{
    struct bench bench;
    struct ckv_error error;
    (void)state;
    bench_init(&bench);
    test_memory_io_set_unsupported(bench.disk.memory, true, true);
    assert_ok(save(&bench, NULL, &error), error);
    expect_whole(&bench);
    bench_deinit(&bench);
}

/* The temporary's name has come to mean another file: it is not ours to remove. */
static void replace_temporary(void *ctx, const struct test_call_event *event, size_t nth)
{
    struct bench *bench = ctx;
    struct test_names names;
    (void)event;
    (void)nth;
    test_names_init(&names, bench->disk.io, bench->disk.dir);
    assert_int_equal(names.count, 1);
    test_io_write_file(bench->disk.io, bench->disk.dir, "other", "x", 1);
    assert_status(ckv_io_rename(bench->disk.io, bench->disk.dir, "other", bench->disk.dir,
                                names.names[0], NULL),
                  CKV_OK);
    test_names_deinit(&names);
}

static void a_temporary_that_is_another_file_now_is_not_removed(void **state)
{
    struct bench bench;
    struct ckv_error error;
    struct test_fault fault = {.call = TEST_CALL_SYNC_FILE, .nth = 1, .os_errno = EIO};
    (void)state;
    bench_init(&bench);
    bench.faulty.hook = replace_temporary;
    bench.faulty.hook_ctx = &bench;
    bench.faulty.hook_call = TEST_CALL_SYNC_FILE;
    test_faulty_io_fail(&bench.faulty, &fault);
    assert_status(save(&bench, NULL, &error), CKV_IO);
    assert_int_equal(count_names(&bench, ".part"), 1);
    bench_deinit(&bench);
}

static void temporaries_have_the_name_and_lock_of_the_contract(void **state)
{
    struct disk disk;
    struct ckv_temporary made;
    struct ckv_io_stat stat;
    struct ckv_io_file other;
    struct ckv_error error;
    (void)state;
    disk_init(&disk);
    assert_ok(ckv_temporary_create(disk.io, disk.dir, &made, &error), error);
    assert_int_equal(strlen(made.name), 1 + 36 + 5);
    assert_int_equal(made.name[0], '.');
    assert_string_equal(made.name + 37, ".part");
    assert_ok(ckv_io_stat_file(disk.io, made.file, &stat, &error), error);
    assert_int_equal(stat.mode, 0600);
    assert_int_equal(stat.size_bytes, 0);
    assert_ok(
        ckv_io_open_file(disk.io, disk.dir, made.name, CKV_IO_READ_WRITE, &other, &error),
        error);
    assert_status(disk.io->lock(disk.io->ctx, other, CKV_IO_LOCK_SHARED, &error),
                  CKV_AGAIN);
    ckv_io_close_file(disk.io, &other);
    ckv_io_close_file(disk.io, &made.file);
    disk_deinit(&disk);
}

/* On the real disk: no descriptor is left, whatever fails. */
static void no_descriptor_is_left_on_a_real_disk(void **state)
{
    struct test_dir folder;
    struct ckv_io_dir dir;
    struct test_faulty_io faulty;
    struct test_entry *made = test_entry_of_kind(CKV_CACHE_KV, 5, 1);
    struct ckv_writer_options options;
    struct ckv_error error;
    int before;
    bool through = false;
    (void)state;
    test_dir_init(&folder);
    test_faulty_io_init(&faulty, ckv_io_posix());
    assert_ok(ckv_io_open_root(ckv_io_posix(), folder.path, false, NULL, &dir, &error),
              error);
    ckv_writer_options_init(&options);
    options.replace = true;
    before = test_count_fds();
    for (size_t nth = 1; !through; nth++) {
        enum ckv_status status;
        test_faulty_io_reset(&faulty);
        test_faulty_io_fail_nth(&faulty, nth, EIO, false);
        status =
            ckv_save(&faulty.io, dir, NAME, &made->entry, &made->source, &options, NULL);
        through = faulty.fired == 0;
        assert_status(status, through ? CKV_OK : CKV_IO);
        assert_int_equal(test_count_fds(), before);
        assert_int_equal(test_io_count(ckv_io_posix(), dir, ".part"), 0);
    }
    ckv_io_close_dir(ckv_io_posix(), &dir);
    test_faulty_io_deinit(&faulty);
    test_entry_destroy(made);
    test_dir_deinit(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_call_ends_the_write_with_its_status),
        cmocka_unit_test(a_disk_that_stays_broken_is_no_worse),
        cmocka_unit_test(a_short_write_is_never_taken_for_a_whole_one),
        cmocka_unit_test(a_failed_data_sync_is_final),
        cmocka_unit_test(a_failed_folder_sync_leaves_the_file_but_is_a_failure),
        cmocka_unit_test(every_failing_allocation_is_out_of_memory),
        cmocka_unit_test(a_failing_source_ends_the_write_with_its_status),
        cmocka_unit_test(a_source_that_answers_nonsense_ends_the_write),
        cmocka_unit_test(windows_are_given_back_when_the_write_fails),
        cmocka_unit_test(memory_is_a_chunk_and_the_header_whatever_the_size),
        cmocka_unit_test(a_temporary_swept_before_its_lock_is_made_anew),
        cmocka_unit_test(a_temporary_in_a_sweepers_grip_is_left_to_it),
        cmocka_unit_test(locks_that_never_come_end_in_again),
        cmocka_unit_test(where_there_are_no_locks_a_file_is_written_all_the_same),
        cmocka_unit_test(a_temporary_that_is_another_file_now_is_not_removed),
        cmocka_unit_test(temporaries_have_the_name_and_lock_of_the_contract),
        cmocka_unit_test(no_descriptor_is_left_on_a_real_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

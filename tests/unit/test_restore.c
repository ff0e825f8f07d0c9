/*
 * A restore as a transaction: any windows, any steps; a failure or an abort drops the
 * sink exactly once, and nothing is valid before finish.
 */
#include "unit/file_support.h"

#include "lib/counting_alloc.h"
#include "lib/faulty_io.h"
#include <errno.h>
#include <stdio.h>

#define NAME "a.mlxkv"

struct bench {
    struct disk disk;
    struct test_faulty_io faulty;
    struct test_entry *made;
    struct ckv_reader *reader;
    struct test_sink *sink;
};

static void bench_init_with(struct bench *bench, struct test_entry *made)
{
    struct ckv_error error;
    disk_init(&bench->disk);
    test_faulty_io_init(&bench->faulty, bench->disk.io);
    bench->made = made;
    disk_save(&bench->disk, NAME, bench->made);
    assert_ok(ckv_reader_open(&bench->faulty.io, bench->disk.dir, NAME, NULL,
                              &bench->reader, &error),
              error);
    bench->sink = test_sink_create(&ckv_reader_header(bench->reader)->entry);
    test_faulty_io_reset(&bench->faulty);
}

static void bench_init(struct bench *bench)
{
    bench_init_with(bench, test_entry_of_all_kinds(13, 3));
}

static void bench_deinit(struct bench *bench)
{
    test_sink_destroy(bench->sink);
    ckv_reader_close(bench->reader);
    assert_true(test_faulty_io_clean(&bench->faulty));
    test_faulty_io_deinit(&bench->faulty);
    test_entry_destroy(bench->made);
    disk_deinit(&bench->disk);
}

static enum ckv_status restore(struct bench *bench,
                               const struct ckv_restore_options *options,
                               struct ckv_error *error)
{
    struct ckv_restore *restore = NULL;
    enum ckv_status status =
        ckv_restore_begin(bench->reader, &bench->sink->sink, options, &restore, error);
    return status ? status : ckv_restore_finish(restore, error);
}

/* XORs one byte of a tensor. */
static void damage(struct bench *bench, size_t cache, size_t tensor, uint64_t at)
{
    const struct ckv_header *header = ckv_reader_header(bench->reader);
    uint64_t place = header->prefix.data_start +
                     header->entry.caches[cache].tensors[tensor].offset + at;
    struct ckv_io_file file;
    struct ckv_error error;
    unsigned char byte;
    size_t done;
    assert_ok(ckv_io_open_file(bench->disk.io, bench->disk.dir, NAME, CKV_IO_READ_WRITE,
                               &file, &error),
              error);
    assert_ok(ckv_io_read(bench->disk.io, file, &byte, 1, place, &done, &error), error);
    byte ^= 0x10;
    assert_ok(ckv_io_write(bench->disk.io, file, &byte, 1, place, &error), error);
    ckv_io_close_file(bench->disk.io, &file);
}

static void all_bytes_arrive_through_any_windows_and_steps(void **state)
{
    static const size_t windows[] = {0, 1, 100, 4096, 65536, 70000, 300000};
    static const size_t chunks[] = {0, 64, 1000, 100000, 1u << 20};
    /* kv tensors of 2 heads x 300 rows x 1024 x 2 bytes = 1.2 MB each. */
    static const enum ckv_cache_kind kinds[] = {CKV_CACHE_SSM, CKV_CACHE_KV};
    struct test_entry_options made = {
        .token_count = 300, .kinds = kinds, .kind_count = 2, .head_dim = 1024, .seed = 9};
    struct bench bench;
    (void)state;
    bench_init_with(&bench, test_entry_create(&made));
    for (size_t i = 0; i < TEST_COUNT_OF(windows); i++) {
        for (size_t j = 0; j < TEST_COUNT_OF(chunks); j++) {
            struct ckv_restore_options options;
            struct ckv_error error;
            if (windows[i] == 1 && j != 2)
                continue; /* once is enough for a million windows */
            test_sink_destroy(bench.sink);
            bench.sink = test_sink_create(&ckv_reader_header(bench.reader)->entry);
            bench.sink->max_window = windows[i];
            ckv_restore_options_init(&options);
            options.chunk_bytes = chunks[j];
            assert_ok(restore(&bench, &options, &error), error);
            assert_true(test_sink_equals(bench.sink, bench.made));
            assert_int_equal(bench.sink->drop_count, 0);
            assert_int_equal(bench.sink->lend_count, bench.sink->took_count);
        }
    }
    bench_deinit(&bench);
}

static void small_windows_do_not_make_small_reads(void **state)
{
    struct bench bench;
    struct ckv_error error;
    (void)state;
    bench_init(&bench);
    bench.sink->max_window = 16;
    assert_ok(restore(&bench, NULL, &error), error);
    assert_true(bench.sink->lend_count > 100);
    assert_int_equal(bench.faulty.counts[TEST_CALL_READ], bench.made->tensor_count);
    assert_int_equal(bench.faulty.read_bytes, ckv_entry_tensor_bytes(&bench.made->entry));
    bench_deinit(&bench);
}

static void steps_are_bounded_and_counted(void **state)
{
    struct bench bench;
    struct ckv_restore_options options;
    struct ckv_restore *running = NULL;
    struct ckv_error error;
    uint64_t before = 0;
    size_t steps = 0;
    bool more = true;
    (void)state;
    bench_init(&bench);
    ckv_restore_options_init(&options);
    options.chunk_bytes = 100;
    assert_ok(
        ckv_restore_begin(bench.reader, &bench.sink->sink, &options, &running, &error),
        error);
    assert_int_equal(bench.sink->lend_count, 0);
    while (more) {
        uint64_t done;
        assert_ok(ckv_restore_step(running, &more, &error), error);
        done = ckv_restore_done_bytes(running);
        assert_true(done > before && done - before <= 100);
        before = done;
        steps++;
    }
    assert_int_equal(before, ckv_entry_tensor_bytes(&bench.made->entry));
    assert_true(steps >= before / 100);
    /* Asking on changes nothing. */
    assert_ok(ckv_restore_step(running, &more, &error), error);
    assert_false(more);
    assert_ok(ckv_restore_finish(running, &error), error);
    assert_true(test_sink_equals(bench.sink, bench.made));
    assert_int_equal(bench.sink->drop_count, 0);
    bench_deinit(&bench);
}

/* S30: damage in any tensor fails the restore, names it, and drops the sink once. */
static void s30_damage_in_any_tensor_gives_nothing(void **state)
{
    struct bench bench;
    size_t flat = 0;
    (void)state;
    bench_init(&bench);
    for (size_t i = 0; i < bench.made->entry.cache_count; i++) {
        for (size_t j = 0; j < bench.made->entry.caches[i].tensor_count; j++, flat++) {
            uint64_t last = bench.made->entry.caches[i].tensors[j].bytes - 1;
            struct ckv_error error;
            char place[128];
            test_sink_destroy(bench.sink);
            bench.sink = test_sink_create(&ckv_reader_header(bench.reader)->entry);
            damage(&bench, i, j, flat % 2 ? last : 0);
            assert_status(restore(&bench, NULL, &error), CKV_CORRUPT);
            (void)snprintf(place, sizeof place,
                           "a.mlxkv: caches[%zu] (%s).tensors[%zu].hash", i,
                           ckv_cache_kind_name(bench.made->entry.caches[i].kind), j);
            assert_non_null(strstr(error.text, place));
            assert_int_equal(bench.sink->drop_count, 1);
            damage(&bench, i, j, flat % 2 ? last : 0);
        }
    }
    bench_deinit(&bench);
}

static void without_verification_damage_passes(void **state)
{
    static const enum ckv_cache_kind kinds[] = {CKV_CACHE_KV, CKV_CACHE_SSM};
    struct test_entry_options made = {.token_count = 13, .kinds = kinds, .kind_count = 2};
    struct bench bench;
    struct ckv_restore_options options;
    struct ckv_error error;
    (void)state;
    bench_init_with(&bench, test_entry_create(&made));
    ckv_restore_options_init(&options);
    assert_true(options.verify);
    options.verify = false;
    damage(&bench, 0, 0, 3);
    assert_ok(restore(&bench, &options, &error), error);
    assert_false(test_sink_equals(bench.sink, bench.made));
    damage(&bench, 0, 0, 3);
    bench_deinit(&bench);
}

static void entries_with_engine_state_are_always_verified(void **state)
{
    struct bench bench;
    struct ckv_restore_options options;
    struct ckv_error error;
    (void)state;
    bench_init(&bench); /* the last cache is a state */
    ckv_restore_options_init(&options);
    options.verify = false;
    damage(&bench, 6, 0, 0);
    assert_status(restore(&bench, &options, &error), CKV_CORRUPT);
    damage(&bench, 6, 0, 0);
    bench_deinit(&bench);
}

/* Every step failing, then abort: dropped once, not before. */
static void an_abort_drops_the_sink_once(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    for (size_t steps = 0; steps < bench.made->tensor_count; steps++) {
        struct ckv_restore *running = NULL;
        struct ckv_error error;
        bool more;
        test_sink_destroy(bench.sink);
        bench.sink = test_sink_create(&ckv_reader_header(bench.reader)->entry);
        assert_ok(
            ckv_restore_begin(bench.reader, &bench.sink->sink, NULL, &running, &error),
            error);
        for (size_t i = 0; i < steps; i++)
            assert_ok(ckv_restore_step(running, &more, &error), error);
        assert_int_equal(bench.sink->drop_count, 0);
        ckv_restore_abort(running);
        assert_int_equal(bench.sink->drop_count, 1);
    }
    ckv_restore_abort(NULL);
    bench_deinit(&bench);
}

static void after_a_failed_step_only_abort_is_allowed(void **state)
{
    struct bench bench;
    struct ckv_restore *running = NULL;
    struct ckv_error error;
    bool more = true;
    (void)state;
    bench_init(&bench);
    bench.sink->fail_lend = 1;
    bench.sink->fail_status = CKV_REFUSED;
    assert_ok(ckv_restore_begin(bench.reader, &bench.sink->sink, NULL, &running, &error),
              error);
    assert_status(ckv_restore_step(running, &more, &error), CKV_REFUSED);
    assert_false(more);
    assert_non_null(strstr(error.text, "a.mlxkv: caches[0].tensors[0]: "));
    assert_status(ckv_restore_step(running, &more, &error), CKV_INVALID);
    assert_int_equal(bench.sink->drop_count, 0);
    ckv_restore_abort(running);
    assert_int_equal(bench.sink->drop_count, 1);
    bench_deinit(&bench);
}

static void a_failing_sink_ends_the_restore_with_its_status(void **state)
{
    (void)state;
    for (int took = 0; took < 2; took++) {
        for (size_t nth = 1;; nth++) {
            struct bench bench;
            struct ckv_error error;
            enum ckv_status status;
            bench_init(&bench);
            if (took)
                bench.sink->fail_took = nth;
            else
                bench.sink->fail_lend = nth;
            status = restore(&bench, NULL, &error);
            if (status == CKV_OK) {
                assert_int_equal(nth, bench.made->tensor_count + 1);
                bench_deinit(&bench);
                break;
            }
            assert_status(status, CKV_ENGINE);
            assert_int_equal(bench.sink->drop_count, 1);
            bench_deinit(&bench);
        }
    }
}

static void every_failing_read_ends_the_restore_with_its_status(void **state)
{
    bool through = false;
    (void)state;
    for (size_t nth = 1; !through; nth++) {
        for (int cut = 0; cut < 2; cut++) {
            struct bench bench;
            struct test_fault fault = {
                .call = TEST_CALL_READ, .nth = nth, .os_errno = cut ? 0 : EIO};
            struct ckv_error error;
            enum ckv_status status;
            bench_init(&bench);
            test_faulty_io_fail(&bench.faulty, &fault);
            status = restore(&bench, NULL, &error);
            through = bench.faulty.fired == 0;
            assert_status(status, through ? CKV_OK : CKV_IO);
            assert_int_equal(bench.sink->drop_count, !through);
            if (!through && cut)
                assert_non_null(strstr(error.text, "the file ends at byte"));
            bench_deinit(&bench);
        }
    }
}

static void every_failing_allocation_is_out_of_memory(void **state)
{
    struct bench bench;
    bool through = false;
    (void)state;
    bench_init(&bench);
    for (size_t nth = 1; !through; nth++) {
        struct test_alloc alloc;
        struct ckv_reader *reader = NULL;
        struct ckv_restore *running = NULL;
        struct test_sink *sink;
        struct ckv_error error;
        enum ckv_status status;
        test_alloc_init(&alloc);
        assert_ok(ckv_reader_open(bench.disk.io, bench.disk.dir, NAME, &alloc.alloc,
                                  &reader, &error),
                  error);
        sink = test_sink_create(&ckv_reader_header(reader)->entry);
        sink->max_window = 10;
        alloc.fail_at = alloc.call_count + nth;
        status = ckv_restore_begin(reader, &sink->sink, NULL, &running, &error);
        if (!status)
            status = ckv_restore_finish(running, &error);
        through = alloc.failed_count == 0;
        assert_status(status, through ? CKV_OK : CKV_NOMEM);
        /* What never began drops nothing. */
        assert_int_equal(sink->drop_count, !through && nth > 1);
        test_sink_destroy(sink);
        ckv_reader_close(reader);
        assert_true(test_alloc_clean(&alloc));
        test_alloc_deinit(&alloc);
        if (through)
            assert_int_equal(nth, 3);
    }
    bench_deinit(&bench);
}

/* Lends nonsense: nothing, or more than was wanted. */
static enum ckv_status lend_nonsense(void *ctx, size_t cache, size_t tensor,
                                     uint64_t offset, size_t wanted, void **data,
                                     size_t *size, struct ckv_error *error)
{
    static unsigned char byte;
    int way = *(int *)ctx;
    (void)cache;
    (void)tensor;
    (void)offset;
    (void)error;
    *data = way == 2 ? NULL : &byte;
    *size = way == 0 ? 0 : way == 1 ? wanted + 1 : 1;
    return CKV_OK;
}

static void a_sink_that_lends_nonsense_ends_the_restore(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    for (int way = 0; way < 3; way++) {
        struct ckv_sink sink = {&way, lend_nonsense, NULL, NULL};
        struct ckv_restore *running = NULL;
        struct ckv_error error;
        assert_ok(ckv_restore_begin(bench.reader, &sink, NULL, &running, &error), error);
        assert_status(ckv_restore_finish(running, &error), CKV_ENGINE);
        assert_non_null(strstr(error.text, "caches[0].tensors[0]: the sink lent"));
    }
    bench_deinit(&bench);
}

static void options_are_checked(void **state)
{
    struct bench bench;
    struct ckv_restore_options options;
    struct ckv_error error;
    (void)state;
    bench_init(&bench);
    memset(&options, 0, sizeof options);
    assert_status(restore(&bench, &options, &error), CKV_INVALID);
    assert_int_equal(bench.sink->drop_count, 0);
    options.size = sizeof options.size; /* knows no option: all defaults */
    assert_ok(restore(&bench, &options, &error), error);
    assert_true(test_sink_equals(bench.sink, bench.made));
    bench_deinit(&bench);
}

/* Empty tensors are never lent, but their hash is compared. */
static void empty_tensors_are_verified_too(void **state)
{
    static const char text[] =
        "{\"formatVersion\":3,\"createdAt\":1,\"tokens\":[],\"caches\":[{\"kind\":"
        "\"ssm\","
        "\"offset\":0,\"tensors\":[{\"off\":0,\"bytes\":0,\"shape\":[0,4],\"dtype\":10,"
        "\"hash\":\"0409638ee2bde45%c\"}]}]}";
    static const char digits[] = {'9', '8'};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct disk disk;
        unsigned char file[16384] = {0};
        char *json = (char *)file + CKV_PREFIX_BYTES;
        struct ckv_reader *reader = NULL;
        struct ckv_restore *running = NULL;
        struct test_sink *sink;
        struct text_header header;
        struct ckv_error error;
        (void)snprintf(json, 1000, text, digits[i]);
        header = text_header(json, strlen(json));
        ckv_prefix_encode(&header.prefix, file);
        disk_init(&disk);
        test_io_write_file(disk.io, disk.dir, NAME, file, sizeof file);
        assert_ok(ckv_reader_open(disk.io, disk.dir, NAME, NULL, &reader, &error), error);
        sink = test_sink_create(&ckv_reader_header(reader)->entry);
        assert_ok(ckv_restore_begin(reader, &sink->sink, NULL, &running, &error), error);
        assert_status(ckv_restore_finish(running, &error), i == 0 ? CKV_OK : CKV_CORRUPT);
        assert_int_equal(sink->lend_count, 0);
        assert_int_equal(sink->drop_count, i);
        test_sink_destroy(sink);
        ckv_reader_close(reader);
        disk_deinit(&disk);
    }
}

static void memory_does_not_depend_on_the_size(void **state)
{
    static const enum ckv_cache_kind kinds[] = {CKV_CACHE_KV};
    struct test_entry_options made = {
        .token_count = 2000, .kinds = kinds, .kind_count = 1, .head_dim = 2048};
    struct bench bench;
    struct test_alloc alloc;
    struct ckv_reader *reader = NULL;
    struct ckv_restore *running = NULL;
    struct ckv_error error;
    size_t before;
    (void)state;
    bench_init_with(&bench, test_entry_create(&made)); /* 2 x 16 MB */
    test_alloc_init(&alloc);
    assert_ok(ckv_reader_open(bench.disk.io, bench.disk.dir, NAME, &alloc.alloc, &reader,
                              &error),
              error);
    before = alloc.live_bytes;
    bench.sink->max_window = 4096;
    assert_ok(ckv_restore_begin(reader, &bench.sink->sink, NULL, &running, &error),
              error);
    assert_ok(ckv_restore_finish(running, &error), error);
    assert_true(test_sink_equals(bench.sink, bench.made));
    assert_true(alloc.peak_bytes - before <= (256u << 10) + 1024);
    ckv_reader_close(reader);
    assert_true(test_alloc_clean(&alloc));
    test_alloc_deinit(&alloc);
    bench_deinit(&bench);
}

static void plain_memory_is_source_and_sink(void **state)
{
    struct bench bench;
    struct ckv_memory_sink to;
    struct ckv_memory_source from;
    struct ckv_sink sink;
    struct ckv_source source;
    struct ckv_restore *running = NULL;
    struct ckv_error error;
    const struct ckv_entry *entry;
    (void)state;
    bench_init(&bench);
    entry = &ckv_reader_header(bench.reader)->entry;
    to = (struct ckv_memory_sink){entry, bench.sink->tensors};
    ckv_sink_to_memory(&to, &sink);
    assert_ok(ckv_restore_begin(bench.reader, &sink, NULL, &running, &error), error);
    assert_ok(ckv_restore_finish(running, &error), error);
    for (size_t i = 0; i < bench.made->tensor_count; i++)
        assert_memory_equal(bench.sink->tensors[i], bench.made->tensors[i],
                            bench.sink->sizes[i]);
    from = (struct ckv_memory_source){entry, (const void *const *)bench.sink->tensors};
    ckv_source_from_memory(&from, &source);
    assert_true(source.any_thread);
    assert_ok(ckv_save(bench.disk.io, bench.disk.dir, "b", entry, &source, NULL, &error),
              error);
    assert_ok(ckv_restore_begin(bench.reader, &sink, NULL, &running, &error), error);
    ckv_restore_abort(running); /* it has no drop */
    bench_deinit(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_bytes_arrive_through_any_windows_and_steps),
        cmocka_unit_test(small_windows_do_not_make_small_reads),
        cmocka_unit_test(steps_are_bounded_and_counted),
        cmocka_unit_test(s30_damage_in_any_tensor_gives_nothing),
        cmocka_unit_test(without_verification_damage_passes),
        cmocka_unit_test(entries_with_engine_state_are_always_verified),
        cmocka_unit_test(an_abort_drops_the_sink_once),
        cmocka_unit_test(after_a_failed_step_only_abort_is_allowed),
        cmocka_unit_test(a_failing_sink_ends_the_restore_with_its_status),
        cmocka_unit_test(every_failing_read_ends_the_restore_with_its_status),
        cmocka_unit_test(every_failing_allocation_is_out_of_memory),
        cmocka_unit_test(a_sink_that_lends_nonsense_ends_the_restore),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(empty_tensors_are_verified_too),
        cmocka_unit_test(memory_does_not_depend_on_the_size),
        cmocka_unit_test(plain_memory_is_source_and_sink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

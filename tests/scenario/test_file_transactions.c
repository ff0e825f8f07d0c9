/*
 * Scenarios of layers 3 and 4, each named after its number: what people lost entries and
 * answers to, shown on whole files.
 */
#include "unit/file_support.h"

#include "lib/faulty_io.h"
#include <errno.h>
#include <stdio.h>

#define NAME "a.mlxkv"

static struct ckv_reader *opened(struct disk *disk, const char *name)
{
    struct ckv_reader *reader = NULL;
    struct ckv_error error;
    assert_ok(ckv_reader_open(disk->io, disk->dir, name, NULL, &reader, &error), error);
    return reader;
}

static void expect_same(struct disk *disk, const char *name, struct test_entry *made)
{
    struct ckv_reader *reader = opened(disk, name);
    struct test_sink *sink = test_sink_create(&ckv_reader_header(reader)->entry);
    struct ckv_restore *restore = NULL;
    struct ckv_error error;
    assert_true(test_entry_same(&ckv_reader_header(reader)->entry, &made->entry));
    assert_ok(ckv_restore_begin(reader, &sink->sink, NULL, &restore, &error), error);
    assert_ok(ckv_restore_finish(restore, &error), error);
    assert_true(test_sink_equals(sink, made));
    test_sink_destroy(sink);
    ckv_reader_close(reader);
}

/* S30: whatever tensor the disk fails at, the caller gets nothing, told exactly once. */
static void s30_a_failure_at_any_read_gives_nothing_to_the_caller(void **state)
{
    struct disk disk;
    struct test_entry *made = test_entry_of_all_kinds(20, 1);
    struct test_faulty_io faulty;
    struct ckv_reader *reader = NULL;
    struct ckv_error error;
    bool through = false;
    (void)state;
    disk_init(&disk);
    disk_save(&disk, NAME, made);
    test_faulty_io_init(&faulty, disk.io);
    assert_ok(ckv_reader_open(&faulty.io, disk.dir, NAME, NULL, &reader, &error), error);
    for (size_t nth = 1; !through; nth++) {
        struct test_sink *sink = test_sink_create(&ckv_reader_header(reader)->entry);
        struct ckv_restore *restore = NULL;
        enum ckv_status status;
        test_faulty_io_reset(&faulty);
        test_faulty_io_fail_nth(&faulty, nth, EIO, false);
        assert_ok(ckv_restore_begin(reader, &sink->sink, NULL, &restore, &error), error);
        status = ckv_restore_finish(restore, &error);
        through = faulty.fired == 0;
        assert_status(status, through ? CKV_OK : CKV_IO);
        assert_int_equal(sink->drop_count, !through);
        test_sink_destroy(sink);
    }
    ckv_reader_close(reader);
    test_faulty_io_deinit(&faulty);
    test_entry_destroy(made);
    disk_deinit(&disk);
}

struct onlooker {
    struct disk *disk;
    struct test_entry *old;
    struct test_entry *fresh;
    size_t saw_old;
    size_t saw_new;
};

/* Reads the entry as another process would, in the middle of a write. */
static void look(void *ctx, const struct test_call_event *event, size_t nth)
{
    struct onlooker *onlooker = ctx;
    struct ckv_reader *reader = opened(onlooker->disk, NAME);
    bool is_old =
        test_entry_same(&ckv_reader_header(reader)->entry, &onlooker->old->entry);
    (void)event;
    (void)nth;
    ckv_reader_close(reader);
    expect_same(onlooker->disk, NAME, is_old ? onlooker->old : onlooker->fresh);
    if (is_old)
        onlooker->saw_old++;
    else
        onlooker->saw_new++;
}

/* S31: before each call of a write a reader sees the old entry or the new one, whole. */
static void s31_a_reader_sees_the_old_entry_or_the_new_one(void **state)
{
    struct disk disk;
    struct test_entry *old = test_entry_of_kind(CKV_CACHE_KV, 5, 1);
    struct test_entry *made = test_entry_of_all_kinds(9, 2);
    struct onlooker onlooker = {&disk, old, made, 0, 0};
    struct test_faulty_io faulty;
    struct ckv_writer_options options;
    struct ckv_error error;
    (void)state;
    disk_init(&disk);
    disk_save(&disk, NAME, old);
    test_faulty_io_init(&faulty, disk.io);
    faulty.hook = look;
    faulty.hook_ctx = &onlooker;
    faulty.hook_call = TEST_CALL_ANY;
    ckv_writer_options_init(&options);
    options.replace = true;
    assert_ok(ckv_save(&faulty.io, disk.dir, NAME, &made->entry, &made->source, &options,
                       &error),
              error);
    assert_true(onlooker.saw_old > made->tensor_count);
    assert_true(onlooker.saw_new >= 1);
    expect_same(&disk, NAME, made);
    test_faulty_io_deinit(&faulty);
    test_entry_destroy(old);
    test_entry_destroy(made);
    disk_deinit(&disk);
}

/* S31: of a new entry nothing is visible before it is whole. */
static void look_for_none(void *ctx, const struct test_call_event *event, size_t nth)
{
    struct disk *disk = ctx;
    (void)nth;
    if (event->call == TEST_CALL_SYNC_DIR || event->call == TEST_CALL_REMOVE) {
        struct ckv_reader *reader = opened(disk, NAME);
        struct ckv_error error;
        assert_ok(ckv_reader_verify(reader, NULL, NULL, NULL, &error), error);
        ckv_reader_close(reader);
        return;
    }
    assert_false(test_io_exists(disk->io, disk->dir, NAME));
}

static void s31_a_new_entry_is_visible_only_when_whole(void **state)
{
    struct disk disk;
    struct test_entry *made = test_entry_of_all_kinds(9, 2);
    struct test_faulty_io faulty;
    struct ckv_error error;
    (void)state;
    disk_init(&disk);
    test_faulty_io_init(&faulty, disk.io);
    faulty.hook = look_for_none;
    faulty.hook_ctx = &disk;
    faulty.hook_call = TEST_CALL_ANY;
    assert_ok(
        ckv_save(&faulty.io, disk.dir, NAME, &made->entry, &made->source, NULL, &error),
        error);
    test_faulty_io_deinit(&faulty);
    test_entry_destroy(made);
    disk_deinit(&disk);
}

/* S36: each of the 14 element types comes back as itself, bit for bit. */
static void s36_every_element_type_survives(void **state)
{
    struct disk disk;
    struct ckv_tensor tensors[CKV_DTYPE_COUNT];
    struct ckv_cache cache = {.kind = CKV_CACHE_SSM,
                              .offset = 1,
                              .tensors = tensors,
                              .tensor_count = CKV_DTYPE_COUNT};
    struct ckv_entry entry = {.caches = &cache, .cache_count = 1};
    unsigned char bytes[CKV_DTYPE_COUNT][3 * 8];
    const void *from[CKV_DTYPE_COUNT];
    struct ckv_memory_source memory = {&entry, from};
    struct ckv_source source;
    struct ckv_reader *reader;
    struct test_sink *sink;
    struct ckv_restore *restore = NULL;
    struct ckv_error error;
    (void)state;
    for (size_t i = 0; i < CKV_DTYPE_COUNT; i++) {
        enum ckv_dtype dtype = (enum ckv_dtype)i;
        tensors[i] = (struct ckv_tensor){.dtype = dtype,
                                         .rank = 2,
                                         .shape = {1, 3},
                                         .bytes = 3 * ckv_dtype_size(dtype)};
        /* Patterns that a conversion would not keep: NaNs with payload, odd booleans. */
        for (size_t j = 0; j < sizeof bytes[i]; j++)
            bytes[i][j] = (unsigned char)(0xff - 7 * i - j);
        from[i] = bytes[i];
    }
    disk_init(&disk);
    ckv_source_from_memory(&memory, &source);
    assert_ok(ckv_save(disk.io, disk.dir, NAME, &entry, &source, NULL, &error), error);
    reader = opened(&disk, NAME);
    sink = test_sink_create(&ckv_reader_header(reader)->entry);
    assert_ok(ckv_restore_begin(reader, &sink->sink, NULL, &restore, &error), error);
    assert_ok(ckv_restore_finish(restore, &error), error);
    for (size_t i = 0; i < CKV_DTYPE_COUNT; i++) {
        const struct ckv_tensor *tensor =
            &ckv_reader_header(reader)->entry.caches[0].tensors[i];
        assert_int_equal(tensor->dtype, i);
        assert_memory_equal(sink->tensors[i], bytes[i], (size_t)tensor->bytes);
    }
    test_sink_destroy(sink);
    ckv_reader_close(reader);
    disk_deinit(&disk);
}

/* Restores from the file what `made` is, with every chunk size the writer takes. */
static void save_and_restore(struct disk *disk, struct test_entry *made)
{
    struct ckv_writer_options options;
    struct ckv_error error;
    ckv_writer_options_init(&options);
    options.replace = true;
    assert_ok(ckv_save(disk->io, disk->dir, NAME, &made->entry, &made->source, &options,
                       &error),
              error);
    expect_same(disk, NAME, made);
}

/* S39: at the limits (caches, tensors, rank, metadata) what can be stored can be loaded,
 * and what could not be loaded is not stored. */
static void s39_save_and_load_accept_the_same_sizes(void **state)
{
    enum { CACHES = CKV_CACHES_MAX, PER_CACHE = CKV_TENSORS_MAX / CKV_CACHES_MAX };
    struct disk disk;
    struct ckv_tensor *tensors = calloc(CKV_TENSORS_MAX, sizeof *tensors);
    struct ckv_cache *caches = calloc(CACHES + 1, sizeof *caches);
    char *text = calloc(1, CKV_META_VALUE_MAX + 2);
    struct ckv_entry entry = {.meta = {{CKV_META_NAMESPACE, text}},
                              .meta_count = 1,
                              .caches = caches,
                              .cache_count = CACHES};
    struct ckv_reader *reader;
    struct ckv_error error;
    (void)state;
    TEST_REQUIRE(tensors && caches && text);
    memset(text, 'n', CKV_META_VALUE_MAX);
    for (size_t i = 0; i < CKV_TENSORS_MAX; i++)
        tensors[i] = (struct ckv_tensor){.dtype = CKV_DTYPE_UINT8, .rank = CKV_RANK_MAX};
    for (size_t i = 0; i <= CACHES; i++)
        caches[i] = (struct ckv_cache){.kind = CKV_CACHE_SSM,
                                       .tensors = tensors + i % CACHES * PER_CACHE,
                                       .tensor_count = PER_CACHE};
    disk_init(&disk);
    assert_ok(ckv_save(disk.io, disk.dir, NAME, &entry, NULL, NULL, &error), error);
    reader = opened(&disk, NAME);
    assert_int_equal(ckv_reader_header(reader)->entry.cache_count, CACHES);
    assert_int_equal(ckv_reader_header(reader)->entry.caches[CACHES - 1].tensors[15].rank,
                     8);
    assert_string_equal(
        ckv_entry_meta(&ckv_reader_header(reader)->entry, CKV_META_NAMESPACE), text);
    assert_ok(ckv_reader_verify(reader, NULL, NULL, NULL, &error), error);
    ckv_reader_close(reader);
    text[CKV_META_VALUE_MAX] = 'n';
    assert_status(ckv_save(disk.io, disk.dir, "b", &entry, NULL, NULL, &error),
                  CKV_TOOBIG);
    text[CKV_META_VALUE_MAX] = '\0';
    entry.cache_count++;
    assert_status(ckv_save(disk.io, disk.dir, "b", &entry, NULL, NULL, &error),
                  CKV_TOOBIG);
    assert_int_equal(test_io_count(disk.io, disk.dir, ""), 1);
    disk_deinit(&disk);
    free(tensors);
    free(caches);
    free(text);
}

/* S39: no size of an entry makes a difference, from one token to many. */
static void s39_entries_of_any_length_come_back(void **state)
{
    static const size_t lengths[] = {1, 2, 7, 8, 9, 255, 256, 257, 1000, 4099};
    struct disk disk;
    (void)state;
    disk_init(&disk);
    for (size_t i = 0; i < TEST_COUNT_OF(lengths); i++) {
        struct test_entry *made = test_entry_of_all_kinds(lengths[i], i);
        save_and_restore(&disk, made);
        test_entry_destroy(made);
    }
    disk_deinit(&disk);
}

/* S40: refused at begin, with both numbers, before anything is on disk. */
static void s40_an_entry_over_the_cap_is_refused_before_the_first_byte(void **state)
{
    struct disk disk;
    struct test_entry *made = test_entry_of_all_kinds(9, 2);
    struct test_faulty_io faulty;
    struct ckv_writer_options options;
    struct ckv_writer *writer = NULL;
    struct ckv_error error;
    char part[64];
    uint64_t size;
    (void)state;
    disk_init(&disk);
    test_faulty_io_init(&faulty, disk.io);
    assert_ok(ckv_writer_begin(&faulty.io, disk.dir, NAME, &made->entry, &made->source,
                               NULL, &writer, &error),
              error);
    size = ckv_writer_file_bytes(writer);
    ckv_writer_abort(writer);
    ckv_writer_options_init(&options);
    options.max_file_bytes = size - 1;
    assert_status(ckv_writer_begin(&faulty.io, disk.dir, NAME, &made->entry,
                                   &made->source, &options, &writer, &error),
                  CKV_TOOBIG);
    (void)snprintf(part, sizeof part, "have %llu bytes, the cap is %llu",
                   (unsigned long long)size, (unsigned long long)size - 1);
    assert_non_null(strstr(error.text, part));
    assert_int_equal(faulty.counts[TEST_CALL_ANY], 0);
    assert_int_equal(made->view_count, 0);
    options.max_file_bytes = size;
    assert_ok(ckv_save(&faulty.io, disk.dir, NAME, &made->entry, &made->source, &options,
                       &error),
              error);
    test_faulty_io_deinit(&faulty);
    test_entry_destroy(made);
    disk_deinit(&disk);
}

/* M6: after a write no temporary remains. */
static void m06_no_temporary_remains(void **state)
{
    struct disk disk;
    struct test_entry *made = test_entry_of_all_kinds(9, 2);
    struct test_names names;
    (void)state;
    disk_init(&disk);
    disk_save(&disk, NAME, made);
    test_names_init(&names, disk.io, disk.dir);
    assert_int_equal(names.count, 1);
    assert_string_equal(names.names[0], NAME);
    test_names_deinit(&names);
    test_entry_destroy(made);
    disk_deinit(&disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s30_a_failure_at_any_read_gives_nothing_to_the_caller),
        cmocka_unit_test(s31_a_reader_sees_the_old_entry_or_the_new_one),
        cmocka_unit_test(s31_a_new_entry_is_visible_only_when_whole),
        cmocka_unit_test(s36_every_element_type_survives),
        cmocka_unit_test(s39_save_and_load_accept_the_same_sizes),
        cmocka_unit_test(s39_entries_of_any_length_come_back),
        cmocka_unit_test(s40_an_entry_over_the_cap_is_refused_before_the_first_byte),
        cmocka_unit_test(m06_no_temporary_remains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

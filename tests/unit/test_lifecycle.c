/*
 * Save, load, go on: equal to never having been saved, for every kind and around every
 * border; all golden files restore into caches and write the same file again; what cannot
 * be loaded is refused by name; memory and bytes read stay within their bounds.
 */
#include "lib/counting_alloc.h"
#include "lib/files.h"
#include "lib/live_caches.h"
#include "lib/memory_io.h"
#include "lib/temp_dir.h"
#include "lib/token_arrays.h"
#include <coldkv/lifecycle.h>
#include <coldkv/reader.h>

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NAME "entry.mlxkv"

static struct test_alloc alloc;
static struct test_memory_io *memory;
static struct ckv_io_dir dir;
static const struct ckv_io *io;

static int set_up(void **state)
{
    (void)state;
    test_alloc_init(&alloc);
    memory = test_memory_io_create(NULL);
    io = test_memory_io_table(memory);
    return ckv_io_open_root(io, "/lifecycle", true, NULL, &dir, NULL) ? -1 : 0;
}

static int tear_down(void **state)
{
    bool clean = test_alloc_clean(&alloc);
    (void)state;
    ckv_io_close_dir(io, &dir);
    clean = test_memory_io_clean(memory) && clean;
    test_memory_io_destroy(memory);
    test_alloc_deinit(&alloc);
    return clean ? 0 : -1;
}

/* A file of tests/data on the disk in memory. */
static void copy_in(const char *path, const char *name)
{
    size_t size;
    void *bytes = test_read_file(path, &size);
    test_io_write_file(io, dir, name, bytes, size);
    free(bytes);
}

static struct ckv_live_cache *make(const struct ckv_cache_params *params)
{
    struct ckv_live_cache *cache;
    assert_int_equal(ckv_cache_create(&alloc.alloc, params, &cache, NULL), CKV_OK);
    return cache;
}

/* Saves the caches under `name`, with the metadata and time of `like` when it is given.
 */
static enum ckv_status save(const char *name, struct ckv_live_cache *const *caches,
                            size_t count, const uint32_t *tokens, size_t token_count,
                            const struct ckv_entry *like, struct ckv_error *error)
{
    struct ckv_writer_options options;
    struct ckv_snapshot *snapshot;
    struct ckv_entry entry;
    enum ckv_status status = ckv_snapshot_create(&alloc.alloc, caches, count, tokens,
                                                 token_count, &snapshot, error);
    if (status)
        return status;
    entry = *ckv_snapshot_entry(snapshot);
    entry.created_at_ms = 1751900000000;
    if (like) {
        entry.created_at_ms = like->created_at_ms;
        memcpy(entry.meta, like->meta, sizeof entry.meta);
        entry.meta_count = like->meta_count;
    }
    ckv_writer_options_init(&options);
    options.alloc = &alloc.alloc;
    options.replace = true;
    status =
        ckv_save(io, dir, name, &entry, ckv_snapshot_source(snapshot), &options, error);
    ckv_snapshot_destroy(snapshot);
    return status;
}

static enum ckv_status load(const char *name, uint64_t prefix, bool verify,
                            struct ckv_loaded *out, struct ckv_error *error)
{
    struct ckv_load_options options;
    ckv_load_options_init(&options);
    options.alloc = &alloc.alloc;
    options.prefix = prefix;
    options.verify = verify;
    return ckv_load(io, dir, name, &options, out, error);
}

static const uint32_t tokens[3000];

/* A cache that went through save and load at `offset` continues like one that did not. */
static void check_life(const struct ckv_cache_params *params, uint64_t prefill,
                       uint64_t singly)
{
    struct ckv_live_cache *cache = make(params);
    struct ckv_loaded loaded;
    struct ckv_error error = {0};
    if (prefill > 0)
        test_append(cache, prefill);
    test_append_singly(cache, singly);
    if (save(NAME, &cache, 1, tokens, prefill + singly, NULL, &error))
        fail_msg("%s", error.text);
    if (load(NAME, 0, true, &loaded, &error))
        fail_msg("%s", error.text);
    assert_int_equal(loaded.cache_count, 1);
    assert_int_equal(loaded.token_count, prefill + singly);
    assert_true(test_same_state(cache, loaded.caches[0]));
    for (int round = 0; round < 3; round++) {
        test_append_singly(cache, 1);
        test_append_singly(loaded.caches[0], 1);
        assert_true(test_same_state(cache, loaded.caches[0]));
        test_append(cache, 5);
        test_append(loaded.caches[0], 5);
        assert_true(test_same_state(cache, loaded.caches[0]));
    }
    ckv_loaded_deinit(&loaded);
    ckv_cache_destroy(cache);
}

static void s2_saved_and_loaded_goes_on_like_never_saved(void **state)
{
    static const uint64_t offsets[] = {1,   2,   63,  64,  65,  66,  127, 128,
                                       129, 255, 256, 257, 258, 600, 1000};
    (void)state;
    for (size_t kind = 0; kind < TEST_LIVE_KINDS; kind++)
        for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
            check_life(&test_live_kinds[kind], offsets[i], 0);
            check_life(&test_live_kinds[kind], 0, offsets[i]);
            check_life(&test_live_kinds[kind], offsets[i], 3);
        }
}

static void s6_a_restored_ring_attends_to_no_slack(void **state)
{
    struct ckv_live_cache *cache = make(&test_live_kinds[1]);
    struct ckv_array keys = test_token_array(CKV_DTYPE_BFLOAT16, 2, 64, 3, 1, false);
    struct ckv_array values = test_token_array(CKV_DTYPE_BFLOAT16, 2, 64, 3, 1, true);
    struct ckv_array expected = test_token_array(CKV_DTYPE_BFLOAT16, 2, 64, 0, 4, false);
    struct ckv_array out[2];
    struct ckv_loaded loaded;
    (void)state;
    test_append_singly(cache, 3);
    assert_int_equal(test_state_rows(cache), 64);
    assert_int_equal(save(NAME, &cache, 1, tokens, 3, NULL, NULL), CKV_OK);
    assert_int_equal(load(NAME, 0, true, &loaded, NULL), CKV_OK);
    assert_int_equal(
        ckv_cache_append(loaded.caches[0], &keys, &values, &out[0], &out[1], NULL),
        CKV_OK);
    assert_true(ckv_array_equal(&out[0], &expected));
    assert_int_equal(out[1].shape[2], 4);
    ckv_array_unref(&out[0]);
    ckv_array_unref(&out[1]);
    ckv_array_unref(&expected);
    ckv_array_unref(&keys);
    ckv_array_unref(&values);
    ckv_loaded_deinit(&loaded);
    ckv_cache_destroy(cache);
}

static void an_empty_cache_is_not_saved(void **state)
{
    struct ckv_error error;
    (void)state;
    for (size_t kind = 0; kind < TEST_LIVE_KINDS; kind++) {
        struct ckv_live_cache *cache = make(&test_live_kinds[kind]);
        assert_int_equal(save(NAME, &cache, 1, tokens, 0, NULL, &error), CKV_INVALID);
        assert_non_null(strstr(error.text, "empty"));
        assert_false(test_io_exists(io, dir, NAME));
        ckv_cache_destroy(cache);
    }
}

static void m5_a_loaded_kv_has_step_capacity(void **state)
{
    static const uint64_t offsets[] = {8, 255, 256};
    static const uint64_t rows[] = {256, 256, 512};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct ckv_live_cache *cache = make(&test_live_kinds[0]);
        struct ckv_loaded loaded;
        uint64_t row_bytes = 2 * 2 * 64 * 2;
        size_t calls;
        test_append(cache, offsets[i]);
        assert_int_equal(save(NAME, &cache, 1, tokens, offsets[i], NULL, NULL), CKV_OK);
        assert_int_equal(load(NAME, 0, true, &loaded, NULL), CKV_OK);
        assert_int_equal(ckv_cache_bytes(loaded.caches[0]), rows[i] * row_bytes);
        calls = alloc.call_count;
        test_append(loaded.caches[0], 1);
        assert_int_equal(alloc.call_count, calls);
        assert_int_equal(ckv_cache_offset(loaded.caches[0]), offsets[i] + 1);
        assert_int_equal(ckv_cache_bytes(loaded.caches[0]), rows[i] * row_bytes);
        assert_int_equal(ckv_cache_trim(loaded.caches[0], 1, NULL, NULL), CKV_OK);
        assert_true(test_same_state(cache, loaded.caches[0]));
        ckv_loaded_deinit(&loaded);
        ckv_cache_destroy(cache);
    }
}

static void a_loaded_kv_goes_on_in_place_after_a_clone(void **state)
{
    struct ckv_live_cache *cache = make(&test_live_kinds[0]);
    struct ckv_live_cache *clone;
    struct ckv_loaded loaded;
    size_t calls;
    (void)state;
    test_append(cache, 8);
    assert_int_equal(save(NAME, &cache, 1, tokens, 8, NULL, NULL), CKV_OK);
    assert_int_equal(load(NAME, 0, true, &loaded, NULL), CKV_OK);
    assert_int_equal(ckv_caches_clone(loaded.caches, 1, &clone, NULL), CKV_OK);
    calls = alloc.call_count;
    test_append(loaded.caches[0], 200);
    assert_int_equal(alloc.call_count, calls);
    assert_true(test_same_state(cache, clone));
    ckv_cache_destroy(clone);
    ckv_loaded_deinit(&loaded);
    ckv_cache_destroy(cache);
}

static bool is_entry(const char *name)
{
    size_t length = strlen(name);
    return length > 6 && strcmp(name + length - 6, ".mlxkv") == 0;
}

/* Calls fn with a copy of each golden file in `dir`. */
static void each_golden(void (*fn)(const char *name))
{
    const char *path = COLDKV_TEST_DATA "/reference";
    DIR *list = opendir(path);
    struct dirent *found;
    size_t count = 0;
    assert_non_null(list);
    while ((found = readdir(list)) != NULL) {
        char from[4096];
        if (!is_entry(found->d_name))
            continue;
        assert_true(snprintf(from, sizeof from, "%s/%s", path, found->d_name) > 0);
        copy_in(from, found->d_name);
        fn(found->d_name);
        count++;
    }
    closedir(list);
    assert_int_equal(count, 24);
}

static void check_same_file_again(const char *name)
{
    struct ckv_loaded loaded;
    struct ckv_reader *reader;
    struct ckv_error error = {0};
    void *before;
    void *after;
    size_t before_size;
    size_t after_size;
    if (load(name, 0, true, &loaded, &error))
        fail_msg("%s: %s", name, error.text);
    assert_int_equal(ckv_reader_open(io, dir, name, NULL, &reader, NULL), CKV_OK);
    if (save("again.mlxkv", loaded.caches, loaded.cache_count, loaded.tokens,
             loaded.token_count, &ckv_reader_header(reader)->entry, &error))
        fail_msg("%s: %s", name, error.text);
    before = test_io_read_file(io, dir, name, &before_size);
    after = test_io_read_file(io, dir, "again.mlxkv", &after_size);
    assert_int_equal(before_size, after_size);
    assert_memory_equal(before, after, before_size);
    free(before);
    free(after);
    ckv_reader_close(reader);
    ckv_loaded_deinit(&loaded);
}

static void m4_golden_files_load_and_are_written_again_byte_for_byte(void **state)
{
    (void)state;
    each_golden(check_same_file_again);
}

/* One more token of zeros, in the shape and type that the cache has. */
static void append_zeros(struct ckv_live_cache *cache)
{
    struct ckv_cache_params params = ckv_cache_get_params(cache);
    struct ckv_array arrays[CKV_CACHE_ARRAYS_MAX];
    size_t count = ckv_cache_state(cache, arrays);
    uint64_t k_shape[4] = {arrays[0].shape[0], arrays[0].shape[1], 1, arrays[0].shape[3]};
    uint64_t v_shape[4] = {arrays[1].shape[0], arrays[1].shape[1], 1, arrays[1].shape[3]};
    enum ckv_dtype dtype = arrays[0].dtype;
    struct ckv_array keys;
    struct ckv_array values;
    enum ckv_status status;
    if (params.group_size > 0) {
        k_shape[3] = arrays[1].shape[3] * params.group_size;
        v_shape[3] = arrays[4].shape[3] * params.group_size;
        dtype = arrays[1].dtype;
    } else if (params.kind == CKV_CACHE_TURBOQUANT) {
        k_shape[3] = v_shape[3] = ckv_cache_head_dim(cache);
        dtype = CKV_DTYPE_FLOAT32;
    }
    for (size_t i = 0; i < count; i++)
        ckv_array_unref(&arrays[i]);
    if (params.kind == CKV_CACHE_SSM) {
        assert_int_equal(ckv_cache_advance(cache, 1, NULL), CKV_OK);
        return;
    }
    assert_int_equal(ckv_array_create(NULL, dtype, 4, k_shape, 2, &keys, NULL), CKV_OK);
    assert_int_equal(ckv_array_create(NULL, dtype, 4, v_shape, 2, &values, NULL), CKV_OK);
    if (params.group_size > 0)
        status = ckv_cache_append_quantized(cache, &keys, &values, NULL, NULL);
    else
        status = ckv_cache_append(cache, &keys, &values, NULL, NULL, NULL);
    assert_int_equal(status, CKV_OK);
    ckv_array_unref(&keys);
    ckv_array_unref(&values);
}

/* Appends to one cache after the other; the caches that were left alone keep their
 * hashes. */
static void check_goes_on(const char *name)
{
    struct ckv_reader *before;
    struct ckv_error error = {0};
    size_t count;
    assert_int_equal(ckv_reader_open(io, dir, name, NULL, &before, NULL), CKV_OK);
    count = ckv_reader_header(before)->entry.cache_count;
    for (size_t touched = 0; touched < count; touched++) {
        const struct ckv_entry *old = &ckv_reader_header(before)->entry;
        const struct ckv_entry *now;
        struct ckv_reader *after;
        struct ckv_loaded loaded;
        uint64_t offset;
        assert_int_equal(load(name, 0, true, &loaded, &error), CKV_OK);
        offset = ckv_cache_offset(loaded.caches[touched]);
        append_zeros(loaded.caches[touched]);
        assert_int_equal(ckv_cache_offset(loaded.caches[touched]), offset + 1);
        if (save("on.mlxkv", loaded.caches, count, loaded.tokens, loaded.token_count, old,
                 &error))
            fail_msg("%s: %s", name, error.text);
        assert_int_equal(ckv_reader_open(io, dir, "on.mlxkv", NULL, &after, NULL),
                         CKV_OK);
        assert_int_equal(ckv_reader_verify(after, NULL, NULL, NULL, NULL), CKV_OK);
        now = &ckv_reader_header(after)->entry;
        for (size_t i = 0; i < count; i++)
            for (size_t t = 0; i != touched && t < old->caches[i].tensor_count; t++)
                assert_int_equal(now->caches[i].tensors[t].hash,
                                 old->caches[i].tensors[t].hash);
        assert_int_equal(now->caches[touched].offset, offset + 1);
        ckv_reader_close(after);
        ckv_loaded_deinit(&loaded);
    }
    ckv_reader_close(before);
}

static void golden_files_go_on(void **state)
{
    (void)state;
    each_golden(check_goes_on);
}

static void m7_expectations_are_compared(void **state)
{
    static const char path[] = COLDKV_TEST_DATA "/two-kv-zero.mlxkv";
    struct ckv_load_options good;
    struct ckv_load_options options;
    struct ckv_loaded loaded;
    struct ckv_error error;
    (void)state;
    copy_in(path, NAME);
    ckv_load_options_init(&good);
    good.alloc = &alloc.alloc;
    good.model_id = "stub";
    good.fingerprint = "fp-a";
    good.tokenizer_hash = "tk-a";
    good.ns = "";
    good.cache_count = 2;
    assert_int_equal(ckv_load(io, dir, NAME, &good, &loaded, &error), CKV_OK);
    ckv_loaded_deinit(&loaded);
    options = good;
    options.fingerprint = "fp-b";
    assert_int_equal(ckv_load(io, dir, NAME, &options, &loaded, &error), CKV_FOREIGN);
    assert_non_null(strstr(error.text, "configFingerprint"));
    options = good;
    options.tokenizer_hash = "";
    assert_int_equal(ckv_load(io, dir, NAME, &options, &loaded, &error), CKV_FOREIGN);
    assert_non_null(strstr(error.text, "tokenizerHash"));
    options = good;
    options.ns = "lora";
    assert_int_equal(ckv_load(io, dir, NAME, &options, &loaded, &error), CKV_FOREIGN);
    assert_non_null(strstr(error.text, "ns"));
    options = good;
    options.model_id = "other";
    assert_int_equal(ckv_load(io, dir, NAME, &options, &loaded, &error), CKV_FOREIGN);
    assert_non_null(strstr(error.text, "modelId"));
    options = good;
    options.cache_count = 3;
    assert_int_equal(ckv_load(io, dir, NAME, &options, &loaded, &error), CKV_FOREIGN);
    assert_non_null(strstr(error.text, "cached layers"));
    assert_null(loaded.caches);
}

static void a_missing_value_counts_as_different(void **state)
{
    struct ckv_load_options options;
    struct ckv_loaded loaded;
    struct ckv_error error;
    (void)state;
    copy_in(COLDKV_TEST_DATA "/reference/meta-none.mlxkv", NAME);
    ckv_load_options_init(&options);
    options.ns = "";
    assert_int_equal(ckv_load(io, dir, NAME, &options, &loaded, &error), CKV_FOREIGN);
    assert_non_null(strstr(error.text, "none"));
}

static void flip_byte(uint64_t offset)
{
    struct ckv_io_file file;
    unsigned char byte;
    size_t done;
    assert_int_equal(ckv_io_open_file(io, dir, NAME, CKV_IO_READ_WRITE, &file, NULL),
                     CKV_OK);
    assert_int_equal(ckv_io_read(io, file, &byte, 1, offset, &done, NULL), CKV_OK);
    byte ^= 1;
    assert_int_equal(ckv_io_write(io, file, &byte, 1, offset, NULL), CKV_OK);
    ckv_io_close_file(io, &file);
}

static void m10_a_corrupt_tensor_never_loads_and_never_leaks(void **state)
{
    struct ckv_loaded loaded;
    struct ckv_error error;
    (void)state;
    copy_in(COLDKV_TEST_DATA "/two-kv-zero.mlxkv", NAME);
    flip_byte(16384 + 16384 + 5);
    for (int i = 0; i < 11; i++) {
        size_t live = alloc.live_blocks;
        assert_int_equal(load(NAME, 0, true, &loaded, &error), CKV_CORRUPT);
        assert_int_equal(alloc.live_blocks, live);
    }
}

static void make_all(struct ckv_live_cache *list[TEST_LIVE_KINDS])
{
    for (size_t i = 0; i < TEST_LIVE_KINDS; i++) {
        list[i] = make(&test_live_kinds[i]);
        test_append(list[i], 40);
        test_append_singly(list[i], 60);
    }
}

static void m12_all_kinds_survive_together(void **state)
{
    struct ckv_live_cache *list[TEST_LIVE_KINDS];
    struct ckv_loaded loaded;
    (void)state;
    make_all(list);
    assert_int_equal(save(NAME, list, TEST_LIVE_KINDS, tokens, 100, NULL, NULL), CKV_OK);
    assert_int_equal(load(NAME, 0, true, &loaded, NULL), CKV_OK);
    for (size_t i = 0; i < TEST_LIVE_KINDS; i++)
        assert_true(test_same_state(list[i], loaded.caches[i]));
    ckv_loaded_deinit(&loaded);
    ckv_caches_destroy(list, TEST_LIVE_KINDS);
}

static void every_failing_allocation_is_a_clean_error(void **state)
{
    struct ckv_live_cache *list[TEST_LIVE_KINDS];
    struct ckv_live_cache *before[TEST_LIVE_KINDS];
    struct ckv_loaded loaded;
    enum ckv_status status = CKV_NOMEM;
    size_t live;
    (void)state;
    make_all(list);
    assert_int_equal(ckv_caches_clone(list, TEST_LIVE_KINDS, before, NULL), CKV_OK);
    live = alloc.live_blocks;
    for (size_t fail = 1; status != CKV_OK; fail++) {
        alloc.fail_at = alloc.call_count + fail;
        status = save(NAME, list, TEST_LIVE_KINDS, tokens, 100, NULL, NULL);
        if (status != CKV_OK) {
            assert_int_equal(status, CKV_NOMEM);
            assert_false(test_io_exists(io, dir, NAME));
        }
        assert_int_equal(alloc.live_blocks, live);
    }
    status = CKV_NOMEM;
    for (size_t fail = 1; status != CKV_OK; fail++) {
        alloc.fail_at = alloc.call_count + fail;
        status = load(NAME, 0, true, &loaded, NULL);
        if (status == CKV_OK)
            break;
        assert_int_equal(status, CKV_NOMEM);
        assert_int_equal(alloc.live_blocks, live);
    }
    alloc.fail_at = 0;
    for (size_t i = 0; i < TEST_LIVE_KINDS; i++) {
        assert_true(test_same_state(list[i], before[i]));
        assert_true(test_same_state(list[i], loaded.caches[i]));
    }
    ckv_loaded_deinit(&loaded);
    ckv_caches_destroy(before, TEST_LIVE_KINDS);
    ckv_caches_destroy(list, TEST_LIVE_KINDS);
}

static void s35_what_is_saved_is_the_moment_of_the_snapshot(void **state)
{
    struct ckv_live_cache *list[TEST_LIVE_KINDS];
    struct ckv_live_cache *then[TEST_LIVE_KINDS];
    struct ckv_snapshot *snapshot;
    struct ckv_entry entry;
    struct ckv_loaded loaded;
    (void)state;
    make_all(list);
    assert_int_equal(ckv_caches_clone(list, TEST_LIVE_KINDS, then, NULL), CKV_OK);
    assert_int_equal(ckv_snapshot_create(&alloc.alloc, list, TEST_LIVE_KINDS, tokens, 100,
                                         &snapshot, NULL),
                     CKV_OK);
    for (size_t i = 0; i < TEST_LIVE_KINDS; i++) {
        if (ckv_cache_is_trimmable(list[i]))
            assert_int_equal(ckv_cache_trim(list[i], 7, NULL, NULL), CKV_OK);
        test_append(list[i], 30);
        test_append_singly(list[i], 3);
    }
    entry = *ckv_snapshot_entry(snapshot);
    assert_int_equal(
        ckv_save(io, dir, NAME, &entry, ckv_snapshot_source(snapshot), NULL, NULL),
        CKV_OK);
    assert_int_equal(load(NAME, 0, true, &loaded, NULL), CKV_OK);
    for (size_t i = 0; i < TEST_LIVE_KINDS; i++)
        assert_true(test_same_state(then[i], loaded.caches[i]));
    ckv_loaded_deinit(&loaded);
    ckv_snapshot_destroy(snapshot);
    ckv_caches_destroy(then, TEST_LIVE_KINDS);
    ckv_caches_destroy(list, TEST_LIVE_KINDS);
}

static void a_prefix_equals_a_trim(void **state)
{
    static const uint64_t prefixes[] = {1, 30, 99, 100};
    (void)state;
    for (size_t kind = 0; kind < TEST_LIVE_KINDS; kind++)
        for (size_t i = 0; i < 4; i++)
            for (int verify = 0; verify < 2; verify++) {
                struct ckv_live_cache *cache = make(&test_live_kinds[kind]);
                struct ckv_loaded loaded;
                enum ckv_status status;
                test_append(cache, 100);
                assert_int_equal(save(NAME, &cache, 1, tokens, 100, NULL, NULL), CKV_OK);
                status = load(NAME, prefixes[i], verify, &loaded, NULL);
                if (prefixes[i] < 100 && !ckv_cache_is_trimmable(cache)) {
                    assert_int_equal(status, CKV_REFUSED);
                } else {
                    assert_int_equal(status, CKV_OK);
                    assert_int_equal(loaded.token_count, prefixes[i]);
                    if (prefixes[i] < 100)
                        assert_int_equal(
                            ckv_cache_trim(cache, 100 - prefixes[i], NULL, NULL), CKV_OK);
                    assert_true(test_same_state(cache, loaded.caches[0]));
                    test_append(cache, 300);
                    test_append(loaded.caches[0], 300);
                    assert_true(test_same_state(cache, loaded.caches[0]));
                    ckv_loaded_deinit(&loaded);
                }
                ckv_cache_destroy(cache);
            }
}

static void a_prefix_only_load_reads_only_the_prefix(void **state)
{
    static const size_t kinds[] = {0, 2, 4};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct ckv_live_cache *cache = make(&test_live_kinds[kinds[i]]);
        struct ckv_loaded loaded;
        struct ckv_reader *reader;
        uint64_t total;
        test_append(cache, 1000);
        assert_int_equal(save(NAME, &cache, 1, tokens, 1000, NULL, NULL), CKV_OK);
        assert_int_equal(ckv_reader_open(io, dir, NAME, NULL, &reader, NULL), CKV_OK);
        total = ckv_entry_tensor_bytes(&ckv_reader_header(reader)->entry);
        ckv_reader_close(reader);
        assert_int_equal(load(NAME, 100, false, &loaded, NULL), CKV_OK);
        assert_int_equal(loaded.read_bytes, total / 10);
        ckv_loaded_deinit(&loaded);
        assert_int_equal(load(NAME, 100, true, &loaded, NULL), CKV_OK);
        assert_int_equal(loaded.read_bytes, total);
        ckv_loaded_deinit(&loaded);
        ckv_cache_destroy(cache);
    }
}

static uint64_t load_prefix(struct ckv_verified *verified, uint64_t prefix)
{
    struct ckv_load_options options;
    struct ckv_loaded loaded;
    uint64_t read_bytes;
    ckv_load_options_init(&options);
    options.alloc = &alloc.alloc;
    options.prefix = prefix;
    options.verified = verified;
    assert_int_equal(ckv_load(io, dir, NAME, &options, &loaded, NULL), CKV_OK);
    read_bytes = loaded.read_bytes;
    ckv_loaded_deinit(&loaded);
    return read_bytes;
}

static void touch(struct ckv_verified *verified, int64_t mtime_ns)
{
    struct ckv_reader *reader;
    assert_int_equal(ckv_reader_open(io, dir, NAME, NULL, &reader, NULL), CKV_OK);
    if (verified)
        assert_int_equal(ckv_verified_touch(verified, reader, mtime_ns, NULL), CKV_OK);
    else
        assert_int_equal(ckv_reader_touch(reader, mtime_ns, NULL), CKV_OK);
    ckv_reader_close(reader);
}

static void a_verified_file_is_read_by_prefix_until_it_changes(void **state)
{
    struct ckv_live_cache *cache = make(&test_live_kinds[0]);
    struct ckv_verified verified = {0};
    uint64_t total = 1000 * 2 * 2 * 64 * 2;
    (void)state;
    test_append(cache, 1000);
    assert_int_equal(save(NAME, &cache, 1, tokens, 1000, NULL, NULL), CKV_OK);
    assert_int_equal(load_prefix(&verified, 100), total);
    assert_int_equal(load_prefix(&verified, 100), total / 10);
    touch(&verified, 1751900000000000000);
    assert_int_equal(load_prefix(&verified, 100), total / 10);
    touch(NULL, 1751900001000000000);
    assert_int_equal(load_prefix(&verified, 100), total);
    assert_int_equal(load_prefix(&verified, 100), total / 10);
    assert_int_equal(save(NAME, &cache, 1, tokens, 1000, NULL, NULL), CKV_OK);
    assert_int_equal(load_prefix(&verified, 100), total);
    ckv_cache_destroy(cache);
}

static void a_prefix_beyond_the_entry_is_refused(void **state)
{
    struct ckv_live_cache *cache = make(&test_live_kinds[0]);
    struct ckv_loaded loaded;
    (void)state;
    test_append(cache, 10);
    assert_int_equal(save(NAME, &cache, 1, tokens, 10, NULL, NULL), CKV_OK);
    assert_int_equal(load(NAME, 11, true, &loaded, NULL), CKV_INVALID);
    ckv_cache_destroy(cache);
}

/* Writes go nowhere: the file keeps its length and reads as zeros. */
static enum ckv_status submit_without_writing(void *ctx, struct ckv_io_request *requests,
                                              size_t count, struct ckv_error *error)
{
    const struct ckv_io *real = ckv_io_posix();
    for (size_t i = 0; i < count; i++) {
        /* Prefix and header are the file's first bytes. */
        if (requests[i].op == CKV_IO_OP_WRITE && requests[i].offset >= 16384) {
            requests[i].status = CKV_OK;
            requests[i].os_errno = 0;
            requests[i].done_bytes = requests[i].size_bytes;
            continue;
        }
        if (real->submit(ctx, &requests[i], 1, error) ||
            real->wait(ctx, &requests[i], 1, error))
            return CKV_IO;
    }
    return CKV_OK;
}

static enum ckv_status wait_for_nothing(void *ctx, struct ckv_io_request *requests,
                                        size_t count, struct ckv_error *error)
{
    (void)ctx;
    (void)error;
    for (size_t i = 0; i < count; i++)
        if (requests[i].status)
            return requests[i].status;
    return CKV_OK;
}

static void a_gibibyte_needs_three_chunks(void **state)
{
    /* [1, 8, 524288, 64] bfloat16: 512 MiB of keys, as much of values. */
    uint64_t shape[4] = {1, 8, 524288, 64};
    const size_t bound = 3 * CKV_CHUNK_BYTES_DEFAULT + 2 * 16384;
    struct ckv_io sparse = *ckv_io_posix();
    struct test_dir temp;
    struct ckv_live_cache *cache = make(&test_live_kinds[0]);
    struct ckv_array arrays[2];
    struct ckv_loaded loaded;
    struct ckv_error error = {0};
    size_t live;
    (void)state;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(ckv_array_create(&alloc.alloc, CKV_DTYPE_BFLOAT16, 4, shape, 2,
                                          &arrays[i], NULL),
                         CKV_OK);
    assert_int_equal(ckv_cache_restore_state(cache, arrays, 2, shape[2], 0, NULL),
                     CKV_OK);
    ckv_array_unref(&arrays[0]);
    ckv_array_unref(&arrays[1]);
    ckv_io_close_dir(io, &dir);
    test_dir_init(&temp);
    sparse.submit = submit_without_writing;
    sparse.wait = wait_for_nothing;
    io = &sparse;
    assert_int_equal(ckv_io_open_root(io, temp.path, false, NULL, &dir, NULL), CKV_OK);
    live = alloc.live_bytes;
    test_alloc_reset(&alloc);
    assert_int_equal(save(NAME, &cache, 1, tokens, 1, NULL, &error), CKV_OK);
    assert_true(alloc.peak_bytes <= live + bound);
    ckv_cache_destroy(cache);
    test_alloc_reset(&alloc);
    assert_int_equal(load(NAME, 0, true, &loaded, &error), CKV_OK);
    assert_int_equal(ckv_cache_offset(loaded.caches[0]), shape[2]);
    assert_true(alloc.peak_bytes <= alloc.live_bytes + bound);
    ckv_loaded_deinit(&loaded);
    ckv_io_close_dir(io, &dir);
    io = test_memory_io_table(memory);
    test_dir_deinit(&temp);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(s2_saved_and_loaded_goes_on_like_never_saved),
        TEST(s6_a_restored_ring_attends_to_no_slack),
        TEST(an_empty_cache_is_not_saved),
        TEST(m5_a_loaded_kv_has_step_capacity),
        TEST(a_loaded_kv_goes_on_in_place_after_a_clone),
        TEST(m4_golden_files_load_and_are_written_again_byte_for_byte),
        TEST(golden_files_go_on),
        TEST(m7_expectations_are_compared),
        TEST(a_missing_value_counts_as_different),
        TEST(m10_a_corrupt_tensor_never_loads_and_never_leaks),
        TEST(m12_all_kinds_survive_together),
        TEST(every_failing_allocation_is_a_clean_error),
        TEST(s35_what_is_saved_is_the_moment_of_the_snapshot),
        TEST(a_prefix_equals_a_trim),
        TEST(a_prefix_only_load_reads_only_the_prefix),
        TEST(a_verified_file_is_read_by_prefix_until_it_changes),
        TEST(a_prefix_beyond_the_entry_is_refused),
        TEST(a_gibibyte_needs_three_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

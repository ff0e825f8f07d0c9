/* The simulated power failure: what is safe stays, what is not may go, block by block and
 * name by name. */
#include "lib/crash_disk.h"
#include "lib/files.h"
#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 3, SIZE = BLOCKS * TEST_MEMORY_BLOCK };

struct fixture {
    struct test_memory_io *memory;
    const struct ckv_io *io;
    struct ckv_io_dir dir;
    struct ckv_io_file file;
    unsigned char data[SIZE];
    struct ckv_error error;
};

static struct ckv_io_dir open_folder(const struct ckv_io *io)
{
    struct ckv_io_dir dir;
    struct ckv_error error;
    bool made;
    ckv_error_clear(&error);
    assert_int_equal(ckv_io_open_root(io, "/d", true, &made, &dir, &error), CKV_OK);
    return dir;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->memory = test_memory_io_create(NULL);
    f->io = test_memory_io_table(f->memory);
    test_memory_io_record(f->memory, true);
    f->dir = open_folder(f->io);
    memset(f->data, 'n', SIZE);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ckv_io_close_dir(f->io, &f->dir);
    assert_true(test_memory_io_clean(f->memory));
    test_memory_io_destroy(f->memory);
    free(f);
    return 0;
}

static void create(struct fixture *f, const char *name)
{
    assert_int_equal(
        ckv_io_open_file(f->io, f->dir, name, CKV_IO_CREATE_OR_OPEN, &f->file, &f->error),
        CKV_OK);
}

static void write_all(struct fixture *f, const void *data)
{
    assert_int_equal(ckv_io_write(f->io, f->file, data, SIZE, 0, &f->error), CKV_OK);
}

static void sync_data(struct fixture *f)
{
    assert_int_equal(f->io->sync_file(f->io->ctx, f->file, &f->error), CKV_OK);
}

static void sync_names(struct fixture *f)
{
    assert_int_equal(ckv_io_sync_dir(f->io, f->dir, &f->error), CKV_OK);
}

static void close_it(struct fixture *f)
{
    ckv_io_close_file(f->io, &f->file);
}

static void rename_to(struct fixture *f, const char *from, const char *to)
{
    assert_int_equal(ckv_io_rename(f->io, f->dir, from, f->dir, to, &f->error), CKV_OK);
}

/* The folder itself is safe only when its parent was synced. */
static void sync_parent(struct fixture *f)
{
    struct ckv_io_dir root;
    assert_int_equal(ckv_io_open_root(f->io, "/", false, NULL, &root, &f->error), CKV_OK);
    assert_int_equal(ckv_io_sync_dir(f->io, root, &f->error), CKV_OK);
    ckv_io_close_dir(f->io, &root);
}

/* The contents of a name after a crash, to be freed; NULL when it is not there. */
static unsigned char *look(struct fixture *f, const struct test_crash *crash,
                           const char *name, size_t *size)
{
    struct test_memory_io *after = test_crash_disk(f->memory, crash, NULL);
    const struct ckv_io *io = test_memory_io_table(after);
    struct ckv_io_dir dir = open_folder(io);
    unsigned char *data = NULL;
    if (test_io_exists(io, dir, name))
        data = test_io_read_file(io, dir, name, size);
    ckv_io_close_dir(io, &dir);
    test_memory_io_destroy(after);
    return data;
}

static const struct test_crash forget = {.forget = true};

static void what_was_synced_is_always_there(void **state)
{
    struct fixture *f = *state;
    size_t size = 0;
    sync_parent(f);
    create(f, "x");
    write_all(f, f->data);
    sync_data(f);
    sync_names(f);
    close_it(f);
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct test_crash crash = {.seed = seed, .forget = seed == 0};
        unsigned char *data = look(f, &crash, "x", &size);
        assert_non_null(data);
        assert_int_equal(size, SIZE);
        assert_memory_equal(data, f->data, SIZE);
        free(data);
    }
}

static void what_was_not_synced_can_be_forgotten(void **state)
{
    struct fixture *f = *state;
    unsigned char old[SIZE];
    size_t size = 0;
    unsigned char *data;
    memset(old, 'o', SIZE);
    create(f, "x");
    write_all(f, old);
    sync_data(f);
    assert_null(look(f, &forget, "x", &size)); /* its folder is not safe */
    sync_names(f);
    assert_null(look(f, &forget, "x", &size)); /* nor is that one's */
    sync_parent(f);
    write_all(f, f->data);
    data = look(f, &forget, "x", &size);
    assert_memory_equal(data, old, SIZE);
    free(data);
    close_it(f);
}

static void blocks_are_new_old_or_half_of_each(void **state)
{
    struct fixture *f = *state;
    unsigned char old[SIZE];
    bool seen[3] = {false, false, false};
    bool mixed = false;
    size_t size = 0;
    memset(old, 'o', SIZE);
    sync_parent(f);
    create(f, "x");
    write_all(f, old);
    sync_data(f);
    sync_names(f);
    write_all(f, f->data);
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct test_crash crash = {.seed = seed};
        unsigned char *data = look(f, &crash, "x", &size);
        int fates[BLOCKS];
        assert_int_equal(size, SIZE);
        for (size_t i = 0; i < BLOCKS; i++) {
            const unsigned char *block = data + i * TEST_MEMORY_BLOCK;
            const unsigned char *middle = block + TEST_MEMORY_BLOCK / 2;
            assert_memory_equal(block + 1, block, TEST_MEMORY_BLOCK / 2 - 1);
            assert_memory_equal(middle + 1, middle, TEST_MEMORY_BLOCK / 2 - 1);
            assert_false(block[0] == 'o' && middle[0] == 'n');
            fates[i] = (block[0] == 'n') + (middle[0] == 'n');
            seen[fates[i]] = true;
        }
        mixed = mixed || fates[0] != fates[1];
        free(data);
    }
    assert_true(seen[0] && seen[1] && seen[2] && mixed);
    close_it(f);
}

static void a_rename_happened_or_it_did_not(void **state)
{
    struct fixture *f = *state;
    size_t before = 0;
    size_t after = 0;
    size_t size = 0;
    sync_parent(f);
    create(f, "x");
    write_all(f, f->data);
    sync_data(f);
    sync_names(f);
    close_it(f);
    rename_to(f, "x", "y");
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct test_crash crash = {.seed = seed};
        unsigned char *x = look(f, &crash, "x", &size);
        unsigned char *y = look(f, &crash, "y", &size);
        assert_true((x == NULL) != (y == NULL));
        assert_memory_equal(x ? x : y, f->data, SIZE);
        before += x != NULL;
        after += y != NULL;
        free(x);
        free(y);
    }
    assert_true(before > 10 && after > 10);
}

static void a_later_change_can_survive_an_earlier_one(void **state)
{
    struct fixture *f = *state;
    bool seen = false;
    size_t size = 0;
    sync_parent(f);
    create(f, "x");
    close_it(f);
    create(f, "y");
    close_it(f);
    for (uint64_t seed = 1; seed <= 100 && !seen; seed++) {
        struct test_crash crash = {.seed = seed};
        unsigned char *x = look(f, &crash, "x", &size);
        unsigned char *y = look(f, &crash, "y", &size);
        seen = !x && y;
        free(x);
        free(y);
    }
    assert_true(seen);
}

static void a_removed_name_can_come_back(void **state)
{
    struct fixture *f = *state;
    size_t size = 0;
    unsigned char *data;
    sync_parent(f);
    create(f, "x");
    write_all(f, f->data);
    sync_data(f);
    sync_names(f);
    close_it(f);
    assert_int_equal(ckv_io_remove(f->io, f->dir, "x", &f->error), CKV_OK);
    data = look(f, &forget, "x", &size);
    assert_non_null(data);
    free(data);
    sync_names(f);
    assert_null(look(f, &forget, "x", &size));
}

static void a_crash_can_come_after_any_change(void **state)
{
    struct fixture *f = *state;
    struct test_crash crash = {.forget = true};
    size_t size = 0;
    size_t count;
    unsigned char *data;
    sync_parent(f);
    create(f, "x");
    sync_data(f);
    sync_names(f);
    close_it(f);
    (void)test_memory_io_ops(f->memory, &count);
    crash.op_count = count - 1;
    assert_null(look(f, &crash, "x", &size));
    crash.op_count = count;
    data = look(f, &crash, "x", &size);
    assert_non_null(data);
    free(data);
}

static void the_planted_bugs_take_away_what_was_safe(void **state)
{
    struct fixture *f = *state;
    struct test_crash no_data = {.forget = true, .data_syncs_lie = true};
    struct test_crash no_folder = {.forget = true, .folder_syncs_lie = true};
    size_t size = 1;
    unsigned char *data;
    sync_parent(f);
    create(f, "x");
    write_all(f, f->data);
    sync_data(f);
    sync_names(f);
    close_it(f);
    data = look(f, &no_data, "x", &size);
    assert_non_null(data);
    assert_int_equal(size, 0);
    free(data);
    assert_null(look(f, &no_folder, "x", &size));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_synced_is_always_there),
        TEST(what_was_not_synced_can_be_forgotten),
        TEST(blocks_are_new_old_or_half_of_each),
        TEST(a_rename_happened_or_it_did_not),
        TEST(a_later_change_can_survive_an_earlier_one),
        TEST(a_removed_name_can_come_back),
        TEST(a_crash_can_come_after_any_change),
        TEST(the_planted_bugs_take_away_what_was_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Temporary folders and the helpers on whole files. */
#include "lib/files.h"
#include "lib/random.h"
#include "lib/temp_dir.h"
#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void a_folder_goes_with_everything_in_it(void **state)
{
    struct test_dir dir;
    struct test_dir other;
    char path[TEST_PATH_SIZE];
    (void)state;
    test_dir_init(&dir);
    test_dir_init(&other);
    assert_string_not_equal(dir.path, other.path);
    (void)strcpy(path, dir.path);
    test_write_file(test_dir_path(&other, "kept"), "x", 1);
    assert_int_equal(mkdir(test_dir_path(&dir, "a"), 0700), 0);
    assert_int_equal(mkdir(test_dir_path(&dir, "a/b"), 0700), 0);
    test_write_file(test_dir_path(&dir, "a/b/c"), "x", 1);
    assert_int_equal(symlink(other.path, test_dir_path(&dir, "a/link")), 0);
    assert_int_equal(chmod(test_dir_path(&dir, "a/b"), 0), 0);
    test_dir_deinit(&dir);
    assert_false(test_file_exists(path));
    assert_true(test_file_exists(test_dir_path(&other, "kept")));
    test_dir_deinit(&other);
    test_remove_tree(path);
}

static void files_are_written_read_copied_and_damaged(void **state)
{
    struct test_dir dir;
    char *data;
    size_t size;
    (void)state;
    test_dir_init(&dir);
    test_write_file(test_dir_path(&dir, "f"), "abc", 3);
    test_copy_file(test_dir_path(&dir, "f"), test_dir_path(&dir, "g"));
    test_flip_byte(test_dir_path(&dir, "g"), 1, 0x01);
    data = test_read_file(test_dir_path(&dir, "g"), &size);
    assert_int_equal(size, 3);
    assert_string_equal(data, "acc");
    free(data);
    assert_int_equal(test_file_size(test_dir_path(&dir, "f")), 3);
    test_dir_deinit(&dir);
}

static void names_are_listed_sorted_and_counted(void **state)
{
    const struct ckv_io *io = ckv_io_posix();
    struct ckv_io_dir handle;
    struct test_names names;
    struct test_dir dir;
    struct ckv_error error;
    (void)state;
    test_dir_init(&dir);
    assert_ok(ckv_io_open_root(io, dir.path, false, NULL, &handle, &error), error);
    test_io_write_file(io, handle, "b.x", "1", 1);
    test_io_write_file(io, handle, "a.x", "22", 2);
    test_io_write_file(io, handle, "c.y", "", 0);
    test_names_init(&names, io, handle);
    assert_int_equal(names.count, 3);
    assert_string_equal(names.names[0], "a.x");
    assert_string_equal(names.names[2], "c.y");
    test_names_deinit(&names);
    assert_int_equal(test_io_count(io, handle, ".x"), 2);
    assert_int_equal(test_io_count(io, handle, ""), 3);
    assert_true(test_io_exists(io, handle, "c.y"));
    assert_false(test_io_exists(io, handle, "d"));
    ckv_io_close_dir(io, &handle);
    test_dir_deinit(&dir);
}

static void descriptors_are_counted(void **state)
{
    int before = test_count_fds();
    int fd;
    (void)state;
    if (before < 0)
        skip();
    fd = dup(0);
    assert_int_equal(test_count_fds(), before + 1);
    close(fd);
    assert_int_equal(test_count_fds(), before);
}

static void random_numbers_repeat_and_stay_below(void **state)
{
    struct test_random a;
    struct test_random b;
    unsigned char one[13];
    unsigned char two[13];
    (void)state;
    test_random_init(&a, 0);
    test_random_init(&b, 0);
    for (int i = 0; i < 1000; i++) {
        assert_true(test_random_below(&a, 7) < 7);
        (void)test_random_next(&b);
    }
    assert_true(a.state == b.state);
    test_random_fill(&a, one, sizeof one);
    test_random_fill(&b, two, sizeof two);
    assert_memory_equal(one, two, sizeof one);
    test_random_init(&b, 1);
    assert_true(test_random_next(&a) != test_random_next(&b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_goes_with_everything_in_it),
        cmocka_unit_test(files_are_written_read_copied_and_damaged),
        cmocka_unit_test(names_are_listed_sorted_and_counted),
        cmocka_unit_test(descriptors_are_counted),
        cmocka_unit_test(random_numbers_repeat_and_stay_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A fresh folder for one test, removed with everything in it at the end. */
#ifndef COLDKV_TESTS_TEMP_DIR_H
#define COLDKV_TESTS_TEMP_DIR_H

#define TEST_PATH_SIZE 1024

struct test_dir {
    char path[TEST_PATH_SIZE];
    char joined[8][TEST_PATH_SIZE];
    unsigned int next;
};

/* Under $TMPDIR, else /tmp. */
void test_dir_init(struct test_dir *dir);
/* Also removes folders that were made unreadable. */
void test_dir_deinit(struct test_dir *dir);
/* "<dir>/<name>"; the last eight results stay valid. */
const char *test_dir_path(struct test_dir *dir, const char *name);

/* Removes a file, or a folder with everything in it; nothing there is fine. Links are
 * removed, not followed. */
void test_remove_tree(const char *path);

#endif

/* Whole files in one call, by path or through an io table. Failures end the program. */
#ifndef COLDKV_TESTS_FILES_H
#define COLDKV_TESTS_FILES_H

#include <coldkv/io.h>
#include <coldkv/sha256.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* By path. */
void test_write_file(const char *path, const void *data, size_t size);
/* The contents in memory to be freed, with a NUL behind them. */
void *test_read_file(const char *path, size_t *size);
bool test_file_exists(const char *path);
uint64_t test_file_size(const char *path);
void test_copy_file(const char *from, const char *to);
/* Changes one byte by XOR. */
void test_flip_byte(const char *path, uint64_t offset, unsigned char mask);
void test_sha256_file(const char *path, char text[CKV_SHA256_TEXT_SIZE]);
/* The path of a file in tests/data; the last four results stay valid. `data` is the
 * program's COLDKV_TEST_DATA. */
const char *test_data_path(const char *data, const char *name);

/* Through an io table. */
void test_io_write_file(const struct ckv_io *io, struct ckv_io_dir dir, const char *name,
                        const void *data, size_t size);
void *test_io_read_file(const struct ckv_io *io, struct ckv_io_dir dir, const char *name,
                        size_t *size);
bool test_io_exists(const struct ckv_io *io, struct ckv_io_dir dir, const char *name);

/* The names in a folder, sorted by bytes. */
struct test_names {
    char **names;
    size_t count;
};
void test_names_init(struct test_names *names, const struct ckv_io *io,
                     struct ckv_io_dir dir);
void test_names_deinit(struct test_names *names);
/* How many names in `dir` end with `suffix` ("" = all). */
size_t test_io_count(const struct ckv_io *io, struct ckv_io_dir dir, const char *suffix);

/* How many descriptors this process has open; -1 where that cannot be seen. */
int test_count_fds(void);

#endif

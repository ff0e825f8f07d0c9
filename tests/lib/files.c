/* Owns the helpers on files by path, and the count of descriptors. */
#include "lib/files.h"

#include "lib/require.h"
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

void test_write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    TEST_REQUIRE(file);
    TEST_REQUIRE(size == 0 || fwrite(data, 1, size, file) == size);
    TEST_REQUIRE(fclose(file) == 0);
}

void *test_read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *data;
    if (!file)
        fprintf(stderr, "cannot open %s\n", path);
    TEST_REQUIRE(file);
    *size = (size_t)test_file_size(path);
    data = malloc(*size + 1);
    TEST_REQUIRE(data);
    TEST_REQUIRE(fread(data, 1, *size, file) == *size);
    data[*size] = '\0';
    fclose(file);
    return data;
}

bool test_file_exists(const char *path)
{
    struct stat found;
    return lstat(path, &found) == 0;
}

uint64_t test_file_size(const char *path)
{
    struct stat found;
    TEST_REQUIRE(stat(path, &found) == 0);
    return (uint64_t)found.st_size;
}

void test_copy_file(const char *from, const char *to)
{
    size_t size;
    void *data = test_read_file(from, &size);
    test_write_file(to, data, size);
    free(data);
}

void test_flip_byte(const char *path, uint64_t offset, unsigned char mask)
{
    FILE *file = fopen(path, "r+b");
    int byte;
    TEST_REQUIRE(file);
    TEST_REQUIRE(fseeko(file, (off_t)offset, SEEK_SET) == 0);
    byte = fgetc(file);
    TEST_REQUIRE(byte != EOF);
    TEST_REQUIRE(fseeko(file, (off_t)offset, SEEK_SET) == 0);
    TEST_REQUIRE(fputc(byte ^ mask, file) != EOF);
    TEST_REQUIRE(fclose(file) == 0);
}

void test_sha256_file(const char *path, char text[CKV_SHA256_TEXT_SIZE])
{
    struct ckv_sha256 *state = NULL;
    size_t size;
    void *data = test_read_file(path, &size);
    TEST_REQUIRE(ckv_sha256_create(NULL, &state, NULL) == CKV_OK);
    TEST_REQUIRE(ckv_sha256_update(state, data, size, NULL) == CKV_OK);
    TEST_REQUIRE(ckv_sha256_finish(state, text, NULL) == CKV_OK);
    ckv_sha256_destroy(state);
    free(data);
}

const char *test_data_path(const char *data, const char *name)
{
    static char paths[4][4096];
    static unsigned int next;
    char *path = paths[next++ % 4];
    int length = snprintf(path, sizeof paths[0], "%s/%s", data, name);
    TEST_REQUIRE(length > 0 && (size_t)length < sizeof paths[0]);
    return path;
}

int test_count_fds(void)
{
    DIR *stream = opendir("/proc/self/fd");
    int count = 0;
    if (!stream)
        stream = opendir("/dev/fd");
    if (!stream)
        return -1;
    while (readdir(stream))
        count++;
    closedir(stream);
    /* ".", ".." and the descriptor of the listing itself. */
    return count - 3;
}

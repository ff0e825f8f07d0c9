/* Owns the helpers on files and folders through an io table. */
#include "lib/files.h"

#include "lib/require.h"
#include <string.h>

static void require_ok(enum ckv_status status, const struct ckv_error *error)
{
    if (status)
        fprintf(stderr, "%s: %s\n", ckv_status_name(status), error->text);
    TEST_REQUIRE(!status);
}

void test_io_write_file(const struct ckv_io *io, struct ckv_io_dir dir, const char *name,
                        const void *data, size_t size)
{
    struct ckv_error error;
    struct ckv_io_file file;
    ckv_error_clear(&error);
    require_ok(ckv_io_open_file(io, dir, name, CKV_IO_CREATE_OR_OPEN, &file, &error),
               &error);
    require_ok(io->truncate(io->ctx, file, 0, &error), &error);
    require_ok(ckv_io_write(io, file, data, size, 0, &error), &error);
    ckv_io_close_file(io, &file);
}

void *test_io_read_file(const struct ckv_io *io, struct ckv_io_dir dir, const char *name,
                        size_t *size)
{
    struct ckv_error error;
    struct ckv_io_file file;
    struct ckv_io_stat found;
    char *data;
    ckv_error_clear(&error);
    require_ok(ckv_io_open_file(io, dir, name, CKV_IO_READ, &file, &error), &error);
    require_ok(ckv_io_stat_file(io, file, &found, &error), &error);
    data = malloc((size_t)found.size_bytes + 1);
    TEST_REQUIRE(data);
    require_ok(ckv_io_read(io, file, data, (size_t)found.size_bytes, 0, size, &error),
               &error);
    TEST_REQUIRE(*size == found.size_bytes);
    data[*size] = '\0';
    ckv_io_close_file(io, &file);
    return data;
}

bool test_io_exists(const struct ckv_io *io, struct ckv_io_dir dir, const char *name)
{
    struct ckv_io_stat found;
    return ckv_io_stat_name(io, dir, name, &found, NULL) == CKV_OK;
}

static enum ckv_status add_name(void *ctx, const char *name)
{
    struct test_names *names = ctx;
    names->names = realloc(names->names, (names->count + 1) * sizeof *names->names);
    TEST_REQUIRE(names->names);
    names->names[names->count] = strdup(name);
    TEST_REQUIRE(names->names[names->count]);
    names->count++;
    return CKV_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void test_names_init(struct test_names *names, const struct ckv_io *io,
                     struct ckv_io_dir dir)
{
    struct ckv_error error;
    ckv_error_clear(&error);
    *names = (struct test_names){NULL, 0};
    require_ok(ckv_io_list(io, dir, add_name, names, &error), &error);
    if (names->count > 1)
        qsort(names->names, names->count, sizeof *names->names, compare_names);
}

void test_names_deinit(struct test_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    *names = (struct test_names){NULL, 0};
}

size_t test_io_count(const struct ckv_io *io, struct ckv_io_dir dir, const char *suffix)
{
    struct test_names names;
    size_t count = 0;
    size_t end = strlen(suffix);
    test_names_init(&names, io, dir);
    for (size_t i = 0; i < names.count; i++) {
        size_t size = strlen(names.names[i]);
        if (size >= end && strcmp(names.names[i] + size - end, suffix) == 0)
            count++;
    }
    test_names_deinit(&names);
    return count;
}

/*
 * Owns the search for cache files. A folder that cannot be read is reported and passed
 * over; files that come or go meanwhile are either found or not. Depth is bounded, so
 * that open folders are too.
 */
#include "walk.h"

#include "place.h"
#include "text.h"

#include <coldkv/io.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 32

struct names {
    char **items;
    size_t count;
    size_t capacity;
};

static enum ckv_status grow(void **items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return CKV_OK;
    size_t wanted = *capacity == 0 ? 64 : *capacity * 2;
    if (wanted > SIZE_MAX / size)
        return CKV_NOMEM;
    void *larger = realloc(*items, wanted * size);
    if (larger == NULL)
        return CKV_NOMEM;
    *items = larger;
    *capacity = wanted;
    return CKV_OK;
}

static enum ckv_status add_name(void *ctx, const char *name)
{
    struct names *names = ctx;
    void *items = names->items;
    enum ckv_status status =
        grow(&items, names->count, &names->capacity, sizeof names->items[0]);
    names->items = items;
    if (status != CKV_OK)
        return status;
    names->items[names->count] = strdup(name);
    if (names->items[names->count] == NULL)
        return CKV_NOMEM;
    names->count++;
    return CKV_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_names(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
}

/* Takes `path` over, also when it fails. */
static enum ckv_status add_file(struct cli_walk *walk, char *path, uint64_t size_bytes,
                                bool named)
{
    void *files = walk->files;
    enum ckv_status status =
        grow(&files, walk->count, &walk->capacity, sizeof walk->files[0]);
    walk->files = files;
    if (status != CKV_OK) {
        free(path);
        return status;
    }
    walk->files[walk->count++] = (struct cli_found){
        .path = path,
        .size_bytes = size_bytes,
        .named = named,
    };
    return CKV_OK;
}

static enum ckv_status visit_dir(struct cli_walk *walk, struct ckv_io_dir dir,
                                 const char *path, int depth);

static enum ckv_status visit_folder(struct cli_walk *walk, struct ckv_io_dir parent,
                                    const char *name, const char *path, int depth)
{
    struct ckv_error error;
    struct ckv_io_dir dir = CKV_IO_DIR_NONE;
    ckv_error_clear(&error);
    enum ckv_status status;
    if (depth == DEPTH_MAX)
        status = ckv_error_set(&error, CKV_TOOBIG, "folders are nested more than %d deep",
                               DEPTH_MAX);
    else
        status = ckv_io_open_dir(ckv_io_posix(), parent, name, false, NULL, &dir, &error);
    if (status != CKV_OK) {
        walk->failed(walk->failed_ctx, path, &error);
        return CKV_OK;
    }
    status = visit_dir(walk, dir, path, depth + 1);
    ckv_io_close_dir(ckv_io_posix(), &dir);
    return status;
}

static enum ckv_status visit_name(struct cli_walk *walk, struct ckv_io_dir dir,
                                  const char *folder, const char *name, int depth)
{
    struct ckv_io_stat stat;
    if (ckv_io_stat_name(ckv_io_posix(), dir, name, &stat, NULL) != CKV_OK)
        return CKV_OK; /* gone since it was listed */
    if (stat.type == CKV_IO_TYPE_FILE) {
        walk->bad_count += cli_text_ends_with(name, ".bad");
        walk->temporary_count +=
            cli_text_ends_with(name, ".part") || cli_text_ends_with(name, ".tmp");
    }
    bool wanted = cli_text_ends_with(name, ".mlxkv");
    if (stat.type == CKV_IO_TYPE_OTHER)
        walk->special_count += wanted;
    if (stat.type == CKV_IO_TYPE_OTHER || (stat.type == CKV_IO_TYPE_FILE && !wanted))
        return CKV_OK;
    char *path = malloc(cli_text_joined_size(folder, name));
    if (path == NULL)
        return CKV_NOMEM;
    cli_text_join(folder, name, path);
    if (stat.type == CKV_IO_TYPE_FILE)
        return add_file(walk, path, stat.size_bytes, false);
    enum ckv_status status = visit_folder(walk, dir, name, path, depth);
    free(path);
    return status;
}

static enum ckv_status visit_dir(struct cli_walk *walk, struct ckv_io_dir dir,
                                 const char *path, int depth)
{
    struct names names = {0};
    struct ckv_error error;
    ckv_error_clear(&error);
    enum ckv_status status = ckv_io_list(ckv_io_posix(), dir, add_name, &names, &error);
    if (status != CKV_OK && status != CKV_NOMEM) {
        walk->failed(walk->failed_ctx, path, &error);
        status = CKV_OK;
    }
    if (names.count > 0)
        qsort(names.items, names.count, sizeof names.items[0], compare_names);
    for (size_t i = 0; i < names.count && status == CKV_OK; i++)
        status = visit_name(walk, dir, path, names.items[i], depth);
    free_names(&names);
    return status;
}

/* The root folder has no name in a parent. */
static enum ckv_status add_root(struct cli_walk *walk, const char *path)
{
    struct ckv_io_dir dir = CKV_IO_DIR_NONE;
    struct ckv_error error;
    ckv_error_clear(&error);
    if (ckv_io_open_root(ckv_io_posix(), "/", false, NULL, &dir, &error) != CKV_OK) {
        walk->failed(walk->failed_ctx, path, &error);
        return CKV_OK;
    }
    enum ckv_status status = visit_dir(walk, dir, path, 0);
    ckv_io_close_dir(ckv_io_posix(), &dir);
    return status;
}

enum ckv_status cli_walk_add(struct cli_walk *walk, const char *path)
{
    struct cli_place place;
    struct ckv_io_stat stat;
    struct ckv_error error;
    ckv_error_clear(&error);
    enum ckv_status status = cli_place_open(path, &place, &error);
    if (status == CKV_INVALID)
        return add_root(walk, path);
    if (status == CKV_OK)
        status = ckv_io_stat_name(ckv_io_posix(), place.dir, place.name, &stat, &error);
    if (status != CKV_OK) {
        walk->failed(walk->failed_ctx, path, &error);
        status = CKV_OK;
    } else if (stat.type == CKV_IO_TYPE_DIR) {
        status = visit_folder(walk, place.dir, place.name, path, 0);
    } else {
        char *copy = strdup(path);
        status = copy == NULL ? CKV_NOMEM : add_file(walk, copy, stat.size_bytes, true);
    }
    cli_place_close(&place);
    return status;
}

void cli_walk_deinit(struct cli_walk *walk)
{
    for (size_t i = 0; i < walk->count; i++)
        free(walk->files[i].path);
    free(walk->files);
    walk->files = NULL;
    walk->count = 0;
    walk->capacity = 0;
}

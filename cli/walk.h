/* The cache files below a folder. */
#ifndef COLDKV_CLI_WALK_H
#define COLDKV_CLI_WALK_H

#include <coldkv/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli_found {
    char *path;          /* as it is shown and opened */
    uint64_t size_bytes; /* when it was found; for the progress bar */
    bool named;          /* on the command line, not found in a folder */
};

struct cli_walk {
    struct cli_found *files;
    size_t count;
    size_t capacity;
    size_t bad_count;       /* *.bad: set aside by a store */
    size_t temporary_count; /* *.part, *.tmp: being written, or left by a crash */
    size_t special_count;   /* *.mlxkv that are links or no regular files */
    /* Called for a folder that cannot be read; the walk goes on. */
    void (*failed)(void *ctx, const char *path, const struct ckv_error *error);
    void *failed_ctx;
};

/**
 * Adds `path`: a file as it is, a folder with all *.mlxkv below it in the order of their
 * names. Links below a folder are not followed. Only NOMEM is returned; everything else
 * is reported through `failed`.
 */
enum ckv_status cli_walk_add(struct cli_walk *walk, const char *path) CKV_WARN_UNUSED;

void cli_walk_deinit(struct cli_walk *walk);

#endif

/* A path of the command line as the library wants it: an open folder and one name. */
#ifndef COLDKV_CLI_PLACE_H
#define COLDKV_CLI_PLACE_H

#include <coldkv/io.h>
#include <coldkv/status.h>
#include <stdbool.h>

struct cli_place {
    char *path;            /* resolved: absolute, no links in it */
    const char *name;      /* its last component; points into path */
    struct ckv_io_dir dir; /* the folder that holds it */
};

/**
 * Follows the links of `path`, which must exist, and opens the folder that holds its end.
 * INVALID for the root folder. The caller closes it; after a failure there is nothing to
 * close.
 */
enum ckv_status cli_place_open(const char *path, struct cli_place *out,
                               struct ckv_error *error) CKV_WARN_UNUSED;

/**
 * The same for a file to be written, which need not exist; *exists tells whether it does.
 * A link at the end is followed when it leads somewhere and refused (DENIED) when not.
 */
enum ckv_status cli_place_open_target(const char *path, struct cli_place *out,
                                      bool *exists,
                                      struct ckv_error *error) CKV_WARN_UNUSED;

/* Closing a zeroed or closed place does nothing. */
void cli_place_close(struct cli_place *place);

#endif

/* What `coldkv inspect` shows of one file, as text and as JSON. */
#ifndef COLDKV_CLI_INSPECT_H
#define COLDKV_CLI_INSPECT_H

#include <coldkv/header.h>
#include <jansson.h>
#include <stdbool.h>

struct cli_inspected {
    const char *path; /* as typed */
    const char *name; /* last component of the resolved path */
    const struct ckv_header *header;
    bool show_tokens;
};

/* Owned by the caller; NULL when out of memory. Keys: docs/cli.md. */
json_t *cli_inspect_json(const struct cli_inspected *file);

#endif

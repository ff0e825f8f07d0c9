/*
 * Owns the step from what people type to what the library takes: links are followed here,
 * once and in the open, because everything below refuses them. Paths in messages are
 * escaped; a failure leaves nothing open.
 */
#include "place.h"

#include "text.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SHOWN_SIZE 256u

static enum ckv_status fail(const char *path, int os_errno, struct ckv_error *error)
{
    char shown[SHOWN_SIZE];
    cli_text_escape(path, shown, sizeof shown);
    return ckv_error_set_errno(error, ckv_status_from_errno(os_errno), os_errno, "%s",
                               shown);
}

/* Opens the folder of the absolute path in out->path. */
static enum ckv_status open_folder(struct cli_place *out, struct ckv_error *error)
{
    char *slash = strrchr(out->path, '/');
    if (slash[1] == '\0')
        return ckv_error_set(error, CKV_INVALID, "/ is a folder, not a file");
    out->name = slash + 1;
    if (slash == out->path)
        return ckv_io_open_root(ckv_io_posix(), "/", false, NULL, &out->dir, error);
    *slash = '\0';
    enum ckv_status status =
        ckv_io_open_root(ckv_io_posix(), out->path, false, NULL, &out->dir, error);
    *slash = '/';
    return status;
}

enum ckv_status cli_place_open(const char *path, struct cli_place *out,
                               struct ckv_error *error)
{
    *out = (struct cli_place){.dir = CKV_IO_DIR_NONE};
    out->path = realpath(path, NULL);
    if (out->path == NULL)
        return fail(path, errno, error);
    enum ckv_status status = open_folder(out, error);
    if (status != CKV_OK)
        cli_place_close(out);
    return status;
}

/* The resolved folder of `path` with its last component behind it, or NULL with errno. */
static char *resolve_new(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        errno = *path == '\0' ? ENOENT : EISDIR;
        return NULL;
    }
    char *folder =
        slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    char *real = folder == NULL ? NULL : realpath(folder, NULL);
    int failure = errno;
    free(folder);
    if (real == NULL) {
        errno = failure;
        return NULL;
    }
    char *joined = malloc(cli_text_joined_size(real, name));
    if (joined != NULL)
        cli_text_join(real, name, joined);
    free(real);
    return joined;
}

enum ckv_status cli_place_open_target(const char *path, struct cli_place *out,
                                      bool *exists, struct ckv_error *error)
{
    struct stat link;
    *out = (struct cli_place){.dir = CKV_IO_DIR_NONE};
    *exists = lstat(path, &link) == 0;
    if (*exists) {
        enum ckv_status status = cli_place_open(path, out, error);
        if (status == CKV_NOTFOUND && S_ISLNK(link.st_mode)) {
            char shown[SHOWN_SIZE];
            cli_text_escape(path, shown, sizeof shown);
            return ckv_error_set(error, CKV_DENIED, "%s is a link that leads nowhere",
                                 shown);
        }
        return status;
    }
    out->path = resolve_new(path);
    if (out->path == NULL)
        return fail(path, errno, error);
    enum ckv_status status = open_folder(out, error);
    if (status != CKV_OK)
        cli_place_close(out);
    return status;
}

void cli_place_close(struct cli_place *place)
{
    if (place->path == NULL)
        return;
    ckv_io_close_dir(ckv_io_posix(), &place->dir);
    free(place->path);
    *place = (struct cli_place){.dir = CKV_IO_DIR_NONE};
}

/*
 * Owns the life of temporary folders. Removal never follows a link, so that a test about
 * links cannot cost somebody else's files.
 */
#include "lib/temp_dir.h"

#include "lib/require.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void remove_at(int parent, const char *name);

static void remove_contents(int parent, const char *name)
{
    const struct dirent *item;
    DIR *stream;
    int fd;
    (void)fchmodat(parent, name, 0700, 0);
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    TEST_REQUIRE(fd >= 0);
    stream = fdopendir(fd);
    TEST_REQUIRE(stream);
    while ((item = readdir(stream)) != NULL) {
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0)
            remove_at(fd, item->d_name);
    }
    closedir(stream);
}

static void remove_at(int parent, const char *name)
{
    struct stat found;
    if (fstatat(parent, name, &found, AT_SYMLINK_NOFOLLOW) != 0) {
        TEST_REQUIRE(errno == ENOENT);
        return;
    }
    if (S_ISDIR(found.st_mode)) {
        remove_contents(parent, name);
        TEST_REQUIRE(unlinkat(parent, name, AT_REMOVEDIR) == 0);
    } else {
        TEST_REQUIRE(unlinkat(parent, name, 0) == 0);
    }
}

void test_remove_tree(const char *path)
{
    remove_at(AT_FDCWD, path);
}

void test_dir_init(struct test_dir *dir)
{
    const char *base = getenv("TMPDIR");
    int length;
    memset(dir, 0, sizeof *dir);
    if (!base || !*base)
        base = "/tmp";
    length = snprintf(dir->path, sizeof dir->path, "%s/coldkv-test-XXXXXX", base);
    TEST_REQUIRE(length > 0 && (size_t)length < sizeof dir->path);
    TEST_REQUIRE(mkdtemp(dir->path));
}

void test_dir_deinit(struct test_dir *dir)
{
    if (dir->path[0])
        test_remove_tree(dir->path);
    dir->path[0] = '\0';
}

const char *test_dir_path(struct test_dir *dir, const char *name)
{
    char *joined = dir->joined[dir->next++ % 8];
    size_t path_size = strlen(dir->path);
    size_t name_size = strlen(name);
    TEST_REQUIRE(path_size + 1 + name_size < TEST_PATH_SIZE);
    memcpy(joined, dir->path, path_size);
    joined[path_size] = '/';
    memcpy(joined + path_size + 1, name, name_size + 1);
    return joined;
}

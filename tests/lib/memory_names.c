/*
 * Owns the part of the memory table that is about folders and names. Rules follow POSIX
 * with the statuses of the library's own table (no folder where one is needed, or a
 * folder where a file is: DENIED; a folder that is not empty: EXISTS).
 */
#include "lib/memory_disk.h"

#include "lib/require.h"
#include <errno.h>
#include <string.h>

static struct memory_node *lock_dir(struct test_memory_io *memory, struct ckv_io_dir dir)
{
    pthread_mutex_lock(&memory->mutex);
    return memory_handle_get(memory, dir.handle, CKV_IO_TYPE_DIR)->node;
}

static enum ckv_status unlock_with(struct test_memory_io *memory, enum ckv_status status)
{
    pthread_mutex_unlock(&memory->mutex);
    return status;
}

/* 0, or why a name in `dir` cannot be looked up (want 1) or changed (want 3). */
static int refuse_dir(const struct test_memory_io *memory, const struct memory_node *dir,
                      unsigned int want)
{
    if (!memory_node_may(memory, dir, want))
        return EACCES;
    return dir->link_count == 0 ? ENOENT : 0;
}

static enum ckv_status open_folder(struct test_memory_io *memory,
                                   struct memory_node *parent, const char *name,
                                   bool create, bool *made, struct ckv_io_dir *out,
                                   struct ckv_error *error)
{
    struct memory_node *node;
    int refused = refuse_dir(memory, parent, 1);
    if (refused)
        return memory_fail(error, refused, "open folder", name);
    node = memory_node_find(parent, name);
    if (!node && !create)
        return memory_fail(error, ENOENT, "open folder", name);
    if (!node) {
        refused = refuse_dir(memory, parent, 3);
        if (refused)
            return memory_fail(error, refused, "make folder", name);
        node = memory_node_create(memory, CKV_IO_TYPE_DIR, 0700);
        memory_node_add(memory, parent, name, node);
        memory_record(memory, &(struct test_memory_op){.kind = TEST_OP_MAKE_DIR,
                                                       .node = node->inode,
                                                       .dir = parent->inode,
                                                       .name = (char *)name});
        if (made)
            *made = true;
    }
    if (node->type != CKV_IO_TYPE_DIR)
        return memory_fail_as(error, CKV_DENIED, ENOTDIR, "open folder", name);
    if (!memory_node_may(memory, node, 4))
        return memory_fail(error, EACCES, "open folder", name);
    out->handle = memory_handle_open(memory, node, false);
    return CKV_OK;
}

/* The folder that the path's last component is in; `last` gets that component, "" for the
 * root itself. NULL with *refused set. */
static struct memory_node *walk(struct test_memory_io *memory, const char *path,
                                char last[CKV_IO_NAME_MAX + 1], int *refused)
{
    struct memory_node *node = memory->root;
    last[0] = '\0';
    for (;;) {
        size_t size;
        path += strspn(path, "/");
        size = strcspn(path, "/");
        if (size == 0)
            return node;
        if (last[0])
            node = memory_node_find(node, last);
        *refused = !node ? ENOENT : node->type != CKV_IO_TYPE_DIR ? ENOTDIR : 0;
        if (*refused)
            return NULL;
        TEST_REQUIRE(size <= CKV_IO_NAME_MAX);
        memcpy(last, path, size);
        last[size] = '\0';
        TEST_REQUIRE(ckv_io_name_valid(last));
        path += size;
    }
}

static enum ckv_status open_root(void *ctx, const char *path, bool create, bool *made,
                                 struct ckv_io_dir *out, struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    struct memory_node *parent;
    char last[CKV_IO_NAME_MAX + 1];
    int refused = 0;
    TEST_REQUIRE(path && *path);
    pthread_mutex_lock(&memory->mutex);
    *out = CKV_IO_DIR_NONE;
    if (made)
        *made = false;
    parent = walk(memory, path, last, &refused);
    if (!parent && refused == ENOTDIR)
        return unlock_with(
            memory, memory_fail_as(error, CKV_DENIED, refused, "open folder", path));
    if (!parent)
        return unlock_with(memory, memory_fail(error, refused, "open folder", path));
    if (!last[0]) {
        out->handle = memory_handle_open(memory, parent, false);
        return unlock_with(memory, CKV_OK);
    }
    return unlock_with(memory,
                       open_folder(memory, parent, last, create, made, out, error));
}

static enum ckv_status open_dir(void *ctx, struct ckv_io_dir parent, const char *name,
                                bool create, bool *made, struct ckv_io_dir *out,
                                struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    struct memory_node *node = lock_dir(memory, parent);
    TEST_REQUIRE(ckv_io_name_valid(name));
    *out = CKV_IO_DIR_NONE;
    if (made)
        *made = false;
    return unlock_with(memory, open_folder(memory, node, name, create, made, out, error));
}

static void close_dir(void *ctx, struct ckv_io_dir dir)
{
    struct test_memory_io *memory = ctx;
    pthread_mutex_lock(&memory->mutex);
    memory_handle_close(memory, dir.handle, CKV_IO_TYPE_DIR);
    pthread_mutex_unlock(&memory->mutex);
}

static enum ckv_status list(void *ctx, struct ckv_io_dir dir, ckv_io_list_fn fn,
                            void *fn_ctx, struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    const struct memory_node *node = lock_dir(memory, dir);
    enum ckv_status status = CKV_OK;
    size_t count = node->name_count;
    char **names;
    if (!memory_node_may(memory, node, 4))
        return unlock_with(memory, memory_fail(error, EACCES, "list folder", NULL));
    names = calloc(count + 1, sizeof *names);
    TEST_REQUIRE(names);
    /* Backwards: nobody may rely on the order of creation. */
    for (size_t i = 0; i < count; i++) {
        names[i] = strdup(node->names[count - 1 - i].name);
        TEST_REQUIRE(names[i]);
    }
    pthread_mutex_unlock(&memory->mutex);
    for (size_t i = 0; i < count; i++) {
        if (!status)
            status = fn(fn_ctx, names[i]);
        free(names[i]);
    }
    free(names);
    if (status)
        (void)ckv_error_set(error, status, "the listing was stopped by its caller");
    return status;
}

static enum ckv_status sync_dir(void *ctx, struct ckv_io_dir dir, struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    const struct memory_node *node = lock_dir(memory, dir);
    (void)error;
    memory_record(
        memory, &(struct test_memory_op){.kind = TEST_OP_SYNC_DIR, .node = node->inode});
    return unlock_with(memory, CKV_OK);
}

static enum ckv_status space(void *ctx, struct ckv_io_dir dir, struct ckv_io_space *out,
                             struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    (void)error;
    (void)lock_dir(memory, dir);
    out->total_bytes = memory->total_bytes;
    out->free_bytes = memory_free_bytes(memory);
    return unlock_with(memory, CKV_OK);
}

static enum ckv_status stat_dir(void *ctx, struct ckv_io_dir dir, struct ckv_io_stat *out,
                                struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    (void)error;
    memory_node_stat(lock_dir(memory, dir), out);
    return unlock_with(memory, CKV_OK);
}

static enum ckv_status stat_name(void *ctx, struct ckv_io_dir dir, const char *name,
                                 struct ckv_io_stat *out, struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    const struct memory_node *parent = lock_dir(memory, dir);
    const struct memory_node *node = memory_node_find(parent, name);
    int refused = refuse_dir(memory, parent, 1);
    TEST_REQUIRE(ckv_io_name_valid(name));
    if (!refused && !node)
        refused = ENOENT;
    if (refused)
        return unlock_with(memory, memory_fail(error, refused, "stat", name));
    memory_node_stat(node, out);
    return unlock_with(memory, CKV_OK);
}

/* Whether `node` is `dir` or one of the folders above it. */
static bool is_above(const struct memory_node *node, const struct memory_node *dir)
{
    while (dir && dir != node)
        dir = dir->parent;
    return dir == node;
}

/* 0, or why `node` cannot take the place of `target`. */
static int refuse_replace(const struct memory_node *node,
                          const struct memory_node *target)
{
    if (node->type == CKV_IO_TYPE_DIR && target->type != CKV_IO_TYPE_DIR)
        return ENOTDIR;
    if (node->type != CKV_IO_TYPE_DIR && target->type == CKV_IO_TYPE_DIR)
        return EISDIR;
    return target->name_count > 0 ? ENOTEMPTY : 0;
}

static int rename_node(struct test_memory_io *memory, struct memory_node *from_dir,
                       const char *from, struct memory_node *to_dir, const char *to)
{
    struct memory_node *node = memory_node_find(from_dir, from);
    struct memory_node *target = memory_node_find(to_dir, to);
    int refused = refuse_dir(memory, from_dir, 3);
    if (!refused)
        refused = refuse_dir(memory, to_dir, 3);
    if (!refused && !node)
        refused = ENOENT;
    if (!refused && node->type == CKV_IO_TYPE_DIR && is_above(node, to_dir))
        refused = EINVAL;
    if (!refused && target && target != node)
        refused = refuse_replace(node, target);
    /* Two names of one file: POSIX wants nothing to happen. */
    if (refused || target == node)
        return refused;
    if (target) {
        memory_node_take(memory, to_dir, to);
        memory_node_settle(memory, target);
    }
    memory_node_add(memory, to_dir, to, node);
    memory_node_take(memory, from_dir, from);
    if (node->type == CKV_IO_TYPE_DIR)
        node->parent = to_dir;
    memory_record(memory, &(struct test_memory_op){.kind = TEST_OP_RENAME,
                                                   .node = node->inode,
                                                   .dir = from_dir->inode,
                                                   .to_dir = to_dir->inode,
                                                   .name = (char *)from,
                                                   .to = (char *)to});
    return 0;
}

static enum ckv_status rename_name(void *ctx, struct ckv_io_dir from_dir,
                                   const char *from, struct ckv_io_dir to_dir,
                                   const char *to, struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    struct memory_node *from_node = lock_dir(memory, from_dir);
    struct memory_node *to_node =
        memory_handle_get(memory, to_dir.handle, CKV_IO_TYPE_DIR)->node;
    int refused;
    TEST_REQUIRE(ckv_io_name_valid(from) && ckv_io_name_valid(to));
    refused = rename_node(memory, from_node, from, to_node, to);
    return unlock_with(memory,
                       refused ? memory_fail(error, refused, "rename", from) : CKV_OK);
}

static enum ckv_status link_name(void *ctx, struct ckv_io_dir from_dir, const char *from,
                                 struct ckv_io_dir to_dir, const char *to,
                                 struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    struct memory_node *from_node = lock_dir(memory, from_dir);
    struct memory_node *to_node =
        memory_handle_get(memory, to_dir.handle, CKV_IO_TYPE_DIR)->node;
    struct memory_node *node = memory_node_find(from_node, from);
    int refused = refuse_dir(memory, from_node, 1);
    TEST_REQUIRE(ckv_io_name_valid(from) && ckv_io_name_valid(to));
    if (!refused)
        refused = refuse_dir(memory, to_node, 3);
    if (!refused && !node)
        refused = ENOENT;
    if (!refused && node->type == CKV_IO_TYPE_DIR)
        refused = EPERM;
    if (!refused && memory_node_find(to_node, to))
        refused = EEXIST;
    if (refused)
        return unlock_with(memory, memory_fail(error, refused, "link", from));
    memory_node_add(memory, to_node, to, node);
    memory_record(memory, &(struct test_memory_op){.kind = TEST_OP_LINK,
                                                   .node = node->inode,
                                                   .dir = from_node->inode,
                                                   .to_dir = to_node->inode,
                                                   .name = (char *)from,
                                                   .to = (char *)to});
    return unlock_with(memory, CKV_OK);
}

static enum ckv_status take_name(struct test_memory_io *memory, struct memory_node *dir,
                                 const char *name, enum test_memory_op_kind kind)
{
    struct memory_node *node = memory_node_find(dir, name);
    memory_record(memory, &(struct test_memory_op){.kind = kind,
                                                   .node = node->inode,
                                                   .dir = dir->inode,
                                                   .name = (char *)name});
    memory_node_take(memory, dir, name);
    memory_node_settle(memory, node);
    return CKV_OK;
}

static enum ckv_status remove_name(void *ctx, struct ckv_io_dir dir, const char *name,
                                   struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    struct memory_node *parent = lock_dir(memory, dir);
    const struct memory_node *node = memory_node_find(parent, name);
    int refused = refuse_dir(memory, parent, 3);
    TEST_REQUIRE(ckv_io_name_valid(name));
    if (!refused && !node)
        refused = ENOENT;
    if (refused)
        return unlock_with(memory, memory_fail(error, refused, "remove", name));
    if (node->type == CKV_IO_TYPE_DIR)
        return unlock_with(memory,
                           memory_fail_as(error, CKV_DENIED, EISDIR, "remove", name));
    return unlock_with(memory, take_name(memory, parent, name, TEST_OP_REMOVE));
}

static enum ckv_status remove_dir(void *ctx, struct ckv_io_dir dir, const char *name,
                                  struct ckv_error *error)
{
    static const char operation[] = "remove folder";
    struct test_memory_io *memory = ctx;
    struct memory_node *parent = lock_dir(memory, dir);
    const struct memory_node *node = memory_node_find(parent, name);
    int refused = refuse_dir(memory, parent, 3);
    TEST_REQUIRE(ckv_io_name_valid(name));
    if (!refused && !node)
        refused = ENOENT;
    if (refused)
        return unlock_with(memory, memory_fail(error, refused, operation, name));
    if (node->type != CKV_IO_TYPE_DIR)
        return unlock_with(memory,
                           memory_fail_as(error, CKV_DENIED, ENOTDIR, operation, name));
    if (node->name_count > 0)
        return unlock_with(memory,
                           memory_fail_as(error, CKV_EXISTS, ENOTEMPTY, operation, name));
    return unlock_with(memory, take_name(memory, parent, name, TEST_OP_REMOVE_DIR));
}

static enum ckv_status open_existing(struct test_memory_io *memory,
                                     struct memory_node *node, const char *name,
                                     enum ckv_io_open_mode mode, struct ckv_io_file *out,
                                     struct ckv_error *error)
{
    unsigned int want = mode == CKV_IO_READ ? 4 : 6;
    if (mode == CKV_IO_CREATE_NEW)
        return memory_fail(error, EEXIST, "open", name);
    if (node->type == CKV_IO_TYPE_OTHER)
        return memory_fail(error, ELOOP, "open", name);
    if (node->type == CKV_IO_TYPE_DIR)
        return memory_fail_as(error, CKV_DENIED, EISDIR, "open", name);
    if (!memory_node_may(memory, node, want))
        return memory_fail(error, EACCES, "open", name);
    out->handle = memory_handle_open(memory, node, mode != CKV_IO_READ);
    return CKV_OK;
}

static enum ckv_status open_file(void *ctx, struct ckv_io_dir dir, const char *name,
                                 enum ckv_io_open_mode mode, struct ckv_io_file *out,
                                 struct ckv_error *error)
{
    struct test_memory_io *memory = ctx;
    struct memory_node *parent = lock_dir(memory, dir);
    struct memory_node *node = memory_node_find(parent, name);
    bool creates = mode == CKV_IO_CREATE_NEW || mode == CKV_IO_CREATE_OR_OPEN;
    int refused = refuse_dir(memory, parent, creates && !node ? 3 : 1);
    TEST_REQUIRE(ckv_io_name_valid(name));
    TEST_REQUIRE(mode >= CKV_IO_READ && mode <= CKV_IO_CREATE_OR_OPEN);
    *out = CKV_IO_FILE_NONE;
    if (!refused && !node && !creates)
        refused = ENOENT;
    if (refused)
        return unlock_with(memory, memory_fail(error, refused, "open", name));
    if (node)
        return unlock_with(memory, open_existing(memory, node, name, mode, out, error));
    node = memory_node_create(memory, CKV_IO_TYPE_FILE, 0600);
    memory_node_add(memory, parent, name, node);
    memory_record(memory, &(struct test_memory_op){.kind = TEST_OP_CREATE,
                                                   .node = node->inode,
                                                   .dir = parent->inode,
                                                   .name = (char *)name});
    out->handle = memory_handle_open(memory, node, true);
    return unlock_with(memory, CKV_OK);
}

void memory_names_fill_table(struct ckv_io *table)
{
    table->open_root = open_root;
    table->open_dir = open_dir;
    table->close_dir = close_dir;
    table->list = list;
    table->sync_dir = sync_dir;
    table->space = space;
    table->stat_dir = stat_dir;
    table->stat_name = stat_name;
    table->rename = rename_name;
    table->link = link_name;
    table->remove = remove_name;
    table->remove_dir = remove_dir;
    table->open_file = open_file;
}

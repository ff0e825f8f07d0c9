/*
 * Owns the calls of the faulty io that go through to the inner table, all but transfers.
 * A call that fails as told is either not made at all or, with `after`, made and its
 * answer thrown away.
 */
#include "lib/faulty_calls.h"

#include <string.h>

/* Whether the call has to be reported as failed without being made. */
static bool fails_before(struct test_faulty_io *faulty, enum test_call call,
                         const char *name, const char *to, struct test_fault *fault)
{
    memset(fault, 0, sizeof *fault);
    return test_faulty_meet(faulty, call, name, to, fault) && !fault->after;
}

/* The status after a call that was made. */
static enum ckv_status answer(const struct test_fault *fault, enum test_call call,
                              enum ckv_status status, struct ckv_error *error)
{
    return fault->after ? test_faulty_report(fault, call, error) : status;
}

static void count_open(struct test_faulty_io *faulty, size_t *open, int change)
{
    pthread_mutex_lock(&faulty->mutex);
    *open = (size_t)((ptrdiff_t)*open + change);
    pthread_mutex_unlock(&faulty->mutex);
}

static enum ckv_status opened_dir(struct test_faulty_io *faulty,
                                  const struct test_fault *fault, enum test_call call,
                                  enum ckv_status status, struct ckv_io_dir *out,
                                  struct ckv_error *error)
{
    if (!status && fault->after) {
        faulty->inner->close_dir(faulty->inner->ctx, *out);
        *out = CKV_IO_DIR_NONE;
    } else if (!status) {
        count_open(faulty, &faulty->open_dirs, 1);
    }
    return answer(fault, call, status, error);
}

static enum ckv_status open_root(void *ctx, const char *path, bool create, bool *made,
                                 struct ckv_io_dir *out, struct ckv_error *error)
{
    struct test_faulty_io *faulty = ctx;
    struct test_fault fault;
    enum ckv_status status;
    if (fails_before(faulty, TEST_CALL_OPEN_ROOT, path, NULL, &fault))
        return test_faulty_report(&fault, TEST_CALL_OPEN_ROOT, error);
    status = faulty->inner->open_root(faulty->inner->ctx, path, create, made, out, error);
    return opened_dir(faulty, &fault, TEST_CALL_OPEN_ROOT, status, out, error);
}

static enum ckv_status open_dir(void *ctx, struct ckv_io_dir parent, const char *name,
                                bool create, bool *made, struct ckv_io_dir *out,
                                struct ckv_error *error)
{
    struct test_faulty_io *faulty = ctx;
    struct test_fault fault;
    enum ckv_status status;
    if (fails_before(faulty, TEST_CALL_OPEN_DIR, name, NULL, &fault))
        return test_faulty_report(&fault, TEST_CALL_OPEN_DIR, error);
    status = faulty->inner->open_dir(faulty->inner->ctx, parent, name, create, made, out,
                                     error);
    return opened_dir(faulty, &fault, TEST_CALL_OPEN_DIR, status, out, error);
}

static void close_dir(void *ctx, struct ckv_io_dir dir)
{
    struct test_faulty_io *faulty = ctx;
    faulty->inner->close_dir(faulty->inner->ctx, dir);
    count_open(faulty, &faulty->open_dirs, -1);
}

static enum ckv_status open_file(void *ctx, struct ckv_io_dir dir, const char *name,
                                 enum ckv_io_open_mode mode, struct ckv_io_file *out,
                                 struct ckv_error *error)
{
    struct test_faulty_io *faulty = ctx;
    struct test_fault fault;
    enum ckv_status status;
    if (fails_before(faulty, TEST_CALL_OPEN_FILE, name, NULL, &fault))
        return test_faulty_report(&fault, TEST_CALL_OPEN_FILE, error);
    status = faulty->inner->open_file(faulty->inner->ctx, dir, name, mode, out, error);
    if (!status && fault.after) {
        faulty->inner->close_file(faulty->inner->ctx, *out);
        *out = CKV_IO_FILE_NONE;
    } else if (!status) {
        count_open(faulty, &faulty->open_files, 1);
    }
    return answer(&fault, TEST_CALL_OPEN_FILE, status, error);
}

static void close_file(void *ctx, struct ckv_io_file file)
{
    struct test_faulty_io *faulty = ctx;
    faulty->inner->close_file(faulty->inner->ctx, file);
    count_open(faulty, &faulty->open_files, -1);
}

/* The body of a call that only passes its arguments on. */
#define PASS_ON(call, name, to, member, ...)                                             \
    do {                                                                                 \
        struct test_faulty_io *faulty = ctx;                                             \
        struct test_fault fault;                                                         \
        if (fails_before(faulty, call, name, to, &fault))                                \
            return test_faulty_report(&fault, call, error);                              \
        return answer(&fault, call,                                                      \
                      faulty->inner->member(faulty->inner->ctx, __VA_ARGS__, error),     \
                      error);                                                            \
    } while (0)

static enum ckv_status list(void *ctx, struct ckv_io_dir dir, ckv_io_list_fn fn,
                            void *fn_ctx, struct ckv_error *error)
{
    PASS_ON(TEST_CALL_LIST, NULL, NULL, list, dir, fn, fn_ctx);
}

static enum ckv_status sync_dir(void *ctx, struct ckv_io_dir dir, struct ckv_error *error)
{
    PASS_ON(TEST_CALL_SYNC_DIR, NULL, NULL, sync_dir, dir);
}

static enum ckv_status space(void *ctx, struct ckv_io_dir dir, struct ckv_io_space *out,
                             struct ckv_error *error)
{
    PASS_ON(TEST_CALL_SPACE, NULL, NULL, space, dir, out);
}

static enum ckv_status stat_dir(void *ctx, struct ckv_io_dir dir, struct ckv_io_stat *out,
                                struct ckv_error *error)
{
    PASS_ON(TEST_CALL_STAT_DIR, NULL, NULL, stat_dir, dir, out);
}

static enum ckv_status stat_name(void *ctx, struct ckv_io_dir dir, const char *name,
                                 struct ckv_io_stat *out, struct ckv_error *error)
{
    PASS_ON(TEST_CALL_STAT_NAME, name, NULL, stat_name, dir, name, out);
}

static enum ckv_status rename_name(void *ctx, struct ckv_io_dir from_dir,
                                   const char *from, struct ckv_io_dir to_dir,
                                   const char *to, struct ckv_error *error)
{
    PASS_ON(TEST_CALL_RENAME, from, to, rename, from_dir, from, to_dir, to);
}

static enum ckv_status link_name(void *ctx, struct ckv_io_dir from_dir, const char *from,
                                 struct ckv_io_dir to_dir, const char *to,
                                 struct ckv_error *error)
{
    PASS_ON(TEST_CALL_LINK, from, to, link, from_dir, from, to_dir, to);
}

static enum ckv_status remove_name(void *ctx, struct ckv_io_dir dir, const char *name,
                                   struct ckv_error *error)
{
    PASS_ON(TEST_CALL_REMOVE, name, NULL, remove, dir, name);
}

static enum ckv_status remove_dir(void *ctx, struct ckv_io_dir dir, const char *name,
                                  struct ckv_error *error)
{
    PASS_ON(TEST_CALL_REMOVE_DIR, name, NULL, remove_dir, dir, name);
}

static enum ckv_status stat_file(void *ctx, struct ckv_io_file file,
                                 struct ckv_io_stat *out, struct ckv_error *error)
{
    PASS_ON(TEST_CALL_STAT_FILE, NULL, NULL, stat_file, file, out);
}

static enum ckv_status set_mtime(void *ctx, struct ckv_io_file file, int64_t mtime_ns,
                                 struct ckv_error *error)
{
    PASS_ON(TEST_CALL_SET_MTIME, NULL, NULL, set_mtime, file, mtime_ns);
}

static enum ckv_status truncate_file(void *ctx, struct ckv_io_file file,
                                     uint64_t size_bytes, struct ckv_error *error)
{
    PASS_ON(TEST_CALL_TRUNCATE, NULL, NULL, truncate, file, size_bytes);
}

static enum ckv_status allocate_file(void *ctx, struct ckv_io_file file,
                                     uint64_t size_bytes, struct ckv_error *error)
{
    PASS_ON(TEST_CALL_ALLOCATE, NULL, NULL, allocate, file, size_bytes);
}

static enum ckv_status sync_file(void *ctx, struct ckv_io_file file,
                                 struct ckv_error *error)
{
    PASS_ON(TEST_CALL_SYNC_FILE, NULL, NULL, sync_file, file);
}

static enum ckv_status lock_file(void *ctx, struct ckv_io_file file,
                                 enum ckv_io_lock_mode mode, struct ckv_error *error)
{
    PASS_ON(TEST_CALL_LOCK, NULL, NULL, lock, file, mode);
}

static enum ckv_status unlock_file(void *ctx, struct ckv_io_file file,
                                   struct ckv_error *error)
{
    PASS_ON(TEST_CALL_UNLOCK, NULL, NULL, unlock, file);
}

static enum ckv_status make_random(void *ctx, void *data, size_t size,
                                   struct ckv_error *error)
{
    PASS_ON(TEST_CALL_RANDOM, NULL, NULL, random, data, size);
}

static void advise(void *ctx, struct ckv_io_file file, uint64_t offset,
                   uint64_t size_bytes, enum ckv_io_advice advice)
{
    struct test_faulty_io *faulty = ctx;
    faulty->inner->advise(faulty->inner->ctx, file, offset, size_bytes, advice);
}

static uint32_t effective_uid(void *ctx)
{
    struct test_faulty_io *faulty = ctx;
    return faulty->inner->effective_uid(faulty->inner->ctx);
}

void test_faulty_fill_table(struct test_faulty_io *faulty)
{
    struct ckv_io *io = &faulty->io;
    io->ctx = faulty;
    io->name = "faulty";
    io->open_root = open_root;
    io->open_dir = open_dir;
    io->close_dir = close_dir;
    io->list = list;
    io->sync_dir = sync_dir;
    io->space = space;
    io->stat_dir = stat_dir;
    io->stat_name = stat_name;
    io->rename = rename_name;
    io->link = link_name;
    io->remove = remove_name;
    io->remove_dir = remove_dir;
    io->open_file = open_file;
    io->close_file = close_file;
    io->stat_file = stat_file;
    io->set_mtime = set_mtime;
    io->truncate = truncate_file;
    io->allocate = allocate_file;
    io->sync_file = sync_file;
    io->lock = lock_file;
    io->unlock = unlock_file;
    io->advise = advise;
    io->random = make_random;
    io->effective_uid = effective_uid;
}

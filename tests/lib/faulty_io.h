/*
 * Wraps any io table: counts calls, fails those it is told to, lets a test act just
 * before a call, and knows what is still open. Each request of a submit counts as one
 * READ or WRITE. Thread safe.
 *
 *     test_faulty_io_init(&faulty, inner);
 *     test_faulty_io_fail_nth(&faulty, 7, ENOSPC, false);    the 7th call that can fail
 *     ... use &faulty.io ...
 *     if (faulty.fired == 0) the sweep is through
 */
#ifndef COLDKV_TESTS_FAULTY_IO_H
#define COLDKV_TESTS_FAULTY_IO_H

#include <coldkv/io.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* The calls that can fail. */
#define TEST_CALL_LIST(X)                                                                \
    X(OPEN_ROOT, "open_root")                                                            \
    X(OPEN_DIR, "open_dir")                                                              \
    X(LIST, "list")                                                                      \
    X(SYNC_DIR, "sync_dir")                                                              \
    X(SPACE, "space")                                                                    \
    X(STAT_DIR, "stat_dir")                                                              \
    X(STAT_NAME, "stat_name")                                                            \
    X(RENAME, "rename")                                                                  \
    X(LINK, "link")                                                                      \
    X(REMOVE, "remove")                                                                  \
    X(REMOVE_DIR, "remove_dir")                                                          \
    X(OPEN_FILE, "open_file")                                                            \
    X(STAT_FILE, "stat_file")                                                            \
    X(SET_MTIME, "set_mtime")                                                            \
    X(TRUNCATE, "truncate")                                                              \
    X(ALLOCATE, "allocate")                                                              \
    X(SYNC_FILE, "sync_file")                                                            \
    X(LOCK, "lock")                                                                      \
    X(UNLOCK, "unlock")                                                                  \
    X(READ, "read")                                                                      \
    X(WRITE, "write")                                                                    \
    X(RANDOM, "random")

enum test_call {
    TEST_CALL_ANY = 0,
#define TEST_CALL_ENUM(name, text) TEST_CALL_##name,
    TEST_CALL_LIST(TEST_CALL_ENUM)
#undef TEST_CALL_ENUM
        TEST_CALL_COUNT
};

const char *test_call_name(enum test_call call);

/* What is wrong with a call. All zero but `nth`: a read meets the end of the file at once
 * (status OK, 0 bytes). */
struct test_fault {
    enum test_call call; /* ANY: counted over all calls */
    size_t nth;          /* which one from when the fault is added; the next is 1 */
    bool from_then_on;
    int os_errno;
    enum ckv_status status; /* 0 = what os_errno stands for */
    /* READ, WRITE: so many bytes are moved before it fails, or, for a READ without errno
     * and status, before the file ends. */
    size_t partial_bytes;
    /* The call is carried out and reported as failed all the same: an answer that was
     * lost. What it opened is closed again. */
    bool after;
};

#define TEST_FAULTS_MAX 8

struct test_call_event {
    enum test_call call;
    char name[CKV_IO_NAME_MAX + 1]; /* "" where there is none; rename, link: the old */
    char to[CKV_IO_NAME_MAX + 1];   /* rename, link: the new */
};

/* Called before each call that can fail, with no lock held; may use the inner table. */
typedef void (*test_hook_fn)(void *ctx, const struct test_call_event *event, size_t nth);

struct test_faulty_io {
    struct ckv_io io; /* give &x.io to the code under test */
    const struct ckv_io *inner;
    pthread_mutex_t mutex;
    struct test_fault faults[TEST_FAULTS_MAX];
    size_t fired;                   /* how many calls were failed or cut short */
    size_t counts[TEST_CALL_COUNT]; /* [ANY] counts all */
    size_t open_dirs;
    size_t open_files;
    uint64_t read_bytes;
    uint64_t written_bytes;
    test_hook_fn hook; /* told only calls of `hook_call` (ANY = all); nth counts those */
    void *hook_ctx;
    enum test_call hook_call;
    struct test_call_event *trace; /* when tracing */
    size_t trace_count;
    bool tracing;
    struct test_batch *batches; /* private: between submit and wait */
};

void test_faulty_io_init(struct test_faulty_io *faulty, const struct ckv_io *inner);
void test_faulty_io_deinit(struct test_faulty_io *faulty);
/* Whether nothing is open or waiting; says on stderr what is. */
bool test_faulty_io_clean(struct test_faulty_io *faulty);
/* Adds a fault; nth counts from now. */
void test_faulty_io_fail(struct test_faulty_io *faulty, const struct test_fault *fault);
/* The nth call from now of any kind fails with os_errno, once or from then on. */
void test_faulty_io_fail_nth(struct test_faulty_io *faulty, size_t nth, int os_errno,
                             bool from_then_on);
/* Removes faults, counts, trace and hook; what is open stays counted. */
void test_faulty_io_reset(struct test_faulty_io *faulty);
/* The number of the first event in the trace with this call (and this name or new name,
 * unless NULL) at or after `from`; -1 if there is none. For the order of things. */
long test_faulty_io_find(const struct test_faulty_io *faulty, enum test_call call,
                         const char *name, size_t from);

#endif

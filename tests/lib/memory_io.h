/*
 * A disk in memory behind struct ckv_io, complete enough to run a whole store on it:
 * folders, names, link counts, files that live on while open, locks per open file, holes,
 * times from a given clock, owners and modes that are obeyed, space that runs out.
 * Transfers happen in wait, not in submit, so that a caller that looks at its memory too
 * early fails. Thread safe.
 *
 * Stricter than an operating system: an invalid name, a handle that is not open and a
 * transfer never waited for end the program.
 */
#ifndef COLDKV_TESTS_MEMORY_IO_H
#define COLDKV_TESTS_MEMORY_IO_H

#include <coldkv/clock.h>
#include <coldkv/io.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEST_MEMORY_UID 1000u
#define TEST_MEMORY_BLOCK 4096u

struct test_memory_io;

/* An empty disk: 1 TiB, owned by TEST_MEMORY_UID. clock NULL = the system's. */
struct test_memory_io *test_memory_io_create(const struct ckv_clock *clock);
void test_memory_io_destroy(struct test_memory_io *memory);
const struct ckv_io *test_memory_io_table(struct test_memory_io *memory);
/* Whether no file or folder is open; says on stderr what is. */
bool test_memory_io_clean(struct test_memory_io *memory);

/* Sets size and free space of the disk as they are from now on. */
void test_memory_io_set_space(struct test_memory_io *memory, uint64_t total_bytes,
                              uint64_t free_bytes);
/* Bytes of blocks in use, those of removed files that are still open included. */
uint64_t test_memory_io_used_bytes(struct test_memory_io *memory);
/* Who the process is; 0 may do everything. */
void test_memory_io_set_uid(struct test_memory_io *memory, uint32_t uid);
/* Owner and permission bits of a name; name NULL = the folder itself. */
void test_memory_io_set_owner(struct test_memory_io *memory, struct ckv_io_dir dir,
                              const char *name, uint32_t uid, uint32_t mode);
/* A name that is neither file nor folder, as a link or FIFO would be. */
void test_memory_io_make_other(struct test_memory_io *memory, struct ckv_io_dir dir,
                               const char *name);
/* What the platform cannot do: answers UNSUPPORTED. */
void test_memory_io_set_unsupported(struct test_memory_io *memory, bool locks,
                                    bool allocation);

/*
 * The log of what changed the disk, in order; off until asked for. Folders and files are
 * named by inode number, so that the log can be played on an empty disk.
 */
enum test_memory_op_kind {
    TEST_OP_MAKE_DIR = 1,
    TEST_OP_REMOVE_DIR,
    TEST_OP_CREATE,
    TEST_OP_WRITE,
    TEST_OP_TRUNCATE,
    TEST_OP_ALLOCATE,
    TEST_OP_SET_MTIME,
    TEST_OP_RENAME,
    TEST_OP_LINK,
    TEST_OP_REMOVE,
    TEST_OP_SYNC_FILE,
    TEST_OP_SYNC_DIR,
};

struct test_memory_op {
    enum test_memory_op_kind kind;
    uint64_t node;   /* the file, or the folder that was made, removed or synced */
    uint64_t dir;    /* where `name` is, or was */
    uint64_t to_dir; /* rename and link: where `to` is */
    char *name;
    char *to;
    uint64_t offset;     /* write */
    uint64_t size_bytes; /* write, truncate, allocate */
    unsigned char *data; /* write */
    int64_t mtime_ns;    /* set_mtime */
};

void test_memory_io_record(struct test_memory_io *memory, bool on);
/* Valid until the next operation. */
const struct test_memory_op *test_memory_io_ops(struct test_memory_io *memory,
                                                size_t *count);

#endif

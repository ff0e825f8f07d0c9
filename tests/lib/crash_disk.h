/*
 * What is left of a disk in memory after the power failed: a new disk, made from the log
 * of the old one.
 *
 * The rules are those of POSIX and of nothing kinder. A write is safe once its file was
 * synced after it, a name once its folder was (of a rename across folders: both); file
 * and folder are separate. What is not safe may be there or not, each by itself and in
 * any order: of a write every block of 4 KiB may be new, old, or half of each; a rename
 * happened or it did not. Handles and locks are gone.
 *
 *     test_memory_io_record(memory, true);      before the first change
 *     ...
 *     after = test_crash_disk(memory, &(struct test_crash){.seed = 7}, &clock);
 */
#ifndef COLDKV_TESTS_CRASH_DISK_H
#define COLDKV_TESTS_CRASH_DISK_H

#include "lib/memory_io.h"

struct test_crash {
    size_t op_count;       /* how many changes came before it; 0 = all of the log */
    uint64_t seed;         /* of what is kept; see forget */
    bool forget;           /* everything that is not safe is lost */
    bool data_syncs_lie;   /* a planted bug: files are never really synced */
    bool folder_syncs_lie; /* a planted bug: folders are never really synced */
};

/* The caller destroys it. It records from its first change on. */
struct test_memory_io *test_crash_disk(struct test_memory_io *memory,
                                       const struct test_crash *crash,
                                       const struct ckv_clock *clock);

#endif

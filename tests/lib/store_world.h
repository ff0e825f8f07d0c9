/*
 * A world for store tests: a disk in memory behind an io table that can fail, a clock, a
 * log and an allocator that are watched, and short ways to put and restore entries.
 *
 *     test_world_init(&world);
 *     store = test_world_open(&world);
 *     test_put(&world, store, "", CKV_CACHE_KV, TEST_TOKENS(1, 2, 3));
 *     assert_int_equal(test_restore(&world, store, "", TEST_TOKENS(1, 2, 3, 4)), 3);
 *     ckv_store_close(store);
 *     test_world_deinit(&world);       checks that nothing is left
 */
#ifndef COLDKV_TESTS_STORE_WORLD_H
#define COLDKV_TESTS_STORE_WORLD_H

#include "lib/capture_log.h"
#include "lib/counting_alloc.h"
#include "lib/crash_disk.h"
#include "lib/entry_builder.h"
#include "lib/fake_clock.h"
#include "lib/faulty_io.h"
#include "lib/files.h"
#include "lib/memory_io.h"
#include <coldkv/store.h>

/* A token list and its length, as two arguments. */
#define TEST_TOKENS(...)                                                                 \
    (const uint32_t[]){__VA_ARGS__},                                                     \
        sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)

#define TEST_STORE_PATH "/store"
#define TEST_FINGERPRINT "fp-test"

struct test_world {
    struct test_clock clock;
    struct test_log log;
    struct test_alloc alloc;
    struct test_memory_io *memory;
    struct test_faulty_io faulty;
    struct ckv_store_options options; /* cap 1 GiB, no floor */
    struct ckv_store_identity identity;
    struct ckv_error error; /* of the last call of these helpers */
};

void test_world_init(struct test_world *world);
/* -1 when memory, a file or a folder is left: what a teardown returns. */
int test_world_deinit(struct test_world *world);

/* A new world on what is left of another one's disk, whose log was on from its begin; the
 * other one stays as it is. The clock shows the same time, cap and floor are the same. */
void test_world_init_crashed(struct test_world *after, struct test_world *before,
                             const struct test_crash *crash);

/* A store on TEST_STORE_PATH; failure ends the program with the reason. */
struct ckv_store *test_world_open(struct test_world *world);
enum ckv_status test_world_try_open(struct test_world *world, struct ckv_store **store);

/* An entry of one cache with these tokens; its bytes depend on the tokens. */
struct test_entry *test_entry_with_tokens(enum ckv_cache_kind kind,
                                          const uint32_t *tokens, size_t count);

/* Puts such an entry; written_bytes in the result tell whether it was written. Failure
 * ends the program. */
struct ckv_stored test_put(struct test_world *world, struct ckv_store *store,
                           const char *ns, enum ckv_cache_kind kind,
                           const uint32_t *tokens, size_t count);
enum ckv_status test_try_put(struct test_world *world, struct ckv_store *store,
                             const char *ns, enum ckv_cache_kind kind,
                             const uint32_t *tokens, size_t count,
                             struct ckv_stored *stored);

/* A restore target that remembers what happened to it. */
struct test_target {
    struct ckv_restore_target target; /* give &x.target */
    enum ckv_status prepare_status;   /* what prepare and accept answer; 0 = OK */
    enum ckv_status accept_status;
    size_t prepared;
    size_t accepted;
    size_t dropped;
    size_t fail_took; /* that call of the sink's took fails with ENGINE */
    bool equal;       /* the bytes accepted last are those test_put stored */
    uint64_t prefix;
    uint64_t token_count;
    char ns[64]; /* as the entry said */
    char model_id[64];
    struct test_sink *sink;
    /* Called at the start of prepare. */
    void (*on_prepare)(void *ctx);
    void *on_prepare_ctx;
};

void test_target_init(struct test_target *target);
void test_target_deinit(struct test_target *target);

/* Restores for a prompt; the prefix, or 0 for a miss. What was accepted must be what
 * test_put stored. */
uint64_t test_restore(struct test_world *world, struct ckv_store *store, const char *ns,
                      const uint32_t *prompt, size_t length);

/* The best candidate's prefix, or 0; *id and *entry_length may be NULL. */
uint64_t test_find(struct ckv_store *store, const char *ns, const uint32_t *prompt,
                   size_t length, uint64_t *id, uint64_t *entry_length);

struct ckv_store_stats test_stats(struct ckv_store *store);

/* An open folder of the store, past the faults: "" = the directory, "fp" or "fp/ns". To
 * be closed with test_world_close_dir. Not there: ends the program. */
struct ckv_io_dir test_world_dir(struct test_world *world, const char *path);
void test_world_close_dir(struct test_world *world, struct ckv_io_dir *dir);
bool test_world_has_dir(struct test_world *world, const char *path);
/* How many names end with `suffix` in a folder; 0 when it is not there. */
size_t test_world_count(struct test_world *world, const char *path, const char *suffix);
/* The only name that ends so; anything else ends the program. Valid until the next. */
const char *test_world_only(struct test_world *world, const char *path,
                            const char *suffix);
void test_world_write(struct test_world *world, const char *path, const char *name,
                      const void *data, size_t size);
void test_world_flip(struct test_world *world, const char *path, const char *name,
                     uint64_t offset);
void test_world_remove(struct test_world *world, const char *path, const char *name);
void test_world_rename(struct test_world *world, const char *path, const char *from,
                       const char *to);
void test_world_make_dir(struct test_world *world, const char *path, const char *name);
void test_world_set_mtime(struct test_world *world, const char *path, const char *name,
                          int64_t mtime_ns);
struct ckv_io_stat test_world_stat(struct test_world *world, const char *path,
                                   const char *name);
/* Bytes that the regular files take, as a user would count them. */
uint64_t test_world_used(struct test_world *world);

#endif

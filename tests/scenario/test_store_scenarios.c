/*
 * The store on a real file system, as people meet it: scenarios by their numbers, attacks
 * on the trust rules, a process that dies in the middle of a write.
 */
#include "lib/entry_builder.h"
#include "lib/files.h"
#include "lib/require.h"
#include "lib/store_world.h"
#include "lib/temp_dir.h"
#include "lib/unit.h"

#include <coldkv/store.h>
#include <coldkv/writer.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define T TEST_TOKENS
#define UUID "01234567-89ab-4def-8123-456789abcdef"

struct fixture {
    struct test_dir dir;
    struct test_log log;
    struct test_alloc alloc;
    struct ckv_store_options options;
    struct ckv_store_identity identity;
    struct ckv_store *store;
    struct ckv_error error;
    char path[TEST_PATH_SIZE]; /* the store's directory */
    char base[TEST_PATH_SIZE]; /* its folder of the namespace "" */
    int fds;
};

static void open_store(struct fixture *f)
{
    ckv_store_close(f->store);
    f->store = NULL;
    assert_ok(ckv_store_open(f->path, &f->identity, &f->options, &f->store, &f->error),
              f->error);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->fds = test_count_fds();
    test_dir_init(&f->dir);
    test_log_init(&f->log);
    test_alloc_init(&f->alloc);
    ckv_store_options_init(&f->options);
    f->options.alloc = &f->alloc.alloc;
    f->options.log = f->log.log;
    f->options.cap_bytes = UINT64_C(1) << 28;
    f->options.free_floor_bytes = 0;
    f->identity = (struct ckv_store_identity){
        .fingerprint = "fp-test", .tokenizer_hash = "tok-test", .model_id = "test-model"};
    snprintf(f->path, sizeof f->path, "%s", test_dir_path(&f->dir, "store"));
    snprintf(f->base, sizeof f->base, "%s", test_dir_path(&f->dir, "store/fp-test/base"));
    open_store(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    bool clean;
    ckv_store_close(f->store);
    clean = test_alloc_clean(&f->alloc);
    test_alloc_deinit(&f->alloc);
    test_log_deinit(&f->log);
    test_dir_deinit(&f->dir);
    clean = clean && test_count_fds() == f->fds;
    free(f);
    return clean ? 0 : -1;
}

static enum ckv_status put_entry(struct fixture *f, const char *ns,
                                 struct test_entry *made, struct ckv_stored *stored)
{
    enum ckv_status status =
        ckv_store_put(f->store, ns, &made->entry, &made->source, NULL, stored, &f->error);
    test_entry_destroy(made);
    return status;
}

static struct ckv_stored put(struct fixture *f, enum ckv_cache_kind kind,
                             const uint32_t *tokens, size_t count)
{
    struct ckv_stored stored;
    assert_ok(put_entry(f, "", test_entry_with_tokens(kind, tokens, count), &stored),
              f->error);
    return stored;
}

/* Entries of several caches, one of each kind that is given. */
static void put_kinds(struct fixture *f, const enum ckv_cache_kind *kinds,
                      size_t kind_count, uint64_t window, const uint32_t *tokens,
                      size_t count)
{
    struct test_entry_options made_of = {.token_count = count,
                                         .tokens = tokens,
                                         .kinds = kinds,
                                         .kind_count = kind_count,
                                         .window = window};
    assert_ok(put_entry(f, "", test_entry_create(&made_of), NULL), f->error);
}

static uint64_t find(struct fixture *f, const uint32_t *prompt, size_t length)
{
    return test_find(f->store, "", prompt, length, NULL, NULL);
}

/* The restored prefix, 0 = miss; bytes are compared with what put stored. */
static uint64_t restore(struct fixture *f, const uint32_t *prompt, size_t length)
{
    struct ckv_restored restored = {0};
    struct test_target target;
    test_target_init(&target);
    if (ckv_store_restore(f->store, "", prompt, length, &target.target, &restored,
                          &f->error) == CKV_OK)
        assert_true(target.equal);
    test_target_deinit(&target);
    return restored.prefix;
}

/* How many names in a folder end so. */
static size_t count_names(const char *path, const char *suffix)
{
    DIR *dir = opendir(path);
    size_t count = 0;
    const struct dirent *item;
    while (dir && (item = readdir(dir))) {
        size_t size = strlen(item->d_name);
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0)
            continue;
        count += size >= strlen(suffix) &&
                 strcmp(item->d_name + size - strlen(suffix), suffix) == 0;
    }
    if (dir)
        closedir(dir);
    return count;
}

/* The path of some file in the base folder that ends so; NULL if there is none. */
static const char *find_path(struct fixture *f, const char *suffix)
{
    static char path[2 * TEST_PATH_SIZE];
    DIR *dir = opendir(f->base);
    const struct dirent *item;
    bool found = false;
    while (dir && !found && (item = readdir(dir))) {
        size_t size = strlen(item->d_name);
        if (size < strlen(suffix) ||
            strcmp(item->d_name + size - strlen(suffix), suffix) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", f->base, item->d_name);
        found = true;
    }
    if (dir)
        closedir(dir);
    return found ? path : NULL;
}

static const char *in_base(struct fixture *f, const char *name)
{
    static char path[2 * TEST_PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", f->base, name);
    return path;
}

/* --- rings, recurrent state --- */

static void s1_a_wrapped_ring_serves_only_its_exact_end(void **state)
{
    struct fixture *f = *state;
    put(f, CKV_CACHE_ROTATING, T(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)); /* window 8 */
    put(f, CKV_CACHE_KV, T(1, 2, 3));
    for (int reopened = 0; reopened < 2; reopened++) {
        assert_int_equal(find(f, T(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)), 10);
        assert_int_equal(restore(f, T(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)), 10);
        assert_int_equal(restore(f, T(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)), 3);
        assert_int_equal(restore(f, T(1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 11)), 3);
        open_store(f);
    }
}

static void s4_one_untrimmable_layer_decides_for_the_entry(void **state)
{
    static const enum ckv_cache_kind kinds[] = {CKV_CACHE_KV, CKV_CACHE_SSM,
                                                CKV_CACHE_KV};
    struct fixture *f = *state;
    put_kinds(f, kinds, 3, 0, T(1, 2, 3, 4));
    assert_int_equal(find(f, T(1, 2, 3, 4, 5)), 4);
    assert_int_equal(find(f, T(1, 2, 3, 4)), 0);
    assert_int_equal(find(f, T(1, 2, 3, 9, 9)), 0);
}

static void s5_a_ring_that_never_filled_can_be_cut(void **state)
{
    static const enum ckv_cache_kind kinds[] = {CKV_CACHE_ROTATING,
                                                CKV_CACHE_ROTATING_QKV};
    struct fixture *f = *state;
    put_kinds(f, kinds, 2, 4, T(1, 2, 3));
    assert_int_equal(find(f, T(1, 2, 9)), 2);
    put_kinds(f, kinds, 2, 4, T(5, 6, 7, 8)); /* offset == window */
    assert_int_equal(find(f, T(5, 6, 9)), 0);
    assert_int_equal(find(f, T(5, 6, 7, 8, 9)), 4);
}

static void s7_a_boundary_entry_stays_beside_prompt_and_reply(void **state)
{
    struct fixture *f = *state;
    put(f, CKV_CACHE_SSM, T(1, 2, 3));          /* the prompt but its last token */
    put(f, CKV_CACHE_SSM, T(1, 2, 3, 4, 5, 6)); /* prompt and reply */
    assert_int_equal(restore(f, T(1, 2, 3, 4)), 3);
    assert_int_equal(restore(f, T(1, 2, 3, 4, 5, 6, 7)), 6);
}

static void s12_lookup_falls_back_to_the_longest_usable(void **state)
{
    struct fixture *f = *state;
    put(f, CKV_CACHE_KV, T(1, 2, 3, 4));
    put(f, CKV_CACHE_SSM, T(1, 2, 3, 4, 5, 6, 7));
    assert_int_equal(restore(f, T(1, 2, 3, 4, 5, 6, 9)), 4);
}

static void s13_a_hybrid_entry_is_a_hit_at_its_boundary_only(void **state)
{
    static const enum ckv_cache_kind kinds[] = {CKV_CACHE_KV, CKV_CACHE_SSM};
    struct fixture *f = *state;
    put_kinds(f, kinds, 2, 0, T(1, 2, 3));
    assert_int_equal(find(f, T(1, 2, 3, 4, 5)), 3);
    assert_int_equal(find(f, T(1, 2, 3)), 0);
    assert_int_equal(find(f, T(1, 2, 4)), 0);
}

/* --- identity --- */

static void s20_s22_another_fingerprint_shares_nothing(void **state)
{
    struct fixture *f = *state;
    put(f, CKV_CACHE_KV, T(1, 2, 3));
    f->identity.fingerprint = "fp-other";
    open_store(f);
    assert_int_equal(find(f, T(1, 2, 3, 4)), 0);
    put(f, CKV_CACHE_KV, T(1, 2));
    f->identity.fingerprint = "fp-test";
    open_store(f);
    assert_int_equal(restore(f, T(1, 2, 3, 4)), 3);
    assert_int_equal(test_stats(f->store).entries, 1);
}

static void s20_another_tokenizer_shares_nothing_and_loses_nothing(void **state)
{
    struct fixture *f = *state;
    put(f, CKV_CACHE_KV, T(1, 2, 3));
    f->identity.tokenizer_hash = "tok-other";
    open_store(f);
    assert_int_equal(find(f, T(1, 2, 3, 4)), 0);
    assert_int_equal(test_stats(f->store).foreign, 1);
    f->identity.tokenizer_hash = "tok-test";
    open_store(f);
    assert_int_equal(restore(f, T(1, 2, 3, 4)), 3);
}

static void s21_the_name_of_the_model_is_not_its_identity(void **state)
{
    struct fixture *f = *state;
    put(f, CKV_CACHE_KV, T(1, 2, 3));
    f->identity.model_id = "another name";
    open_store(f);
    assert_int_equal(restore(f, T(1, 2, 3, 4)), 3);
    f->identity.model_id = NULL;
    open_store(f);
    put(f, CKV_CACHE_KV, T(7, 8));
    open_store(f);
    assert_int_equal(restore(f, T(7, 8, 9)), 2);
}

static void s25_namespaces_share_nothing(void **state)
{
    struct fixture *f = *state;
    struct test_entry *made =
        test_entry_with_tokens(CKV_CACHE_KV, (const uint32_t[]){1, 2, 3}, 3);
    assert_ok(put_entry(f, "lora:abc:0.5", made, NULL), f->error);
    open_store(f);
    assert_int_equal(test_find(f->store, "lora:abc:0.5", T(1, 2, 3, 4), NULL, NULL), 3);
    assert_int_equal(test_find(f->store, "lora:abc:0.6", T(1, 2, 3, 4), NULL, NULL), 0);
    assert_int_equal(find(f, T(1, 2, 3, 4)), 0);
}

/* --- integrity --- */

static void s30_s33_damage_is_never_served_and_never_offered_again(void **state)
{
    struct fixture *f = *state;
    put(f, CKV_CACHE_KV, T(1, 2, 3, 4));
    test_flip_byte(find_path(f, ".mlxkv"), 32768, 1);
    assert_int_equal(restore(f, T(1, 2, 3, 4, 5)), 0);
    assert_int_equal(count_names(f->base, ".bad"), 1);
    assert_int_equal(count_names(f->base, ".mlxkv"), 0);
    assert_true(test_log_contains(&f->log, "store.set_aside", ".mlxkv"));
    open_store(f);
    assert_int_equal(restore(f, T(1, 2, 3, 4, 5)), 0);
    assert_int_equal(test_stats(f->store).entries, 0);
}

static void s33_truncation_anywhere_is_a_miss(void **state)
{
    static const off_t lengths[] = {0, 1, 25, 26, 100, 16384, 20000, 32768, 32800};
    struct fixture *f = *state;
    for (size_t i = 0; i < TEST_COUNT_OF(lengths); i++) {
        put(f, CKV_CACHE_KV, T(1, 2, 3, 4));
        assert_int_equal(truncate(find_path(f, ".mlxkv"), lengths[i]), 0);
        assert_int_equal(restore(f, T(1, 2, 3, 4, 5)), 0);
        open_store(f);
        assert_int_equal(find(f, T(1, 2, 3, 4, 5)), 0);
        if (find_path(f, ".mlxkv"))
            assert_int_equal(remove(find_path(f, ".mlxkv")), 0);
    }
}

static void s36_types_and_bytes_of_every_kind_survive(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < CKV_CACHE_KIND_COUNT; i++) {
        const uint32_t tokens[3] = {(uint32_t)i + 50, 2, 3};
        const uint32_t prompt[4] = {(uint32_t)i + 50, 2, 3, 4};
        put(f, test_all_kinds[i], tokens, 3);
        open_store(f);
        assert_int_equal(restore(f, prompt, 4), 3);
    }
}

static void s39_what_can_be_stored_can_be_found_and_loaded(void **state)
{
    struct fixture *f = *state;
    char *ns = malloc(CKV_META_VALUE_MAX + 2);
    struct test_target target;
    memset(ns, 'n', CKV_META_VALUE_MAX + 1);
    ns[CKV_META_VALUE_MAX + 1] = '\0';
    assert_status(put_entry(f, ns,
                            test_entry_with_tokens(CKV_CACHE_KV, (uint32_t[]){1, 2}, 2),
                            NULL),
                  CKV_TOOBIG);
    ns[CKV_META_VALUE_MAX] = '\0';
    assert_ok(put_entry(f, ns,
                        test_entry_with_tokens(CKV_CACHE_KV, (uint32_t[]){1, 2}, 2),
                        NULL),
              f->error);
    open_store(f);
    test_target_init(&target);
    assert_ok(
        ckv_store_restore(f->store, ns, T(1, 2, 3), &target.target, NULL, &f->error),
        f->error);
    assert_true(target.equal);
    test_target_deinit(&target);
    free(ns);
}

/* --- capacity --- */

static void s40_s41_cap_and_size_are_those_of_the_disk(void **state)
{
    struct fixture *f = *state;
    struct ckv_stored stored;
    f->options.cap_bytes = 100000;
    open_store(f);
    for (uint32_t i = 0; i < 12; i++) {
        uint64_t used = 0;
        const uint32_t tokens[2] = {i, i};
        stored = put(f, CKV_CACHE_STATE, tokens, 2);
        assert_true(stored.file_bytes > 16384);
        for (size_t n = 0; n < count_names(f->base, ".mlxkv"); n++)
            used += stored.file_bytes;
        assert_true(used <= 100000);
    }
    assert_true(test_stats(f->store).evicted > 0);
    assert_true(test_stats(f->store).used_bytes <= 100000);
    f->options.cap_bytes = 10000;
    open_store(f);
    assert_int_equal(test_stats(f->store).entries, 0);
    assert_int_equal(count_names(f->base, ""), 0);
    assert_status(put_entry(f, "",
                            test_entry_with_tokens(CKV_CACHE_STATE, (uint32_t[]){1}, 1),
                            NULL),
                  CKV_FULL);
}

static void s43_a_floor_above_the_free_space_refuses(void **state)
{
    struct fixture *f = *state;
    f->options.free_floor_bytes = UINT64_MAX - 1;
    open_store(f);
    assert_status(
        put_entry(f, "", test_entry_with_tokens(CKV_CACHE_KV, (uint32_t[]){1}, 1), NULL),
        CKV_FULL);
    assert_non_null(strstr(f->error.text, "free"));
    assert_int_equal(count_names(f->base, ""), 0);
}

static void s44_snapshots_of_one_conversation_do_not_pile_up(void **state)
{
    struct fixture *f = *state;
    uint32_t tokens[40];
    for (uint32_t i = 0; i < 40; i++)
        tokens[i] = i + 1;
    for (size_t length = 1; length <= 39; length++)
        put(f, CKV_CACHE_KV, tokens, length);
    assert_int_equal(count_names(f->base, ""), 1);
    assert_int_equal(restore(f, tokens, 40), 39);
    assert_int_equal(restore(f, tokens, 20), 19);
}

/* --- restart, orphans --- */

static void s50_every_durable_entry_is_found_after_a_restart(void **state)
{
    struct fixture *f = *state;
    for (uint32_t i = 0; i < 20; i++) {
        const uint32_t tokens[3] = {i, i + 1, i + 2};
        put(f, test_all_kinds[i % CKV_CACHE_KIND_COUNT], tokens, 3);
    }
    open_store(f);
    assert_int_equal(test_stats(f->store).entries, 20);
    for (uint32_t i = 0; i < 20; i++) {
        const uint32_t prompt[4] = {i, i + 1, i + 2, 0};
        assert_int_equal(restore(f, prompt, 4), 3);
    }
}

/* In the child: begins a put, takes `steps` steps and dies without cleaning up. */
static void die_after_steps(struct fixture *f, size_t steps)
{
    struct test_entry *made =
        test_entry_with_tokens(CKV_CACHE_KV, (const uint32_t[]){1, 2, 3}, 3);
    struct ckv_store *store;
    struct ckv_put *running;
    TEST_REQUIRE(ckv_store_open(f->path, &f->identity, &f->options, &store, NULL) ==
                 CKV_OK);
    TEST_REQUIRE(ckv_put_begin(store, "", &made->entry, &made->source, NULL, &running,
                               NULL) == CKV_OK);
    for (size_t i = 0; i < steps; i++)
        TEST_REQUIRE(ckv_put_step(running, NULL) == CKV_OK);
    _exit(0);
}

static void s31_s51_a_process_that_dies_leaves_an_entry_or_nothing(void **state)
{
    struct fixture *f = *state;
    ckv_store_close(f->store);
    f->store = NULL;
    /* OPEN, COPY x 2, HEADER, SYNC, PUBLISH, SYNC_DIR */
    for (size_t steps = 0; steps <= 7; steps++) {
        int how = -1;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            die_after_steps(f, steps);
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
        assert_int_equal(count_names(f->base, ".part"), steps > 0 && steps < 6);
        open_store(f);
        assert_int_equal(count_names(f->base, ".part"), 0);
        assert_int_equal(restore(f, T(1, 2, 3, 4)), steps < 6 ? 0 : 3);
        if (find_path(f, ".mlxkv"))
            assert_int_equal(remove(find_path(f, ".mlxkv")), 0);
        ckv_store_close(f->store);
        f->store = NULL;
    }
    open_store(f);
}

static void s42_s51_a_live_process_keeps_its_temporary_and_its_share(void **state)
{
    struct fixture *f = *state;
    struct test_entry *made =
        test_entry_with_tokens(CKV_CACHE_KV, (const uint32_t[]){1, 2, 3}, 3);
    struct ckv_store *other;
    struct ckv_put *running;
    assert_ok(ckv_put_begin(f->store, "", &made->entry, &made->source, NULL, &running,
                            &f->error),
              f->error);
    assert_ok(ckv_put_step(running, &f->error), f->error);
    assert_ok(ckv_store_open(f->path, &f->identity, &f->options, &other, &f->error),
              f->error);
    assert_int_equal(test_stats(other).swept, 0);
    assert_true(test_stats(other).used_bytes >= 32768);
    ckv_store_close(other);
    assert_ok(ckv_put_commit(running, NULL, &f->error), f->error);
    assert_int_equal(restore(f, T(1, 2, 3, 4)), 3);
    test_entry_destroy(made);
}

static void s55_removing_one_namespaces_entry_touches_no_other(void **state)
{
    struct fixture *f = *state;
    struct ckv_stored stored;
    assert_ok(put_entry(f, "a", test_entry_with_tokens(CKV_CACHE_KV, T(1, 2)), &stored),
              f->error);
    assert_ok(put_entry(f, "b", test_entry_with_tokens(CKV_CACHE_KV, T(1, 2)), NULL),
              f->error);
    assert_ok(ckv_store_remove(f->store, stored.id, &f->error), f->error);
    assert_int_equal(test_find(f->store, "a", T(1, 2, 3), NULL, NULL), 0);
    assert_int_equal(test_find(f->store, "b", T(1, 2, 3), NULL, NULL), 2);
}

/* --- attacks --- */

static void attack_links_and_special_files_are_not_followed(void **state)
{
    struct fixture *f = *state;
    char victim[TEST_PATH_SIZE];
    struct stat seen;
    put(f, CKV_CACHE_KV, T(1, 2, 3));
    snprintf(victim, sizeof victim, "%s", test_dir_path(&f->dir, "victim"));
    test_copy_file(find_path(f, ".mlxkv"), victim);
    test_flip_byte(victim, 40, 1);
    assert_int_equal(symlink(victim, in_base(f, UUID ".mlxkv")), 0);
    assert_int_equal(symlink(victim, in_base(f, "." UUID ".part")), 0);
    assert_int_equal(
        symlink("/dev/zero", in_base(f, "11234567-89ab-4def-8123-456789abcdef.mlxkv")),
        0);
    assert_int_equal(
        mkfifo(in_base(f, "21234567-89ab-4def-8123-456789abcdef.mlxkv"), 0600), 0);
    assert_int_equal(link(victim, in_base(f, "31234567-89ab-4def-8123-456789abcdef.bad")),
                     0);
    assert_int_equal(
        mkdir(in_base(f, "41234567-89ab-4def-8123-456789abcdef.mlxkv"), 0700), 0);
    f->options.cap_bytes = 0; /* and all of it shall be evicted */
    open_store(f);
    assert_int_equal(test_stats(f->store).entries, 0);
    assert_int_equal(test_stats(f->store).set_aside, 0);
    assert_int_equal(stat(victim, &seen), 0);
    assert_int_equal(seen.st_nlink, 2);
    assert_int_equal(lstat(in_base(f, UUID ".mlxkv"), &seen), 0);
    assert_int_equal(
        lstat(in_base(f, "41234567-89ab-4def-8123-456789abcdef.mlxkv"), &seen), 0);
    assert_int_equal(lstat(in_base(f, "31234567-89ab-4def-8123-456789abcdef.bad"), &seen),
                     0);
}

static void attack_a_linked_folder_is_not_entered(void **state)
{
    struct fixture *f = *state;
    char outside[TEST_PATH_SIZE];
    char inside[TEST_PATH_SIZE];
    snprintf(outside, sizeof outside, "%s", test_dir_path(&f->dir, "outside"));
    snprintf(inside, sizeof inside, "%s", test_dir_path(&f->dir, "store/fp-test/abc"));
    put(f, CKV_CACHE_KV, T(1, 2, 3));
    assert_int_equal(mkdir(outside, 0700), 0);
    test_copy_file(find_path(f, ".mlxkv"),
                   test_dir_path(&f->dir, "outside/" UUID ".mlxkv"));
    assert_int_equal(symlink(outside, inside), 0);
    f->options.cap_bytes = 0;
    open_store(f);
    assert_int_equal(test_stats(f->store).entries, 0);
    assert_true(test_file_exists(test_dir_path(&f->dir, "outside/" UUID ".mlxkv")));
}

static void attack_the_fingerprints_folder_is_a_link(void **state)
{
    struct fixture *f = *state;
    char inside[TEST_PATH_SIZE];
    struct ckv_store *store;
    snprintf(inside, sizeof inside, "%s", test_dir_path(&f->dir, "store/fp-linked"));
    assert_int_equal(mkdir(test_dir_path(&f->dir, "outside"), 0700), 0);
    assert_int_equal(symlink(test_dir_path(&f->dir, "outside"), inside), 0);
    f->identity.fingerprint = "fp-linked";
    assert_status(ckv_store_open(f->path, &f->identity, &f->options, &store, &f->error),
                  CKV_DENIED);
    assert_int_equal(count_names(test_dir_path(&f->dir, "outside"), ""), 0);
}

static void attack_an_entry_of_another_user_is_not_read(void **state)
{
    struct fixture *f = *state;
    if (geteuid() != 0)
        skip();
    put(f, CKV_CACHE_KV, T(1, 2, 3));
    assert_int_equal(chown(find_path(f, ".mlxkv"), 12345, 12345), 0);
    assert_int_equal(restore(f, T(1, 2, 3, 4)), 0);
    open_store(f);
    assert_int_equal(find(f, T(1, 2, 3, 4)), 0);
    assert_int_equal(test_stats(f->store).foreign, 1);
    assert_int_equal(count_names(f->base, ".mlxkv"), 1);
}

static void attack_a_directory_of_another_user_is_refused(void **state)
{
    struct fixture *f = *state;
    struct ckv_store *store;
    if (geteuid() != 0)
        skip();
    assert_int_equal(chown(f->path, 12345, 12345), 0);
    assert_status(ckv_store_open(f->path, &f->identity, &f->options, &store, &f->error),
                  CKV_DENIED);
    assert_non_null(strstr(f->error.text, "12345"));
    assert_int_equal(chown(f->path, 0, 0), 0);
}

static void attack_a_directory_others_may_write_to_is_refused(void **state)
{
    struct fixture *f = *state;
    struct ckv_store *store;
    assert_int_equal(chmod(f->path, 0770), 0);
    assert_status(ckv_store_open(f->path, &f->identity, &f->options, &store, &f->error),
                  CKV_DENIED);
    assert_non_null(strstr(f->error.text, "0770"));
    f->options.allow_shared_dir = true;
    open_store(f);
}

static void modes_keep_prompts_private(void **state)
{
    struct fixture *f = *state;
    struct stat seen;
    mode_t before = umask(0);
    put(f, CKV_CACHE_KV, T(1, 2, 3));
    umask(before);
    assert_int_equal(stat(f->path, &seen), 0);
    assert_int_equal(seen.st_mode & 07777, 0700);
    assert_int_equal(stat(f->base, &seen), 0);
    assert_int_equal(seen.st_mode & 07777, 0700);
    assert_int_equal(stat(find_path(f, ".mlxkv"), &seen), 0);
    assert_int_equal(seen.st_mode & 07777, 0600);
}

static void logs_never_hold_token_ids(void **state)
{
    struct fixture *f = *state;
    put(f, CKV_CACHE_KV, T(918273645, 2, 3));
    assert_int_equal(restore(f, T(918273645, 2, 3, 4)), 3);
    test_flip_byte(find_path(f, ".mlxkv"), 32768, 1);
    assert_int_equal(restore(f, T(918273645, 2, 3, 4)), 0);
    f->options.cap_bytes = 1;
    open_store(f);
    assert_status(
        put_entry(f, "", test_entry_with_tokens(CKV_CACHE_KV, T(918273645)), NULL),
        CKV_FULL);
    assert_true(f->log.count > 3);
    assert_false(test_log_contains(&f->log, NULL, "918273645"));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(s1_a_wrapped_ring_serves_only_its_exact_end),
        TEST(s4_one_untrimmable_layer_decides_for_the_entry),
        TEST(s5_a_ring_that_never_filled_can_be_cut),
        TEST(s7_a_boundary_entry_stays_beside_prompt_and_reply),
        TEST(s12_lookup_falls_back_to_the_longest_usable),
        TEST(s13_a_hybrid_entry_is_a_hit_at_its_boundary_only),
        TEST(s20_s22_another_fingerprint_shares_nothing),
        TEST(s20_another_tokenizer_shares_nothing_and_loses_nothing),
        TEST(s21_the_name_of_the_model_is_not_its_identity),
        TEST(s25_namespaces_share_nothing),
        TEST(s30_s33_damage_is_never_served_and_never_offered_again),
        TEST(s33_truncation_anywhere_is_a_miss),
        TEST(s36_types_and_bytes_of_every_kind_survive),
        TEST(s39_what_can_be_stored_can_be_found_and_loaded),
        TEST(s40_s41_cap_and_size_are_those_of_the_disk),
        TEST(s43_a_floor_above_the_free_space_refuses),
        TEST(s44_snapshots_of_one_conversation_do_not_pile_up),
        TEST(s50_every_durable_entry_is_found_after_a_restart),
        TEST(s31_s51_a_process_that_dies_leaves_an_entry_or_nothing),
        TEST(s42_s51_a_live_process_keeps_its_temporary_and_its_share),
        TEST(s55_removing_one_namespaces_entry_touches_no_other),
        TEST(attack_links_and_special_files_are_not_followed),
        TEST(attack_a_linked_folder_is_not_entered),
        TEST(attack_the_fingerprints_folder_is_a_link),
        TEST(attack_an_entry_of_another_user_is_not_read),
        TEST(attack_a_directory_of_another_user_is_refused),
        TEST(attack_a_directory_others_may_write_to_is_refused),
        TEST(modes_keep_prompts_private),
        TEST(logs_never_hold_token_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

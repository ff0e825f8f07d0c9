/* Owns the world of store tests, and the ways into its disk that pass the faults by. */
#include "lib/store_world.h"

#include "lib/require.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE_OK(status, error)                                                        \
    do {                                                                                 \
        enum ckv_status status_of_call = (status);                                       \
        if (status_of_call != CKV_OK)                                                    \
            fprintf(stderr, "%s: %s\n", ckv_status_name(status_of_call), (error)->text); \
        TEST_REQUIRE(status_of_call == CKV_OK);                                          \
    } while (0)

void test_world_init(struct test_world *world)
{
    memset(world, 0, sizeof *world);
    test_clock_init(&world->clock);
    test_log_init(&world->log);
    test_alloc_init(&world->alloc);
    world->memory = test_memory_io_create(&world->clock.clock);
    test_faulty_io_init(&world->faulty, test_memory_io_table(world->memory));
    ckv_store_options_init(&world->options);
    world->options.io = &world->faulty.io;
    world->options.clock = &world->clock.clock;
    world->options.alloc = &world->alloc.alloc;
    world->options.log = world->log.log;
    world->options.cap_bytes = UINT64_C(1) << 30;
    world->options.free_floor_bytes = 0;
    world->identity = (struct ckv_store_identity){
        .fingerprint = TEST_FINGERPRINT,
        .tokenizer_hash = "tok-test",
        .model_id = "test-model",
    };
}

void test_world_init_crashed(struct test_world *after, struct test_world *before,
                             const struct test_crash *crash)
{
    test_world_init(after);
    after->clock.realtime_ns = before->clock.realtime_ns;
    after->options.cap_bytes = before->options.cap_bytes;
    after->options.free_floor_bytes = before->options.free_floor_bytes;
    test_faulty_io_deinit(&after->faulty);
    test_memory_io_destroy(after->memory);
    after->memory = test_crash_disk(before->memory, crash, &after->clock.clock);
    test_faulty_io_init(&after->faulty, test_memory_io_table(after->memory));
}

int test_world_deinit(struct test_world *world)
{
    bool clean = test_faulty_io_clean(&world->faulty);
    clean = test_memory_io_clean(world->memory) && clean;
    clean = test_alloc_clean(&world->alloc) && clean;
    test_faulty_io_deinit(&world->faulty);
    test_memory_io_destroy(world->memory);
    test_alloc_deinit(&world->alloc);
    test_log_deinit(&world->log);
    test_clock_deinit(&world->clock);
    return clean ? 0 : -1;
}

enum ckv_status test_world_try_open(struct test_world *world, struct ckv_store **store)
{
    ckv_error_clear(&world->error);
    return ckv_store_open(TEST_STORE_PATH, &world->identity, &world->options, store,
                          &world->error);
}

struct ckv_store *test_world_open(struct test_world *world)
{
    struct ckv_store *store;
    REQUIRE_OK(test_world_try_open(world, &store), &world->error);
    return store;
}

static uint64_t seed_of(const uint32_t *tokens, size_t count)
{
    uint64_t seed = count;
    for (size_t i = 0; i < count; i++)
        seed = seed * 31 + tokens[i];
    return seed;
}

struct test_entry *test_entry_with_tokens(enum ckv_cache_kind kind,
                                          const uint32_t *tokens, size_t count)
{
    struct test_entry_options options = {
        .token_count = count,
        .tokens = tokens,
        .seed = seed_of(tokens, count),
        .kinds = &kind,
        .kind_count = 1,
        .no_meta = true,
    };
    return test_entry_create(&options);
}

enum ckv_status test_try_put(struct test_world *world, struct ckv_store *store,
                             const char *ns, enum ckv_cache_kind kind,
                             const uint32_t *tokens, size_t count,
                             struct ckv_stored *stored)
{
    struct test_entry *made = test_entry_with_tokens(kind, tokens, count);
    enum ckv_status status;
    ckv_error_clear(&world->error);
    status = ckv_store_put(store, ns, &made->entry, &made->source, NULL, stored,
                           &world->error);
    test_entry_destroy(made);
    return status;
}

struct ckv_stored test_put(struct test_world *world, struct ckv_store *store,
                           const char *ns, enum ckv_cache_kind kind,
                           const uint32_t *tokens, size_t count)
{
    struct ckv_stored stored;
    REQUIRE_OK(test_try_put(world, store, ns, kind, tokens, count, &stored),
               &world->error);
    return stored;
}

static void drop_sink(void *ctx)
{
    struct test_target *target = ctx;
    target->dropped++;
}

static enum ckv_status lend_sink(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                                 size_t wanted, void **data, size_t *size,
                                 struct ckv_error *error)
{
    struct test_target *target = ctx;
    const struct ckv_sink *sink = &target->sink->sink;
    return sink->lend(sink->ctx, cache, tensor, offset, wanted, data, size, error);
}

static enum ckv_status took_sink(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                                 size_t size, struct ckv_error *error)
{
    struct test_target *target = ctx;
    const struct ckv_sink *sink = &target->sink->sink;
    if (target->fail_took > 0 && --target->fail_took == 0)
        return ckv_error_set(error, CKV_ENGINE, "the engine fails as told");
    return sink->took(sink->ctx, cache, tensor, offset, size, error);
}

static enum ckv_status prepare_target(void *ctx, const struct ckv_entry *entry,
                                      uint64_t prefix, struct ckv_sink *sink,
                                      struct ckv_error *error)
{
    struct test_target *target = ctx;
    (void)prefix;
    target->prepared++;
    if (target->on_prepare)
        target->on_prepare(target->on_prepare_ctx);
    if (target->prepare_status != CKV_OK)
        return ckv_error_set(error, target->prepare_status, "prepare answers as told");
    test_sink_destroy(target->sink);
    target->sink = test_sink_create(entry);
    *sink = (struct ckv_sink){target, lend_sink, took_sink, drop_sink};
    return CKV_OK;
}

static void copy_meta(const struct ckv_entry *entry, enum ckv_meta_key key, char *out,
                      size_t size)
{
    const char *value = ckv_entry_meta(entry, key);
    snprintf(out, size, "%s", value ? value : "(none)");
}

static enum ckv_status accept_target(void *ctx, const struct ckv_entry *entry,
                                     uint64_t prefix, struct ckv_error *error)
{
    struct test_target *target = ctx;
    struct test_entry *made;
    target->accepted++;
    if (target->accept_status != CKV_OK)
        return ckv_error_set(error, target->accept_status, "accept answers as told");
    made =
        test_entry_with_tokens(entry->caches[0].kind, entry->tokens, entry->token_count);
    target->equal = test_sink_equals(target->sink, made);
    test_entry_destroy(made);
    target->prefix = prefix;
    target->token_count = entry->token_count;
    copy_meta(entry, CKV_META_NAMESPACE, target->ns, sizeof target->ns);
    copy_meta(entry, CKV_META_MODEL_ID, target->model_id, sizeof target->model_id);
    return CKV_OK;
}

void test_target_init(struct test_target *target)
{
    memset(target, 0, sizeof *target);
    target->target = (struct ckv_restore_target){
        .ctx = target, .prepare = prepare_target, .accept = accept_target};
}

void test_target_deinit(struct test_target *target)
{
    test_sink_destroy(target->sink);
    target->sink = NULL;
}

uint64_t test_restore(struct test_world *world, struct ckv_store *store, const char *ns,
                      const uint32_t *prompt, size_t length)
{
    struct ckv_restored restored = {0};
    struct test_target target;
    enum ckv_status status;
    test_target_init(&target);
    ckv_error_clear(&world->error);
    status = ckv_store_restore(store, ns, prompt, length, &target.target, &restored,
                               &world->error);
    TEST_REQUIRE(status == CKV_OK || status == CKV_NOTFOUND);
    TEST_REQUIRE(status != CKV_OK || (target.equal && target.prefix == restored.prefix &&
                                      target.token_count == restored.token_count));
    test_target_deinit(&target);
    return restored.prefix;
}

uint64_t test_find(struct ckv_store *store, const char *ns, const uint32_t *prompt,
                   size_t length, uint64_t *id, uint64_t *entry_length)
{
    struct ckv_candidate best = {0};
    struct ckv_error error;
    size_t count;
    REQUIRE_OK(ckv_store_find(store, ns, prompt, length, &best, 1, &count, &error),
               &error);
    TEST_REQUIRE(count <= 1);
    if (id)
        *id = best.id;
    if (entry_length)
        *entry_length = best.token_count;
    return best.prefix;
}

struct ckv_store_stats test_stats(struct ckv_store *store)
{
    struct ckv_store_stats stats;
    ckv_store_get_stats(store, &stats);
    return stats;
}

static const struct ckv_io *disk(struct test_world *world)
{
    return test_memory_io_table(world->memory);
}

static bool open_path(struct test_world *world, const char *path, struct ckv_io_dir *out)
{
    char full[256];
    snprintf(full, sizeof full, "%s/%s", TEST_STORE_PATH, path);
    return ckv_io_open_root(disk(world), full, false, NULL, out, NULL) == CKV_OK;
}

struct ckv_io_dir test_world_dir(struct test_world *world, const char *path)
{
    struct ckv_io_dir dir;
    TEST_REQUIRE(open_path(world, path, &dir));
    return dir;
}

void test_world_close_dir(struct test_world *world, struct ckv_io_dir *dir)
{
    ckv_io_close_dir(disk(world), dir);
}

bool test_world_has_dir(struct test_world *world, const char *path)
{
    struct ckv_io_dir dir;
    bool there = open_path(world, path, &dir);
    ckv_io_close_dir(disk(world), &dir);
    return there;
}

size_t test_world_count(struct test_world *world, const char *path, const char *suffix)
{
    struct ckv_io_dir dir;
    size_t count = 0;
    if (open_path(world, path, &dir))
        count = test_io_count(disk(world), dir, suffix);
    ckv_io_close_dir(disk(world), &dir);
    return count;
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t size = strlen(name);
    size_t tail = strlen(suffix);
    return size >= tail && strcmp(name + size - tail, suffix) == 0;
}

const char *test_world_only(struct test_world *world, const char *path,
                            const char *suffix)
{
    static char found[CKV_IO_NAME_MAX + 1];
    struct ckv_io_dir dir = test_world_dir(world, path);
    struct test_names names;
    size_t count = 0;
    test_names_init(&names, disk(world), dir);
    for (size_t i = 0; i < names.count; i++) {
        if (!ends_with(names.names[i], suffix))
            continue;
        snprintf(found, sizeof found, "%s", names.names[i]);
        count++;
    }
    test_names_deinit(&names);
    test_world_close_dir(world, &dir);
    TEST_REQUIRE(count == 1);
    return found;
}

void test_world_write(struct test_world *world, const char *path, const char *name,
                      const void *data, size_t size)
{
    struct ckv_io_dir dir = test_world_dir(world, path);
    test_io_write_file(disk(world), dir, name, data, size);
    test_world_close_dir(world, &dir);
}

void test_world_flip(struct test_world *world, const char *path, const char *name,
                     uint64_t offset)
{
    struct ckv_io_dir dir = test_world_dir(world, path);
    struct ckv_io_file file;
    struct ckv_error error;
    unsigned char byte = 0;
    size_t done;
    REQUIRE_OK(ckv_io_open_file(disk(world), dir, name, CKV_IO_READ_WRITE, &file, &error),
               &error);
    REQUIRE_OK(ckv_io_read(disk(world), file, &byte, 1, offset, &done, &error), &error);
    TEST_REQUIRE(done == 1);
    byte ^= 0x20;
    REQUIRE_OK(ckv_io_write(disk(world), file, &byte, 1, offset, &error), &error);
    ckv_io_close_file(disk(world), &file);
    test_world_close_dir(world, &dir);
}

void test_world_remove(struct test_world *world, const char *path, const char *name)
{
    struct ckv_io_dir dir = test_world_dir(world, path);
    struct ckv_error error;
    REQUIRE_OK(ckv_io_remove(disk(world), dir, name, &error), &error);
    test_world_close_dir(world, &dir);
}

void test_world_rename(struct test_world *world, const char *path, const char *from,
                       const char *to)
{
    struct ckv_io_dir dir = test_world_dir(world, path);
    struct ckv_error error;
    REQUIRE_OK(ckv_io_rename(disk(world), dir, from, dir, to, &error), &error);
    test_world_close_dir(world, &dir);
}

void test_world_make_dir(struct test_world *world, const char *path, const char *name)
{
    struct ckv_io_dir dir = test_world_dir(world, path);
    struct ckv_io_dir made;
    struct ckv_error error;
    REQUIRE_OK(ckv_io_open_dir(disk(world), dir, name, true, NULL, &made, &error),
               &error);
    test_world_close_dir(world, &made);
    test_world_close_dir(world, &dir);
}

void test_world_set_mtime(struct test_world *world, const char *path, const char *name,
                          int64_t mtime_ns)
{
    struct ckv_io_dir dir = test_world_dir(world, path);
    const struct ckv_io *io = disk(world);
    struct ckv_io_file file;
    struct ckv_error error;
    REQUIRE_OK(ckv_io_open_file(io, dir, name, CKV_IO_READ_WRITE, &file, &error), &error);
    REQUIRE_OK(io->set_mtime(io->ctx, file, mtime_ns, &error), &error);
    ckv_io_close_file(io, &file);
    test_world_close_dir(world, &dir);
}

struct ckv_io_stat test_world_stat(struct test_world *world, const char *path,
                                   const char *name)
{
    struct ckv_io_dir dir = test_world_dir(world, path);
    struct ckv_io_stat stat;
    struct ckv_error error;
    REQUIRE_OK(ckv_io_stat_name(disk(world), dir, name, &stat, &error), &error);
    test_world_close_dir(world, &dir);
    return stat;
}

static uint64_t used_below(struct test_world *world, struct ckv_io_dir dir)
{
    const struct ckv_io *io = disk(world);
    struct test_names names;
    uint64_t used = 0;
    test_names_init(&names, io, dir);
    for (size_t i = 0; i < names.count; i++) {
        struct ckv_io_stat stat;
        struct ckv_io_dir below;
        struct ckv_error error;
        REQUIRE_OK(ckv_io_stat_name(io, dir, names.names[i], &stat, &error), &error);
        if (stat.type == CKV_IO_TYPE_FILE)
            used += stat.allocated_bytes;
        if (stat.type != CKV_IO_TYPE_DIR)
            continue;
        REQUIRE_OK(ckv_io_open_dir(io, dir, names.names[i], false, NULL, &below, &error),
                   &error);
        used += used_below(world, below);
        ckv_io_close_dir(io, &below);
    }
    test_names_deinit(&names);
    return used;
}

uint64_t test_world_used(struct test_world *world)
{
    struct ckv_io_dir dir = test_world_dir(world, "");
    uint64_t used = used_below(world, dir);
    test_world_close_dir(world, &dir);
    return used;
}

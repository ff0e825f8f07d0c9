/* Owns the engine of the tier tests. Invariant: live = made - released. */
#include "lib/held_entry.h"

#include "lib/require.h"
#include "lib/store_world.h"
#include <string.h>

void test_engine_init(struct test_engine *engine)
{
    memset(engine, 0, sizeof *engine);
}

void test_engine_deinit(struct test_engine *engine)
{
    test_sink_destroy(engine->sink);
    engine->sink = NULL;
}

static const struct ckv_entry *get_entry(void *ctx)
{
    const struct test_held *object = ctx;
    return &object->made->entry;
}

static const struct ckv_source *get_source(void *ctx)
{
    const struct test_held *object = ctx;
    return &object->source;
}

static void visit_buffers(void *ctx, ckv_buffer_fn fn, void *fn_ctx)
{
    const struct test_held *object = ctx;
    for (size_t i = 0; i <= object->buffer_count; i++)
        fn(fn_ctx, (const char *)object->buffer + i, object->bytes);
}

void test_held_discard(struct test_held *object)
{
    struct test_engine *engine = object->engine;
    if (object->payload)
        engine->payload->release(engine->payload->ctx, object->payload,
                                 (size_t)object->bytes, 16);
    test_entry_destroy(object->made);
    ckv_held_unref(object->owner);
    free(object);
    atomic_fetch_add(&engine->released, 1);
    atomic_fetch_sub(&engine->live, 1);
}

static void release(void *ctx)
{
    test_held_discard(ctx);
}

static const struct ckv_held_methods methods = {get_entry, get_source, visit_buffers,
                                                release};

static enum ckv_status view(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                            size_t wanted, const void **data, size_t *size,
                            struct ckv_error *error)
{
    struct test_held *object = ctx;
    const struct ckv_source *inner = &object->made->source;
    if (object->engine->view_latch)
        test_latch_pass(object->engine->view_latch);
    return inner->view(inner->ctx, cache, tensor, offset, wanted, data, size, error);
}

struct test_held *test_held_make(struct test_engine *engine, enum ckv_cache_kind kind,
                                 uint64_t bytes, const uint32_t *tokens, size_t count)
{
    struct test_held *object = calloc(1, sizeof *object);
    TEST_REQUIRE(object);
    object->engine = engine;
    object->made = test_entry_with_tokens(kind, tokens, count);
    object->source = (struct ckv_source){.ctx = object, .any_thread = true, .view = view};
    object->buffer = object->made;
    object->bytes = bytes ? bytes : ckv_entry_tensor_bytes(&object->made->entry);
    if (engine->payload) {
        object->payload =
            engine->payload->allocate(engine->payload->ctx, (size_t)object->bytes, 16);
        TEST_REQUIRE(object->payload);
    }
    atomic_fetch_add(&engine->made, 1);
    atomic_fetch_add(&engine->live, 1);
    return object;
}

enum ckv_status test_held_wrap(struct test_held *object, struct ckv_held **out,
                               struct ckv_error *error)
{
    return ckv_held_create(object->engine->alloc, &methods, object, out, error);
}

static struct ckv_held *wrap(struct test_held *object)
{
    struct ckv_held *held;
    struct ckv_error error;
    TEST_REQUIRE(test_held_wrap(object, &held, &error) == CKV_OK);
    return held;
}

struct ckv_held *test_held(struct test_engine *engine, enum ckv_cache_kind kind,
                           uint64_t bytes, const uint32_t *tokens, size_t count)
{
    return wrap(test_held_make(engine, kind, bytes, tokens, count));
}

struct ckv_held *test_held_sharing(struct test_engine *engine, enum ckv_cache_kind kind,
                                   struct ckv_held *other, const uint32_t *tokens,
                                   size_t count)
{
    const struct test_held *from = ckv_held_context(other);
    struct test_held *object = test_held_make(engine, kind, from->bytes, tokens, count);
    object->buffer = from->buffer;
    object->owner = ckv_held_ref(other);
    return wrap(object);
}

static enum ckv_status lend(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                            size_t wanted, void **data, size_t *size,
                            struct ckv_error *error)
{
    struct test_engine *engine = ctx;
    const struct ckv_sink *sink = &engine->sink->sink;
    return sink->lend(sink->ctx, cache, tensor, offset, wanted, data, size, error);
}

static enum ckv_status took(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                            size_t size, struct ckv_error *error)
{
    struct test_engine *engine = ctx;
    const struct ckv_sink *sink = &engine->sink->sink;
    return sink->took(sink->ctx, cache, tensor, offset, size, error);
}

static void drop(void *ctx)
{
    struct test_engine *engine = ctx;
    engine->dropped++;
}

enum ckv_status test_engine_prepare(void *ctx, const struct ckv_entry *entry,
                                    uint64_t prefix, struct ckv_sink *sink,
                                    struct ckv_error *error)
{
    struct test_engine *engine = ctx;
    (void)prefix;
    engine->prepared++;
    if (engine->on_prepare)
        engine->on_prepare(engine->on_prepare_ctx);
    if (engine->prepare_status != CKV_OK)
        return ckv_error_set(error, engine->prepare_status, "prepare answers as told");
    test_sink_destroy(engine->sink);
    engine->sink = test_sink_create(entry);
    *sink = (struct ckv_sink){engine, lend, took, drop};
    return CKV_OK;
}

enum ckv_status test_engine_finish(void *ctx, const struct ckv_entry *entry,
                                   uint64_t prefix, struct ckv_held **out,
                                   struct ckv_error *error)
{
    struct test_engine *engine = ctx;
    struct test_held *object;
    (void)prefix;
    engine->finished++;
    if (engine->finish_status != CKV_OK)
        return ckv_error_set(error, engine->finish_status, "finish answers as told");
    object = test_held_make(engine, entry->caches[0].kind, engine->restored_bytes,
                            entry->tokens, entry->token_count);
    engine->equal = test_sink_equals(engine->sink, object->made);
    if (test_held_wrap(object, out, error) == CKV_OK)
        return CKV_OK;
    test_held_discard(object);
    return CKV_NOMEM;
}

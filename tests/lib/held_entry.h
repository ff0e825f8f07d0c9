/*
 * An engine small enough for tests of the tiers: held entries over test entries, with
 * buffers that weigh what the test says, and the way back from a store.
 *
 *     test_engine_init(&engine);
 *     held = test_held(&engine, CKV_CACHE_KV, 40, TEST_TOKENS(1, 2, 3));
 *     ...
 *     ckv_held_unref(held);
 *     assert_int_equal(engine.live, 0);
 */
#ifndef COLDKV_TESTS_HELD_ENTRY_H
#define COLDKV_TESTS_HELD_ENTRY_H

#include "lib/entry_builder.h"
#include "lib/latch.h"
#include <coldkv/alloc.h>
#include <coldkv/held.h>
#include <stdatomic.h>
#include <stdbool.h>

struct test_engine {
    const struct ckv_alloc *alloc; /* of the held objects; NULL = default */
    /* When set, each entry made takes its buffer of `bytes` bytes from here. */
    const struct ckv_alloc *payload;
    atomic_size_t made;
    atomic_size_t released;
    atomic_size_t live;
    /* Every view of a source passes it, when set. */
    struct test_latch *view_latch;
    /* What the way back does. */
    uint64_t restored_bytes;        /* what a restored entry weighs; 0 = its tensors */
    enum ckv_status prepare_status; /* 0 = OK; the same for the next */
    enum ckv_status finish_status;
    void (*on_prepare)(void *ctx); /* called at the start of prepare */
    void *on_prepare_ctx;
    size_t prepared;
    size_t finished;
    size_t dropped;
    bool equal; /* what was restored last is what test_held had */
    struct test_sink *sink;
};

/* What is behind a held entry: its context. */
struct test_held {
    struct test_engine *engine;
    struct test_entry *made;
    struct ckv_source source;
    const void *buffer;     /* its identity */
    struct ckv_held *owner; /* of the buffer, when it is another one's; referenced */
    uint64_t bytes;
    void *payload;
    size_t buffer_count; /* buffers besides it, at addresses after it, as heavy */
};

void test_engine_init(struct test_engine *engine);
void test_engine_deinit(struct test_engine *engine);

/* An entry of one cache with these tokens, that weighs `bytes`; the caller's reference.
 * bytes 0 = as its tensors. The bytes in it depend on the tokens only. */
struct ckv_held *test_held(struct test_engine *engine, enum ckv_cache_kind kind,
                           uint64_t bytes, const uint32_t *tokens, size_t count);
/* The same, in the buffer of another. */
struct ckv_held *test_held_sharing(struct test_engine *engine, enum ckv_cache_kind kind,
                                   struct ckv_held *other, const uint32_t *tokens,
                                   size_t count);
/* An object as the other two make it, not yet held: change it, then hold it. */
struct test_held *test_held_make(struct test_engine *engine, enum ckv_cache_kind kind,
                                 uint64_t bytes, const uint32_t *tokens, size_t count);
enum ckv_status test_held_wrap(struct test_held *object, struct ckv_held **out,
                               struct ckv_error *error);
/* For one that was not held. */
void test_held_discard(struct test_held *object);

/* The three steps of a restorer; ctx is the engine. */
enum ckv_status test_engine_prepare(void *ctx, const struct ckv_entry *entry,
                                    uint64_t prefix, struct ckv_sink *sink,
                                    struct ckv_error *error);
enum ckv_status test_engine_finish(void *ctx, const struct ckv_entry *entry,
                                   uint64_t prefix, struct ckv_held **out,
                                   struct ckv_error *error);

#endif

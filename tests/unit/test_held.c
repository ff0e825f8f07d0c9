/* Held entries: one picture that everybody shares. */
#include "lib/counting_alloc.h"
#include "lib/held_entry.h"
#include "lib/store_world.h"
#include "lib/unit.h"

#include <coldkv/held.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define T TEST_TOKENS

struct fixture {
    struct test_alloc alloc;
    struct test_engine engine;
    struct ckv_error error;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    test_alloc_init(&f->alloc);
    test_engine_init(&f->engine);
    f->engine.alloc = &f->alloc.alloc;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int result = test_alloc_clean(&f->alloc) && f->engine.live == 0 ? 0 : -1;
    test_engine_deinit(&f->engine);
    test_alloc_deinit(&f->alloc);
    free(f);
    return result;
}

static void says_what_it_holds(void **state)
{
    struct fixture *f = *state;
    struct ckv_held *held = test_held(&f->engine, CKV_CACHE_KV, 40, T(1, 2, 3));
    struct test_held *object = ckv_held_context(held);
    assert_ptr_equal(ckv_held_entry(held), &object->made->entry);
    assert_ptr_equal(ckv_held_source(held), &object->source);
    assert_int_equal(ckv_held_bytes(held), 40);
    assert_int_equal(ckv_held_floor(held), 0);
    ckv_held_unref(held);
    held = test_held(&f->engine, CKV_CACHE_SSM, 40, T(1, 2, 3));
    assert_int_equal(ckv_held_floor(held), 3);
    ckv_held_unref(held);
}

static void is_released_once_by_the_last_reference(void **state)
{
    struct fixture *f = *state;
    struct ckv_held *held = test_held(&f->engine, CKV_CACHE_KV, 40, T(1, 2, 3));
    assert_ptr_equal(ckv_held_ref(held), held);
    ckv_held_unref(held);
    assert_int_equal(f->engine.released, 0);
    ckv_held_unref(held);
    assert_int_equal(f->engine.released, 1);
    ckv_held_unref(NULL);
}

static void a_buffer_named_twice_counts_once(void **state)
{
    struct fixture *f = *state;
    struct test_held *object = test_held_make(&f->engine, CKV_CACHE_KV, 40, T(1, 2, 3));
    struct ckv_held *held;
    object->buffer_count = 20;
    assert_ok(test_held_wrap(object, &held, &f->error), f->error);
    assert_int_equal(ckv_held_bytes(held), 21 * 40);
    ckv_held_unref(held);
}

static void visit_twice(void *ctx, ckv_buffer_fn fn, void *fn_ctx)
{
    (void)ctx;
    fn(fn_ctx, "b", 30);
    fn(fn_ctx, "a", 12);
    fn(fn_ctx, "b", 30);
}

static const struct ckv_entry *plain_entry(void *ctx)
{
    struct test_entry *made = ctx;
    return &made->entry;
}

static const struct ckv_source *plain_source(void *ctx)
{
    struct test_entry *made = ctx;
    return &made->source;
}

static void plain_release(void *ctx)
{
    test_entry_destroy(ctx);
}

static const struct ckv_held_methods plain = {plain_entry, plain_source, visit_twice,
                                              plain_release};

struct visited {
    size_t count;
    uint64_t bytes;
};

static void count_buffer(void *ctx, const void *buffer, uint64_t bytes)
{
    struct visited *visited = ctx;
    (void)buffer;
    visited->count++;
    visited->bytes += bytes;
}

static void buffers_are_visited_once_each(void **state)
{
    struct fixture *f = *state;
    struct test_entry *made = test_entry_of_kind(CKV_CACHE_KV, 3, 1);
    struct visited visited = {0};
    struct ckv_held *held;
    assert_ok(ckv_held_create(&f->alloc.alloc, &plain, made, &held, &f->error), f->error);
    ckv_held_visit_buffers(held, count_buffer, &visited);
    assert_int_equal(visited.count, 2);
    assert_int_equal(visited.bytes, 42);
    assert_int_equal(ckv_held_bytes(held), 42);
    ckv_held_unref(held);
}

static void an_entry_that_breaks_a_rule_stays_the_callers(void **state)
{
    struct fixture *f = *state;
    struct test_held *object = test_held_make(&f->engine, CKV_CACHE_KV, 40, T(1, 2, 3));
    struct ckv_held *held = (struct ckv_held *)object;
    object->made->entry.token_count = 2;
    assert_status(test_held_wrap(object, &held, &f->error), CKV_INVALID);
    assert_status(f->error.status, CKV_INVALID);
    assert_null(held);
    object->made->entry.token_count = 3;
    object->source.any_thread = false;
    assert_status(test_held_wrap(object, &held, &f->error), CKV_INVALID);
    assert_non_null(strstr(f->error.text, "thread"));
    object->source.any_thread = true;
    object->made->entry.caches[0].tensors[0].bytes++;
    assert_status(test_held_wrap(object, &held, &f->error), CKV_INVALID);
    object->made->entry.caches[0].tensors[0].bytes--;
    assert_int_equal(f->engine.released, 0);
    test_held_discard(object);
}

static void every_method_is_needed(void **state)
{
    struct fixture *f = *state;
    struct test_entry *made = test_entry_of_kind(CKV_CACHE_KV, 3, 1);
    struct ckv_held_methods broken = plain;
    struct ckv_held *held;
    broken.release = NULL;
    assert_status(ckv_held_create(NULL, &broken, made, &held, &f->error), CKV_INVALID);
    broken = plain;
    broken.visit_buffers = NULL;
    assert_status(ckv_held_create(NULL, &broken, made, &held, &f->error), CKV_INVALID);
    assert_status(ckv_held_create(NULL, NULL, made, &held, &f->error), CKV_INVALID);
    assert_status(ckv_held_create(NULL, &plain, made, NULL, &f->error), CKV_INVALID);
    test_entry_destroy(made);
}

static void out_of_memory_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    struct test_held *object = test_held_make(&f->engine, CKV_CACHE_KV, 40, T(1, 2, 3));
    struct ckv_held *held;
    enum ckv_status status = CKV_NOMEM;
    object->buffer_count = 20;
    for (size_t n = 1; status == CKV_NOMEM; n++) {
        assert_true(n < 100);
        test_alloc_reset(&f->alloc);
        f->alloc.fail_at = n;
        status = test_held_wrap(object, &held, &f->error);
        assert_true(status == CKV_OK || f->alloc.live_blocks == 0);
    }
    assert_ok(status, f->error);
    ckv_held_unref(held);
}

#define TURNS 20000

static void *ref_and_unref(void *ctx)
{
    for (size_t i = 0; i < TURNS; i++)
        ckv_held_unref(ckv_held_ref(ctx));
    return NULL;
}

static void threads_share_references(void **state)
{
    struct fixture *f = *state;
    struct ckv_held *held = test_held(&f->engine, CKV_CACHE_KV, 40, T(1, 2, 3));
    pthread_t threads[3];
    for (size_t i = 0; i < TEST_COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ref_and_unref, held), 0);
    for (size_t i = 0; i < TEST_COUNT_OF(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(f->engine.released, 0);
    ckv_held_unref(held);
    assert_int_equal(f->engine.released, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(says_what_it_holds),
        TEST(is_released_once_by_the_last_reference),
        TEST(a_buffer_named_twice_counts_once),
        TEST(buffers_are_visited_once_each),
        TEST(an_entry_that_breaks_a_rule_stays_the_callers),
        TEST(every_method_is_needed),
        TEST(out_of_memory_leaves_nothing),
        TEST(threads_share_references),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The entries that tests are made of are what they claim: valid, of every kind, stable.
 */
#include "lib/entry_builder.h"
#include "lib/unit.h"

#include <string.h>

static void entries_of_every_kind_are_valid(void **state)
{
    static const size_t lengths[] = {1, 2, 7, 8, 9, 16, 300};
    struct ckv_error error;
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(lengths); i++) {
        struct test_entry *all = test_entry_of_all_kinds(lengths[i], i);
        assert_ok(ckv_entry_validate(&all->entry, &error), error);
        assert_ok(ckv_entry_check_offsets(&all->entry, &error), error);
        test_entry_destroy(all);
        for (size_t k = 0; k < CKV_CACHE_KIND_COUNT; k++) {
            struct test_entry *one = test_entry_of_kind(test_all_kinds[k], lengths[i], i);
            assert_ok(ckv_entry_validate(&one->entry, &error), error);
            assert_int_equal(one->entry.caches[0].kind, test_all_kinds[k]);
            assert_int_equal(one->entry.token_count, lengths[i]);
            test_entry_destroy(one);
        }
    }
}

static void rings_wrap_at_the_window(void **state)
{
    static const struct {
        size_t length;
        uint64_t idx;
        uint64_t rows;
        uint64_t floor;
    } cases[] = {{1, 1, 1, 0}, {7, 7, 7, 0}, {8, 8, 8, 8}, {9, 1, 8, 9}, {16, 8, 8, 16}};
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(cases); i++) {
        struct test_entry *made =
            test_entry_of_kind(CKV_CACHE_ROTATING, cases[i].length, 0);
        const struct ckv_cache *cache = &made->entry.caches[0];
        assert_int_equal(cache->max_size, 8);
        assert_int_equal(cache->idx, cases[i].idx);
        assert_int_equal(cache->tensors[0].shape[2], cases[i].rows);
        assert_int_equal(ckv_entry_floor(&made->entry), cases[i].floor);
        test_entry_destroy(made);
    }
}

static void the_seed_makes_the_bytes(void **state)
{
    struct test_entry *a = test_entry_of_kind(CKV_CACHE_KV, 10, 1);
    struct test_entry *b = test_entry_of_kind(CKV_CACHE_KV, 10, 1);
    struct test_entry *c = test_entry_of_kind(CKV_CACHE_KV, 10, 2);
    size_t size = (size_t)a->entry.caches[0].tensors[0].bytes;
    (void)state;
    assert_int_equal(size, 2 * 10 * 8 * 2);
    assert_memory_equal(a->tensors[0], b->tensors[0], size);
    assert_memory_not_equal(a->tensors[0], a->tensors[1], size);
    assert_memory_not_equal(a->tensors[0], c->tensors[0], size);
    assert_true(test_entry_same(&a->entry, &b->entry));
    test_entry_destroy(a);
    test_entry_destroy(b);
    test_entry_destroy(c);
}

static void options_are_taken_over(void **state)
{
    static const uint32_t tokens[] = {5, 4, 3};
    struct test_entry_options options = {.token_count = 3,
                                         .tokens = tokens,
                                         .head_dim = 128,
                                         .created_at_ms = 77,
                                         .model_id = "m",
                                         .ns = "team"};
    struct test_entry *made = test_entry_create(&options);
    struct test_entry *other;
    (void)state;
    assert_int_equal(made->entry.tokens[2], 3);
    assert_int_equal(made->entry.created_at_ms, 77);
    assert_string_equal(ckv_entry_meta(&made->entry, CKV_META_MODEL_ID), "m");
    assert_string_equal(ckv_entry_meta(&made->entry, CKV_META_FINGERPRINT), "fp-test");
    assert_string_equal(ckv_entry_meta(&made->entry, CKV_META_NAMESPACE), "team");
    assert_int_equal(made->entry.caches[0].tensors[0].shape[3], 128);
    options.ns = "other";
    other = test_entry_create(&options);
    assert_false(test_entry_same(&made->entry, &other->entry));
    test_entry_destroy(other);
    options.ns = "team";
    options.no_meta = true;
    other = test_entry_create(&options);
    assert_null(ckv_entry_meta(&other->entry, CKV_META_NAMESPACE));
    assert_false(test_entry_same(&made->entry, &other->entry));
    test_entry_destroy(other);
    test_entry_destroy(made);
    test_entry_destroy(NULL);
}

/* Carries every byte from the source to the sink, as a writer and a reader would. */
static enum ckv_status carry(struct test_entry *made, struct test_sink *sink)
{
    const struct ckv_source *source = &made->source;
    const struct ckv_sink *to = &sink->sink;
    for (size_t i = 0; i < made->entry.cache_count; i++) {
        for (size_t j = 0; j < made->entry.caches[i].tensor_count; j++) {
            uint64_t bytes = made->entry.caches[i].tensors[j].bytes;
            for (uint64_t at = 0; at < bytes;) {
                const void *from;
                void *into;
                size_t size;
                size_t lent;
                if (source->view(source->ctx, i, j, at, (size_t)(bytes - at), &from,
                                 &size, NULL))
                    return CKV_ENGINE;
                if (to->lend(to->ctx, i, j, at, size, &into, &lent, NULL))
                    return CKV_REFUSED;
                memcpy(into, from, lent);
                if (to->took(to->ctx, i, j, at, lent, NULL))
                    return CKV_CANCELLED;
                (void)source->done(source->ctx, i, j, at, size, NULL);
                at += lent;
            }
        }
    }
    return CKV_OK;
}

static void source_and_sink_carry_every_byte(void **state)
{
    static const size_t windows[] = {0, 1, 7, 64};
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(windows); i++) {
        struct test_entry *made = test_entry_of_all_kinds(9, 5);
        struct test_sink *sink = test_sink_create(&made->entry);
        made->max_window = windows[i];
        sink->max_window = windows[TEST_COUNT_OF(windows) - 1 - i];
        assert_false(test_sink_equals(sink, made));
        assert_status(carry(made, sink), CKV_OK);
        assert_true(test_sink_equals(sink, made));
        assert_int_equal(made->view_count, made->done_count);
        assert_true(sink->taken_bytes == ckv_entry_tensor_bytes(&made->entry));
        ((unsigned char *)sink->tensors[3])[0] ^= 1;
        assert_false(test_sink_equals(sink, made));
        test_sink_destroy(sink);
        test_entry_destroy(made);
    }
    test_sink_destroy(NULL);
}

static void source_and_sink_fail_when_told(void **state)
{
    struct test_entry *made = test_entry_of_all_kinds(4, 5);
    struct test_sink *sink = test_sink_create(&made->entry);
    (void)state;
    made->fail_view = 3;
    assert_status(carry(made, sink), CKV_ENGINE);
    made->fail_view = 0;
    sink->fail_lend = sink->lend_count + 2;
    assert_status(carry(made, sink), CKV_REFUSED);
    sink->fail_lend = 0;
    sink->fail_took = sink->took_count + 1;
    assert_status(carry(made, sink), CKV_CANCELLED);
    sink->sink.drop(sink->sink.ctx);
    assert_int_equal(sink->drop_count, 1);
    assert_false(test_sink_equals(sink, made));
    test_sink_destroy(sink);
    test_entry_destroy(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_of_every_kind_are_valid),
        cmocka_unit_test(rings_wrap_at_the_window),
        cmocka_unit_test(the_seed_makes_the_bytes),
        cmocka_unit_test(options_are_taken_over),
        cmocka_unit_test(source_and_sink_carry_every_byte),
        cmocka_unit_test(source_and_sink_fail_when_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The live caches one rule at a time: the ring's reference trace, signatures, trims and
 * refusals, what a clone costs, conversions, and every allocation failing once.
 */
#include "lib/counting_alloc.h"
#include "lib/live_caches.h"
#include "lib/token_arrays.h"
#include <coldkv/cache.h>
#include <coldkv/float.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct test_alloc alloc;

static int set_up(void **state)
{
    (void)state;
    test_alloc_init(&alloc);
    return 0;
}

static int tear_down(void **state)
{
    bool clean = test_alloc_clean(&alloc);
    (void)state;
    test_alloc_deinit(&alloc);
    return clean ? 0 : -1;
}

static const struct ckv_cache_params kv = {.kind = CKV_CACHE_KV};
static const struct ckv_cache_params ring64 = {.kind = CKV_CACHE_ROTATING,
                                               .max_size = 64};
static const struct ckv_cache_params qkv8 = {
    .kind = CKV_CACHE_QKV, .bits = 8, .group_size = 64};
static const struct ckv_cache_params ring64_qkv8 = {
    .kind = CKV_CACHE_ROTATING_QKV, .max_size = 64, .bits = 8, .group_size = 64};
static const struct ckv_cache_params turbo = {
    .kind = CKV_CACHE_TURBOQUANT, .k_bits = 8, .v_bits = 3};
static const struct ckv_cache_params ssm = {.kind = CKV_CACHE_SSM};

static struct ckv_live_cache *make(const struct ckv_cache_params *params)
{
    struct ckv_live_cache *cache;
    assert_int_equal(ckv_cache_create(&alloc.alloc, params, &cache, NULL), CKV_OK);
    return cache;
}

static void assert_ring(const struct ckv_live_cache *cache, uint64_t offset, uint64_t idx,
                        uint64_t buffer_rows)
{
    assert_int_equal(ckv_cache_offset(cache), offset);
    assert_int_equal(ckv_cache_idx(cache), idx);
    assert_int_equal(test_state_rows(cache), buffer_rows);
}

static void signatures_name_the_kind(void **state)
{
    static const struct {
        struct ckv_cache_params params;
        const char *text;
    } cases[] = {
        {{.kind = CKV_CACHE_KV}, "kv:plain"},
        {{.kind = CKV_CACHE_QKV, .bits = 4, .group_size = 32}, "kv:quant:4:32"},
        {{.kind = CKV_CACHE_ROTATING, .max_size = 9}, "kv:rotating-plain"},
        {{.kind = CKV_CACHE_ROTATING_QKV, .max_size = 9, .bits = 8, .group_size = 64},
         "kv:rotating-quant:8:64"},
        {{.kind = CKV_CACHE_TURBOQUANT, .k_bits = 4, .v_bits = 2}, "kv:turboquant:4:2"},
        {{.kind = CKV_CACHE_SSM}, "ssm"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ckv_live_cache *cache = make(&cases[i].params);
        char text[CKV_SIGNATURE_SIZE];
        ckv_cache_signature(cache, text);
        assert_string_equal(text, cases[i].text);
        assert_true(ckv_cache_is_empty(cache));
        assert_int_equal(ckv_cache_bytes(cache), 0);
        assert_int_equal(ckv_cache_bytes_per_token(cache), 0);
        ckv_cache_destroy(cache);
    }
}

static void bad_parameters_are_refused(void **state)
{
    static const struct ckv_cache_params cases[] = {
        {.kind = CKV_CACHE_STATE},
        {.kind = (enum ckv_cache_kind)0},
        {.kind = CKV_CACHE_ROTATING},
        {.kind = CKV_CACHE_QKV, .bits = 7, .group_size = 64},
        {.kind = CKV_CACHE_QKV, .bits = 4, .group_size = 16},
        {.kind = CKV_CACHE_ROTATING_QKV, .bits = 4, .group_size = 32},
        {.kind = CKV_CACHE_TURBOQUANT, .k_bits = 3, .v_bits = 3},
        {.kind = CKV_CACHE_TURBOQUANT, .k_bits = 8, .v_bits = 6},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ckv_live_cache *cache = (void *)&alloc;
        struct ckv_error error = {0};
        assert_int_equal(ckv_cache_create(&alloc.alloc, &cases[i], &cache, &error),
                         CKV_INVALID);
        assert_null(cache);
        assert_true(error.text[0] != '\0');
    }
}

/* The origin's own trace of offset, write row and buffer rows. */
static void ring_follows_the_reference_trace(void **state)
{
    static const struct ckv_cache_params *const kinds[] = {&ring64, &ring64_qkv8};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct ckv_live_cache *cache = make(kinds[i]);
        test_append(cache, 48);
        assert_ring(cache, 48, 48, 48);
        test_append_singly(cache, 10);
        assert_ring(cache, 58, 58, 64);
        test_append_singly(cache, 6);
        assert_ring(cache, 64, 64, 64);
        test_append_singly(cache, 4);
        assert_ring(cache, 68, 4, 64);
        test_append(cache, 16);
        assert_ring(cache, 84, 79, 79);
        test_append_singly(cache, 4);
        assert_ring(cache, 88, 4, 64);
        test_append_singly(cache, 4);
        assert_ring(cache, 92, 8, 64);
        ckv_cache_destroy(cache);
    }
}

static void temporal_order_is_the_newest_rows_oldest_first(void **state)
{
    struct ckv_live_cache *cache = make(&ring64);
    struct ckv_array arrays[CKV_CACHE_ARRAYS_MAX];
    struct ckv_array expected;
    size_t count;
    (void)state;
    test_append(cache, 48);
    test_append_singly(cache, 44);
    assert_int_equal(ckv_cache_temporal(cache, arrays, &count, NULL), CKV_OK);
    assert_int_equal(count, 2);
    expected = test_token_array(CKV_DTYPE_BFLOAT16, 2, 64, 92 - 64, 64, false);
    assert_true(ckv_array_equal(&arrays[0], &expected));
    for (size_t i = 0; i < count; i++)
        ckv_array_unref(&arrays[i]);
    ckv_array_unref(&expected);
    ckv_cache_destroy(cache);
}

static void a_window_before_the_wrap_has_no_slack(void **state)
{
    struct ckv_live_cache *cache = make(&ring64);
    struct ckv_array keys = test_token_array(CKV_DTYPE_BFLOAT16, 2, 64, 0, 1, false);
    struct ckv_array values = test_token_array(CKV_DTYPE_BFLOAT16, 2, 64, 0, 1, true);
    struct ckv_array out[2];
    (void)state;
    assert_int_equal(ckv_cache_append(cache, &keys, &values, &out[0], &out[1], NULL),
                     CKV_OK);
    assert_int_equal(out[0].shape[2], 1);
    assert_true(ckv_array_equal(&out[0], &keys));
    assert_true(ckv_array_equal(&out[1], &values));
    assert_int_equal(test_state_rows(cache), 64);
    ckv_array_unref(&out[0]);
    ckv_array_unref(&out[1]);
    ckv_array_unref(&keys);
    ckv_array_unref(&values);
    ckv_cache_destroy(cache);
}

static void s5_a_full_ring_refuses_a_trim_and_stays(void **state)
{
    struct ckv_live_cache *cache = make(&ring64);
    struct ckv_live_cache *before;
    uint64_t dropped = 9;
    (void)state;
    test_append(cache, 63);
    assert_true(ckv_cache_is_trimmable(cache));
    assert_int_equal(ckv_cache_trim(cache, 3, &dropped, NULL), CKV_OK);
    assert_int_equal(dropped, 3);
    test_append_singly(cache, 4);
    assert_int_equal(ckv_cache_offset(cache), 64);
    assert_false(ckv_cache_is_trimmable(cache));
    assert_int_equal(ckv_caches_clone(&cache, 1, &before, NULL), CKV_OK);
    assert_int_equal(ckv_cache_trim(cache, 1, &dropped, NULL), CKV_REFUSED);
    assert_int_equal(dropped, 0);
    assert_true(test_same_state(cache, before));
    ckv_cache_destroy(before);
    ckv_cache_destroy(cache);
}

static void s3_a_trim_says_what_it_dropped(void **state)
{
    static const struct ckv_cache_params *const kinds[] = {&kv, &qkv8, &turbo};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct ckv_live_cache *cache = make(kinds[i]);
        uint64_t dropped = 0;
        test_append(cache, 6);
        assert_int_equal(ckv_cache_trim(cache, 2, &dropped, NULL), CKV_OK);
        assert_int_equal(dropped, 2);
        assert_int_equal(ckv_cache_trim(cache, 100, &dropped, NULL), CKV_OK);
        assert_int_equal(dropped, 4);
        assert_int_equal(ckv_cache_offset(cache), 0);
        ckv_cache_destroy(cache);
    }
}

static void a_recurrent_state_is_replaced_never_appended(void **state)
{
    struct ckv_live_cache *cache = make(&ssm);
    uint64_t shape[3] = {1, 3, 8};
    struct ckv_array conv;
    uint64_t dropped;
    (void)state;
    assert_int_equal(
        ckv_array_create(&alloc.alloc, CKV_DTYPE_BFLOAT16, 3, shape, 0, &conv, NULL),
        CKV_OK);
    assert_int_equal(test_try_append(cache, 64, 0, 1, NULL), CKV_INVALID);
    assert_int_equal(ckv_cache_set_slot(cache, 0, &conv, NULL), CKV_OK);
    assert_true(ckv_cache_is_empty(cache));
    assert_int_equal(ckv_cache_set_slot(cache, 1, &conv, NULL), CKV_OK);
    assert_false(ckv_cache_is_empty(cache));
    assert_int_equal(ckv_cache_advance(cache, 5, NULL), CKV_OK);
    assert_int_equal(ckv_cache_offset(cache), 5);
    assert_int_equal(ckv_cache_trim(cache, 1, &dropped, NULL), CKV_REFUSED);
    assert_int_equal(ckv_cache_bytes(cache), 2 * 48);
    assert_int_equal(ckv_cache_bytes_per_token(cache), 0);
    ckv_array_unref(&conv);
    ckv_cache_destroy(cache);
}

static void the_donor_goes_on_in_place(void **state)
{
    static const struct ckv_cache_params *const kinds[] = {&kv, &qkv8, &turbo};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct ckv_live_cache *cache = make(kinds[i]);
        struct ckv_live_cache *clone;
        size_t calls;
        test_append(cache, 10);
        assert_int_equal(ckv_caches_clone(&cache, 1, &clone, NULL), CKV_OK);
        calls = alloc.call_count;
        test_append(cache, 100);
        test_append_singly(cache, 146);
        assert_int_equal(alloc.call_count, calls);
        assert_int_equal(ckv_cache_offset(clone), 10);
        test_append_singly(cache, 1);
        assert_true(alloc.call_count > calls);
        ckv_cache_destroy(clone);
        ckv_cache_destroy(cache);
    }
}

static void a_ring_copies_once_after_a_clone(void **state)
{
    static const struct ckv_cache_params *const kinds[] = {&ring64, &ring64_qkv8};
    static const size_t arrays[] = {2, 6};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct ckv_live_cache *cache = make(kinds[i]);
        struct ckv_live_cache *clone;
        size_t calls;
        test_append(cache, 10);
        test_append_singly(cache, 90);
        assert_int_equal(ckv_caches_clone(&cache, 1, &clone, NULL), CKV_OK);
        calls = alloc.call_count;
        test_append_singly(cache, 1);
        /* A header and a payload for each array, no more. */
        assert_int_equal(alloc.call_count, calls + 2 * arrays[i]);
        test_append_singly(cache, 200);
        assert_int_equal(alloc.call_count, calls + 2 * arrays[i]);
        ckv_cache_destroy(clone);
        ckv_cache_destroy(cache);
    }
}

static void an_empty_member_clones_nothing(void **state)
{
    struct ckv_live_cache *list[3] = {make(&kv), make(&ring64), make(&qkv8)};
    struct ckv_live_cache *clones[3];
    size_t live;
    (void)state;
    test_append(list[0], 4);
    test_append(list[1], 4);
    live = alloc.live_blocks;
    assert_int_equal(ckv_caches_clone(list, 3, clones, NULL), CKV_INVALID);
    assert_int_equal(alloc.live_blocks, live);
    for (size_t i = 0; i < 3; i++)
        assert_null(clones[i]);
    ckv_caches_destroy(list, 3);
}

static void m17_a_wrapped_ring_converts_as_it_lies(void **state)
{
    struct ckv_live_cache *cache = make(&ring64);
    struct ckv_array before[2];
    struct ckv_array after[2];
    (void)state;
    test_append(cache, 40);
    test_append_singly(cache, 30);
    assert_int_equal(ckv_cache_fetch(cache, &before[0], &before[1], NULL), CKV_OK);
    assert_int_equal(ckv_cache_convert(cache, &ring64_qkv8, NULL), CKV_OK);
    assert_ring(cache, 70, 6, 64);
    assert_int_equal(ckv_cache_fetch(cache, &after[0], &after[1], NULL), CKV_OK);
    for (size_t i = 0; i < 2; i++) {
        uint16_t a[2 * 64 * 64];
        uint16_t b[2 * 64 * 64];
        assert_int_equal(ckv_array_bytes(&before[i]), sizeof a);
        assert_int_equal(ckv_array_bytes(&after[i]), sizeof b);
        ckv_array_read(&before[i], a);
        ckv_array_read(&after[i], b);
        for (size_t at = 0; at < sizeof a / 2; at++) {
            uint32_t x = (uint32_t)a[at] << 16;
            uint32_t y = (uint32_t)b[at] << 16;
            float f;
            float g;
            memcpy(&f, &x, 4);
            memcpy(&g, &y, 4);
            /* Values reach 4: half a step of 8/255, and the rounding of bfloat16. */
            assert_true(f - g < 0.04f && g - f < 0.04f);
        }
        ckv_array_unref(&before[i]);
        ckv_array_unref(&after[i]);
    }
    test_append_singly(cache, 1);
    assert_ring(cache, 71, 7, 64);
    assert_int_equal(ckv_cache_convert(cache, &ring64_qkv8, NULL), CKV_OK);
    assert_ring(cache, 71, 7, 64);
    ckv_cache_destroy(cache);
}

static void conversion_equals_quantizing_from_the_start(void **state)
{
    static const struct ckv_cache_params *const kinds[] = {&qkv8, &turbo};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct ckv_live_cache *a = make(&kv);
        struct ckv_live_cache *b = make(kinds[i]);
        test_append(a, 5);
        test_append(b, 5);
        assert_int_equal(ckv_cache_convert(a, kinds[i], NULL), CKV_OK);
        assert_true(test_same_state(a, b));
        assert_int_equal(ckv_cache_head_dim(a), ckv_cache_head_dim(b));
        test_append(a, 300);
        test_append(b, 300);
        assert_true(test_same_state(a, b));
        ckv_cache_destroy(a);
        ckv_cache_destroy(b);
    }
}

static void impossible_conversions_are_refused(void **state)
{
    struct ckv_live_cache *cache = make(&ring64);
    struct ckv_live_cache *before;
    (void)state;
    test_append(cache, 40);
    test_append_singly(cache, 30);
    assert_int_equal(ckv_caches_clone(&cache, 1, &before, NULL), CKV_OK);
    assert_int_equal(ckv_cache_convert(cache, &turbo, NULL), CKV_REFUSED);
    assert_int_equal(ckv_cache_convert(cache, &qkv8, NULL), CKV_REFUSED);
    assert_int_equal(ckv_cache_convert(cache, &kv, NULL), CKV_REFUSED);
    assert_true(test_same_state(cache, before));
    ckv_cache_destroy(before);
    ckv_cache_destroy(cache);
}

static void m19_chunks_do_not_matter_to_turboquant(void **state)
{
    struct ckv_live_cache *whole = make(&turbo);
    struct ckv_live_cache *parts = make(&turbo);
    (void)state;
    test_append(whole, 9);
    test_append(parts, 3);
    test_append(parts, 4);
    test_append(parts, 2);
    assert_true(test_same_state(whole, parts));
    ckv_cache_destroy(whole);
    ckv_cache_destroy(parts);
}

static void m22_a_wrong_head_dim_is_refused_at_the_first_append(void **state)
{
    struct ckv_live_cache *cache = make(&turbo);
    (void)state;
    assert_int_equal(test_try_append(cache, 48, 0, 1, NULL), CKV_INVALID);
    assert_true(ckv_cache_is_empty(cache));
    test_append(cache, 1);
    assert_int_equal(ckv_cache_head_dim(cache), 64);
    ckv_cache_destroy(cache);
}

static void m24_clear_forgets_everything(void **state)
{
    struct ckv_live_cache *cache = make(&turbo);
    struct ckv_array arrays[CKV_CACHE_ARRAYS_MAX];
    (void)state;
    test_append(cache, 7);
    ckv_cache_clear(cache);
    assert_int_equal(ckv_cache_state(cache, arrays), 0);
    assert_int_equal(ckv_cache_offset(cache), 0);
    assert_int_equal(ckv_cache_head_dim(cache), 0);
    ckv_cache_destroy(cache);
}

static void rows_that_do_not_fit_are_refused(void **state)
{
    static const struct ckv_cache_params *const kinds[] = {&kv, &ring64};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct ckv_live_cache *cache = make(kinds[i]);
        struct ckv_array keys = test_token_array(CKV_DTYPE_FLOAT16, 2, 64, 0, 1, false);
        struct ckv_array values = test_token_array(CKV_DTYPE_FLOAT16, 2, 64, 0, 1, true);
        struct ckv_array other = test_token_array(CKV_DTYPE_FLOAT16, 3, 64, 0, 1, true);
        struct ckv_error error;
        test_append(cache, 3);
        assert_int_equal(test_try_append(cache, 32, 0, 1, &error), CKV_INVALID);
        assert_int_equal(ckv_cache_append(cache, &keys, &values, NULL, NULL, &error),
                         CKV_INVALID);
        assert_int_equal(ckv_cache_append(cache, &keys, &other, NULL, NULL, &error),
                         CKV_INVALID);
        assert_int_equal(ckv_cache_append_quantized(cache, &keys, &values, NULL, &error),
                         CKV_INVALID);
        assert_int_equal(ckv_cache_offset(cache), 3);
        ckv_array_unref(&keys);
        ckv_array_unref(&values);
        ckv_array_unref(&other);
        ckv_cache_destroy(cache);
    }
}

static void restored_state_is_checked(void **state)
{
    struct ckv_live_cache *donor = make(&ring64);
    struct ckv_live_cache *cache = make(&ring64);
    struct ckv_array arrays[CKV_CACHE_ARRAYS_MAX];
    struct ckv_error error;
    size_t count;
    (void)state;
    test_append(donor, 10);
    count = ckv_cache_state(donor, arrays);
    assert_int_equal(ckv_cache_restore_state(cache, arrays, count, 10, 11, &error),
                     CKV_INVALID);
    assert_non_null(strstr(error.text, "idx"));
    assert_int_equal(ckv_cache_restore_state(cache, arrays, 1, 10, 10, &error),
                     CKV_INVALID);
    assert_true(ckv_cache_is_empty(cache));
    assert_int_equal(ckv_cache_restore_state(cache, arrays, count, 10, 10, &error),
                     CKV_OK);
    assert_true(test_same_state(cache, donor));
    for (size_t i = 0; i < count; i++)
        ckv_array_unref(&arrays[i]);
    ckv_cache_destroy(cache);
    ckv_cache_destroy(donor);
}

/* One cache of each kind with a few tokens. */
static void make_all(struct ckv_live_cache *list[6])
{
    static const struct ckv_cache_params *const kinds[] = {&kv,          &ring64, &qkv8,
                                                           &ring64_qkv8, &turbo,  &ssm};
    uint64_t shape[2] = {2, 3};
    struct ckv_array slot;
    for (size_t i = 0; i < 6; i++) {
        list[i] = make(kinds[i]);
        if (kinds[i] != &ssm)
            test_append(list[i], 70);
    }
    assert_int_equal(
        ckv_array_create(&alloc.alloc, CKV_DTYPE_FLOAT32, 2, shape, 0, &slot, NULL),
        CKV_OK);
    assert_int_equal(ckv_cache_set_slot(list[5], 0, &slot, NULL), CKV_OK);
    assert_int_equal(ckv_cache_set_slot(list[5], 1, &slot, NULL), CKV_OK);
    ckv_array_unref(&slot);
}

static void a_failed_clone_leaks_nothing(void **state)
{
    struct ckv_live_cache *list[6];
    struct ckv_live_cache *clones[6];
    enum ckv_status status = CKV_NOMEM;
    (void)state;
    make_all(list);
    for (size_t fail = 1; status != CKV_OK; fail++) {
        size_t live = alloc.live_blocks;
        alloc.fail_at = alloc.call_count + fail;
        status = ckv_caches_clone(list, 6, clones, NULL);
        if (status == CKV_OK)
            break;
        assert_int_equal(status, CKV_NOMEM);
        assert_int_equal(alloc.live_blocks, live);
    }
    alloc.fail_at = 0;
    ckv_caches_destroy(clones, 6);
    ckv_caches_destroy(list, 6);
}

/* Every allocation of an append fails once: the cache stays as it was and works after. */
static void a_failed_append_changes_nothing(void **state)
{
    static const uint64_t counts[] = {1, 2, 300};
    (void)state;
    for (size_t c = 0; c < 3; c++) {
        struct ckv_live_cache *list[6];
        struct ckv_live_cache *before[6];
        make_all(list);
        assert_int_equal(ckv_caches_clone(list, 6, before, NULL), CKV_OK);
        for (size_t i = 0; i < 5; i++) {
            enum ckv_status status = CKV_NOMEM;
            for (size_t fail = 1; status != CKV_OK; fail++) {
                alloc.fail_at = alloc.call_count + fail;
                status = test_try_append(list[i], 64, 70, counts[c], NULL);
                if (status == CKV_OK)
                    break;
                assert_int_equal(status, CKV_NOMEM);
                assert_true(test_same_state(list[i], before[i]));
            }
            alloc.fail_at = 0;
            assert_int_equal(ckv_cache_offset(list[i]), 70 + counts[c]);
        }
        ckv_caches_destroy(before, 6);
        ckv_caches_destroy(list, 6);
    }
}

/* The window of a turboquant append is decoded into new arrays: when that fails, the
 * token is not there either. */
static void a_window_that_cannot_be_given_appends_nothing(void **state)
{
    static const uint64_t before[] = {0, 4};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct ckv_live_cache *cache = make(&turbo);
        struct ckv_array keys = test_token_array(CKV_DTYPE_BFLOAT16, 2, 64, 4, 1, false);
        struct ckv_array values = test_token_array(CKV_DTYPE_BFLOAT16, 2, 64, 4, 1, true);
        struct ckv_array out[2];
        enum ckv_status status = CKV_NOMEM;
        if (before[i] > 0)
            test_append(cache, before[i]);
        for (size_t fail = 1; status != CKV_OK; fail++) {
            alloc.fail_at = alloc.call_count + fail;
            status = ckv_cache_append(cache, &keys, &values, &out[0], &out[1], NULL);
            if (status == CKV_OK)
                break;
            assert_int_equal(status, CKV_NOMEM);
            assert_int_equal(ckv_cache_offset(cache), before[i]);
            assert_int_equal(test_state_rows(cache), before[i]);
        }
        alloc.fail_at = 0;
        assert_int_equal(ckv_cache_offset(cache), before[i] + 1);
        assert_int_equal(out[0].shape[2], before[i] + 1);
        ckv_array_unref(&out[0]);
        ckv_array_unref(&out[1]);
        ckv_array_unref(&keys);
        ckv_array_unref(&values);
        ckv_cache_destroy(cache);
    }
}

static void an_oversize_ring_is_written_at_its_end(void **state)
{
    struct ckv_live_cache *donor = make(&ring64);
    struct ckv_live_cache *cache = make(&ring64);
    struct ckv_array arrays[CKV_CACHE_ARRAYS_MAX];
    struct ckv_error error;
    size_t count;
    (void)state;
    test_append(donor, 68);
    test_append(donor, 16);
    count = ckv_cache_state(donor, arrays);
    assert_int_equal(arrays[0].shape[2], 79);
    assert_int_equal(ckv_cache_restore_state(cache, arrays, count, 84, 32, &error),
                     CKV_INVALID);
    assert_non_null(strstr(error.text, "idx"));
    assert_int_equal(ckv_cache_restore_state(cache, arrays, count, 84, 79, &error),
                     CKV_OK);
    for (size_t i = 0; i < count; i++)
        ckv_array_unref(&arrays[i]);
    ckv_cache_destroy(cache);
    ckv_cache_destroy(donor);
}

static void m20_rows_stay_when_the_buffer_grows(void **state)
{
    struct ckv_live_cache *cache = make(&turbo);
    struct ckv_live_cache *first = make(&turbo);
    (void)state;
    test_append(cache, 250);
    test_append(first, 250);
    test_append(cache, 10);
    assert_int_equal(ckv_cache_offset(cache), 260);
    assert_int_equal(ckv_cache_trim(cache, 10, NULL, NULL), CKV_OK);
    assert_true(test_same_state(cache, first));
    ckv_cache_destroy(cache);
    ckv_cache_destroy(first);
}

static void m21_what_comes_after_a_trim_takes_the_place(void **state)
{
    struct ckv_live_cache *cache = make(&turbo);
    struct ckv_live_cache *expected = make(&turbo);
    (void)state;
    test_append(cache, 6);
    assert_int_equal(ckv_cache_trim(cache, 2, NULL, NULL), CKV_OK);
    assert_int_equal(test_try_append(cache, 64, 100, 3, NULL), CKV_OK);
    test_append(expected, 4);
    assert_int_equal(test_try_append(expected, 64, 100, 3, NULL), CKV_OK);
    assert_int_equal(ckv_cache_offset(cache), 7);
    assert_true(test_same_state(cache, expected));
    ckv_cache_destroy(cache);
    ckv_cache_destroy(expected);
}

static void bytes_per_token_counts_all_arrays(void **state)
{
    struct ckv_live_cache *plain = make(&kv);
    struct ckv_live_cache *coded = make(&turbo);
    (void)state;
    test_append(plain, 3);
    test_append(coded, 3);
    /* 2 KV heads of dim 64: bfloat16 keys and values; k8 64 + 4 + 4, v3 24 + 4. */
    assert_int_equal(ckv_cache_bytes_per_token(plain), 2 * 64 * 2 * 2);
    assert_int_equal(ckv_cache_bytes_per_token(coded), 2 * (64 + 4 + 4 + 24 + 4));
    ckv_cache_destroy(plain);
    ckv_cache_destroy(coded);
}

static void deferred_values_rotated_back_are_the_eager_ones(void **state)
{
    struct ckv_live_cache *cache = make(&turbo);
    struct ckv_turboquant codec = {8, 3, 64};
    struct ckv_array eager[2];
    struct ckv_array deferred[2];
    uint16_t turned[2 * 9 * 64];
    uint16_t rotated[2 * 9 * 64];
    uint16_t expected[2 * 9 * 64];
    (void)state;
    test_append(cache, 9);
    assert_int_equal(ckv_cache_fetch(cache, &eager[0], &eager[1], NULL), CKV_OK);
    assert_int_equal(ckv_cache_fetch_deferred(cache, &deferred[0], &deferred[1], NULL),
                     CKV_OK);
    assert_true(ckv_array_equal(&eager[0], &deferred[0]));
    assert_false(ckv_array_equal(&eager[1], &deferred[1]));
    ckv_array_read(&deferred[1], rotated);
    ckv_array_read(&eager[1], expected);
    assert_int_equal(ckv_turboquant_unrotate(codec, rotated, 18, turned, NULL), CKV_OK);
    for (size_t i = 0; i < sizeof turned / sizeof turned[0]; i++) {
        float difference = ckv_f32_from_bf16(turned[i]) - ckv_f32_from_bf16(expected[i]);
        assert_true(difference < 0.05f && difference > -0.05f);
    }
    for (size_t i = 0; i < 2; i++) {
        ckv_array_unref(&eager[i]);
        ckv_array_unref(&deferred[i]);
    }
    ckv_cache_destroy(cache);
}

static void a_failed_conversion_changes_nothing(void **state)
{
    static const struct ckv_cache_params *const to[] = {&qkv8, &turbo};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct ckv_live_cache *cache = make(&kv);
        struct ckv_live_cache *before;
        enum ckv_status status = CKV_NOMEM;
        test_append(cache, 5);
        assert_int_equal(ckv_caches_clone(&cache, 1, &before, NULL), CKV_OK);
        for (size_t fail = 1; status != CKV_OK; fail++) {
            alloc.fail_at = alloc.call_count + fail;
            status = ckv_cache_convert(cache, to[i], NULL);
            if (status == CKV_OK)
                break;
            assert_int_equal(status, CKV_NOMEM);
            assert_true(test_same_state(cache, before));
        }
        alloc.fail_at = 0;
        ckv_cache_destroy(before);
        ckv_cache_destroy(cache);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(signatures_name_the_kind),
        TEST(bad_parameters_are_refused),
        TEST(ring_follows_the_reference_trace),
        TEST(temporal_order_is_the_newest_rows_oldest_first),
        TEST(a_window_before_the_wrap_has_no_slack),
        TEST(s5_a_full_ring_refuses_a_trim_and_stays),
        TEST(s3_a_trim_says_what_it_dropped),
        TEST(a_recurrent_state_is_replaced_never_appended),
        TEST(the_donor_goes_on_in_place),
        TEST(a_ring_copies_once_after_a_clone),
        TEST(an_empty_member_clones_nothing),
        TEST(m17_a_wrapped_ring_converts_as_it_lies),
        TEST(conversion_equals_quantizing_from_the_start),
        TEST(impossible_conversions_are_refused),
        TEST(m19_chunks_do_not_matter_to_turboquant),
        TEST(m22_a_wrong_head_dim_is_refused_at_the_first_append),
        TEST(m24_clear_forgets_everything),
        TEST(rows_that_do_not_fit_are_refused),
        TEST(restored_state_is_checked),
        TEST(a_failed_clone_leaks_nothing),
        TEST(a_failed_append_changes_nothing),
        TEST(m20_rows_stay_when_the_buffer_grows),
        TEST(m21_what_comes_after_a_trim_takes_the_place),
        TEST(bytes_per_token_counts_all_arrays),
        TEST(deferred_values_rotated_back_are_the_eager_ones),
        TEST(a_window_that_cannot_be_given_appends_nothing),
        TEST(an_oversize_ring_is_written_at_its_end),
        TEST(a_failed_conversion_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

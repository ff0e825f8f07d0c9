/*
 * Random histories of every kind against a slow model: the model keeps, per cache, the
 * list of rows as numbers of tokens (or "zero row"), moves them as docs/caches.md says,
 * and codes each token on its own. After every step bytes, offset, write row, capacity
 * and refusals must agree, on both sides of every clone.
 */
#include "lib/counting_alloc.h"
#include "lib/random.h"
#include "lib/token_arrays.h"
#include <coldkv/cache.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HEADS = 2, POOL = 4, STEPS = 40, HISTORIES = 1000, ROWS_MAX = 6000, LONG = 700 };

/* A row is the number of the token in it, or ZERO_ROW. */
#define ZERO_ROW (-1)

struct model {
    struct ckv_cache_params params;
    uint64_t head_dim;
    enum ckv_dtype dtype;
    long rows[ROWS_MAX];
    uint64_t row_count; /* growing kinds: offset; rings: buffer rows */
    uint64_t capacity;  /* growing kinds */
    bool sealed;        /* a clone's arrays: no capacity behind the rows */
    uint64_t offset;
    uint64_t idx;
    uint64_t undoable;
    bool empty;
};

struct pair {
    struct ckv_live_cache *cache;
    struct model model;
};

static bool is_ring(const struct model *model)
{
    return model->params.kind == CKV_CACHE_ROTATING ||
           model->params.kind == CKV_CACHE_ROTATING_QKV;
}

/* The bytes that row `token` of head h has in each array of the cache. */
struct coded {
    unsigned char bytes[6][2048];
    size_t size[6];
    size_t count;
};

static void code_row(const struct model *model, long token, unsigned h, struct coded *out)
{
    size_t dim = (size_t)model->head_dim;
    size_t item = ckv_dtype_size(model->dtype);
    unsigned char keys[2048];
    unsigned char values[2048];
    struct ckv_affine affine = {model->params.bits, model->params.group_size};
    struct ckv_turboquant turbo = {model->params.k_bits, model->params.v_bits,
                                   (uint32_t)dim};
    memset(out, 0, sizeof *out);
    for (unsigned d = 0; d < dim; d++) {
        test_put_float(model->dtype, keys, d, test_token_element(token, h, d, false));
        test_put_float(model->dtype, values, d, test_token_element(token, h, d, true));
    }
    switch (model->params.kind) {
    case CKV_CACHE_KV:
    case CKV_CACHE_ROTATING:
        out->count = 2;
        out->size[0] = out->size[1] = dim * item;
        if (token == ZERO_ROW)
            return;
        memcpy(out->bytes[0], keys, dim * item);
        memcpy(out->bytes[1], values, dim * item);
        return;
    case CKV_CACHE_QKV:
    case CKV_CACHE_ROTATING_QKV:
        out->count = 6;
        out->size[0] = out->size[3] = dim * affine.bits / 8;
        out->size[1] = out->size[2] = out->size[4] = out->size[5] =
            dim / affine.group_size * item;
        if (token == ZERO_ROW)
            return;
        assert_int_equal(ckv_affine_encode(affine, model->dtype, keys, 1, dim,
                                           (uint32_t *)(void *)out->bytes[0],
                                           out->bytes[1], out->bytes[2], NULL),
                         CKV_OK);
        assert_int_equal(ckv_affine_encode(affine, model->dtype, values, 1, dim,
                                           (uint32_t *)(void *)out->bytes[3],
                                           out->bytes[4], out->bytes[5], NULL),
                         CKV_OK);
        return;
    default:
        out->count = 5;
        out->size[0] = dim * turbo.k_bits / 8;
        out->size[3] = dim * turbo.v_bits / 8;
        out->size[1] = out->size[2] = out->size[4] = dim / 32 * 2;
        if (token == ZERO_ROW)
            return;
        assert_int_equal(
            ckv_turboquant_encode_keys(turbo, model->dtype, keys, 1, out->bytes[0],
                                       (uint16_t *)(void *)out->bytes[1],
                                       (uint16_t *)(void *)out->bytes[2], NULL),
            CKV_OK);
        assert_int_equal(
            ckv_turboquant_encode_values(turbo, model->dtype, values, 1, out->bytes[3],
                                         (uint16_t *)(void *)out->bytes[4], NULL),
            CKV_OK);
    }
}

static void model_append_growing(struct model *model, long first, uint64_t count)
{
    uint64_t steps = (count + 255) / 256 * 256;
    if (model->empty)
        model->capacity = steps;
    else if (model->offset + count > model->capacity)
        model->capacity = (model->offset % 256 ? model->offset : model->capacity) + steps;
    for (uint64_t i = 0; i < count; i++)
        model->rows[model->offset + i] = first + (long)i;
    model->offset += count;
    model->row_count = model->offset;
    model->sealed = false;
}

/* Puts the ring's buffer in temporal order. */
static void model_temporal(struct model *model)
{
    static long sorted[ROWS_MAX];
    uint64_t length = 0;
    if (model->idx == model->row_count)
        return;
    if (model->idx < model->offset)
        for (uint64_t i = model->idx; i < model->row_count; i++)
            sorted[length++] = model->rows[i];
    for (uint64_t i = 0; i < model->idx; i++)
        sorted[length++] = model->rows[i];
    memcpy(model->rows, sorted, (size_t)length * sizeof *sorted);
    model->row_count = length;
}

static void model_drop_front(struct model *model, uint64_t count)
{
    memmove(model->rows, model->rows + count,
            (size_t)(model->row_count - count) * sizeof *model->rows);
    model->row_count -= count;
}

static void model_append_ring(struct model *model, long first, uint64_t count)
{
    uint64_t window = model->params.max_size;
    if (count > 1) {
        if (!model->empty) {
            model_temporal(model);
            if (model->row_count + 1 > window)
                model_drop_front(model, model->row_count + 1 - window);
        }
        for (uint64_t i = 0; i < count; i++)
            model->rows[model->row_count++] = first + (long)i;
        model->offset += count;
        model->idx = model->row_count;
        model->undoable = count;
        return;
    }
    if (model->empty ||
        (model->offset >= model->row_count && model->row_count < window)) {
        uint64_t added = window - model->offset < 256 ? window - model->offset : 256;
        for (uint64_t i = 0; i < added; i++)
            model->rows[model->row_count++] = ZERO_ROW;
        model->idx = model->offset;
    }
    if (model->row_count > window) {
        model_drop_front(model, model->row_count - window);
        model->idx = window;
    }
    if (model->idx == window)
        model->idx = 0;
    model->rows[model->idx++] = first;
    model->offset++;
    model->undoable = 0;
}

static void model_append(struct model *model, long first, uint64_t count)
{
    if (is_ring(model))
        model_append_ring(model, first, count);
    else
        model_append_growing(model, first, count);
    model->empty = false;
}

static void check_bytes(const struct model *model, const struct ckv_array *arrays,
                        size_t count, uint64_t row)
{
    for (unsigned h = 0; h < HEADS; h++) {
        struct coded coded;
        code_row(model, model->rows[row], h, &coded);
        assert_int_equal(count, coded.count);
        for (size_t i = 0; i < count; i++) {
            uint64_t at = (h * model->row_count + row) * coded.size[i];
            size_t run;
            const void *bytes = ckv_array_run(&arrays[i], at, &run);
            assert_true(run >= coded.size[i]);
            assert_memory_equal(bytes, coded.bytes[i], coded.size[i]);
        }
    }
}

static void check(const struct pair *pair, struct test_random *random, bool every_row)
{
    const struct model *model = &pair->model;
    struct ckv_array arrays[CKV_CACHE_ARRAYS_MAX];
    size_t count = ckv_cache_state(pair->cache, arrays);
    uint64_t bytes = 0;
    uint64_t charged = is_ring(model) ? model->row_count : model->capacity;
    struct coded coded;
    assert_int_equal(ckv_cache_offset(pair->cache), model->offset);
    assert_int_equal(ckv_cache_idx(pair->cache), is_ring(model) ? model->idx : 0);
    assert_int_equal(ckv_cache_is_empty(pair->cache), model->empty);
    if (model->empty) {
        assert_int_equal(count, 0);
        return;
    }
    code_row(model, ZERO_ROW, 0, &coded);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(arrays[i].shape[2], model->row_count);
        bytes += charged * HEADS * coded.size[i];
    }
    assert_int_equal(ckv_cache_bytes(pair->cache), bytes);
    for (uint64_t row = 0; row < model->row_count; row++)
        if (every_row || row + 2 >= model->row_count || row == 0 ||
            test_random_below(random, 16) == 0)
            check_bytes(model, arrays, count, row);
    for (size_t i = 0; i < count; i++)
        ckv_array_unref(&arrays[i]);
}

static void step_append(struct pair *pair, struct test_random *random, long *next)
{
    struct model *model = &pair->model;
    uint64_t count = 1;
    struct ckv_array keys;
    struct ckv_array values;
    enum ckv_status status;
    if (test_random_below(random, 3) == 0)
        count = 1 + test_random_below(random, test_random_below(random, 8) ? 20 : LONG);
    if (model->row_count + count + 300 > ROWS_MAX)
        return;
    keys = test_token_array(model->dtype, HEADS, model->head_dim, *next, count, false);
    values = test_token_array(model->dtype, HEADS, model->head_dim, *next, count, true);
    if (model->params.kind == CKV_CACHE_QKV ||
        model->params.kind == CKV_CACHE_ROTATING_QKV)
        status = ckv_cache_append_quantized(pair->cache, &keys, &values, NULL, NULL);
    else
        status = ckv_cache_append(pair->cache, &keys, &values, NULL, NULL, NULL);
    assert_int_equal(status, CKV_OK);
    model_append(model, *next, count);
    *next += (long)count;
    ckv_array_unref(&keys);
    ckv_array_unref(&values);
}

static void step_trim(struct pair *pair, struct test_random *random)
{
    struct model *model = &pair->model;
    uint64_t n = test_random_below(random, test_random_below(random, 4) ? 8 : 400);
    bool allowed = !is_ring(model) || model->offset < model->params.max_size;
    uint64_t dropped = 77;
    enum ckv_status status = ckv_cache_trim(pair->cache, n, &dropped, NULL);
    assert_int_equal(ckv_cache_is_trimmable(pair->cache), allowed);
    if (!allowed) {
        assert_int_equal(status, CKV_REFUSED);
        assert_int_equal(dropped, 0);
        return;
    }
    assert_int_equal(status, CKV_OK);
    assert_int_equal(dropped, n < model->offset ? n : model->offset);
    model->offset -= dropped;
    if (is_ring(model)) {
        model->idx -= dropped;
        if (dropped > 0)
            model->undoable = 0;
    } else {
        model->row_count = model->offset;
        if (model->sealed)
            model->capacity = model->offset;
    }
}

static void step_bypass(struct pair *pair, struct test_random *random)
{
    struct model *model = &pair->model;
    uint64_t n = test_random_below(random, 12);
    uint64_t dropped = 77;
    enum ckv_status status = ckv_cache_bypass_trim(pair->cache, n, &dropped, NULL);
    uint64_t expected;
    if (!is_ring(model) || model->undoable == 0) {
        assert_int_equal(status, CKV_REFUSED);
        assert_int_equal(dropped, 0);
        return;
    }
    expected = n < model->undoable - 1 ? n : model->undoable - 1;
    assert_int_equal(status, CKV_OK);
    assert_int_equal(dropped, expected);
    if (expected == 0)
        return;
    model->offset -= expected;
    model->row_count -= expected;
    model->idx = model->row_count;
    model->undoable -= expected;
}

static void step_clone(struct pair *pool, size_t from, size_t to)
{
    struct ckv_live_cache *clone = NULL;
    enum ckv_status status = ckv_caches_clone(&pool[from].cache, 1, &clone, NULL);
    if (pool[from].model.empty) {
        assert_int_equal(status, CKV_INVALID);
        assert_null(clone);
        return;
    }
    assert_int_equal(status, CKV_OK);
    ckv_cache_destroy(pool[to].cache);
    pool[to].cache = clone;
    pool[to].model = pool[from].model;
    pool[to].model.undoable = 0;
    pool[to].model.capacity = pool[to].model.offset;
    pool[to].model.sealed = true;
}

/* State out of one cache and into a fresh one: what save and load do, without a file. */
static void step_restore(const struct ckv_alloc *alloc, struct pair *pair)
{
    struct model *model = &pair->model;
    struct ckv_live_cache *fresh;
    struct ckv_array arrays[CKV_CACHE_ARRAYS_MAX];
    size_t count = ckv_cache_state(pair->cache, arrays);
    if (model->empty || model->offset == 0) {
        for (size_t i = 0; i < count; i++)
            ckv_array_unref(&arrays[i]);
        return;
    }
    assert_int_equal(ckv_cache_create(alloc, &model->params, &fresh, NULL), CKV_OK);
    for (size_t i = 0; i < count; i++) {
        struct ckv_array whole;
        assert_int_equal(ckv_array_contiguous(&arrays[i], &whole, NULL), CKV_OK);
        ckv_array_unref(&arrays[i]);
        arrays[i] = whole;
        arrays[i].sealed = true;
    }
    assert_int_equal(
        ckv_cache_restore_state(fresh, arrays, count, model->offset, model->idx, NULL),
        CKV_OK);
    for (size_t i = 0; i < count; i++)
        ckv_array_unref(&arrays[i]);
    ckv_cache_destroy(pair->cache);
    pair->cache = fresh;
    model->capacity = model->offset;
    model->sealed = true;
    model->undoable = 0;
}

static void run_history(const struct ckv_cache_params *params, uint64_t head_dim,
                        enum ckv_dtype dtype, struct test_random *random)
{
    static struct pair pool[POOL];
    struct test_alloc alloc;
    long next = 1;
    test_alloc_init(&alloc);
    for (size_t i = 0; i < POOL; i++) {
        memset(&pool[i], 0, sizeof pool[i]);
        pool[i].model.params = *params;
        pool[i].model.head_dim = head_dim;
        pool[i].model.dtype = dtype;
        pool[i].model.empty = true;
        assert_int_equal(ckv_cache_create(&alloc.alloc, params, &pool[i].cache, NULL),
                         CKV_OK);
    }
    for (int step = 0; step < STEPS; step++) {
        size_t at = (size_t)test_random_below(random, POOL);
        uint64_t what = test_random_below(random, 20);
        if (what < 13)
            step_append(&pool[at], random, &next);
        else if (what < 15)
            step_trim(&pool[at], random);
        else if (what < 16)
            step_bypass(&pool[at], random);
        else if (what < 19)
            step_clone(pool, at,
                       (at + 1 + (size_t)test_random_below(random, POOL - 1)) % POOL);
        else
            step_restore(&alloc.alloc, &pool[at]);
        for (size_t i = 0; i < POOL; i++)
            check(&pool[i], random, false);
    }
    for (size_t i = 0; i < POOL; i++) {
        check(&pool[i], random, true);
        ckv_cache_destroy(pool[i].cache);
    }
    assert_true(test_alloc_clean(&alloc));
    test_alloc_deinit(&alloc);
}

static const enum ckv_dtype dtypes[] = {CKV_DTYPE_BFLOAT16, CKV_DTYPE_FLOAT16,
                                        CKV_DTYPE_FLOAT32};

static void kv_histories(void **state)
{
    struct test_random random;
    (void)state;
    (void)test_random_init_printed(&random, 1);
    for (int i = 0; i < HISTORIES; i++) {
        struct ckv_cache_params params = {.kind = CKV_CACHE_KV};
        run_history(&params, 4 + test_random_below(&random, 5),
                    dtypes[test_random_below(&random, 3)], &random);
    }
}

static void rotating_histories(void **state)
{
    static const uint64_t windows[] = {1, 2, 5, 64, 255, 256, 257, 600};
    struct test_random random;
    (void)state;
    (void)test_random_init_printed(&random, 2);
    for (int i = 0; i < HISTORIES; i++) {
        struct ckv_cache_params params = {.kind = CKV_CACHE_ROTATING,
                                          .max_size = windows[i % 8]};
        run_history(&params, 4, dtypes[test_random_below(&random, 3)], &random);
    }
}

static void qkv_histories(void **state)
{
    static const uint32_t bits[] = {2, 3, 4, 5, 6, 8};
    struct test_random random;
    (void)state;
    (void)test_random_init_printed(&random, 3);
    for (int i = 0; i < HISTORIES; i++) {
        struct ckv_cache_params params = {
            .kind = CKV_CACHE_QKV, .bits = bits[i % 6], .group_size = i % 2 ? 32 : 64};
        run_history(&params, 64, dtypes[test_random_below(&random, 3)], &random);
    }
}

static void rotating_qkv_histories(void **state)
{
    static const uint32_t bits[] = {2, 3, 4, 5, 6, 8};
    struct test_random random;
    (void)state;
    (void)test_random_init_printed(&random, 4);
    for (int i = 0; i < HISTORIES; i++) {
        struct ckv_cache_params params = {.kind = CKV_CACHE_ROTATING_QKV,
                                          .max_size = i % 3 ? 64 : 256,
                                          .bits = bits[i % 6],
                                          .group_size = 32};
        run_history(&params, 64, dtypes[test_random_below(&random, 3)], &random);
    }
}

static void turboquant_histories(void **state)
{
    static const uint32_t k_bits[] = {8, 4, 2, 5};
    static const uint32_t v_bits[] = {3, 2, 8, 4, 5};
    struct test_random random;
    (void)state;
    (void)test_random_init_printed(&random, 5);
    for (int i = 0; i < HISTORIES; i++) {
        struct ckv_cache_params params = {.kind = CKV_CACHE_TURBOQUANT,
                                          .k_bits = k_bits[i % 4],
                                          .v_bits = v_bits[i % 5]};
        run_history(&params, 64, dtypes[test_random_below(&random, 3)], &random);
    }
}

/* The slots hold the arrays of these numbers, 0 = none. */
static void check_slots(const struct ckv_live_cache *cache, uint64_t offset,
                        const long set[2])
{
    struct ckv_array arrays[CKV_CACHE_ARRAYS_MAX];
    size_t count = ckv_cache_state(cache, arrays);
    size_t seen = 0;
    assert_int_equal(ckv_cache_offset(cache), offset);
    for (size_t slot = 0; slot < 2; slot++) {
        struct ckv_array expected;
        if (set[slot] == 0)
            continue;
        expected = test_token_array(CKV_DTYPE_FLOAT32, 1, 4, set[slot], 3, false);
        assert_true(seen < count && ckv_array_equal(&arrays[seen], &expected));
        ckv_array_unref(&expected);
        seen++;
    }
    assert_int_equal(seen, count);
    for (size_t i = 0; i < count; i++)
        ckv_array_unref(&arrays[i]);
}

/* A recurrent state has no rows: its arrays are what was set last, whoever shared them.
 */
static void ssm_histories(void **state)
{
    struct test_random random;
    (void)state;
    (void)test_random_init_printed(&random, 6);
    for (int i = 0; i < HISTORIES; i++) {
        const struct ckv_cache_params params = {.kind = CKV_CACHE_SSM};
        struct ckv_live_cache *pool[POOL];
        uint64_t offset[POOL] = {0};
        long set[POOL][2] = {{0}};
        struct test_alloc alloc;
        long next = 1;
        test_alloc_init(&alloc);
        for (size_t c = 0; c < POOL; c++)
            assert_int_equal(ckv_cache_create(&alloc.alloc, &params, &pool[c], NULL),
                             CKV_OK);
        for (int step = 0; step < STEPS; step++) {
            size_t at = (size_t)test_random_below(&random, POOL);
            size_t other = (at + 1 + (size_t)test_random_below(&random, POOL - 1)) % POOL;
            size_t slot = (size_t)test_random_below(&random, 2);
            uint64_t n = test_random_below(&random, 300);
            struct ckv_array array;
            struct ckv_live_cache *clone;
            if (test_random_below(&random, 4) > 0) {
                array = test_token_array(CKV_DTYPE_FLOAT32, 1, 4, next, 3, false);
                assert_int_equal(ckv_cache_set_slot(pool[at], slot, &array, NULL),
                                 CKV_OK);
                assert_int_equal(ckv_cache_advance(pool[at], n, NULL), CKV_OK);
                ckv_array_unref(&array);
                set[at][slot] = next++;
                offset[at] += n;
            } else if (ckv_cache_is_empty(pool[at])) {
                assert_true(set[at][0] == 0 || set[at][1] == 0);
                assert_int_equal(ckv_caches_clone(&pool[at], 1, &clone, NULL),
                                 CKV_INVALID);
            } else {
                assert_int_equal(ckv_caches_clone(&pool[at], 1, &clone, NULL), CKV_OK);
                ckv_cache_destroy(pool[other]);
                pool[other] = clone;
                offset[other] = offset[at];
                memcpy(set[other], set[at], sizeof set[at]);
            }
            assert_int_equal(ckv_cache_trim(pool[at], 1, NULL, NULL), CKV_REFUSED);
            for (size_t c = 0; c < POOL; c++)
                check_slots(pool[c], offset[c], set[c]);
        }
        for (size_t c = 0; c < POOL; c++)
            ckv_cache_destroy(pool[c]);
        assert_true(test_alloc_clean(&alloc));
        test_alloc_deinit(&alloc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kv_histories),         cmocka_unit_test(rotating_histories),
        cmocka_unit_test(qkv_histories),        cmocka_unit_test(rotating_qkv_histories),
        cmocka_unit_test(turboquant_histories), cmocka_unit_test(ssm_histories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

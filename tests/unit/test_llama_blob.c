/* The outer structure of libllama's sequence state: every structural bit is checked, and
 * every length. States are built here by hand after the layout in blob.h. */
#include "blob.h"
#include "lib/counting_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LAYERS 3
/* libllama's number for f16; any would do. */
#define TYPE 1

/* A state under construction; structure[i] tells whether byte i is structure. */
struct state {
    unsigned char bytes[8192];
    bool structure[8192];
    size_t size;
};

static void put(struct state *state, const void *data, size_t size)
{
    memcpy(state->bytes + state->size, data, size);
    memset(state->structure + state->size, 1, size);
    state->size += size;
}

static void put_u32(struct state *state, uint32_t value)
{
    put(state, &value, sizeof value);
}

static void put_u64(struct state *state, uint64_t value)
{
    put(state, &value, sizeof value);
}

/* Rows that look like structure where that could fool a parser. */
static void put_payload(struct state *state, size_t size)
{
    for (size_t i = 0; i < size; i++)
        state->bytes[state->size + i] = (unsigned char)(i % 4 == 0);
    state->size += size;
}

enum form { PLAIN, TRANSPOSED, KEYS_ONLY };

static void build(struct state *state, enum form form, uint32_t sequence, uint32_t count)
{
    memset(state, 0, sizeof *state);
    put_u32(state, 0xaf143cd8u);
    put_u32(state, sequence);
    put_u32(state, 1);
    put_u32(state, count);
    for (uint32_t i = 0; i < count; i++) {
        put_u32(state, i);
        put_u32(state, 1);
        put_u32(state, sequence);
    }
    put_u32(state, form == TRANSPOSED);
    put_u32(state, LAYERS);
    for (uint32_t i = 0; i < LAYERS; i++) {
        put_u32(state, TYPE);
        put_u64(state, 16 + 8 * i);
        put_payload(state, count * (16 + 8 * i));
    }
    for (uint32_t i = 0; form != KEYS_ONLY && i < LAYERS; i++) {
        put_u32(state, TYPE);
        if (form == TRANSPOSED) {
            put_u32(state, 2);
            put_u32(state, 10);
        } else {
            put_u64(state, 20);
        }
        put_payload(state, count * 20);
    }
}

struct fixture {
    struct test_alloc alloc;
    struct ckvi_llama_layout layout;
    struct state state;
    struct ckv_error error;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    test_alloc_init(&fixture->alloc);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    ckvi_llama_layout_deinit(&fixture->layout);
    assert_true(test_alloc_clean(&fixture->alloc));
    test_alloc_deinit(&fixture->alloc);
    free(fixture);
    return 0;
}

static enum ckv_status learn(struct fixture *fixture)
{
    ckvi_llama_layout_deinit(&fixture->layout);
    return ckvi_llama_layout_learn(&fixture->layout, &fixture->alloc.alloc,
                                   fixture->state.bytes, fixture->state.size,
                                   &fixture->error);
}

static void learn_form(struct fixture *fixture, enum form form)
{
    build(&fixture->state, form, 0, 1);
    assert_int_equal(learn(fixture), CKV_OK);
}

/* The check reads a block of exactly the size given, so that a sanitizer sees a step
 * beyond it. */
static enum ckv_status check_cut(struct fixture *fixture, size_t size, uint64_t count)
{
    unsigned char *exact = malloc(size ? size : 1);
    enum ckv_status status;
    assert_non_null(exact);
    memcpy(exact, fixture->state.bytes, size);
    ckv_error_clear(&fixture->error);
    status = ckvi_llama_blob_check(&fixture->layout, exact, size, count, &fixture->error);
    assert_int_equal(fixture->error.status, status);
    free(exact);
    return status;
}

static enum ckv_status check(struct fixture *fixture, uint64_t count)
{
    return check_cut(fixture, fixture->state.size, count);
}

static void layout_gives_exact_sizes(void **state)
{
    struct fixture *fixture = *state;
    for (int form = PLAIN; form <= KEYS_ONLY; form++) {
        learn_form(fixture, (enum form)form);
        assert_int_equal(fixture->layout.layer_count, LAYERS);
        assert_int_equal(fixture->layout.value_count, form == KEYS_ONLY ? 0 : LAYERS);
        for (uint32_t count = 1; count <= 12; count++) {
            uint64_t bytes = 0;
            build(&fixture->state, (enum form)form, 0, count);
            assert_true(ckvi_llama_layout_size(&fixture->layout, count, &bytes));
            assert_int_equal(bytes, fixture->state.size);
        }
    }
}

static void size_refuses_nothing_and_too_much(void **state)
{
    struct fixture *fixture = *state;
    uint64_t bytes = 0;
    learn_form(fixture, PLAIN);
    assert_false(ckvi_llama_layout_size(&fixture->layout, 0, &bytes));
    assert_false(ckvi_llama_layout_size(&fixture->layout, UINT64_MAX, &bytes));
    assert_false(ckvi_llama_layout_size(
        &fixture->layout, UINT64_MAX / fixture->layout.token_bytes + 1, &bytes));
}

static void well_formed_states_pass(void **state)
{
    struct fixture *fixture = *state;
    for (int form = PLAIN; form <= KEYS_ONLY; form++) {
        learn_form(fixture, (enum form)form);
        for (uint32_t count = 1; count <= 12; count++) {
            build(&fixture->state, (enum form)form, count * 20, count);
            assert_int_equal(check(fixture, count), CKV_OK);
        }
    }
}

static void every_truncation_is_refused(void **state)
{
    struct fixture *fixture = *state;
    for (int form = PLAIN; form <= KEYS_ONLY; form++) {
        learn_form(fixture, (enum form)form);
        build(&fixture->state, (enum form)form, 0, 4);
        for (size_t size = 0; size < fixture->state.size; size++)
            assert_int_equal(check_cut(fixture, size, 4), CKV_CORRUPT);
    }
}

static void trailing_bytes_are_refused(void **state)
{
    struct fixture *fixture = *state;
    learn_form(fixture, PLAIN);
    build(&fixture->state, PLAIN, 0, 4);
    assert_int_equal(check_cut(fixture, fixture->state.size + 1, 4), CKV_CORRUPT);
    assert_int_equal(check_cut(fixture, fixture->state.size + 136, 4), CKV_CORRUPT);
}

static void every_structural_bit_is_checked(void **state)
{
    struct fixture *fixture = *state;
    for (int form = PLAIN; form <= KEYS_ONLY; form++) {
        learn_form(fixture, (enum form)form);
        build(&fixture->state, (enum form)form, 5, 4);
        for (size_t bit = 0; bit < fixture->state.size * 8; bit++) {
            bool structural = fixture->state.structure[bit / 8];
            fixture->state.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            assert_int_equal(check(fixture, 4), structural ? CKV_CORRUPT : CKV_OK);
            fixture->state.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
    }
}

static void another_token_count_is_refused(void **state)
{
    struct fixture *fixture = *state;
    learn_form(fixture, PLAIN);
    build(&fixture->state, PLAIN, 0, 4);
    assert_int_equal(check(fixture, 3), CKV_CORRUPT);
    assert_int_equal(check(fixture, 5), CKV_CORRUPT);
    assert_int_equal(check(fixture, 0), CKV_CORRUPT);
    assert_int_equal(check(fixture, UINT64_MAX), CKV_CORRUPT);
    assert_int_equal(check(fixture, UINT64_C(1) << 32), CKV_CORRUPT);
}

static void another_layout_is_refused(void **state)
{
    struct fixture *fixture = *state;
    for (int form = PLAIN; form <= KEYS_ONLY; form++)
        for (int other = PLAIN; other <= KEYS_ONLY; other++) {
            learn_form(fixture, (enum form)form);
            build(&fixture->state, (enum form)other, 0, 4);
            assert_int_equal(check(fixture, 4), form == other ? CKV_OK : CKV_CORRUPT);
        }
}

static void errors_name_field_expected_and_found(void **state)
{
    struct fixture *fixture = *state;
    uint32_t position = 9;
    learn_form(fixture, PLAIN);
    build(&fixture->state, PLAIN, 0, 4);
    memcpy(fixture->state.bytes + 16 + 2 * 12, &position, sizeof position);
    assert_int_equal(check(fixture, 4), CKV_CORRUPT);
    assert_string_equal(fixture->error.text,
                        "llama.cpp state: the position of a cell is 9, expected 2");
}

static void learning_refuses_what_it_does_not_know(void **state)
{
    struct fixture *fixture = *state;
    build(&fixture->state, PLAIN, 0, 1);
    for (size_t bit = 0; bit < fixture->state.size * 8; bit++) {
        size_t at = bit / 8;
        /* Types and sizes are what is learned; a size that changes breaks the sum. */
        if (!fixture->state.structure[at])
            continue;
        fixture->state.bytes[at] ^= (unsigned char)(1 << bit % 8);
        if (learn(fixture) == CKV_OK)
            assert_int_not_equal(check(fixture, 1), CKV_INVALID);
        else
            assert_int_equal(fixture->error.status, CKV_UNSUPPORTED);
        fixture->state.bytes[at] ^= (unsigned char)(1 << bit % 8);
    }
}

/* As a cache of two parts, or one with more data per cell, would look. */
static void learning_refuses_other_caches(void **state)
{
    struct fixture *fixture = *state;
    struct state *made = &fixture->state;
    build(made, PLAIN, 0, 1);
    put_u32(made, 1);
    assert_int_equal(learn(fixture), CKV_UNSUPPORTED);
    build(made, PLAIN, 0, 1);
    memmove(made->bytes + 40, made->bytes + 28, made->size - 28);
    made->size += 12;
    assert_int_equal(learn(fixture), CKV_UNSUPPORTED);
    build(made, PLAIN, 0, 2);
    assert_int_equal(learn(fixture), CKV_UNSUPPORTED);
    build(made, PLAIN, 0, 0);
    assert_int_equal(learn(fixture), CKV_UNSUPPORTED);
}

static void learning_reads_only_what_is_there(void **state)
{
    struct fixture *fixture = *state;
    size_t size;
    build(&fixture->state, PLAIN, 0, 1);
    size = fixture->state.size;
    for (size_t cut = 0; cut < size; cut++) {
        unsigned char *exact = malloc(cut ? cut : 1);
        enum ckv_status status;
        size_t keys_end = 16 + 12 + 8 + LAYERS * 12 + 16 + 24 + 32;
        assert_non_null(exact);
        memcpy(exact, fixture->state.bytes, cut);
        status = ckvi_llama_layout_learn(&fixture->layout, &fixture->alloc.alloc, exact,
                                         cut, &fixture->error);
        assert_int_equal(status, cut == keys_end ? CKV_OK : CKV_UNSUPPORTED);
        ckvi_llama_layout_deinit(&fixture->layout);
        free(exact);
    }
}

static void learning_reports_a_failed_allocation(void **state)
{
    struct fixture *fixture = *state;
    build(&fixture->state, PLAIN, 0, 1);
    fixture->alloc.fail_at = fixture->alloc.call_count + 1;
    assert_int_equal(learn(fixture), CKV_NOMEM);
    assert_int_equal(fixture->error.status, CKV_NOMEM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(layout_gives_exact_sizes),
        TEST(size_refuses_nothing_and_too_much),
        TEST(well_formed_states_pass),
        TEST(every_truncation_is_refused),
        TEST(trailing_bytes_are_refused),
        TEST(every_structural_bit_is_checked),
        TEST(another_token_count_is_refused),
        TEST(another_layout_is_refused),
        TEST(errors_name_field_expected_and_found),
        TEST(learning_refuses_what_it_does_not_know),
        TEST(learning_refuses_other_caches),
        TEST(learning_reads_only_what_is_there),
        TEST(learning_reports_a_failed_allocation),
    };
    setenv("GGML_NO_BACKTRACE", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

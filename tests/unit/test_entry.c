/*
 * Kinds, floors, the usable prefix, and what an entry may claim. Every refusal is asked
 * for its status and for the field it names.
 */
#include "unit/file_support.h"

/* The entry is refused like that, and the text names `part`. */
static void expect_refused(const struct ckv_entry *entry, enum ckv_status status,
                           const char *part)
{
    struct ckv_error error;
    ckv_error_clear(&error);
    assert_status(ckv_entry_validate(entry, &error), status);
    assert_status(error.status, status);
    if (!strstr(error.text, part))
        fail_msg("\"%s\" does not name \"%s\"", error.text, part);
}

static void expect_valid(const struct ckv_entry *entry)
{
    struct ckv_error error;
    assert_ok(ckv_entry_validate(entry, &error), error);
}

static void kinds_have_the_names_of_the_format(void **state)
{
    static const char *const names[] = {"kv",  "rotating",   "qkv",  "rotating-qkv",
                                        "ssm", "turboquant", "state"};
    (void)state;
    for (size_t i = 0; i < CKV_CACHE_KIND_COUNT; i++)
        assert_string_equal(ckv_cache_kind_name((enum ckv_cache_kind)(i + 1)), names[i]);
    assert_null(ckv_cache_kind_name((enum ckv_cache_kind)0));
    assert_null(ckv_cache_kind_name((enum ckv_cache_kind)8));
    assert_null(ckv_cache_kind_name((enum ckv_cache_kind) - 1));
}

static void metadata_keys_have_the_names_of_the_format(void **state)
{
    struct ckv_entry entry = {.meta = {{CKV_META_NAMESPACE, "n"}}, .meta_count = 1};
    (void)state;
    assert_string_equal(ckv_meta_key_name(CKV_META_MODEL_ID), "modelId");
    assert_string_equal(ckv_meta_key_name(CKV_META_FINGERPRINT), "configFingerprint");
    assert_string_equal(ckv_meta_key_name(CKV_META_TOKENIZER_HASH), "tokenizerHash");
    assert_string_equal(ckv_meta_key_name(CKV_META_NAMESPACE), "ns");
    assert_null(ckv_meta_key_name((enum ckv_meta_key)4));
    assert_string_equal(ckv_entry_meta(&entry, CKV_META_NAMESPACE), "n");
    assert_null(ckv_entry_meta(&entry, CKV_META_MODEL_ID));
}

static void entries_of_every_kind_are_valid(void **state)
{
    (void)state;
    for (size_t tokens = 1; tokens <= 20; tokens++) {
        struct test_entry *made = test_entry_of_all_kinds(tokens, 1);
        struct ckv_error error;
        uint64_t bytes = 0;
        expect_valid(&made->entry);
        assert_ok(ckv_entry_check_offsets(&made->entry, &error), error);
        for (size_t i = 0; i < made->entry.cache_count; i++)
            for (size_t j = 0; j < made->entry.caches[i].tensor_count; j++)
                bytes += made->entry.caches[i].tensors[j].bytes;
        assert_int_equal(ckv_entry_tensor_bytes(&made->entry), bytes);
        test_entry_destroy(made);
    }
}

static void floors_follow_the_kind(void **state)
{
    struct ckv_cache cache = {.offset = 10, .max_size = 8, .floor = 4};
    (void)state;
    cache.kind = CKV_CACHE_KV;
    assert_int_equal(ckv_cache_floor(&cache), 0);
    cache.kind = CKV_CACHE_QKV;
    assert_int_equal(ckv_cache_floor(&cache), 0);
    cache.kind = CKV_CACHE_TURBOQUANT;
    assert_int_equal(ckv_cache_floor(&cache), 0);
    cache.kind = CKV_CACHE_SSM;
    assert_int_equal(ckv_cache_floor(&cache), 10);
    cache.kind = CKV_CACHE_STATE;
    assert_int_equal(ckv_cache_floor(&cache), 4);
    cache.kind = CKV_CACHE_ROTATING;
    assert_int_equal(ckv_cache_floor(&cache), 10);
    cache.kind = CKV_CACHE_ROTATING_QKV;
    assert_int_equal(ckv_cache_floor(&cache), 10);
}

/* S5: offset < window can be cut, offset == window no longer. */
static void s05_a_ring_that_never_filled_can_be_cut(void **state)
{
    struct ckv_cache cache = {.kind = CKV_CACHE_ROTATING, .offset = 7, .max_size = 8};
    (void)state;
    assert_int_equal(ckv_cache_floor(&cache), 0);
    cache.offset = 8;
    assert_int_equal(ckv_cache_floor(&cache), 8);
    cache.offset = 9;
    assert_int_equal(ckv_cache_floor(&cache), 9);
}

/* S4: one untrimmable layer decides for the whole entry. */
static void s04_the_highest_floor_decides(void **state)
{
    struct ckv_cache caches[3] = {
        {.kind = CKV_CACHE_KV, .offset = 10},
        {.kind = CKV_CACHE_STATE, .offset = 10, .floor = 6},
        {.kind = CKV_CACHE_ROTATING, .offset = 10, .max_size = 64}};
    struct ckv_entry entry = {.caches = caches, .cache_count = 3};
    (void)state;
    assert_int_equal(ckv_entry_floor(&entry), 6);
    caches[2].max_size = 10;
    assert_int_equal(ckv_entry_floor(&entry), 10);
    entry.cache_count = 1;
    assert_int_equal(ckv_entry_floor(&entry), 0);
    entry.cache_count = 0;
    assert_int_equal(ckv_entry_floor(&entry), 0);
}

/* S1, S60 and M28: floor <= prefix <= length, and one token of the prompt stays. */
static void usable_prefixes_are_bounded_on_both_sides(void **state)
{
    (void)state;
    assert_int_equal(ckv_usable_prefix(0, 4, 4, 5), 4); /* [1,2,3,4] for [1,2,3,4,5] */
    assert_int_equal(ckv_usable_prefix(0, 4, 2, 3), 2); /* for [1,2,9] */
    assert_int_equal(ckv_usable_prefix(0, 4, 2, 2), 1); /* for [1,2] */
    assert_int_equal(ckv_usable_prefix(0, 4, 4, 4), 3); /* the same tokens */
    assert_int_equal(ckv_usable_prefix(0, 4, 1, 1), 0); /* one token: nothing to reuse */
    assert_int_equal(ckv_usable_prefix(0, 4, 0, 9), 0);
    assert_int_equal(ckv_usable_prefix(0, 4, 0, 0), 0);
    assert_int_equal(ckv_usable_prefix(4, 4, 4, 5), 4); /* untrimmable, extended: a hit */
    assert_int_equal(ckv_usable_prefix(4, 4, 4, 4), 0); /* untrimmable, equal: a miss */
    assert_int_equal(ckv_usable_prefix(4, 4, 3, 9), 0); /* untrimmable, diverging */
    assert_int_equal(ckv_usable_prefix(3, 4, 4, 4), 3);
    assert_int_equal(ckv_usable_prefix(3, 4, 2, 9), 0);
    assert_int_equal(ckv_usable_prefix(0, 4, 9, 9), 4); /* common beyond the length */
    assert_int_equal(ckv_usable_prefix(UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX),
                     0);
}

static void the_store_wants_offsets_equal_to_the_tokens(void **state)
{
    struct test_entry *made = test_entry_of_all_kinds(10, 1);
    struct ckv_error error;
    (void)state;
    made->entry.caches[4].offset = 9;
    assert_status(ckv_entry_check_offsets(&made->entry, &error), CKV_FOREIGN);
    assert_non_null(strstr(error.text, "caches[4].offset: expected 10"));
    assert_non_null(strstr(error.text, "found 9"));
    expect_valid(&made->entry); /* legal all the same: ssm does not tie it to a shape */
    made->entry.token_count = 0;
    assert_status(ckv_entry_check_offsets(&made->entry, &error), CKV_FOREIGN);
    test_entry_destroy(made);
}

/* A ring's scalars with rows [1,1,rows,4]. */
static enum ckv_status ring_status(uint64_t offset, uint64_t idx, uint64_t max_size,
                                   uint64_t rows)
{
    struct ckv_tensor tensors[2] = {{.dtype = CKV_DTYPE_BFLOAT16,
                                     .rank = 4,
                                     .shape = {1, 1, rows, 4},
                                     .bytes = rows * 8}};
    struct ckv_cache cache = {.kind = CKV_CACHE_ROTATING,
                              .offset = offset,
                              .idx = idx,
                              .max_size = max_size,
                              .tensors = tensors,
                              .tensor_count = 2};
    struct ckv_entry entry = {.caches = &cache, .cache_count = 1};
    tensors[1] = tensors[0];
    return ckv_entry_validate(&entry, NULL);
}

/* Every state of the reference trace (window 64), of the growth of slack rows, of a trim
 * before the window is full, and of a first prompt longer than the window. */
static void every_state_a_ring_can_reach_is_valid(void **state)
{
    static const struct {
        uint64_t offset, idx, rows;
    } reached[] = {{48, 48, 48},    {58, 58, 64},    {64, 64, 64}, {68, 4, 64},
                   {84, 79, 79},    {88, 4, 64},     {92, 8, 64},  {49, 49, 64},
                   {40, 40, 64},    {1, 1, 1},       {0, 0, 1},    {0, 0, 64},
                   {200, 200, 200}, {101, 101, 101}, {69, 64, 64}, {65, 1, 64}};
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(reached); i++)
        assert_status(ring_status(reached[i].offset, reached[i].idx, 64, reached[i].rows),
                      CKV_OK);
}

static void states_no_ring_can_reach_are_refused(void **state)
{
    (void)state;
    assert_status(ring_status(68, 65, 64, 64), CKV_CORRUPT); /* idx beyond the rows */
    assert_status(ring_status(10, 4, 64, 20), CKV_CORRUPT);  /* idx off, rows free */
    assert_status(ring_status(10, 12, 64, 20), CKV_CORRUPT);
    assert_status(ring_status(10, 5, 0, 10), CKV_CORRUPT);  /* no window */
    assert_status(ring_status(10, 10, 64, 0), CKV_CORRUPT); /* no rows */
    assert_status(ring_status(70, 4, 64, 10), CKV_CORRUPT); /* window not covered */
    assert_status(ring_status(10, 9, 64, 9), CKV_CORRUPT);  /* tokens not covered */
    assert_status(ring_status(10, 10, 64, 65),
                  CKV_CORRUPT); /* free rows past the window */
    assert_status(ring_status(84, 79, 64, 85), CKV_CORRUPT); /* more rows than tokens */
}

/* One change to an entry of one kind, and what is said about it. */
typedef void (*change_fn)(struct test_entry *made);

static void change_and_refuse(enum ckv_cache_kind kind, change_fn change,
                              enum ckv_status status, const char *part)
{
    struct test_entry *made = test_entry_of_kind(kind, 10, 1);
    expect_valid(&made->entry);
    change(made);
    expect_refused(&made->entry, status, part);
    test_entry_destroy(made);
}

static struct ckv_cache *cache_of(struct test_entry *made)
{
    return &made->entry.caches[0];
}

/* Sets an axis, bytes in step. */
static void set_axis(struct test_entry *made, size_t tensor, size_t axis, uint64_t value)
{
    struct ckv_tensor *slot = &cache_of(made)->tensors[tensor];
    slot->shape[axis] = value;
    slot->bytes = ckv_dtype_size(slot->dtype);
    for (uint32_t i = 0; i < slot->rank; i++)
        slot->bytes *= slot->shape[i];
}

static void set_dtype(struct test_entry *made, size_t tensor, enum ckv_dtype dtype)
{
    struct ckv_tensor *slot = &cache_of(made)->tensors[tensor];
    slot->dtype = dtype;
    set_axis(made, tensor, 0, slot->shape[0]);
}

/* Takes the last axis away, bytes in step. */
static void drop_axis(struct test_entry *made, size_t tensor)
{
    cache_of(made)->tensors[tensor].rank--;
    set_axis(made, tensor, 0, cache_of(made)->tensors[tensor].shape[0]);
}

#define CHANGE(name, body)                                                               \
    static void name(struct test_entry *made)                                            \
    {                                                                                    \
        body;                                                                            \
    }

CHANGE(unknown_kind, cache_of(made)->kind = (enum ckv_cache_kind)99)
CHANGE(one_tensor, cache_of(made)->tensor_count = 1)
CHANGE(no_tensor, cache_of(made)->tensor_count = 0)
CHANGE(offset_other, cache_of(made)->offset = 11)
CHANGE(offset_huge, cache_of(made)->offset = UINT64_C(1) << 53)
CHANGE(type_invalid, cache_of(made)->tensors[1].dtype = (enum ckv_dtype)14)
CHANGE(rank_nine, cache_of(made)->tensors[1].rank = 9)
CHANGE(rank_zero, cache_of(made)->tensors[1].rank = 0)
CHANGE(rank_three, drop_axis(made, 1))
CHANGE(bytes_other, cache_of(made)->tensors[1].bytes++)
CHANGE(product_huge, cache_of(made)->tensors[1].shape[3] = UINT64_MAX)
CHANGE(values_batch, set_axis(made, 1, 0, 2))
CHANGE(values_heads, set_axis(made, 1, 1, 3))
CHANGE(values_rows, set_axis(made, 1, 2, 11))
CHANGE(no_heads, (set_axis(made, 0, 1, 0), set_axis(made, 1, 1, 0)))
CHANGE(no_width, set_axis(made, 1, 3, 0))
CHANGE(keys_int, set_dtype(made, 0, CKV_DTYPE_INT8))
CHANGE(values_other_float, set_dtype(made, 1, CKV_DTYPE_FLOAT32))
CHANGE(group_size_48, cache_of(made)->group_size = 48)
CHANGE(bits_7, cache_of(made)->bits = 7)
CHANGE(packed_width, set_axis(made, 3, 3, 9))
CHANGE(packed_type, set_dtype(made, 0, CKV_DTYPE_INT32))
CHANGE(scales_width, set_axis(made, 4, 3, 3))
CHANGE(biases_width, set_axis(made, 2, 3, 1))
CHANGE(scales_type, set_dtype(made, 4, CKV_DTYPE_FLOAT32))
CHANGE(biases_type, set_dtype(made, 5, CKV_DTYPE_FLOAT16))
CHANGE(scales_int, set_dtype(made, 1, CKV_DTYPE_UINT16))
CHANGE(k_bits_3, cache_of(made)->k_bits = 3)
CHANGE(v_bits_6, cache_of(made)->v_bits = 6)
CHANGE(head_dim_96, cache_of(made)->head_dim = 96)
CHANGE(keys_width, set_axis(made, 0, 3, 63))
CHANGE(zeros_width, set_axis(made, 2, 3, 3))
CHANGE(zeros_type, set_dtype(made, 2, CKV_DTYPE_BFLOAT16))
CHANGE(engine_empty, cache_of(made)->engine[0] = '\0')
CHANGE(engine_slash, strcpy(cache_of(made)->engine, "a/b"))
CHANGE(engine_long, memset(cache_of(made)->engine, 'a', CKV_ENGINE_NAME_MAX + 1))
CHANGE(floor_above, cache_of(made)->floor = 11)
CHANGE(state_type, set_dtype(made, 0, CKV_DTYPE_INT8))
CHANGE(state_rank,
       (cache_of(made)->tensors[0].rank = 2, cache_of(made)->tensors[0].shape[1] = 1))

static void what_no_kind_allows_is_refused(void **state)
{
    (void)state;
    change_and_refuse(CKV_CACHE_KV, unknown_kind, CKV_FOREIGN, "caches[0].kind");
    for (size_t i = 0; i < CKV_CACHE_KIND_COUNT; i++)
        change_and_refuse(test_all_kinds[i], no_tensor, CKV_CORRUPT,
                          ".tensors: expected");
    change_and_refuse(CKV_CACHE_SSM, offset_huge, CKV_CORRUPT, "offset: expected less");
    change_and_refuse(CKV_CACHE_SSM, type_invalid, CKV_CORRUPT, "tensors[1].dtype");
    change_and_refuse(CKV_CACHE_SSM, rank_nine, CKV_TOOBIG, "tensors[1].shape: rank 9");
    change_and_refuse(CKV_CACHE_SSM, rank_zero, CKV_CORRUPT, "tensors[1].shape");
    change_and_refuse(CKV_CACHE_SSM, bytes_other, CKV_CORRUPT,
                      "tensors[1].bytes: expected");
    change_and_refuse(CKV_CACHE_SSM, product_huge, CKV_CORRUPT, "tensors[1].shape: the");
}

static void what_kv_does_not_allow_is_refused(void **state)
{
    (void)state;
    change_and_refuse(CKV_CACHE_KV, one_tensor, CKV_CORRUPT,
                      "expected 2 tensors, found 1");
    change_and_refuse(CKV_CACHE_KV, offset_other, CKV_CORRUPT,
                      "caches[0] (kv).tensors[0] (keys).shape[2]: expected 11");
    change_and_refuse(CKV_CACHE_KV, rank_three, CKV_CORRUPT, "expected rank 4, found 3");
    change_and_refuse(CKV_CACHE_KV, values_batch, CKV_CORRUPT, "(values).shape[0]");
    change_and_refuse(CKV_CACHE_KV, values_heads, CKV_CORRUPT, "(values).shape[1]");
    change_and_refuse(CKV_CACHE_KV, values_rows, CKV_CORRUPT, "(values).shape[2]");
    change_and_refuse(CKV_CACHE_KV, no_heads, CKV_CORRUPT, "(keys).shape[1]");
    change_and_refuse(CKV_CACHE_KV, no_width, CKV_CORRUPT, "(values).shape[3]");
    change_and_refuse(CKV_CACHE_KV, keys_int, CKV_CORRUPT, "(keys).dtype");
    change_and_refuse(CKV_CACHE_KV, values_other_float, CKV_CORRUPT, "(values).dtype");
    change_and_refuse(CKV_CACHE_ROTATING, values_rows, CKV_CORRUPT, "(values).shape[2]");
}

static void what_quantized_kinds_do_not_allow_is_refused(void **state)
{
    static const enum ckv_cache_kind both[] = {CKV_CACHE_QKV, CKV_CACHE_ROTATING_QKV};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        change_and_refuse(both[i], one_tensor, CKV_CORRUPT, "expected 6 tensors");
        change_and_refuse(both[i], group_size_48, CKV_CORRUPT,
                          "groupSize: expected one of");
        change_and_refuse(both[i], bits_7, CKV_CORRUPT, "bits: expected one of");
        change_and_refuse(both[i], packed_width, CKV_CORRUPT, "(values packed).shape[3]");
        change_and_refuse(both[i], packed_type, CKV_CORRUPT, "(keys packed).dtype");
        change_and_refuse(both[i], scales_width, CKV_CORRUPT, "(values biases).shape[3]");
        change_and_refuse(both[i], biases_width, CKV_CORRUPT, "(keys biases).shape[3]");
        change_and_refuse(both[i], scales_type, CKV_CORRUPT, "(values scales).dtype");
        change_and_refuse(both[i], biases_type, CKV_CORRUPT, "(values biases).dtype");
        change_and_refuse(both[i], scales_int, CKV_CORRUPT, "(keys scales).dtype");
    }
    change_and_refuse(CKV_CACHE_QKV, offset_other, CKV_CORRUPT, "(keys packed).shape[2]");
}

static void what_turboquant_and_state_do_not_allow_is_refused(void **state)
{
    (void)state;
    change_and_refuse(CKV_CACHE_TURBOQUANT, k_bits_3, CKV_CORRUPT,
                      "kBits: expected one of");
    change_and_refuse(CKV_CACHE_TURBOQUANT, v_bits_6, CKV_CORRUPT,
                      "vBits: expected one of");
    change_and_refuse(CKV_CACHE_TURBOQUANT, head_dim_96, CKV_CORRUPT,
                      "headDim: expected");
    change_and_refuse(CKV_CACHE_TURBOQUANT, keys_width, CKV_CORRUPT, "(kIdx).shape[3]");
    change_and_refuse(CKV_CACHE_TURBOQUANT, zeros_width, CKV_CORRUPT,
                      "(kZeros).shape[3]");
    change_and_refuse(CKV_CACHE_TURBOQUANT, zeros_type, CKV_CORRUPT, "(kZeros).dtype");
    change_and_refuse(CKV_CACHE_TURBOQUANT, offset_other, CKV_CORRUPT, "(kIdx).shape[2]");
    change_and_refuse(CKV_CACHE_STATE, engine_empty, CKV_CORRUPT, "engine: expected");
    change_and_refuse(CKV_CACHE_STATE, engine_slash, CKV_CORRUPT, "engine: expected");
    change_and_refuse(CKV_CACHE_STATE, engine_long, CKV_CORRUPT, "engine: expected");
    change_and_refuse(CKV_CACHE_STATE, floor_above, CKV_CORRUPT,
                      "floor: expected at most 10");
    change_and_refuse(CKV_CACHE_STATE, state_type, CKV_CORRUPT, "tensors[0].dtype");
    change_and_refuse(CKV_CACHE_STATE, state_rank, CKV_CORRUPT,
                      "expected rank 1, found 2");
}

/* S11: any number of tensors, any rank. */
static void s11_recurrent_states_have_any_number_and_rank_of_tensors(void **state)
{
    struct ckv_tensor tensors[5];
    struct ckv_cache cache = {.kind = CKV_CACHE_SSM, .offset = 3, .tensors = tensors};
    struct ckv_entry entry = {.caches = &cache, .cache_count = 1};
    (void)state;
    for (uint32_t i = 0; i < 5; i++) {
        tensors[i] = (struct ckv_tensor){.dtype = CKV_DTYPE_COMPLEX64,
                                         .rank = 2 * i < 8 ? 2 * i + 1 : 8,
                                         .shape = {2, 1, 1, 1, 1, 1, 1, 1},
                                         .bytes = 16};
        cache.tensor_count = i + 1;
        expect_valid(&entry);
    }
    tensors[0].shape[0] = 0; /* an empty tensor is one */
    tensors[0].bytes = 0;
    expect_valid(&entry);
}

static void metadata_is_text_and_stands_once(void **state)
{
    struct test_entry *made = test_entry_of_kind(CKV_CACHE_KV, 2, 1);
    struct ckv_entry copy = made->entry;
    struct ckv_entry *entry = &copy;
    char *text = malloc(CKV_META_VALUE_MAX + 2);
    (void)state;
    memset(text, 'a', CKV_META_VALUE_MAX + 1);
    text[CKV_META_VALUE_MAX] = '\0';
    entry->meta[0].value = text;
    expect_valid(entry);
    text[CKV_META_VALUE_MAX] = 'a';
    text[CKV_META_VALUE_MAX + 1] = '\0';
    expect_refused(entry, CKV_TOOBIG, "modelId: 65536 bytes");
    entry->meta[0].value = "\xc3\xa4\xf0\x9f\x99\x82\x7f\x01";
    expect_valid(entry);
    entry->meta[0].value = "\xed\xa0\x80"; /* a surrogate in UTF-8's clothes */
    expect_refused(entry, CKV_CORRUPT, "modelId: not valid UTF-8");
    entry->meta[0].value = "x";
    entry->meta[1].key = CKV_META_MODEL_ID;
    expect_refused(entry, CKV_CORRUPT, "modelId: the key stands twice");
    entry->meta[1].key = (enum ckv_meta_key)4;
    expect_refused(entry, CKV_INVALID, "metadata 4");
    entry->meta_count = CKV_META_COUNT + 1;
    expect_refused(entry, CKV_INVALID, "5 metadata strings");
    free(text);
    test_entry_destroy(made);
}

static void counts_beyond_the_limits_are_too_big(void **state)
{
    struct ckv_tensor *tensors = calloc(CKV_TENSORS_MAX + 1, sizeof *tensors);
    struct ckv_cache *caches = calloc(CKV_CACHES_MAX + 1, sizeof *caches);
    struct ckv_entry entry = {.caches = caches, .cache_count = CKV_CACHES_MAX};
    (void)state;
    for (size_t i = 0; i < CKV_TENSORS_MAX + 1; i++)
        tensors[i] = (struct ckv_tensor){.dtype = CKV_DTYPE_UINT8, .rank = 1};
    for (size_t i = 0; i < CKV_CACHES_MAX + 1; i++)
        caches[i] = (struct ckv_cache){.kind = CKV_CACHE_SSM,
                                       .tensors = tensors,
                                       .tensor_count = CKV_TENSORS_MAX / CKV_CACHES_MAX};
    expect_valid(&entry);
    caches[7].tensor_count++;
    expect_refused(&entry, CKV_TOOBIG, "caches[4095].tensors: more than 65536");
    caches[7].tensor_count--;
    entry.cache_count++;
    expect_refused(&entry, CKV_TOOBIG, "caches: 4097");
    entry.cache_count = 1;
    caches[0].tensor_count = 2;
    tensors[0].shape[0] = tensors[0].bytes = (UINT64_C(1) << 53) - 1;
    expect_refused(&entry, CKV_OK, "");
    tensors[1].shape[0] = tensors[1].bytes = 1;
    expect_refused(&entry, CKV_TOOBIG, "caches[0]: more than 2^53 bytes");
    free(tensors);
    free(caches);
}

static void an_entry_without_caches_is_valid(void **state)
{
    struct ckv_entry entry = {.created_at_ms = (UINT64_C(1) << 53) - 1};
    (void)state;
    expect_valid(&entry);
    entry.created_at_ms++;
    expect_refused(&entry, CKV_CORRUPT, "createdAt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_have_the_names_of_the_format),
        cmocka_unit_test(metadata_keys_have_the_names_of_the_format),
        cmocka_unit_test(entries_of_every_kind_are_valid),
        cmocka_unit_test(floors_follow_the_kind),
        cmocka_unit_test(s05_a_ring_that_never_filled_can_be_cut),
        cmocka_unit_test(s04_the_highest_floor_decides),
        cmocka_unit_test(usable_prefixes_are_bounded_on_both_sides),
        cmocka_unit_test(the_store_wants_offsets_equal_to_the_tokens),
        cmocka_unit_test(every_state_a_ring_can_reach_is_valid),
        cmocka_unit_test(states_no_ring_can_reach_are_refused),
        cmocka_unit_test(what_no_kind_allows_is_refused),
        cmocka_unit_test(what_kv_does_not_allow_is_refused),
        cmocka_unit_test(what_quantized_kinds_do_not_allow_is_refused),
        cmocka_unit_test(what_turboquant_and_state_do_not_allow_is_refused),
        cmocka_unit_test(s11_recurrent_states_have_any_number_and_rank_of_tensors),
        cmocka_unit_test(metadata_is_text_and_stands_once),
        cmocka_unit_test(counts_beyond_the_limits_are_too_big),
        cmocka_unit_test(an_entry_without_caches_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Owns test entries: their shapes per kind, their bytes, a source and a sink. A broken
 * precondition or no memory ends the program: this is set-up, not what is tested.
 */
#include "lib/entry_builder.h"

#include "lib/random.h"
#include "lib/require.h"
#include <string.h>

const enum ckv_cache_kind test_all_kinds[CKV_CACHE_KIND_COUNT] = {
    CKV_CACHE_KV,  CKV_CACHE_ROTATING,   CKV_CACHE_QKV,  CKV_CACHE_ROTATING_QKV,
    CKV_CACHE_SSM, CKV_CACHE_TURBOQUANT, CKV_CACHE_STATE};

#define KV_HEADS 2

static void *zalloc(size_t count, size_t size)
{
    void *block = calloc(count ? count : 1, size);
    TEST_REQUIRE(block);
    return block;
}

static char *copy_string(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(zalloc(size, 1), text, size);
}

static void add_tensor(struct ckv_cache *cache, enum ckv_dtype dtype, size_t rank,
                       const uint64_t *shape)
{
    struct ckv_tensor *tensor = &cache->tensors[cache->tensor_count++];
    tensor->dtype = dtype;
    tensor->rank = (uint32_t)rank;
    tensor->bytes = ckv_dtype_size(dtype);
    for (size_t i = 0; i < rank; i++) {
        tensor->shape[i] = shape[i];
        tensor->bytes *= shape[i];
    }
}

/* A tensor [1, heads, rows, width]. */
static void add_rows(struct ckv_cache *cache, enum ckv_dtype dtype, uint64_t rows,
                     uint64_t width)
{
    uint64_t shape[4] = {1, KV_HEADS, rows, width};
    add_tensor(cache, dtype, 4, shape);
}

/* The rows of a ring after `offset` single appends to an empty one. */
static uint64_t ring_rows(struct ckv_cache *cache, uint64_t window)
{
    uint64_t offset = cache->offset;
    cache->max_size = window;
    cache->idx = offset <= window ? offset : (offset - 1) % window + 1;
    return offset < window ? offset : window;
}

/* Keys and values, each packed, scales, biases; 64 wide, 4 bits, groups of 32. */
static void add_quantized(struct ckv_cache *cache, uint64_t rows)
{
    cache->group_size = 32;
    cache->bits = 4;
    for (int i = 0; i < 2; i++) {
        add_rows(cache, CKV_DTYPE_UINT32, rows, 64 * 4 / 32);
        add_rows(cache, CKV_DTYPE_BFLOAT16, rows, 64 / 32);
        add_rows(cache, CKV_DTYPE_BFLOAT16, rows, 64 / 32);
    }
}

static void add_ssm(struct ckv_cache *cache)
{
    static const uint64_t conv[3] = {1, 3, 16};
    static const uint64_t recurrent[4] = {1, 2, 4, 8};
    add_tensor(cache, CKV_DTYPE_BFLOAT16, 3, conv);
    add_tensor(cache, CKV_DTYPE_FLOAT32, 4, recurrent);
}

static void add_turboquant(struct ckv_cache *cache)
{
    uint64_t rows = cache->offset;
    cache->k_bits = 8;
    cache->v_bits = 3;
    cache->head_dim = 64;
    add_rows(cache, CKV_DTYPE_INT8, rows, 64);
    add_rows(cache, CKV_DTYPE_FLOAT16, rows, 64 / 32);
    add_rows(cache, CKV_DTYPE_FLOAT16, rows, 64 / 32);
    add_rows(cache, CKV_DTYPE_UINT8, rows, 64 * 3 / 8);
    add_rows(cache, CKV_DTYPE_FLOAT16, rows, 64 / 32);
}

static void add_state(struct ckv_cache *cache, uint64_t floor)
{
    uint64_t size = 100 + 40 * cache->offset;
    cache->floor = floor < cache->offset ? floor : cache->offset;
    strcpy(cache->engine, "test-engine");
    add_tensor(cache, CKV_DTYPE_UINT8, 1, &size);
}

static void build_cache(struct ckv_cache *cache, enum ckv_cache_kind kind,
                        uint64_t offset, const struct test_entry_options *options)
{
    uint64_t window = options->window ? options->window : 8;
    uint64_t head_dim = options->head_dim ? options->head_dim : 8;
    uint64_t rows = offset;
    cache->kind = kind;
    cache->offset = offset;
    cache->tensors = zalloc(6, sizeof *cache->tensors);
    switch (kind) {
    case CKV_CACHE_ROTATING:
        rows = ring_rows(cache, window);
        /* fall through */
    case CKV_CACHE_KV:
        add_rows(cache, CKV_DTYPE_BFLOAT16, rows, head_dim);
        add_rows(cache, CKV_DTYPE_BFLOAT16, rows, head_dim);
        return;
    case CKV_CACHE_ROTATING_QKV:
        rows = ring_rows(cache, window);
        /* fall through */
    case CKV_CACHE_QKV:
        add_quantized(cache, rows);
        return;
    case CKV_CACHE_SSM:
        add_ssm(cache);
        return;
    case CKV_CACHE_TURBOQUANT:
        add_turboquant(cache);
        return;
    case CKV_CACHE_STATE:
        add_state(cache, options->state_floor);
        return;
    }
    TEST_REQUIRE(!"a known cache kind");
}

static void add_meta(struct ckv_entry *entry, enum ckv_meta_key key, const char *value,
                     const char *fallback)
{
    struct ckv_meta *meta = &entry->meta[entry->meta_count++];
    meta->key = key;
    meta->value = copy_string(value ? value : fallback);
}

static void build_meta(struct ckv_entry *entry, const struct test_entry_options *options)
{
    if (options->no_meta)
        return;
    add_meta(entry, CKV_META_MODEL_ID, options->model_id, "test-model");
    add_meta(entry, CKV_META_FINGERPRINT, options->fingerprint, "fp-test");
    add_meta(entry, CKV_META_TOKENIZER_HASH, options->tokenizer_hash, "tok-test");
    add_meta(entry, CKV_META_NAMESPACE, options->ns, "");
}

static void build_tokens(struct ckv_entry *entry,
                         const struct test_entry_options *options)
{
    size_t count = options->token_count ? options->token_count : 1;
    uint32_t *tokens;
    if (options->no_tokens)
        count = 0;
    tokens = zalloc(count, sizeof *tokens);
    for (size_t i = 0; i < count; i++)
        tokens[i] = options->tokens ? options->tokens[i] : (uint32_t)(1000 + i);
    entry->tokens = tokens;
    entry->token_count = count;
}

static size_t count_tensors(const struct ckv_entry *entry)
{
    size_t count = 0;
    for (size_t i = 0; i < entry->cache_count; i++)
        count += entry->caches[i].tensor_count;
    return count;
}

static size_t flat_number(const struct ckv_entry *entry, size_t cache, size_t tensor)
{
    size_t flat = tensor;
    TEST_REQUIRE(cache < entry->cache_count);
    TEST_REQUIRE(tensor < entry->caches[cache].tensor_count);
    for (size_t i = 0; i < cache; i++)
        flat += entry->caches[i].tensor_count;
    return flat;
}

static enum ckv_status view_entry(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                                  size_t wanted, const void **data, size_t *size,
                                  struct ckv_error *error)
{
    struct test_entry *made = ctx;
    size_t flat = flat_number(&made->entry, cache, tensor);
    uint64_t bytes = made->entry.caches[cache].tensors[tensor].bytes;
    TEST_REQUIRE(wanted > 0 && offset < bytes && wanted <= bytes - offset);
    made->view_count++;
    if (made->view_count == made->fail_view)
        return ckv_error_set(error, made->fail_status, "the source fails as told");
    *size = made->max_window && made->max_window < wanted ? made->max_window : wanted;
    *data = (const char *)made->tensors[flat] + offset;
    made->viewed_bytes += *size;
    return CKV_OK;
}

static enum ckv_status done_entry(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                                  size_t size, struct ckv_error *error)
{
    struct test_entry *made = ctx;
    (void)error;
    (void)flat_number(&made->entry, cache, tensor);
    TEST_REQUIRE(offset + size <= made->entry.caches[cache].tensors[tensor].bytes);
    made->done_count++;
    return CKV_OK;
}

static void fill_tensors(struct test_entry *made, uint64_t seed)
{
    struct ckv_entry *entry = &made->entry;
    size_t flat = 0;
    made->tensor_count = count_tensors(entry);
    made->tensors = zalloc(made->tensor_count, sizeof *made->tensors);
    for (size_t i = 0; i < entry->cache_count; i++) {
        for (size_t j = 0; j < entry->caches[i].tensor_count; j++, flat++) {
            struct test_random random;
            size_t size = (size_t)entry->caches[i].tensors[j].bytes;
            test_random_init(&random, seed * 65537 + flat);
            made->tensors[flat] = zalloc(size, 1);
            test_random_fill(&random, made->tensors[flat], size);
        }
    }
}

struct test_entry *test_entry_create(const struct test_entry_options *options)
{
    static const struct test_entry_options plain;
    static const enum ckv_cache_kind one_kv = CKV_CACHE_KV;
    struct test_entry *made = zalloc(1, sizeof *made);
    const enum ckv_cache_kind *kinds;
    size_t kind_count;
    if (!options)
        options = &plain;
    kinds = options->kinds ? options->kinds : &one_kv;
    kind_count = options->kinds ? options->kind_count : 1;
    made->entry.created_at_ms = options->created_at_ms;
    build_meta(&made->entry, options);
    build_tokens(&made->entry, options);
    made->entry.caches = zalloc(kind_count, sizeof *made->entry.caches);
    made->entry.cache_count = kind_count;
    for (size_t i = 0; i < kind_count; i++)
        build_cache(&made->entry.caches[i], kinds[i], made->entry.token_count, options);
    fill_tensors(made, options->seed);
    made->fail_status = CKV_ENGINE;
    made->source = (struct ckv_source){made, true, view_entry, done_entry};
    return made;
}

struct test_entry *test_entry_of_kind(enum ckv_cache_kind kind, size_t token_count,
                                      uint64_t seed)
{
    struct test_entry_options options = {
        .token_count = token_count, .seed = seed, .kinds = &kind, .kind_count = 1};
    return test_entry_create(&options);
}

struct test_entry *test_entry_of_all_kinds(size_t token_count, uint64_t seed)
{
    struct test_entry_options options = {.token_count = token_count,
                                         .seed = seed,
                                         .kinds = test_all_kinds,
                                         .kind_count = CKV_CACHE_KIND_COUNT};
    return test_entry_create(&options);
}

void test_entry_destroy(struct test_entry *made)
{
    if (!made)
        return;
    for (size_t i = 0; i < made->tensor_count; i++)
        free(made->tensors[i]);
    free(made->tensors);
    for (size_t i = 0; i < made->entry.cache_count; i++)
        free(made->entry.caches[i].tensors);
    free(made->entry.caches);
    for (size_t i = 0; i < made->entry.meta_count; i++)
        free((void *)made->entry.meta[i].value);
    free((void *)made->entry.tokens);
    free(made);
}

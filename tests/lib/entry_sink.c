/*
 * Owns the sink half of entry_builder.h and the comparisons. The sink counts which bytes
 * arrived by remembering each tensor's total: a reader that skips or repeats a run shows
 * up in `taken` or in the bytes.
 */
#include "lib/entry_builder.h"

#include "lib/require.h"
#include <string.h>

#define UNTOUCHED 0xa5

static size_t flat_number(const struct test_sink *sink, size_t cache, size_t tensor)
{
    size_t flat = tensor;
    TEST_REQUIRE(cache < sink->entry->cache_count);
    TEST_REQUIRE(tensor < sink->entry->caches[cache].tensor_count);
    for (size_t i = 0; i < cache; i++)
        flat += sink->entry->caches[i].tensor_count;
    return flat;
}

static enum ckv_status lend(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                            size_t wanted, void **data, size_t *size,
                            struct ckv_error *error)
{
    struct test_sink *sink = ctx;
    size_t flat = flat_number(sink, cache, tensor);
    TEST_REQUIRE(sink->drop_count == 0);
    TEST_REQUIRE(wanted > 0 && offset < sink->sizes[flat]);
    TEST_REQUIRE(wanted <= sink->sizes[flat] - offset);
    sink->lend_count++;
    if (sink->lend_count == sink->fail_lend)
        return ckv_error_set(error, sink->fail_status, "the sink's lend fails as told");
    *size = sink->max_window && sink->max_window < wanted ? sink->max_window : wanted;
    *data = (char *)sink->tensors[flat] + offset;
    return CKV_OK;
}

static enum ckv_status took(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                            size_t size, struct ckv_error *error)
{
    struct test_sink *sink = ctx;
    size_t flat = flat_number(sink, cache, tensor);
    TEST_REQUIRE(sink->drop_count == 0);
    TEST_REQUIRE(offset <= sink->sizes[flat] && size <= sink->sizes[flat] - offset);
    sink->took_count++;
    if (sink->took_count == sink->fail_took)
        return ckv_error_set(error, sink->fail_status, "the sink's took fails as told");
    sink->taken_bytes += size;
    return CKV_OK;
}

static void drop(void *ctx)
{
    struct test_sink *sink = ctx;
    sink->drop_count++;
}

static void *make_block(size_t size)
{
    void *block = malloc(size + 1);
    TEST_REQUIRE(block);
    return memset(block, UNTOUCHED, size + 1);
}

struct test_sink *test_sink_create(const struct ckv_entry *entry)
{
    struct test_sink *sink = calloc(1, sizeof *sink);
    size_t flat = 0;
    TEST_REQUIRE(sink);
    for (size_t i = 0; i < entry->cache_count; i++)
        sink->tensor_count += entry->caches[i].tensor_count;
    sink->tensors = calloc(sink->tensor_count + 1, sizeof *sink->tensors);
    sink->sizes = calloc(sink->tensor_count + 1, sizeof *sink->sizes);
    TEST_REQUIRE(sink->tensors && sink->sizes);
    for (size_t i = 0; i < entry->cache_count; i++) {
        for (size_t j = 0; j < entry->caches[i].tensor_count; j++, flat++) {
            sink->sizes[flat] = entry->caches[i].tensors[j].bytes;
            sink->tensors[flat] = make_block((size_t)sink->sizes[flat]);
        }
    }
    sink->entry = entry;
    sink->fail_status = CKV_ENGINE;
    sink->sink = (struct ckv_sink){sink, lend, took, drop};
    return sink;
}

void test_sink_destroy(struct test_sink *sink)
{
    if (!sink)
        return;
    for (size_t i = 0; i < sink->tensor_count; i++)
        free(sink->tensors[i]);
    free(sink->tensors);
    free(sink->sizes);
    free(sink);
}

bool test_sink_equals(const struct test_sink *sink, const struct test_entry *made)
{
    uint64_t total = 0;
    size_t flat = 0;
    if (sink->tensor_count != made->tensor_count || sink->drop_count != 0)
        return false;
    for (size_t i = 0; i < made->entry.cache_count; i++) {
        const struct ckv_cache *cache = &made->entry.caches[i];
        for (size_t j = 0; j < cache->tensor_count; j++, flat++) {
            uint64_t bytes = cache->tensors[j].bytes;
            if (sink->sizes[flat] != bytes ||
                memcmp(sink->tensors[flat], made->tensors[flat], (size_t)bytes) != 0)
                return false;
            total += bytes;
        }
    }
    return sink->taken_bytes == total;
}

static bool same_tensor(const struct ckv_tensor *a, const struct ckv_tensor *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank || a->bytes != b->bytes)
        return false;
    return memcmp(a->shape, b->shape, a->rank * sizeof a->shape[0]) == 0;
}

static bool same_cache(const struct ckv_cache *a, const struct ckv_cache *b)
{
    if (a->kind != b->kind || a->offset != b->offset || a->idx != b->idx ||
        a->max_size != b->max_size || a->group_size != b->group_size ||
        a->bits != b->bits || a->k_bits != b->k_bits || a->v_bits != b->v_bits ||
        a->head_dim != b->head_dim || a->floor != b->floor ||
        strcmp(a->engine, b->engine) != 0 || a->tensor_count != b->tensor_count)
        return false;
    for (size_t i = 0; i < a->tensor_count; i++) {
        if (!same_tensor(&a->tensors[i], &b->tensors[i]))
            return false;
    }
    return true;
}

static bool same_meta(const struct ckv_entry *a, const struct ckv_entry *b)
{
    if (a->meta_count != b->meta_count)
        return false;
    for (size_t i = 0; i < a->meta_count; i++) {
        if (a->meta[i].key != b->meta[i].key ||
            strcmp(a->meta[i].value, b->meta[i].value) != 0)
            return false;
    }
    return true;
}

bool test_entry_same(const struct ckv_entry *a, const struct ckv_entry *b)
{
    if (!same_meta(a, b) || a->token_count != b->token_count ||
        a->cache_count != b->cache_count)
        return false;
    for (size_t i = 0; i < a->token_count; i++) {
        if (a->tokens[i] != b->tokens[i])
            return false;
    }
    for (size_t i = 0; i < a->cache_count; i++) {
        if (!same_cache(&a->caches[i], &b->caches[i]))
            return false;
    }
    return true;
}

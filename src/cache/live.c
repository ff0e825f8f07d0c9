/*
 * Owns the life of a live cache and the dispatch of appends to its machine. What a cache
 * may be made with is checked here once; later code relies on it.
 */
#include "cache/live.h"

#include "base/alloc.h"
#include <stdio.h>

static bool is_quantized(enum ckv_cache_kind kind)
{
    return kind == CKV_CACHE_QKV || kind == CKV_CACHE_ROTATING_QKV;
}

static enum ckv_status check_params(const struct ckv_cache_params *params,
                                    struct ckv_error *error)
{
    const char *name = ckv_cache_kind_name(params->kind);
    if (!name || params->kind == CKV_CACHE_STATE)
        return ckv_error_set(error, CKV_INVALID, "cache: kind %d is not a live cache",
                             (int)params->kind);
    if (ckvi_cache_is_ring(params->kind) && params->max_size == 0)
        return ckv_error_set(error, CKV_INVALID, "cache %s: max_size must be over 0",
                             name);
    if (is_quantized(params->kind)) {
        struct ckv_affine affine = {params->bits, params->group_size};
        return ckv_affine_check(affine, params->group_size, error);
    }
    if (params->kind == CKV_CACHE_TURBOQUANT) {
        /* The head dim is known only at the first append; any legal one will do here. */
        struct ckv_turboquant codec = {params->k_bits, params->v_bits, 64};
        return ckv_turboquant_check(codec, error);
    }
    return CKV_OK;
}

/* Only the members that the kind names, so that params compare equal when kinds do. */
static struct ckv_cache_params named_params(const struct ckv_cache_params *params)
{
    struct ckv_cache_params named = {.kind = params->kind};
    if (ckvi_cache_is_ring(params->kind))
        named.max_size = params->max_size;
    if (is_quantized(params->kind)) {
        named.group_size = params->group_size;
        named.bits = params->bits;
    }
    if (params->kind == CKV_CACHE_TURBOQUANT) {
        named.k_bits = params->k_bits;
        named.v_bits = params->v_bits;
    }
    return named;
}

enum ckv_status ckv_cache_create(const struct ckv_alloc *alloc,
                                 const struct ckv_cache_params *params,
                                 struct ckv_live_cache **out, struct ckv_error *error)
{
    struct ckv_live_cache *cache;
    enum ckv_status status = check_params(params, error);
    *out = NULL;
    if (status)
        return status;
    alloc = ckvi_alloc_or_default(alloc);
    cache = CKVI_NEW(alloc, struct ckv_live_cache);
    if (!cache)
        return ckvi_nomem(error, sizeof *cache, "a cache");
    cache->alloc = alloc;
    cache->params = named_params(params);
    *out = cache;
    return CKV_OK;
}

void ckv_cache_destroy(struct ckv_live_cache *cache)
{
    if (!cache)
        return;
    ckv_cache_clear(cache);
    CKVI_DELETE(cache->alloc, cache);
}

void ckv_cache_clear(struct ckv_live_cache *cache)
{
    ckvi_arrays_unref(cache->arrays, cache->array_count);
    cache->array_count = 0;
    cache->offset = 0;
    cache->idx = 0;
    cache->head_dim = 0;
    cache->undoable = 0;
}

struct ckv_cache_params ckv_cache_get_params(const struct ckv_live_cache *cache)
{
    return cache->params;
}

uint64_t ckv_cache_offset(const struct ckv_live_cache *cache)
{
    return cache->offset;
}

uint64_t ckv_cache_idx(const struct ckv_live_cache *cache)
{
    return cache->idx;
}

uint32_t ckv_cache_head_dim(const struct ckv_live_cache *cache)
{
    return cache->head_dim;
}

bool ckv_cache_is_empty(const struct ckv_live_cache *cache)
{
    if (cache->params.kind == CKV_CACHE_SSM && cache->array_count < 2)
        return true;
    for (size_t i = 0; i < cache->array_count; i++)
        if (!cache->arrays[i].buffer)
            return true;
    return cache->array_count == 0;
}

void ckv_cache_signature(const struct ckv_live_cache *cache,
                         char text[CKV_SIGNATURE_SIZE])
{
    const struct ckv_cache_params *params = &cache->params;
    const char *form = "unknown";
    unsigned first = params->bits;
    unsigned second = params->group_size;
    switch (params->kind) {
    case CKV_CACHE_KV:
        form = "kv:plain";
        break;
    case CKV_CACHE_ROTATING:
        form = "kv:rotating-plain";
        break;
    case CKV_CACHE_SSM:
        form = "ssm";
        break;
    case CKV_CACHE_QKV:
        (void)snprintf(text, CKV_SIGNATURE_SIZE, "kv:quant:%u:%u", first, second);
        return;
    case CKV_CACHE_ROTATING_QKV:
        (void)snprintf(text, CKV_SIGNATURE_SIZE, "kv:rotating-quant:%u:%u", first,
                       second);
        return;
    case CKV_CACHE_TURBOQUANT:
        (void)snprintf(text, CKV_SIGNATURE_SIZE, "kv:turboquant:%u:%u",
                       (unsigned)params->k_bits, (unsigned)params->v_bits);
        return;
    case CKV_CACHE_STATE:
        break;
    }
    (void)snprintf(text, CKV_SIGNATURE_SIZE, "%s", form);
}

static enum ckv_status append_tokens(struct ckv_live_cache *cache,
                                     const struct ckv_array *keys,
                                     const struct ckv_array *values,
                                     struct ckv_error *error)
{
    struct ckvi_tokens tokens;
    enum ckv_status status = ckvi_tokens_init(cache, keys, values, &tokens, error);
    if (status)
        return status;
    if (ckvi_cache_is_ring(cache->params.kind))
        status = ckvi_ring_append(cache, &tokens, error);
    else
        status = ckvi_growing_append(cache, &tokens, error);
    if (status == CKV_OK && cache->params.kind == CKV_CACHE_TURBOQUANT)
        cache->head_dim = (uint32_t)tokens.keys.shape[3];
    ckvi_tokens_deinit(&tokens);
    return status;
}

/* References to what attention looks at: live rows, or a full ring as it lies. */
static void window(const struct ckv_live_cache *cache, struct ckv_array *out)
{
    bool cut = ckvi_cache_is_ring(cache->params.kind) &&
               cache->offset < cache->params.max_size && cache->undoable == 0;
    for (size_t i = 0; i < cache->array_count; i++) {
        out[i] = ckv_array_ref(&cache->arrays[i]);
        if (cut && cache->offset < out[i].shape[TOKEN_AXIS])
            out[i].shape[TOKEN_AXIS] = cache->offset;
    }
}

/* Undoes an append whose window could not be given: the caller must not find the tokens
 * there when it tries again. */
static void take_back(struct ckv_live_cache *cache, uint64_t offset)
{
    /* A growing cache can always be trimmed. */
    if (offset == 0 || ckv_cache_trim(cache, cache->offset - offset, NULL, NULL))
        ckv_cache_clear(cache);
}

static enum ckv_status wrong_kind(const struct ckv_live_cache *cache, const char *what,
                                  struct ckv_error *error)
{
    return ckv_error_set(error, CKV_INVALID, "%s: not for a cache of the kind %s", what,
                         ckv_cache_kind_name(cache->params.kind));
}

enum ckv_status ckv_cache_append(struct ckv_live_cache *cache,
                                 const struct ckv_array *keys,
                                 const struct ckv_array *values,
                                 struct ckv_array *keys_out, struct ckv_array *values_out,
                                 struct ckv_error *error)
{
    struct ckv_array out[CKV_CACHE_ARRAYS_MAX];
    uint64_t offset = cache->offset;
    enum ckv_status status;
    if (is_quantized(cache->params.kind) || cache->params.kind == CKV_CACHE_SSM)
        return wrong_kind(cache, "append", error);
    if (!keys_out != !values_out)
        return ckv_error_set(error, CKV_INVALID, "append: give both outputs or none");
    status = append_tokens(cache, keys, values, error);
    if (status || !keys_out)
        return status;
    if (cache->params.kind == CKV_CACHE_TURBOQUANT) {
        status = ckv_cache_fetch(cache, keys_out, values_out, error);
        if (status)
            take_back(cache, offset);
        return status;
    }
    window(cache, out);
    *keys_out = out[0];
    *values_out = out[1];
    return CKV_OK;
}

enum ckv_status ckv_cache_append_quantized(struct ckv_live_cache *cache,
                                           const struct ckv_array *keys,
                                           const struct ckv_array *values,
                                           struct ckv_array *out, struct ckv_error *error)
{
    enum ckv_status status;
    if (!is_quantized(cache->params.kind))
        return wrong_kind(cache, "append_quantized", error);
    status = append_tokens(cache, keys, values, error);
    if (status == CKV_OK && out)
        window(cache, out);
    return status;
}

enum ckv_status ckv_cache_set_slot(struct ckv_live_cache *cache, size_t slot,
                                   const struct ckv_array *array, struct ckv_error *error)
{
    struct ckv_array taken;
    if (cache->params.kind != CKV_CACHE_SSM)
        return wrong_kind(cache, "set_slot", error);
    if (slot >= CKV_CACHE_ARRAYS_MAX || !array || !array->buffer)
        return ckv_error_set(error, CKV_INVALID, "set_slot: slot %zu, or no array", slot);
    taken = ckv_array_ref(array);
    ckv_array_unref(&cache->arrays[slot]);
    cache->arrays[slot] = taken;
    if (slot >= cache->array_count)
        cache->array_count = slot + 1;
    return CKV_OK;
}

enum ckv_status ckv_cache_advance(struct ckv_live_cache *cache, uint64_t n,
                                  struct ckv_error *error)
{
    if (cache->params.kind != CKV_CACHE_SSM)
        return wrong_kind(cache, "advance", error);
    if (n > UINT64_MAX / 4 - cache->offset)
        return ckv_error_set(error, CKV_TOOBIG, "advance: the offset overflows");
    cache->offset += n;
    return CKV_OK;
}

/*
 * Owns what an entry is apart from its bytes: names of its parts, and the one rule of
 * which prefixes of it can be used.
 *
 * Invariant: everything here is computed from the header alone and cannot fail.
 */
#include <coldkv/entry.h>

#include "cache/kind.h"
#include <inttypes.h>

static const char *const meta_names[CKV_META_COUNT] = {
    [CKV_META_MODEL_ID] = "modelId",
    [CKV_META_FINGERPRINT] = "configFingerprint",
    [CKV_META_TOKENIZER_HASH] = "tokenizerHash",
    [CKV_META_NAMESPACE] = "ns",
};

const char *ckv_cache_kind_name(enum ckv_cache_kind kind)
{
    const struct ckvi_kind *row = ckvi_kind_of(kind);
    return row ? row->name : NULL;
}

const char *ckv_meta_key_name(enum ckv_meta_key key)
{
    return (unsigned)key < CKV_META_COUNT ? meta_names[key] : NULL;
}

const char *ckv_entry_meta(const struct ckv_entry *entry, enum ckv_meta_key key)
{
    for (size_t i = 0; i < entry->meta_count; i++)
        if (entry->meta[i].key == key)
            return entry->meta[i].value;
    return NULL;
}

uint64_t ckv_entry_tensor_bytes(const struct ckv_entry *entry)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < entry->cache_count; i++)
        for (size_t j = 0; j < entry->caches[i].tensor_count; j++)
            sum += entry->caches[i].tensors[j].bytes;
    return sum;
}

enum ckv_status ckv_entry_check_offsets(const struct ckv_entry *entry,
                                        struct ckv_error *error)
{
    if (entry->token_count == 0)
        return ckv_error_set(error, CKV_FOREIGN, "tokens: expected at least 1, found 0");
    for (size_t i = 0; i < entry->cache_count; i++) {
        if (entry->caches[i].offset == entry->token_count)
            continue;
        return ckv_error_set(
            error, CKV_FOREIGN,
            "caches[%zu].offset: expected %zu (the number of tokens), found %" PRIu64, i,
            entry->token_count, entry->caches[i].offset);
    }
    return CKV_OK;
}

uint64_t ckv_cache_floor(const struct ckv_cache *cache)
{
    const struct ckvi_kind *kind = ckvi_kind_of(cache->kind);
    return kind ? kind->floor(cache) : cache->offset;
}

uint64_t ckv_entry_floor(const struct ckv_entry *entry)
{
    uint64_t highest = 0;
    for (size_t i = 0; i < entry->cache_count; i++) {
        uint64_t here = ckv_cache_floor(&entry->caches[i]);
        if (here > highest)
            highest = here;
    }
    return highest;
}

uint64_t ckv_usable_prefix(uint64_t floor, uint64_t length, uint64_t common,
                           uint64_t prompt_length)
{
    uint64_t prefix = common < length ? common : length;
    if (prompt_length == 0)
        return 0;
    if (prefix > prompt_length - 1)
        prefix = prompt_length - 1;
    return prefix < floor ? 0 : prefix;
}

/*
 * Owns the JSON form of `coldkv inspect`. Its keys are a contract (docs/cli.md): keys may
 * be added, none changes its meaning. Names are those of the file's header where it has
 * one. Built whole before anything is printed; NULL anywhere inside makes the whole NULL.
 */
#include "inspect.h"

#include "output.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>

static json_t *json_u64(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *json_hash(uint64_t hash)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return json_string(text);
}

/* Appends a value that may be NULL; on failure the array is gone. */
static json_t *append(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) == 0)
        return array;
    json_decref(array);
    return NULL;
}

static json_t *shape_json(const struct ckv_tensor *tensor)
{
    json_t *shape = json_array();
    for (uint32_t i = 0; i < tensor->rank && shape != NULL; i++)
        shape = append(shape, json_u64(tensor->shape[i]));
    return shape;
}

static json_t *tensor_json(const struct ckv_header *header,
                           const struct ckv_tensor *tensor)
{
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:i, s:s, s:o}", "off", json_u64(tensor->offset),
        "fileOffset", json_u64(header->prefix.data_start + tensor->offset), "bytes",
        json_u64(tensor->bytes), "shape", shape_json(tensor), "dtype", (int)tensor->dtype,
        "dtypeName", ckv_dtype_name(tensor->dtype), "hash", json_hash(tensor->hash));
}

static json_t *tensors_json(const struct ckv_header *header,
                            const struct ckv_cache *cache)
{
    json_t *tensors = json_array();
    for (size_t i = 0; i < cache->tensor_count && tensors != NULL; i++)
        tensors = append(tensors, tensor_json(header, &cache->tensors[i]));
    return tensors;
}

/* The scalars that only some kinds have, under the header's names. */
static json_t *scalars_json(const struct ckv_cache *cache)
{
    switch (cache->kind) {
    case CKV_CACHE_ROTATING:
        return json_pack("{s:o, s:o}", "idx", json_u64(cache->idx), "maxSize",
                         json_u64(cache->max_size));
    case CKV_CACHE_QKV:
        return json_pack("{s:o, s:o}", "groupSize", json_u64(cache->group_size), "bits",
                         json_u64(cache->bits));
    case CKV_CACHE_ROTATING_QKV:
        return json_pack("{s:o, s:o, s:o, s:o}", "idx", json_u64(cache->idx), "maxSize",
                         json_u64(cache->max_size), "groupSize",
                         json_u64(cache->group_size), "bits", json_u64(cache->bits));
    case CKV_CACHE_TURBOQUANT:
        return json_pack("{s:o, s:o, s:o}", "kBits", json_u64(cache->k_bits), "vBits",
                         json_u64(cache->v_bits), "headDim", json_u64(cache->head_dim));
    case CKV_CACHE_STATE:
        return json_pack("{s:o}", "engine", cli_json_text(cache->engine));
    case CKV_CACHE_KV:
    case CKV_CACHE_SSM:
        break;
    }
    return json_object();
}

static json_t *cache_json(const struct ckv_header *header, const struct ckv_cache *cache)
{
    json_t *out =
        json_pack("{s:s, s:o, s:o}", "kind", ckv_cache_kind_name(cache->kind), "offset",
                  json_u64(cache->offset), "floor", json_u64(ckv_cache_floor(cache)));
    json_t *scalars = scalars_json(cache);
    int failed = out == NULL || scalars == NULL ||
                 json_object_update(out, scalars) != 0 ||
                 json_object_set_new(out, "tensors", tensors_json(header, cache)) != 0;
    json_decref(scalars);
    if (!failed)
        return out;
    json_decref(out);
    return NULL;
}

static json_t *caches_json(const struct ckv_header *header)
{
    json_t *caches = json_array();
    for (size_t i = 0; i < header->entry.cache_count && caches != NULL; i++)
        caches = append(caches, cache_json(header, &header->entry.caches[i]));
    return caches;
}

static json_t *kinds_json(const struct ckv_entry *entry)
{
    json_t *kinds = json_array();
    for (size_t i = 0; i < entry->cache_count && kinds != NULL; i++)
        kinds = append(kinds, json_string(ckv_cache_kind_name(entry->caches[i].kind)));
    return kinds;
}

static json_t *meta_json(const struct ckv_entry *entry)
{
    json_t *meta = json_object();
    for (size_t i = 0; i < entry->meta_count && meta != NULL; i++) {
        json_t *value = cli_json_text(entry->meta[i].value);
        if (json_object_set_new(meta, ckv_meta_key_name(entry->meta[i].key), value) !=
            0) {
            json_decref(meta);
            return NULL;
        }
    }
    return meta;
}

static json_t *tokens_json(const struct ckv_entry *entry)
{
    json_t *tokens = json_array();
    for (size_t i = 0; i < entry->token_count && tokens != NULL; i++)
        tokens = append(tokens, json_u64(entry->tokens[i]));
    return tokens;
}

static size_t count_tensors(const struct ckv_entry *entry)
{
    size_t count = 0;
    for (size_t i = 0; i < entry->cache_count; i++)
        count += entry->caches[i].tensor_count;
    return count;
}

json_t *cli_inspect_json(const struct cli_inspected *file)
{
    const struct ckv_header *header = file->header;
    const struct ckv_entry *entry = &header->entry;
    char time[CLI_TIME_TEXT];
    cli_text_time(entry->created_at_ms, time);
    bool storable = ckv_entry_check_offsets(entry, NULL) == CKV_OK;
    json_t *out = json_pack(
        "{s:o, s:o, s:o, s:i, s:b, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, "
        "s:o, "
        "s:o, s:o}",
        "file", cli_json_text(file->name), "path", cli_json_text(file->path), "size",
        json_u64(header->file_size), "formatVersion", (int)CKV_FORMAT_VERSION,
        "canonical", (int)header->canonical, "createdAt", json_u64(entry->created_at_ms),
        "createdAtText", time, "metadata", meta_json(entry), "headerBytes",
        json_u64(header->prefix.header_bytes), "headerHash",
        json_hash(header->prefix.header_hash), "dataStart",
        json_u64(header->prefix.data_start), "tensorBytes",
        json_u64(ckv_entry_tensor_bytes(entry)), "tokens", json_u64(entry->token_count),
        "floor", json_u64(ckv_entry_floor(entry)), "storable", (int)storable, "kinds",
        kinds_json(entry), "tensors", json_u64(count_tensors(entry)), "caches",
        caches_json(header));
    if (out == NULL || !file->show_tokens)
        return out;
    if (json_object_set_new(out, "tokenIds", tokens_json(entry)) == 0)
        return out;
    json_decref(out);
    return NULL;
}

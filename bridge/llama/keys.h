/*
 * GGUF keys in canonical text: {"key":"type:value",...}, sorted by key.
 *
 *     u8: u16: u32: u64: i8: i16: i32: i64:   decimal digits
 *     f32: f64:                               text.h's spelling
 *     bool:true  bool:false
 *     str:<text>                              up to 256 bytes, escaped
 *     str#<bytes>:<sha256>                    longer ones
 *     [<type>#<count>]:<sha256>               arrays: the elements as stored; of strings
 *                                             each with its length (digest.h)
 */
#ifndef COLDKV_BRIDGE_LLAMA_KEYS_H
#define COLDKV_BRIDGE_LLAMA_KEYS_H

#include "text.h"

#include <coldkv/status.h>
#include <gguf.h>

/* Which keys. */
enum ckvi_llama_key_group {
    /* What describes the model: all but general.* (names, authors, dates), tokenizer.*
     * and split.* (how the file is cut). */
    CKVI_LLAMA_KEYS_MODEL = 1,
    /* tokenizer.* without chat templates, which only make text. */
    CKVI_LLAMA_KEYS_TOKENIZER = 2,
};

enum ckv_status ckvi_llama_keys_put(struct ckvi_llama_text *text,
                                    const struct gguf_context *gguf,
                                    enum ckvi_llama_key_group group,
                                    struct ckv_error *error);

/* Typed access that never aborts: the value, or false when the key is absent or of
 * another type. Integers of any width are taken when they fit. */
bool ckvi_llama_keys_get_u64(const struct gguf_context *gguf, const char *key,
                             uint64_t *value);
bool ckvi_llama_keys_get_float(const struct gguf_context *gguf, const char *key,
                               float *value);
bool ckvi_llama_keys_get_bool(const struct gguf_context *gguf, const char *key,
                              bool *value);
/* NULL when absent; valid as long as gguf. */
const char *ckvi_llama_keys_get_string(const struct gguf_context *gguf, const char *key);

#endif

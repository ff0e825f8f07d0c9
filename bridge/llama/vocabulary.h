/* The tokenizer's identity: everything that decides which tokens a text becomes. */
#ifndef COLDKV_BRIDGE_LLAMA_VOCABULARY_H
#define COLDKV_BRIDGE_LLAMA_VOCABULARY_H

#include <coldkv/alloc.h>
#include <coldkv/sha256.h>
#include <coldkv/status.h>
#include <gguf.h>

struct llama_vocab;

/* SHA-256 over the vocabulary as libllama has it (kind, texts, scores, attributes,
 * special tokens) and over the file's tokenizer keys (pre-tokenizer, merges, …). */
enum ckv_status ckvi_llama_vocabulary_digest(const struct llama_vocab *vocab,
                                             const struct gguf_context *gguf,
                                             const struct ckv_alloc *alloc,
                                             char text[CKV_SHA256_TEXT_SIZE],
                                             struct ckv_error *error);

#endif

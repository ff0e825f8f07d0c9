/* The one function that makes the fingerprint; saving and looking up both use its result.
 */
#ifndef COLDKV_BRIDGE_LLAMA_IDENTITY_H
#define COLDKV_BRIDGE_LLAMA_IDENTITY_H

#include "bridge.h"

/* Changes whenever the canonical text changes its form or its contents. */
#define CKVI_LLAMA_IDENTITY_SCHEME 1

/* Fills the bridge's identity; context, alloc and layout are there already. */
enum ckv_status ckvi_llama_identity_make(struct ckv_llama *bridge,
                                         const struct llama_context_params *params,
                                         const char *model_path,
                                         const struct ckv_llama_options *options,
                                         struct ckv_error *error);

/* A name for people: general.name, or the file's name when that is missing or no UTF-8.
 */
void ckvi_llama_identity_put_name(struct ckvi_llama_text *text,
                                  const struct gguf_context *keys,
                                  const char *model_path);

#endif

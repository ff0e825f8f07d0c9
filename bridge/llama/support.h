/* Which contexts can be persisted faithfully, and learning how they write their state. */
#ifndef COLDKV_BRIDGE_LLAMA_SUPPORT_H
#define COLDKV_BRIDGE_LLAMA_SUPPORT_H

#include "blob.h"

#include <coldkv/status.h>
#include <llama.h>

/* UNSUPPORTED with the reason and, where one exists, the remedy. Touches nothing. */
enum ckv_status ckvi_llama_support_check(struct llama_context *context,
                                         const struct llama_context_params *params,
                                         struct ckv_error *error);

/* Evaluates one token in the empty context, reads the state and removes it again. INVALID
 * when the context is not empty or does not have the types that params say. */
enum ckv_status ckvi_llama_support_probe(struct llama_context *context,
                                         const struct llama_context_params *params,
                                         const struct ckv_alloc *alloc,
                                         struct ckvi_llama_layout *layout,
                                         struct ckv_error *error);

#endif

/* What the bridge's files may do with a snapshot beyond the public header. */
#ifndef COLDKV_BRIDGE_LLAMA_SNAPSHOT_H
#define COLDKV_BRIDGE_LLAMA_SNAPSHOT_H

#include <coldkv/llama.h>

/* A snapshot whose state is still to be filled: tokens and size as `entry` says, which
 * the caller checked before. */
enum ckv_status ckvi_llama_snapshot_receive(struct ckv_llama *bridge,
                                            const struct ckv_entry *entry,
                                            struct ckv_llama_snapshot **out,
                                            struct ckv_error *error);

/* The state's bytes, of the size that its entry's only tensor has. */
uint8_t *ckvi_llama_snapshot_state(struct ckv_llama_snapshot *snapshot);

#endif

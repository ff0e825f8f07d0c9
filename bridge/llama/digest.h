/* SHA-256 over several pieces, each fed with its type's exact bytes. The first failure is
 * kept and makes all that follows do nothing. */
#ifndef COLDKV_BRIDGE_LLAMA_DIGEST_H
#define COLDKV_BRIDGE_LLAMA_DIGEST_H

#include <coldkv/sha256.h>
#include <stddef.h>
#include <stdint.h>

struct ckvi_llama_digest {
    struct ckv_sha256 *state;
    enum ckv_status status;
    struct ckv_error *error; /* borrowed, may be NULL */
};

void ckvi_llama_digest_init(struct ckvi_llama_digest *digest,
                            const struct ckv_alloc *alloc, struct ckv_error *error);
void ckvi_llama_digest_put(struct ckvi_llama_digest *digest, const void *data,
                           size_t size);
/* The length as 8 bytes, little-endian, then the bytes: no two sequences of strings give
 * the same input. */
void ckvi_llama_digest_put_string(struct ckvi_llama_digest *digest, const char *bytes,
                                  size_t size);
void ckvi_llama_digest_put_u64(struct ckvi_llama_digest *digest, uint64_t value);
/* Ends the digest in any case; text is valid only when OK. */
enum ckv_status ckvi_llama_digest_finish(struct ckvi_llama_digest *digest,
                                         char text[CKV_SHA256_TEXT_SIZE]);

#endif

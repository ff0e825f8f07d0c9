/*
 * Owns how values become bytes under a hash.
 *
 * Invariant: numbers are little-endian and of fixed width, strings carry their length.
 *
 * Failure story: the first status stays; finish returns it.
 */
#include "digest.h"

void ckvi_llama_digest_init(struct ckvi_llama_digest *digest,
                            const struct ckv_alloc *alloc, struct ckv_error *error)
{
    *digest = (struct ckvi_llama_digest){.error = error};
    digest->status = ckv_sha256_create(alloc, &digest->state, error);
}

void ckvi_llama_digest_put(struct ckvi_llama_digest *digest, const void *data,
                           size_t size)
{
    if (!digest->status)
        digest->status = ckv_sha256_update(digest->state, data, size, digest->error);
}

void ckvi_llama_digest_put_u64(struct ckvi_llama_digest *digest, uint64_t value)
{
    unsigned char bytes[8];
    for (unsigned int i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    ckvi_llama_digest_put(digest, bytes, sizeof bytes);
}

void ckvi_llama_digest_put_string(struct ckvi_llama_digest *digest, const char *bytes,
                                  size_t size)
{
    ckvi_llama_digest_put_u64(digest, size);
    ckvi_llama_digest_put(digest, bytes, size);
}

enum ckv_status ckvi_llama_digest_finish(struct ckvi_llama_digest *digest,
                                         char text[CKV_SHA256_TEXT_SIZE])
{
    enum ckv_status status = digest->status;
    text[0] = '\0';
    if (!status)
        status = ckv_sha256_finish(digest->state, text, digest->error);
    ckv_sha256_destroy(digest->state);
    *digest = (struct ckvi_llama_digest){.status = CKV_INVALID};
    return status;
}

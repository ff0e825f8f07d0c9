/*
 * Owns SHA-256 on top of libcrypto. A failure inside libcrypto (out of memory, a provider
 * that is missing) is reported as UNSUPPORTED or NOMEM; a digest is never half-made.
 */
#include <coldkv/sha256.h>

#include "base/alloc.h"
#include <openssl/evp.h>

struct ckv_sha256 {
    const struct ckv_alloc *alloc;
    EVP_MD_CTX *context;
};

enum ckv_status ckv_sha256_create(const struct ckv_alloc *alloc, struct ckv_sha256 **out,
                                  struct ckv_error *error)
{
    struct ckv_sha256 *state;
    *out = NULL;
    alloc = ckvi_alloc_or_default(alloc);
    state = CKVI_NEW(alloc, struct ckv_sha256);
    if (!state)
        return ckvi_nomem(error, sizeof *state, "a SHA-256 state");
    state->alloc = alloc;
    state->context = EVP_MD_CTX_new();
    if (!state->context || EVP_DigestInit_ex(state->context, EVP_sha256(), NULL) != 1) {
        ckv_sha256_destroy(state);
        return ckv_error_set(error, CKV_UNSUPPORTED, "libcrypto offers no SHA-256");
    }
    *out = state;
    return CKV_OK;
}

enum ckv_status ckv_sha256_update(struct ckv_sha256 *state, const void *data, size_t size,
                                  struct ckv_error *error)
{
    if (size == 0 || EVP_DigestUpdate(state->context, data, size) == 1)
        return CKV_OK;
    return ckv_error_set(error, CKV_UNSUPPORTED, "libcrypto failed to update SHA-256");
}

enum ckv_status ckv_sha256_finish(struct ckv_sha256 *state,
                                  char text[CKV_SHA256_TEXT_SIZE],
                                  struct ckv_error *error)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    text[0] = '\0';
    if (EVP_DigestFinal_ex(state->context, digest, &size) != 1 ||
        size != CKV_SHA256_BYTES)
        return ckv_error_set(error, CKV_UNSUPPORTED,
                             "libcrypto failed to finish SHA-256");
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digits[digest[i] >> 4];
        text[2 * i + 1] = digits[digest[i] & 15];
    }
    text[2 * (size_t)size] = '\0';
    return CKV_OK;
}

void ckv_sha256_destroy(struct ckv_sha256 *state)
{
    if (!state)
        return;
    EVP_MD_CTX_free(state->context);
    CKVI_DELETE(state->alloc, state);
}

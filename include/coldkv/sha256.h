/*
 * SHA-256 (through OpenSSL's libcrypto), for identities: where two different inputs must
 * not meet. The file format itself uses wyhash (hash.h).
 */
#ifndef COLDKV_SHA256_H
#define COLDKV_SHA256_H

#include <coldkv/alloc.h>
#include <coldkv/export.h>
#include <coldkv/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CKV_SHA256_BYTES 32u
/** Lower-case hex digits and terminator. */
#define CKV_SHA256_TEXT_SIZE 65u

struct ckv_sha256;

/** alloc NULL = default. One state belongs to one thread. */
CKV_API enum ckv_status ckv_sha256_create(const struct ckv_alloc *alloc,
                                          struct ckv_sha256 **out,
                                          struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API enum ckv_status ckv_sha256_update(struct ckv_sha256 *state, const void *data,
                                          size_t size,
                                          struct ckv_error *error) CKV_WARN_UNUSED;
/** The digest as hex text. The state is used up; only destroy is allowed. */
CKV_API enum ckv_status ckv_sha256_finish(struct ckv_sha256 *state,
                                          char text[CKV_SHA256_TEXT_SIZE],
                                          struct ckv_error *error) CKV_WARN_UNUSED;
/** NULL is fine. */
CKV_API void ckv_sha256_destroy(struct ckv_sha256 *state);

#ifdef __cplusplus
}
#endif

#endif

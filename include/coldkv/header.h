/*
 * The header codec of format version 3: the 26-byte prefix and the JSON header of a
 * .mlxkv file. docs/format.md describes the bytes. Strict on what matters, tolerant of
 * what later versions may add: unknown keys are skipped, duplicate keys refused.
 */
#ifndef COLDKV_HEADER_H
#define COLDKV_HEADER_H

#include <coldkv/alloc.h>
#include <coldkv/entry.h>
#include <coldkv/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CKV_PREFIX_BYTES 26u
#define CKV_FILE_ALIGN 16384u
#define CKV_FORMAT_VERSION 3u

/** Smallest multiple of CKV_FILE_ALIGN that is >= size; UINT64_MAX when it would
 * overflow. */
CKV_API uint64_t ckv_file_align(uint64_t size);

struct ckv_prefix {
    uint32_t header_bytes; /**< length of the JSON text */
    uint32_t data_start;   /**< file offset of the first tensor */
    uint64_t header_hash;  /**< wyhash, seed 0, of the JSON text */
};

/**
 * Reads and checks the first 26 bytes of a file of `file_size` bytes: magic (FOREIGN when
 * it differs), header length against the file and CKV_HEADER_BYTES_MAX, data start
 * against its formula (CORRUPT). Nothing is allocated.
 */
CKV_API enum ckv_status ckv_prefix_decode(const uint8_t bytes[CKV_PREFIX_BYTES],
                                          uint64_t file_size, struct ckv_prefix *out,
                                          struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API void ckv_prefix_encode(const struct ckv_prefix *prefix,
                               uint8_t bytes[CKV_PREFIX_BYTES]);

/** A decoded header; owns the entry in it. */
struct ckv_header {
    struct ckv_entry entry;
    struct ckv_prefix prefix;
    uint64_t file_size; /**< exactly what the file must have */
    bool canonical;     /**< encoding the entry again gives the same text */
    /* private */
    const struct ckv_alloc *alloc;
    void *storage;
};

/**
 * Decodes `json` (prefix->header_bytes bytes). Checks in this order: hash, JSON syntax,
 * formatVersion (VERSION with the number found), then every rule of the format including
 * ckv_entry_validate, tensor offsets, order, alignment and the file's size.
 * Memory is bounded by a small multiple of the text's length. On success *out owns
 * everything; ckv_header_destroy frees it. alloc NULL = default.
 * Thread safe: no shared state.
 */
CKV_API enum ckv_status ckv_header_decode(const struct ckv_alloc *alloc,
                                          const struct ckv_prefix *prefix,
                                          const uint8_t *json, uint64_t file_size,
                                          struct ckv_header **out,
                                          struct ckv_error *error) CKV_WARN_UNUSED;
CKV_API void ckv_header_destroy(struct ckv_header *header);

/**
 * Lays the tensors of `entry` out (sets every tensor's offset) and gives the sizes that
 * follow: header text length, data start, file size. Validates the entry first.
 */
CKV_API enum ckv_status ckv_header_plan(struct ckv_entry *entry,
                                        struct ckv_prefix *prefix, uint64_t *file_size,
                                        struct ckv_error *error) CKV_WARN_UNUSED;

/**
 * Writes the JSON text, exactly as long as ckv_header_plan said, to `json`
 * (prefix->header_bytes bytes), and sets prefix->header_hash. Tensor hashes are taken
 * from the entry. The length never depends on them.
 */
CKV_API enum ckv_status ckv_header_encode(const struct ckv_entry *entry,
                                          struct ckv_prefix *prefix, uint8_t *json,
                                          struct ckv_error *error) CKV_WARN_UNUSED;

#ifdef __cplusplus
}
#endif

#endif

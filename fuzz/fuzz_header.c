/*
 * Fuzzes the header codec. The input is a header's JSON text; its prefix, hash included,
 * is made to fit, so that every input reaches the decoder.
 *
 * What must hold: no fault of the sanitizers; and what is taken comes back: encoding it
 * gives the very text when the decoder called it canonical, and in any case a canonical
 * text that decodes to the same again.
 */
#include <coldkv/hash.h>
#include <coldkv/header.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                  \
    do {                                                                                 \
        if (!(condition))                                                                \
            abort();                                                                     \
    } while (0)

static struct ckv_prefix prefix_of(const uint8_t *json, size_t size)
{
    struct ckv_prefix prefix = {(uint32_t)size,
                                (uint32_t)ckv_file_align(CKV_PREFIX_BYTES + size),
                                ckv_wyhash(json, size, 0)};
    return prefix;
}

/* Decodes; when only the file's size is wrong, with the one that is asked for. */
static struct ckv_header *decoded(const uint8_t *json, size_t size)
{
    struct ckv_prefix prefix = prefix_of(json, size);
    struct ckv_header *header = NULL;
    struct ckv_error error;
    uint64_t wanted = 0;
    enum ckv_status status;
    ckv_error_clear(&error);
    status = ckv_header_decode(NULL, &prefix, json, 0, &header, &error);
    MUST(status != CKV_OK && !header && error.status == status && error.text[0] != '\0');
    if (sscanf(error.text, "file size: expected %" SCNu64, &wanted) != 1)
        return NULL;
    MUST(ckv_header_decode(NULL, &prefix, json, wanted, &header, &error) == CKV_OK);
    MUST(header->file_size == wanted);
    return header;
}

/* The entry's own text, to be freed. */
static uint8_t *encoded(struct ckv_header *header, struct ckv_prefix *prefix)
{
    uint64_t file_size = 0;
    uint8_t *text;
    MUST(ckv_header_plan(&header->entry, prefix, &file_size, NULL) == CKV_OK);
    MUST(file_size - prefix->data_start == header->file_size - header->prefix.data_start);
    text = malloc(prefix->header_bytes);
    MUST(text);
    MUST(ckv_header_encode(&header->entry, prefix, text, NULL) == CKV_OK);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ckv_header *header = decoded(data, size);
    struct ckv_header *again;
    struct ckv_prefix prefix;
    struct ckv_prefix prefix_again;
    uint8_t *text;
    uint8_t *text_again;
    if (!header)
        return 0;
    text = encoded(header, &prefix);
    MUST(header->canonical ==
         (prefix.header_bytes == size && memcmp(text, data, size) == 0));
    again = decoded(text, prefix.header_bytes);
    MUST(again && again->canonical);
    text_again = encoded(again, &prefix_again);
    MUST(prefix.header_bytes == prefix_again.header_bytes);
    MUST(memcmp(text, text_again, prefix.header_bytes) == 0);
    free(text);
    free(text_again);
    ckv_header_destroy(header);
    ckv_header_destroy(again);
    return 0;
}

/* Two good headers as text, and what is asked about changed ones. */
#ifndef COLDKV_TESTS_HEADER_TEXTS_H
#define COLDKV_TESTS_HEADER_TEXTS_H

#include "unit/file_support.h"

#include <stdio.h>

/* One kv cache, two tokens; the file has 32,784 bytes. */
static const char kv_text[] =
    "{\"formatVersion\":3,\"createdAt\":1783400000000,\"modelId\":\"m\","
    "\"configFingerprint\":"
    "\"f\",\"tokenizerHash\":\"t\",\"ns\":\"\",\"tokens\":[1,2],\"caches\":[{\"kind\":"
    "\"kv\","
    "\"offset\":2,\"tensors\":[{\"off\":0,\"bytes\":16,\"shape\":[1,1,2,4],\"dtype\":12,"
    "\"hash\":\"0123456789abcdef\"},{\"off\":16384,\"bytes\":16,\"shape\":[1,1,2,4],"
    "\"dtype\":12,\"hash\":\"fedcba9876543210\"}]}]}";
#define KV_FILE 32784u

/* A rotating-qkv, a state and an empty turboquant cache; the file has 131,072 bytes. */
static const char wide_text[] =
    "{\"formatVersion\":3,\"createdAt\":1,\"tokens\":[],\"caches\":[{\"kind\":"
    "\"rotating-qkv\",\"offset\":9,\"idx\":0,\"maxSize\":1,\"groupSize\":32,\"bits\":4,"
    "\"tensors\":["
    "{\"off\":0,\"bytes\":16,\"shape\":[1,1,1,4],\"dtype\":3,\"hash\":"
    "\"0000000000000000\"},"
    "{\"off\":16384,\"bytes\":2,\"shape\":[1,1,1,1],\"dtype\":9,\"hash\":"
    "\"0000000000000000\"},"
    "{\"off\":32768,\"bytes\":2,\"shape\":[1,1,1,1],\"dtype\":9,\"hash\":"
    "\"0000000000000000\"},"
    "{\"off\":49152,\"bytes\":16,\"shape\":[1,1,1,4],\"dtype\":3,\"hash\":"
    "\"0000000000000000\"},"
    "{\"off\":65536,\"bytes\":2,\"shape\":[1,1,1,1],\"dtype\":9,\"hash\":"
    "\"0000000000000000\"},"
    "{\"off\":81920,\"bytes\":2,\"shape\":[1,1,1,1],\"dtype\":9,\"hash\":"
    "\"0000000000000000\"}]},"
    "{\"kind\":\"state\",\"offset\":9,\"engine\":\"llama.cpp\",\"floor\":8,\"tensors\":["
    "{\"off\":98304,\"bytes\":3,\"shape\":[3],\"dtype\":1,\"hash\":\"0000000000000000\"}]"
    "},"
    "{\"kind\":\"turboquant\",\"offset\":0,\"kBits\":8,\"vBits\":3,\"headDim\":64,"
    "\"tensors\":["
    "{\"off\":114688,\"bytes\":0,\"shape\":[1,1,0,64],\"dtype\":5,\"hash\":"
    "\"0409638ee2bde459\"},"
    "{\"off\":114688,\"bytes\":0,\"shape\":[1,1,0,2],\"dtype\":9,\"hash\":"
    "\"0409638ee2bde459\"},"
    "{\"off\":114688,\"bytes\":0,\"shape\":[1,1,0,2],\"dtype\":9,\"hash\":"
    "\"0409638ee2bde459\"},"
    "{\"off\":114688,\"bytes\":0,\"shape\":[1,1,0,24],\"dtype\":1,\"hash\":"
    "\"0409638ee2bde459\"},"
    "{\"off\":114688,\"bytes\":0,\"shape\":[1,1,0,2],\"dtype\":9,\"hash\":"
    "\"0409638ee2bde459\"}]}"
    "]}";
#define WIDE_FILE (16384u + 114688u)

/* The text with the first `from` replaced; to be freed. */
static inline char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    size_t size = strlen(text) + strlen(to) + 1;
    char *made = malloc(size);
    TEST_REQUIRE(at && made);
    (void)snprintf(made, size, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return made;
}

static inline void expect_refused_text(const char *text, uint64_t file_size,
                                       enum ckv_status status, const char *part)
{
    struct ckv_header *header = (struct ckv_header *)1;
    struct ckv_error error;
    ckv_error_clear(&error);
    assert_status(decode_text(text, file_size, &header, &error), status);
    assert_status(error.status, status);
    assert_null(header);
    if (!strstr(error.text, part))
        fail_msg("\"%s\" does not name \"%s\"", error.text, part);
}

static inline void refuse_kv(const char *from, const char *to, enum ckv_status status,
                             const char *part)
{
    char *text = replaced(kv_text, from, to);
    expect_refused_text(text, KV_FILE, status, part);
    free(text);
}

static inline void refuse_wide(const char *from, const char *to, enum ckv_status status,
                               const char *part)
{
    char *text = replaced(wide_text, from, to);
    expect_refused_text(text, WIDE_FILE, status, part);
    free(text);
}

/* The text is taken, and is canonical or not. */
static inline void expect_taken(const char *text, uint64_t file_size, bool canonical)
{
    struct ckv_header *header = NULL;
    struct ckv_error error;
    assert_ok(decode_text(text, file_size, &header, &error), error);
    assert_int_equal(header->canonical, canonical);
    ckv_header_destroy(header);
}

static inline void take_kv(const char *from, const char *to, bool canonical)
{
    char *text = replaced(kv_text, from, to);
    expect_taken(text, KV_FILE, canonical);
    free(text);
}

#endif

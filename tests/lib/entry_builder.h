/*
 * Small valid entries of every kind, with bytes that depend only on a seed, a source that
 * lends them and a sink that takes them back. Knows entry.h and transfer.h only.
 *
 *     struct test_entry *made = test_entry_of_kind(CKV_CACHE_KV, 10, 1);
 *     ckv_save(io, dir, name, &made->entry, &made->source, NULL, &error);
 *     ...
 *     struct test_sink *sink = test_sink_create(&made->entry);
 *     ... restore into &sink->sink ...
 *     assert_true(test_sink_equals(sink, made));
 */
#ifndef COLDKV_TESTS_ENTRY_BUILDER_H
#define COLDKV_TESTS_ENTRY_BUILDER_H

#include <coldkv/entry.h>
#include <coldkv/transfer.h>

/* All zero is a plain choice: one kv cache, 1 token. */
struct test_entry_options {
    size_t token_count;               /* 0 = 1; see no_tokens */
    bool no_tokens;                   /* an entry of 0 tokens */
    const uint32_t *tokens;           /* copied; NULL = 1000, 1001, ... */
    uint64_t seed;                    /* of the tensor bytes */
    const enum ckv_cache_kind *kinds; /* one cache each; NULL = one kv */
    size_t kind_count;
    uint64_t window;      /* rotating kinds: max_size; 0 = 8 */
    uint64_t head_dim;    /* kv and rotating; 0 = 8. Large values make large entries */
    uint64_t state_floor; /* state: floor, cut to the token count */
    uint64_t created_at_ms;
    bool no_meta; /* no metadata at all; otherwise the four below, in this order */
    const char *model_id;       /* NULL = "test-model" */
    const char *fingerprint;    /* NULL = "fp-test" */
    const char *tokenizer_hash; /* NULL = "tok-test" */
    const char *ns;             /* NULL = "" */
};

struct test_entry {
    struct ckv_entry entry;
    struct ckv_source source; /* any_thread is true; change what you like */
    /* The bytes, one block per tensor, counted across caches in order. */
    void **tensors;
    size_t tensor_count;
    /* The source lends at most this many bytes at once; 0 = whatever is wanted. */
    size_t max_window;
    /* How the source was used. */
    size_t view_count;
    size_t done_count;
    uint64_t viewed_bytes;
    /* When > 0: that call of view (the first is 1) fails with `fail_status`. */
    size_t fail_view;
    enum ckv_status fail_status;
};

/* Never NULL. The options and what they point to are copied. options NULL = all zero. */
struct test_entry *test_entry_create(const struct test_entry_options *options);
/* One cache of that kind. */
struct test_entry *test_entry_of_kind(enum ckv_cache_kind kind, size_t token_count,
                                      uint64_t seed);
/* One cache of each of the seven kinds, in the order of their numbers. */
struct test_entry *test_entry_of_all_kinds(size_t token_count, uint64_t seed);
void test_entry_destroy(struct test_entry *made);

/* All seven kinds, for loops over them. */
extern const enum ckv_cache_kind test_all_kinds[CKV_CACHE_KIND_COUNT];

/* A sink into fresh memory for every tensor of an entry (for instance one read from a
 * file); each block starts out filled with 0xa5. */
struct test_sink {
    struct ckv_sink sink;
    void **tensors;
    uint64_t *sizes;
    size_t tensor_count;
    size_t max_window; /* lends at most this many bytes at once; 0 = what is wanted */
    size_t lend_count;
    size_t took_count;
    size_t drop_count;
    uint64_t taken_bytes;
    size_t fail_lend; /* when > 0: that call of lend fails with fail_status */
    size_t fail_took; /* the same for took */
    enum ckv_status fail_status;
    const struct ckv_entry *entry; /* private: borrowed */
};

/* The entry must live until the transfer has ended. */
struct test_sink *test_sink_create(const struct ckv_entry *entry);
void test_sink_destroy(struct test_sink *sink);
/* Whether every tensor arrived, complete and byte for byte. */
bool test_sink_equals(const struct test_sink *sink, const struct test_entry *made);

/* Whether two entries say the same: metadata, tokens, caches, tensors' types, shapes and
 * sizes. created_at_ms, tensor offsets and hashes are not compared. */
bool test_entry_same(const struct ckv_entry *a, const struct ckv_entry *b);

#endif

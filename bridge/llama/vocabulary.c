/*
 * Owns what counts as "the same tokenizer".
 *
 * Invariant: the digest depends on the vocabulary and on the tokenizer's settings, not on
 * chat templates, file names or the order of keys.
 *
 * Failure story: as digest.h.
 */
#include "vocabulary.h"

#include "digest.h"
#include "keys.h"
#include "memory.h"

#include <llama.h>

static void put_tokens(struct ckvi_llama_digest *digest, const struct llama_vocab *vocab)
{
    int32_t count = llama_vocab_n_tokens(vocab);
    ckvi_llama_digest_put_u64(digest, (uint64_t)count);
    for (llama_token token = 0; token < count; token++) {
        const char *text = llama_vocab_get_text(vocab, token);
        float score = llama_vocab_get_score(vocab, token);
        uint32_t bits;
        memcpy(&bits, &score, sizeof bits);
        ckvi_llama_digest_put_string(digest, text ? text : "", text ? strlen(text) : 0);
        ckvi_llama_digest_put_u64(digest, bits);
        ckvi_llama_digest_put_u64(digest, (uint64_t)llama_vocab_get_attr(vocab, token));
    }
}

static void put_specials(struct ckvi_llama_digest *digest,
                         const struct llama_vocab *vocab)
{
    const llama_token specials[] = {
        llama_vocab_bos(vocab),         llama_vocab_eos(vocab),
        llama_vocab_eot(vocab),         llama_vocab_sep(vocab),
        llama_vocab_nl(vocab),          llama_vocab_pad(vocab),
        llama_vocab_mask(vocab),        llama_vocab_fim_pre(vocab),
        llama_vocab_fim_suf(vocab),     llama_vocab_fim_mid(vocab),
        llama_vocab_fim_pad(vocab),     llama_vocab_fim_rep(vocab),
        llama_vocab_fim_sep(vocab),     llama_vocab_get_add_bos(vocab),
        llama_vocab_get_add_eos(vocab), llama_vocab_get_add_sep(vocab),
    };
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++)
        ckvi_llama_digest_put_u64(digest, (uint64_t)(int64_t)specials[i]);
}

enum ckv_status ckvi_llama_vocabulary_digest(const struct llama_vocab *vocab,
                                             const struct gguf_context *gguf,
                                             const struct ckv_alloc *alloc,
                                             char text[CKV_SHA256_TEXT_SIZE],
                                             struct ckv_error *error)
{
    struct ckvi_llama_digest digest;
    struct ckvi_llama_text keys;
    enum ckv_status status;
    enum ckv_status keys_status;
    ckvi_llama_text_init(&keys, alloc);
    ckvi_llama_digest_init(&digest, alloc, error);
    ckvi_llama_digest_put_u64(&digest, (uint64_t)llama_vocab_type(vocab));
    if (llama_vocab_type(vocab) != LLAMA_VOCAB_TYPE_NONE) {
        put_tokens(&digest, vocab);
        put_specials(&digest, vocab);
    }
    keys_status = ckvi_llama_keys_put(&keys, gguf, CKVI_LLAMA_KEYS_TOKENIZER, error);
    if (!keys_status)
        ckvi_llama_digest_put_string(&digest, keys.data, keys.length);
    status = ckvi_llama_digest_finish(&digest, text);
    ckvi_llama_text_deinit(&keys);
    return keys_status ? keys_status : status;
}

/* What the reader needs of the encoder. */
#ifndef COLDKV_FILE_ENCODE_H
#define COLDKV_FILE_ENCODE_H

#include <coldkv/header.h>

/* Where the token list stands in a text: from its '[' to just behind its ']'. */
struct ckvi_token_span {
    size_t begin;
    size_t end;
    bool tight; /* no white space in it: then it is spelled in the only way there is */
};

/* Whether encoding `entry` gives exactly this text. Compares as it goes and allocates
 * nothing; the token list is known from the decoder and not spelled again. */
bool ckvi_header_matches(const struct ckv_entry *entry, const uint8_t *text, size_t size,
                         const struct ckvi_token_span *tokens);

/* The layout rule: the offset of a tensor of `bytes` bytes, with *cursor behind the one
 * before it; moves *cursor behind this one. False beyond 2^53. */
bool ckvi_layout_next(uint64_t *cursor, uint64_t bytes, uint64_t *offset);

#endif

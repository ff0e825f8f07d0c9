/*
 * Owns the reading of the token list, which is nearly all of a long header's text.
 *
 * Invariant: memory is 4 bytes per comma that stands in the text, so at most twice the
 * text. The fast path takes what is spelled "digits," with at most 8 digits; everything
 * else (the last token, long numbers, white space, nonsense) goes through the scanner one
 * item at a time.
 */
#include "file/decode.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/bytes.h"
#include <stdio.h>
#include <string.h>

#define WORD 8u /* bytes looked at at once */

/* How many items the list that begins here can have. */
static size_t count_items(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *close = memchr(p, ']', (size_t)(end - p));
    size_t commas = 0;
    if (close)
        end = close;
    for (; p < end; p++)
        commas += *p == ',';
    return commas + 1;
}

/* The number of leading digits (1..8) in 8 characters, and their value; 0 when the first
 * is none, and for leading zeros. */
static size_t take_digits(uint64_t word, uint64_t *value)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t digits = word ^ (ones * '0');
    /* A byte is no digit when it is above 9. A carry can only disturb bytes behind the
     * first of those, which do not matter. */
    uint64_t others = ((digits + ones * 6) | digits) & (ones * 0xf0);
    size_t count = others ? (size_t)__builtin_ctzll(others) / 8 : WORD;
    if (count == 0 || ((digits & 0xff) == 0 && count > 1))
        return 0;
    digits <<= 8 * (WORD - count); /* leading zeros make it 8 digits */
    digits = digits * 10 + (digits >> 8);
    *value = ((digits & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064) +
              ((digits >> 16) & UINT64_C(0x000000ff000000ff)) *
                  UINT64_C(0x0000271000000001)) >>
             32;
    return count;
}

/* Takes items spelled "digits," while it can; returns where it stopped. */
static const uint8_t *take_run(const uint8_t *p, const uint8_t *end, uint32_t *out,
                               size_t capacity, size_t *count)
{
    size_t taken = 0;
    while (taken < capacity && (size_t)(end - p) > WORD) {
        uint64_t value = 0;
        size_t length = take_digits(ckvi_get_le64(p), &value);
        if (length == 0 || p[length] != ',')
            break;
        out[taken++] = (uint32_t)value;
        p += length + 1;
    }
    *count = taken;
    return p;
}

static void read_token(struct ckvi_decoder *decoder)
{
    struct ckvi_header_storage *storage = decoder->storage;
    uint64_t value = 0;
    char field[32];
    (void)snprintf(field, sizeof field, "tokens[%zu]", decoder->entry->token_count);
    if (!ckvi_read_integer(decoder, field, UINT32_MAX, &value))
        return;
    /* More items than commas: only behind one that held a ']', and that was refused. */
    CKV_ASSERT(decoder->entry->token_count < storage->token_capacity);
    storage->tokens[decoder->entry->token_count++] = (uint32_t)value;
}

static void read_items(struct ckvi_decoder *decoder)
{
    struct ckvi_json *json = &decoder->json;
    const uint8_t *end = json->text + json->size;
    size_t *count = &decoder->entry->token_count;
    bool first = true;
    while (ckvi_json_more(json, &first, ']')) {
        size_t run = 0;
        if (decoder->refused) {
            if (!ckvi_json_skip(json))
                return;
            continue;
        }
        json->at = (size_t)(take_run(json->text + json->at, end,
                                     decoder->storage->tokens + *count,
                                     decoder->storage->token_capacity - *count, &run) -
                            json->text);
        *count += run;
        read_token(decoder);
    }
}

void ckvi_read_tokens(struct ckvi_decoder *decoder)
{
    struct ckvi_json *json = &decoder->json;
    struct ckvi_header_storage *storage = decoder->storage;
    size_t blanks;
    if (!ckvi_read_begin_array(decoder, "tokens"))
        return;
    decoder->tokens.begin = json->at - 1;
    blanks = json->blank_count;
    storage->token_capacity = count_items(json->text + json->at, json->text + json->size);
    storage->tokens = ckvi_alloc_aligned(
        decoder->alloc, storage->token_capacity * sizeof *storage->tokens,
        _Alignof(uint32_t));
    if (!storage->tokens) {
        ckvi_decoder_nomem(decoder);
        return;
    }
    read_items(decoder);
    decoder->entry->tokens = storage->tokens;
    decoder->tokens.end = json->at;
    decoder->tokens.tight = json->blank_count == blanks;
}

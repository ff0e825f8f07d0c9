/* Decoding of UTF-8 that arrives cut anywhere.
 * Invariant: held[0..held_count) is the valid beginning of exactly one character, or
 * nothing is held. Failure: invalid bytes are replaced, never dropped and never passed
 * on. */
#include "utf8.h"

static bool append_replacement(struct srv_buf *out)
{
    return srv_buf_append(out, "\xEF\xBF\xBD", 3);
}

/* The first byte says how many follow, and for a few of them the second byte has narrower
 * bounds: they exclude overlong forms, surrogates and what lies above U+10FFFF. */
static bool begin_character(struct srv_utf8 *state, unsigned char byte)
{
    state->low = 0x80;
    state->high = 0xBF;
    if (byte >= 0xC2 && byte <= 0xDF) {
        state->missing = 1;
    } else if (byte >= 0xE0 && byte <= 0xEF) {
        state->missing = 2;
        if (byte == 0xE0)
            state->low = 0xA0;
        if (byte == 0xED)
            state->high = 0x9F;
    } else if (byte >= 0xF0 && byte <= 0xF4) {
        state->missing = 3;
        if (byte == 0xF0)
            state->low = 0x90;
        if (byte == 0xF4)
            state->high = 0x8F;
    } else {
        return false;
    }
    state->held[0] = byte;
    state->held_count = 1;
    return true;
}

static bool feed_first(struct srv_utf8 *state, unsigned char byte, struct srv_buf *out)
{
    if (byte < 0x80)
        return srv_buf_append(out, &byte, 1);
    if (begin_character(state, byte))
        return true;
    return append_replacement(out);
}

static bool feed_next(struct srv_utf8 *state, unsigned char byte, struct srv_buf *out)
{
    if (byte < state->low || byte > state->high) {
        *state = (struct srv_utf8){0};
        return append_replacement(out) && feed_first(state, byte, out);
    }
    state->held[state->held_count++] = byte;
    state->low = 0x80;
    state->high = 0xBF;
    if (--state->missing > 0)
        return true;
    if (!srv_buf_append(out, state->held, state->held_count))
        return false;
    *state = (struct srv_utf8){0};
    return true;
}

bool srv_utf8_feed(struct srv_utf8 *state, const char *bytes, size_t length,
                   struct srv_buf *out)
{
    size_t i;

    for (i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        bool ok = state->held_count > 0 ? feed_next(state, byte, out)
                                        : feed_first(state, byte, out);

        if (!ok)
            return false;
    }
    return true;
}

bool srv_utf8_flush(struct srv_utf8 *state, struct srv_buf *out)
{
    if (state->held_count == 0)
        return true;
    *state = (struct srv_utf8){0};
    return append_replacement(out);
}

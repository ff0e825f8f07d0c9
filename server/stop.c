/* Matching of stop strings across token borders.
 * Invariant: before and after each call `held` is the longest end of the text so far that
 * begins a stop string without being one. Failure: only memory; then nothing was emitted
 * twice. */
#include "stop.h"

#include <string.h>

void srv_stop_init(struct srv_stop *stop, const char *const *strings, size_t count)
{
    *stop = (struct srv_stop){.strings = strings, .count = count};
}

void srv_stop_deinit(struct srv_stop *stop)
{
    srv_buf_deinit(&stop->held);
}

/* Length of the longest stop string that ends at `end`, or 0. */
static size_t match_ending_at(const struct srv_stop *stop, size_t end)
{
    size_t best = 0;
    size_t i;

    for (i = 0; i < stop->count; i++) {
        size_t length = strlen(stop->strings[i]);

        if (length > best && length <= end &&
            memcmp(stop->held.data + end - length, stop->strings[i], length) == 0)
            best = length;
    }
    return best;
}

/* How many of the last bytes may still grow into a stop string. */
static size_t tail_to_hold(const struct srv_stop *stop)
{
    size_t best = 0;
    size_t i;

    for (i = 0; i < stop->count; i++) {
        size_t length = strlen(stop->strings[i]) - 1;

        if (length > stop->held.length)
            length = stop->held.length;
        while (length > best && memcmp(stop->held.data + stop->held.length - length,
                                       stop->strings[i], length) != 0)
            length--;
        if (length > best)
            best = length;
    }
    return best;
}

bool srv_stop_feed(struct srv_stop *stop, const char *text, size_t length,
                   struct srv_buf *out)
{
    size_t end = stop->held.length + 1;
    size_t sure;

    if (stop->hit || length == 0)
        return true;
    if (stop->count == 0)
        return srv_buf_append(out, text, length);
    if (!srv_buf_append(&stop->held, text, length))
        return false;
    for (; end <= stop->held.length; end++) {
        size_t matched = match_ending_at(stop, end);

        if (matched > 0) {
            stop->hit = true;
            return srv_buf_append(out, stop->held.data, end - matched);
        }
    }
    sure = stop->held.length - tail_to_hold(stop);
    if (!srv_buf_append(out, stop->held.data, sure))
        return false;
    srv_buf_consume(&stop->held, sure);
    return true;
}

bool srv_stop_flush(struct srv_stop *stop, struct srv_buf *out)
{
    bool ok = true;

    if (!stop->hit && stop->held.length > 0)
        ok = srv_buf_append(out, stop->held.data, stop->held.length);
    srv_buf_clear(&stop->held);
    return ok;
}

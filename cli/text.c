/*
 * Owns how the command writes things down. All functions are pure and cannot fail: what
 * does not fit is cut, what is out of range is said so.
 */
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WORD_MAX 32u

/* Writes the text form of one byte; returns its length. */
static size_t escape_byte(unsigned char byte, char form[CLI_ESCAPED_BYTE_MAX])
{
    static const char digits[] = "0123456789abcdef";
    if (byte >= 0x20 && byte < 0x7f && byte != '\\') {
        form[0] = (char)byte;
        return 1;
    }
    form[0] = '\\';
    form[1] = 'x';
    form[2] = digits[byte >> 4];
    form[3] = digits[byte & 15];
    return 4;
}

size_t cli_text_escape(const char *text, char *out, size_t capacity)
{
    size_t needed = 0;
    size_t used = 0;
    for (const char *at = text; *at != '\0'; at++) {
        char form[CLI_ESCAPED_BYTE_MAX];
        size_t length = escape_byte((unsigned char)*at, form);
        if (used == needed && used + length < capacity) {
            memcpy(out + used, form, length);
            used += length;
        }
        needed += length;
    }
    if (capacity > 0)
        out[used] = '\0';
    return needed;
}

/* Length of the well-formed sequence at `at` (Unicode table 3-7), or 0. */
static size_t utf8_length(const unsigned char *at)
{
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t length;
    if (at[0] < 0x80)
        return 1;
    if (at[0] >= 0xc2 && at[0] <= 0xdf)
        length = 2;
    else if (at[0] >= 0xe0 && at[0] <= 0xef)
        length = 3;
    else if (at[0] >= 0xf0 && at[0] <= 0xf4)
        length = 4;
    else
        return 0;
    if (at[0] == 0xe0)
        low = 0xa0;
    if (at[0] == 0xed)
        high = 0x9f;
    if (at[0] == 0xf0)
        low = 0x90;
    if (at[0] == 0xf4)
        high = 0x8f;
    for (size_t i = 1; i < length; i++) {
        if (at[i] < low || at[i] > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    return length;
}

bool cli_text_is_utf8(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    while (*at != 0) {
        size_t length = utf8_length(at);
        if (length == 0)
            return false;
        at += length;
    }
    return true;
}

const char *cli_text_size(uint64_t size_bytes, char out[CLI_SIZE_TEXT])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (size_bytes < 1024) {
        snprintf(out, CLI_SIZE_TEXT, "%" PRIu64 " byte%s", size_bytes,
                 size_bytes == 1 ? "" : "s");
        return out;
    }
    double value = (double)size_bytes / 1024.0;
    size_t unit = 0;
    while (value >= 1023.95 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024.0;
        unit++;
    }
    snprintf(out, CLI_SIZE_TEXT, "%.1f %s", value, units[unit]);
    return out;
}

const char *cli_text_time(uint64_t time_ms, char out[CLI_TIME_TEXT])
{
    uint64_t seconds = time_ms / 1000;
    time_t clock = (time_t)seconds;
    struct tm day;
    if (clock < 0 || (uint64_t)clock != seconds || gmtime_r(&clock, &day) == NULL) {
        snprintf(out, CLI_TIME_TEXT, "%" PRIu64 " ms after 1970", time_ms);
        return out;
    }
    snprintf(out, CLI_TIME_TEXT, "%04" PRId64 "-%02d-%02dT%02d:%02d:%02d.%03uZ",
             (int64_t)day.tm_year + 1900, day.tm_mon + 1, day.tm_mday, day.tm_hour,
             day.tm_min, day.tm_sec, (unsigned)(time_ms % 1000));
    return out;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t cli_text_distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1];
    size_t a_length = strlen(a);
    size_t b_length = strlen(b);
    if (a_length > WORD_MAX || b_length > WORD_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *now = rows[i % 3];
        const size_t *last = rows[(i + 2) % 3];
        const size_t *before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t other = a[i - 1] == b[j - 1] ? 0 : 1;
            now[j] = smaller(last[j - 1] + other, smaller(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = smaller(now[j], before[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

const char *cli_text_nearest(const char *typed, const char *const *words)
{
    const char *best = NULL;
    size_t best_distance = 3; /* more than two slips is another word */
    for (; *words != NULL; words++) {
        size_t distance = cli_text_distance(typed, *words);
        if (distance < best_distance && distance < strlen(*words)) {
            best = *words;
            best_distance = distance;
        }
    }
    return best;
}

/* Length of `folder` without the slashes at its end; "/" is none. */
static size_t folder_length(const char *folder)
{
    size_t length = strlen(folder);
    while (length > 0 && folder[length - 1] == '/')
        length--;
    return length;
}

size_t cli_text_joined_size(const char *folder, const char *name)
{
    return folder_length(folder) + 1 + strlen(name) + 1;
}

char *cli_text_join(const char *folder, const char *name, char *out)
{
    size_t length = folder_length(folder);
    memcpy(out, folder, length);
    out[length] = '/';
    memcpy(out + length + 1, name, strlen(name) + 1);
    return out;
}

bool cli_text_ends_with(const char *name, const char *suffix)
{
    size_t length = strlen(name);
    size_t tail = strlen(suffix);
    return length > tail && memcmp(name + length - tail, suffix, tail) == 0;
}

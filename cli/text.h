/* Small pure functions on text: nothing here prints, allocates or knows about files. */
#ifndef COLDKV_CLI_TEXT_H
#define COLDKV_CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most characters that one byte takes when escaped. */
#define CLI_ESCAPED_BYTE_MAX 4u

/* Writes `text` to out, always terminated: printable ASCII except backslash as it is,
 * everything else as \xNN, so that a terminal takes nothing for a command. Returns the
 * length that the whole text needs; what does not fit is cut. */
size_t cli_text_escape(const char *text, char *out, size_t capacity);

/* Whether `text` is well-formed UTF-8, that is, can stand in JSON as it is. */
bool cli_text_is_utf8(const char *text);

/* "512 bytes", "1.5 KiB", "32.0 GiB". */
#define CLI_SIZE_TEXT 24u
const char *cli_text_size(uint64_t size_bytes, char out[CLI_SIZE_TEXT]);

/* Milliseconds since 1970 as "2025-07-07T14:53:20.000Z". */
#define CLI_TIME_TEXT 48u
const char *cli_text_time(uint64_t time_ms, char out[CLI_TIME_TEXT]);

/* Insertions, deletions, replacements and swaps of neighbours between two words; longer
 * ones than 32 characters count as far apart (SIZE_MAX). */
size_t cli_text_distance(const char *a, const char *b);

/* The word of `words` (ends with NULL) that was probably meant by `typed`, or NULL. */
const char *cli_text_nearest(const char *typed, const char *const *words);

/* Bytes for `folder` (slashes at its end count as one), a slash, `name`, terminator. */
size_t cli_text_joined_size(const char *folder, const char *name);
/* Writes them to out, which has that many. Returns out. */
char *cli_text_join(const char *folder, const char *name, char *out);

/* Whether `name` ends with `suffix` and has something before it. */
bool cli_text_ends_with(const char *name, const char *suffix);

#endif

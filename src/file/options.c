/*
 * Owns the rule by which option structs grow: the caller's size says what it knows, and
 * what the library does not know must be zero.
 */
#include "file/options.h"

#include <string.h>

enum ckv_status ckvi_options_copy(void *to, size_t size, const void *from,
                                  const char *what, struct ckv_error *error)
{
    const unsigned char *bytes = from;
    size_t given;
    if (!from)
        return CKV_OK;
    memcpy(&given, from, sizeof given);
    if (given < sizeof given)
        return ckv_error_set(error, CKV_INVALID,
                             "%s: size %zu, call the init function first", what, given);
    for (size_t i = size; i < given; i++)
        if (bytes[i] != 0)
            return ckv_error_set(error, CKV_INVALID,
                                 "%s: an option at byte %zu is newer than this library",
                                 what, i);
    memcpy(to, from, given < size ? given : size);
    memcpy(to, &size, sizeof size);
    return CKV_OK;
}

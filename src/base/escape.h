/* Foreign bytes made printable. */
#ifndef COLDKV_BASE_ESCAPE_H
#define COLDKV_BASE_ESCAPE_H

#include <stddef.h>

/* Writes `size` bytes of `text` to out (capacity > 0, always terminated): printable ASCII
 * except backslash as it is, everything else as \xNN. What does not fit ends in "...".
 * Returns out. */
const char *ckvi_escape(const void *text, size_t size, char *out, size_t capacity);
/* The same for a C string. */
const char *ckvi_escape_string(const char *text, char *out, size_t capacity);

/* Capacity that shows any name or short value usefully. */
#define CKVI_ESCAPE_SIZE 128

#endif

/* Option structs that may be older or newer than the library. */
#ifndef COLDKV_FILE_OPTIONS_H
#define COLDKV_FILE_OPTIONS_H

#include <coldkv/status.h>
#include <stddef.h>

/* Copies what the caller's struct has over the defaults in `to` (`size` bytes, its first
 * member the size). from NULL leaves the defaults. INVALID when the struct was never
 * initialised, or asks for something that this version does not know. */
enum ckv_status ckvi_options_copy(void *to, size_t size, const void *from,
                                  const char *what, struct ckv_error *error);

#endif

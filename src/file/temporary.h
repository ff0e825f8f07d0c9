/* Inside of the making of temporaries. */
#ifndef COLDKV_FILE_TEMPORARY_H
#define COLDKV_FILE_TEMPORARY_H

#include <coldkv/writer.h>

/* Removes a name as well as it can be done: on the way out of a failure, where another
 * one changes nothing (a sweeper will find what stays). */
void ckvi_discard_name(const struct ckv_io *io, struct ckv_io_dir dir, const char *name);

#endif

/*
 * Owns the way from a formatted event to the log hook. Text that does not fit is cut; an
 * event is never lost because of its length.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void ckvi_log(const struct ckv_log *log, enum ckv_log_level level, const char *id,
              const char *format, ...)
{
    char text[1024];
    va_list arguments;
    if (!log || !log->fn || level > log->level)
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    log->fn(log->ctx, level, id, text);
}

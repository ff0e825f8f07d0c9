/* The server's log: lines on stderr.
 * Invariant: one call is one write of one line. Failure: a line that cannot be written is
 * lost. */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void srv_log(const char *format, ...)
{
    static const char prefix[] = "coldkv: ";
    char text[900];
    char line[1024];
    size_t length = sizeof(prefix) - 1;
    const char *c;
    ssize_t written;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    memcpy(line, prefix, length);
    for (c = text; *c && length < sizeof(line) - 6; c++) {
        unsigned char byte = (unsigned char)*c;

        if (byte < 0x20 || byte == 0x7F)
            length += (size_t)snprintf(line + length, 5, "\\x%02x", byte);
        else
            line[length++] = *c;
    }
    line[length++] = '\n';
    written = write(STDERR_FILENO, line, length);
    (void)written;
}

/*
 * Owns status names, error detail and the meaning of errno values.
 *
 * Invariant: an error's text is always terminated and never longer than its buffer; what
 * does not fit is cut at the end, never the other way round.
 */
#include <coldkv/status.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *ckv_version(void)
{
    return CKV_VERSION_STRING;
}

const char *ckv_status_name(enum ckv_status status)
{
    switch (status) {
#define STATUS_NAME(code, value, name, text)                                             \
    case code:                                                                           \
        return name;
        CKV_STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
    }
    return "unknown";
}

const char *ckv_status_text(enum ckv_status status)
{
    switch (status) {
#define STATUS_TEXT(code, value, name, text)                                             \
    case code:                                                                           \
        return text;
        CKV_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "unknown status";
}

void ckv_error_clear(struct ckv_error *error)
{
    if (!error)
        return;
    error->status = CKV_OK;
    error->os_errno = 0;
    error->file_offset = -1;
    error->text[0] = '\0';
}

static void set_text(struct ckv_error *error, enum ckv_status status, int os_errno,
                     const char *format, va_list arguments)
{
    error->status = status;
    error->os_errno = os_errno;
    error->file_offset = -1;
    (void)vsnprintf(error->text, sizeof error->text, format, arguments);
}

enum ckv_status ckv_error_set(struct ckv_error *error, enum ckv_status status,
                              const char *format, ...)
{
    va_list arguments;
    if (!error)
        return status;
    va_start(arguments, format);
    set_text(error, status, 0, format, arguments);
    va_end(arguments);
    return status;
}

enum ckv_status ckv_error_set_errno(struct ckv_error *error, enum ckv_status status,
                                    int os_errno, const char *format, ...)
{
    va_list arguments;
    size_t used;
    char reason[128] = "";
    if (!error)
        return status;
    va_start(arguments, format);
    set_text(error, status, os_errno, format, arguments);
    va_end(arguments);
    used = strlen(error->text);
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
    (void)snprintf(error->text + used, sizeof error->text - used, ": %s",
                   strerror_r(os_errno, reason, sizeof reason));
#else
    if (strerror_r(os_errno, reason, sizeof reason) != 0)
        reason[0] = '\0';
    (void)snprintf(error->text + used, sizeof error->text - used, ": %s", reason);
#endif
    return status;
}

void ckv_error_prefix(struct ckv_error *error, const char *format, ...)
{
    char old[CKV_ERROR_TEXT_SIZE];
    va_list arguments;
    size_t used;
    if (!error)
        return;
    memcpy(old, error->text, sizeof old);
    va_start(arguments, format);
    (void)vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    used = strlen(error->text);
    (void)snprintf(error->text + used, sizeof error->text - used, ": %s", old);
}

enum ckv_status ckv_status_from_errno(int os_errno)
{
    switch (os_errno) {
    case 0:
        return CKV_OK;
    case ENOSPC:
    case EDQUOT:
        return CKV_NOSPACE;
    case ENOENT:
        return CKV_NOTFOUND;
    case ENOMEM:
        return CKV_NOMEM;
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
        return CKV_DENIED;
    case EEXIST:
        return CKV_EXISTS;
    case EAGAIN:
        return CKV_AGAIN;
    case ESTALE:
        return CKV_VANISHED;
    default:
        return CKV_IO;
    }
}

/*
 * Status codes and error detail.
 *
 * Every function that can fail returns enum ckv_status. Three kinds of code exist and are
 * never mixed: outcomes (the answer is "no", nothing is broken), failures (something is
 * broken, the message says what) and misuse (the caller broke the contract). The values
 * are frozen: a code is only ever added.
 */
#ifndef COLDKV_STATUS_H
#define COLDKV_STATUS_H

#include <coldkv/export.h>
#include <stdarg.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* code, value, short name, what it means */
#define CKV_STATUS_LIST(X)                                                               \
    X(CKV_OK, 0, "ok", "success")                                                        \
    /* outcomes */                                                                       \
    X(CKV_NOTFOUND, 1, "notfound", "no such entry, file or prefix")                      \
    X(CKV_AGAIN, 2, "again", "busy now, worth another try")                              \
    X(CKV_FULL, 3, "full",                                                               \
      "refused: does not fit under the cap or the free-space floor")                     \
    X(CKV_EXISTS, 4, "exists", "already there")                                          \
    X(CKV_CANCELLED, 5, "cancelled", "stopped by the caller or by a deadline")           \
    X(CKV_VANISHED, 6, "vanished", "the file went away between lookup and use")          \
    X(CKV_REFUSED, 7, "refused", "the engine or a rule declined the entry")              \
    /* failures */                                                                       \
    X(CKV_IO, 20, "io", "an operating system call failed")                               \
    X(CKV_NOSPACE, 21, "nospace", "the file system or a quota is full")                  \
    X(CKV_NOMEM, 22, "nomem", "out of memory")                                           \
    X(CKV_CORRUPT, 23, "corrupt", "contents contradict their hash or structure")         \
    X(CKV_VERSION, 24, "version", "another format version")                              \
    X(CKV_FOREIGN, 25, "foreign", "not ours: other magic, identity, namespace or kind")  \
    X(CKV_DENIED, 26, "denied", "permission or trust rule")                              \
    X(CKV_TOOBIG, 27, "toobig", "beyond a stated limit")                                 \
    X(CKV_UNSUPPORTED, 28, "unsupported", "the platform or the model cannot do this")    \
    X(CKV_ENGINE, 29, "engine", "the inference engine reported a failure")               \
    /* misuse */                                                                         \
    X(CKV_INVALID, 40, "invalid", "an argument breaks the function's contract")

enum ckv_status {
#define CKV_STATUS_ENUM(code, value, name, text) code = (value),
    CKV_STATUS_LIST(CKV_STATUS_ENUM)
#undef CKV_STATUS_ENUM
};

/** Bytes of text in struct ckv_error, terminator included. */
#define CKV_ERROR_TEXT_SIZE 512

/**
 * Detail of a failure; an optional last argument everywhere (NULL = not wanted).
 * The place where a failure arises fills it; callers may prefix what they were doing.
 * Foreign bytes (names, header strings) appear in `text` escaped as \xNN.
 */
struct ckv_error {
    enum ckv_status status;         /**< same as the returned status */
    int os_errno;                   /**< errno of the failing system call, or 0 */
    int64_t file_offset;            /**< byte position in the file it is about, or -1 */
    char text[CKV_ERROR_TEXT_SIZE]; /**< one line: file, field, expected, found */
};

/** Short stable name such as "corrupt"; "unknown" for other values. Static storage. */
CKV_API const char *ckv_status_name(enum ckv_status status);

/** One line that says what the status means. Static storage. */
CKV_API const char *ckv_status_text(enum ckv_status status);

/** Empties `error` (NULL allowed): status OK, errno 0, offset -1, empty text. */
CKV_API void ckv_error_clear(struct ckv_error *error);

/**
 * Fills `error` (NULL allowed) and returns `status`, so that
 * `return ckv_error_set(error, CKV_CORRUPT, "...")` is one line. For callbacks
 * (sources, sinks, io tables) as well as for the library itself.
 */
CKV_API enum ckv_status ckv_error_set(struct ckv_error *error, enum ckv_status status,
                                      const char *format, ...) CKV_PRINTF(3, 4);

/** As ckv_error_set, with an errno value; the text gets ": <strerror>" appended. */
CKV_API enum ckv_status ckv_error_set_errno(struct ckv_error *error,
                                            enum ckv_status status, int os_errno,
                                            const char *format, ...) CKV_PRINTF(4, 5);

/** Puts "<formatted>: " before the text that is there. The status stays. */
CKV_API void ckv_error_prefix(struct ckv_error *error, const char *format, ...)
    CKV_PRINTF(2, 3);

/** The status that an errno value stands for: ENOSPC and EDQUOT are NOSPACE, ENOENT is
 *  NOTFOUND, ENOMEM is NOMEM, EACCES, EPERM, EROFS and ELOOP are DENIED, EEXIST is
 * EXISTS, EWOULDBLOCK is AGAIN, ESTALE is VANISHED, all others IO. */
CKV_API enum ckv_status ckv_status_from_errno(int os_errno);

#ifdef __cplusplus
}
#endif

#endif

/*
 * The log hook: events an operator should see. The library never prints by itself.
 */
#ifndef COLDKV_LOG_H
#define COLDKV_LOG_H

#include <coldkv/export.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ckv_log_level {
    CKV_LOG_ERROR = 1,
    CKV_LOG_WARN = 2,
    CKV_LOG_INFO = 3,
    CKV_LOG_DEBUG = 4,
};

/**
 * Receives one event. `id` is stable and short ("store.quarantine"), `text` one line
 * without newline; neither ever holds prompt text or token ids. Called from whichever
 * thread works for the handle, never with a lock of the library held.
 */
typedef void (*ckv_log_fn)(void *ctx, enum ckv_log_level level, const char *id,
                           const char *text);

/** A log target; events above `level` are not formatted at all. fn NULL = silent. */
struct ckv_log {
    void *ctx;
    enum ckv_log_level level;
    ckv_log_fn fn;
};

#ifdef __cplusplus
}
#endif

#endif

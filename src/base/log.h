/* Formatting for the log hook. */
#ifndef COLDKV_BASE_LOG_H
#define COLDKV_BASE_LOG_H

#include <coldkv/log.h>

/* Formats and delivers one event; does nothing at all when the level is not wanted. */
void ckvi_log(const struct ckv_log *log, enum ckv_log_level level, const char *id,
              const char *format, ...) CKV_PRINTF(4, 5);

#endif

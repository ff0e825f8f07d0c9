/* Log events that arise while a lock is held, delivered after it is gone. */
#ifndef COLDKV_STORE_EVENTS_H
#define COLDKV_STORE_EVENTS_H

#include <coldkv/alloc.h>
#include <coldkv/log.h>
#include <stddef.h>

struct ckvi_event {
    enum ckv_log_level level;
    const char *id; /* static */
    char text[512];
};

struct ckvi_events {
    const struct ckv_log *log;
    const struct ckv_alloc *alloc;
    struct ckvi_event *items;
    size_t count;
    size_t capacity;
    size_t lost_count; /* no memory for these */
};

void ckvi_events_init(struct ckvi_events *events, const struct ckv_log *log,
                      const struct ckv_alloc *alloc);
/* Formats nothing when the level is not wanted. */
void ckvi_events_add(struct ckvi_events *events, enum ckv_log_level level, const char *id,
                     const char *format, ...) CKV_PRINTF(4, 5);
/* Delivers all of them and is empty afterwards. No lock may be held. */
void ckvi_events_flush(struct ckvi_events *events);

#endif

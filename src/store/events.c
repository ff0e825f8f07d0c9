/*
 * Owns log events on their way out of a locked section. An event that finds no memory is
 * counted, and the count is reported instead of it.
 */
#include "store/events.h"

#include "base/alloc.h"
#include "base/log.h"
#include <stdarg.h>
#include <stdio.h>

void ckvi_events_init(struct ckvi_events *events, const struct ckv_log *log,
                      const struct ckv_alloc *alloc)
{
    *events = (struct ckvi_events){.log = log, .alloc = alloc};
}

static struct ckvi_event *next_event(struct ckvi_events *events)
{
    struct ckvi_event *moved;
    size_t capacity = events->capacity ? events->capacity * 2 : 8;
    if (events->count < events->capacity)
        return &events->items[events->count++];
    moved = ckvi_regrow(events->alloc, events->items, events->capacity, capacity,
                        sizeof *moved);
    if (!moved) {
        events->lost_count++;
        return NULL;
    }
    events->items = moved;
    events->capacity = capacity;
    return &events->items[events->count++];
}

void ckvi_events_add(struct ckvi_events *events, enum ckv_log_level level, const char *id,
                     const char *format, ...)
{
    struct ckvi_event *event;
    va_list arguments;
    if (!events->log->fn || level > events->log->level)
        return;
    event = next_event(events);
    if (!event)
        return;
    event->level = level;
    event->id = id;
    va_start(arguments, format);
    (void)vsnprintf(event->text, sizeof event->text, format, arguments);
    va_end(arguments);
}

void ckvi_events_flush(struct ckvi_events *events)
{
    for (size_t i = 0; i < events->count; i++) {
        const struct ckvi_event *event = &events->items[i];
        ckvi_log(events->log, event->level, event->id, "%s", event->text);
    }
    if (events->lost_count > 0)
        ckvi_log(events->log, CKV_LOG_WARN, "store.log", "%zu events lost: no memory",
                 events->lost_count);
    if (events->items)
        ckvi_free(events->alloc, events->items, events->capacity, sizeof *events->items);
    ckvi_events_init(events, events->log, events->alloc);
}

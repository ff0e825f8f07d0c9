/*
 * Owns the questions to a spill queue: what it could serve, when it is through, how much
 * it holds. Nothing here changes it.
 */
#include "tier/spill_queue.h"

#include <string.h>

static uint64_t usable_prefix(const struct ckvi_spill_item *item, const uint32_t *prompt,
                              size_t prompt_length)
{
    const struct ckv_entry *entry = ckv_held_entry(item->held);
    size_t common = 0;
    while (common < entry->token_count && common < prompt_length &&
           entry->tokens[common] == prompt[common])
        common++;
    return ckv_usable_prefix(ckv_held_floor(item->held), entry->token_count, common,
                             prompt_length);
}

static bool is_served(const struct ckvi_spill_item *item, const char *ns)
{
    return (item->state == CKVI_SPILL_WAITING ||
            (item->state == CKVI_SPILL_RUNNING && item->outcome == 0)) &&
           strcmp(item->ns, ns) == 0;
}

struct ckv_held *ckv_spill_queue_find(struct ckv_spill_queue *queue, const char *ns,
                                      const uint32_t *prompt, size_t prompt_length,
                                      uint64_t *prefix)
{
    const struct ckvi_spill_item *item;
    struct ckv_held *best = NULL;
    uint64_t longest = 0;
    if (prefix)
        *prefix = 0;
    if (!queue || !prompt)
        return NULL;
    ckvi_monitor_lock(&queue->monitor);
    for (item = queue->first; item; item = item->next) {
        uint64_t usable = 0;
        if (is_served(item, ns ? ns : ""))
            usable = usable_prefix(item, prompt, prompt_length);
        if (usable > longest) {
            longest = usable;
            best = item->held;
        }
    }
    if (best)
        (void)ckv_held_ref(best);
    ckvi_monitor_unlock(&queue->monitor);
    if (prefix)
        *prefix = longest;
    return best;
}

static bool is_open(const struct ckv_spill_queue *queue, uint64_t newest_number)
{
    const struct ckvi_spill_item *item;
    for (item = queue->first; item; item = item->next)
        if (item->number <= newest_number)
            return true;
    return false;
}

enum ckv_status ckv_spill_queue_drain(struct ckv_spill_queue *queue, int64_t deadline_ns)
{
    bool in_time = true;
    uint64_t newest_number;
    bool open;
    if (!queue)
        return CKV_OK;
    ckvi_monitor_lock(&queue->monitor);
    newest_number = queue->newest_number;
    while ((open = is_open(queue, newest_number)) && in_time)
        in_time =
            ckvi_monitor_wait_until(&queue->monitor, queue->options.clock, deadline_ns);
    ckvi_monitor_unlock(&queue->monitor);
    return open ? CKV_AGAIN : CKV_OK;
}

void ckv_spill_queue_get_stats(struct ckv_spill_queue *queue, struct ckv_spill_stats *out)
{
    ckvi_monitor_lock(&queue->monitor);
    *out = queue->stats;
    out->pending_bytes = queue->buffers.bytes;
    ckvi_monitor_unlock(&queue->monitor);
}

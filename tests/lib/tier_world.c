/* Owns the world of tier tests. */
#include "lib/tier_world.h"

#include "lib/require.h"
#include <string.h>

#define REQUIRE_OK(status, error)                                                        \
    do {                                                                                 \
        enum ckv_status status_of_call = (status);                                       \
        if (status_of_call != CKV_OK)                                                    \
            fprintf(stderr, "%s: %s\n", ckv_status_name(status_of_call), (error)->text); \
        TEST_REQUIRE(status_of_call == CKV_OK);                                          \
    } while (0)

static void hold_call(void *ctx, const struct test_call_event *event, size_t nth)
{
    struct test_tier *tier = ctx;
    (void)event;
    (void)nth;
    test_latch_pass(&tier->latch);
}

void test_tier_init(struct test_tier *tier)
{
    memset(tier, 0, sizeof *tier);
    test_world_init(&tier->world);
    tier->store = test_world_open(&tier->world);
    test_engine_init(&tier->engine);
    tier->engine.alloc = &tier->world.alloc.alloc;
    test_outcomes_init(&tier->outcomes);
    test_latch_init(&tier->latch, true);
    REQUIRE_OK(
        ckv_activity_create(&tier->world.alloc.alloc, &tier->activity, &tier->error),
        &tier->error);
    ckv_spill_options_init(&tier->spill);
    tier->spill.alloc = &tier->world.alloc.alloc;
    tier->spill.clock = &tier->world.clock.clock;
    tier->spill.log = tier->world.log.log;
    tier->spill.activity = tier->activity;
    tier->spill.patience_ns = TEST_LONG_NS;
    tier->spill.paced_bytes_per_second = UINT64_MAX;
    tier->spill.done = test_outcomes_note;
    tier->spill.done_ctx = &tier->outcomes;
    ckv_prompt_cache_options_init(&tier->ram);
    tier->ram.alloc = &tier->world.alloc.alloc;
    tier->ram.clock = &tier->world.clock.clock;
    tier->ram.log = tier->world.log.log;
    tier->ram.min_tokens = 0;
    tier->ram.store = tier->store;
    tier->ram.restorer = (struct ckv_restorer){
        .ctx = &tier->engine,
        .prepare = test_engine_prepare,
        .finish = test_engine_finish,
    };
    ckv_durability_options_init(&tier->durable);
    tier->durable.alloc = &tier->world.alloc.alloc;
    tier->durable.clock = &tier->world.clock.clock;
    tier->durable.log = tier->world.log.log;
    tier->durable.min_tokens = 0;
    tier->durable.min_growth_tokens = 0;
    tier->durable.activity = tier->activity;
}

void test_tier_start_cache(struct test_tier *tier)
{
    tier->ram.queue = tier->queue;
    REQUIRE_OK(ckv_prompt_cache_create(&tier->ram, &tier->cache, &tier->error),
               &tier->error);
}

void test_tier_start(struct test_tier *tier)
{
    REQUIRE_OK(
        ckv_spill_queue_start(tier->store, &tier->spill, &tier->queue, &tier->error),
        &tier->error);
}

int test_tier_deinit(struct test_tier *tier)
{
    bool clean;
    test_latch_open(&tier->latch);
    ckv_durability_destroy(tier->durability);
    tier->durability = NULL;
    ckv_prompt_cache_destroy(tier->cache);
    ckv_spill_queue_destroy(tier->queue);
    ckv_activity_destroy(tier->activity);
    ckv_store_close(tier->store);
    clean = tier->engine.live == 0;
    if (!clean)
        fprintf(stderr, "%zu held entries left\n", (size_t)tier->engine.live);
    test_engine_deinit(&tier->engine);
    test_outcomes_deinit(&tier->outcomes);
    test_latch_deinit(&tier->latch);
    clean = test_world_deinit(&tier->world) == 0 && clean;
    return clean ? 0 : -1;
}

void test_tier_reopen(struct test_tier *tier)
{
    bool queue = tier->queue != NULL;
    bool cache = tier->cache != NULL;
    ckv_durability_destroy(tier->durability);
    tier->durability = NULL;
    ckv_prompt_cache_destroy(tier->cache);
    ckv_spill_queue_destroy(tier->queue);
    ckv_store_close(tier->store);
    tier->cache = NULL;
    tier->queue = NULL;
    tier->store = test_world_open(&tier->world);
    tier->ram.store = tier->store;
    if (queue)
        test_tier_start(tier);
    if (cache)
        test_tier_start_cache(tier);
}

void test_tier_add(struct test_tier *tier, const char *ns, enum ckv_cache_kind kind,
                   uint64_t bytes, const uint32_t *tokens, size_t count)
{
    struct ckv_held *held = test_held(&tier->engine, kind, bytes, tokens, count);
    REQUIRE_OK(ckv_spill_queue_add(tier->queue, ns, held, &tier->error), &tier->error);
    ckv_held_unref(held);
}

void test_tier_drain(struct test_tier *tier)
{
    TEST_REQUIRE(ckv_spill_queue_drain(tier->queue, TEST_NEVER) == CKV_OK);
}

void test_tier_hold(struct test_tier *tier, enum test_call call)
{
    test_latch_close(&tier->latch);
    pthread_mutex_lock(&tier->world.faulty.mutex);
    tier->world.faulty.hook = hold_call;
    tier->world.faulty.hook_ctx = tier;
    tier->world.faulty.hook_call = call;
    pthread_mutex_unlock(&tier->world.faulty.mutex);
}

void test_tier_await_held(struct test_tier *tier)
{
    test_latch_await(&tier->latch, 1);
}

void test_tier_release(struct test_tier *tier)
{
    test_latch_open(&tier->latch);
}

struct ckv_spill_stats test_tier_stats(struct test_tier *tier)
{
    struct ckv_spill_stats stats;
    ckv_spill_queue_get_stats(tier->queue, &stats);
    return stats;
}

uint64_t test_tier_find(struct test_tier *tier, const char *ns, const uint32_t *prompt,
                        size_t length)
{
    uint64_t prefix = 0;
    struct ckv_held *held =
        ckv_spill_queue_find(tier->queue, ns, prompt, length, &prefix);
    TEST_REQUIRE((held != NULL) == (prefix > 0));
    ckv_held_unref(held);
    return prefix;
}

void test_tier_put(struct test_tier *tier, const char *ns, enum ckv_cache_kind kind,
                   uint64_t bytes, const uint32_t *tokens, size_t count)
{
    struct ckv_held *held = test_held(&tier->engine, kind, bytes, tokens, count);
    REQUIRE_OK(ckv_prompt_cache_put(tier->cache, ns, held, &tier->error), &tier->error);
    ckv_held_unref(held);
}

uint64_t test_tier_take(struct test_tier *tier, const char *ns, const uint32_t *prompt,
                        size_t length, struct ckv_taken *taken)
{
    struct ckv_taken got;
    enum ckv_status status =
        ckv_prompt_cache_take(tier->cache, ns, prompt, length, &got, &tier->error);
    TEST_REQUIRE(status == CKV_OK || status == CKV_NOTFOUND);
    TEST_REQUIRE((status == CKV_OK) == (got.held != NULL));
    TEST_REQUIRE((status == CKV_OK) == (got.prefix > 0));
    TEST_REQUIRE((status == CKV_OK) == (got.tier != CKV_TIER_NONE));
    ckv_held_unref(got.held);
    got.held = NULL;
    if (taken)
        *taken = got;
    return got.prefix;
}

struct ckv_prompt_cache_stats test_tier_cache_stats(struct test_tier *tier)
{
    struct ckv_prompt_cache_stats stats;
    ckv_prompt_cache_get_stats(tier->cache, &stats);
    return stats;
}

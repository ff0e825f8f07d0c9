/*
 * A world for tests of the tiers: a store on a disk in memory, an engine, an activity
 * gate and a spill queue whose outcomes are remembered.
 *
 *     test_tier_init(&t);
 *     t.spill.cap_bytes = 100;
 *     test_tier_start(&t);
 *     test_tier_add(&t, "", CKV_CACHE_KV, 60, TEST_TOKENS(1));
 *     test_tier_drain(&t);
 *     test_tier_deinit(&t);        checks that nothing is left
 *
 * Two ways to hold the worker: an engine that is busy (ckv_activity_begin) keeps it from
 * starting; a latch in the disk or the source holds it in the middle.
 */
#ifndef COLDKV_TESTS_TIER_WORLD_H
#define COLDKV_TESTS_TIER_WORLD_H

#include "lib/held_entry.h"
#include "lib/latch.h"
#include "lib/outcomes.h"
#include "lib/store_world.h"
#include <coldkv/activity.h>
#include <coldkv/durability.h>
#include <coldkv/prompt_cache.h>
#include <coldkv/spill_queue.h>

/* A deadline that never comes. */
#define TEST_NEVER INT64_MAX
/* For patience: longer than any test runs. */
#define TEST_LONG_NS (INT64_C(86400) * TEST_NS_PER_S)

struct test_tier {
    struct test_world world;
    struct ckv_store *store;
    struct test_engine engine;
    struct ckv_activity *activity;
    struct ckv_spill_options spill; /* cap none, patience endless; change before start */
    struct ckv_spill_queue *queue;
    struct ckv_prompt_cache_options ram; /* cap none; store and restorer are set */
    struct ckv_prompt_cache *cache;
    struct ckv_durability_options durable; /* min_tokens and min_growth_tokens are 0 */
    struct ckv_durability *durability; /* the test's to start; ended by deinit, reopen */
    struct test_outcomes outcomes;
    struct test_latch latch; /* open */
    struct ckv_error error;  /* of the last call of these helpers */
};

/* All but queue and cache. min_tokens is 0. */
void test_tier_init(struct test_tier *tier);
/* -1 when something is left: what a teardown returns. */
int test_tier_deinit(struct test_tier *tier);
void test_tier_start(struct test_tier *tier);
/* A cache over the store, and over the queue when that was started. */
void test_tier_start_cache(struct test_tier *tier);
/* Ends everything, and starts store, queue and cache again: a new process. */
void test_tier_reopen(struct test_tier *tier);

/* Adds a new entry to the queue and lets go of it. */
void test_tier_add(struct test_tier *tier, const char *ns, enum ckv_cache_kind kind,
                   uint64_t bytes, const uint32_t *tokens, size_t count);
/* Waits until all is through. */
void test_tier_drain(struct test_tier *tier);
/* From now on each such call to the disk waits in the latch until release. */
void test_tier_hold(struct test_tier *tier, enum test_call call);
/* Waits until one call is held. */
void test_tier_await_held(struct test_tier *tier);
void test_tier_release(struct test_tier *tier);
struct ckv_spill_stats test_tier_stats(struct test_tier *tier);
/* The usable prefix that the queue could serve. */
uint64_t test_tier_find(struct test_tier *tier, const char *ns, const uint32_t *prompt,
                        size_t length);

/* Puts a new entry into the cache and lets go of it. */
void test_tier_put(struct test_tier *tier, const char *ns, enum ckv_cache_kind kind,
                   uint64_t bytes, const uint32_t *tokens, size_t count);
/* Takes and lets go; the prefix, 0 for a miss. *taken (may be NULL) without its entry. */
uint64_t test_tier_take(struct test_tier *tier, const char *ns, const uint32_t *prompt,
                        size_t length, struct ckv_taken *taken);
struct ckv_prompt_cache_stats test_tier_cache_stats(struct test_tier *tier);

#endif

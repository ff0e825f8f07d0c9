/* The store's own memory and what its files share. */
#ifndef COLDKV_STORE_STATE_H
#define COLDKV_STORE_STATE_H

#include "store/catalog.h"
#include "store/events.h"
#include <coldkv/store.h>
#include <pthread.h>
#include <stdatomic.h>

/* Counts only; nothing is decided by them, hence relaxed order everywhere. */
struct ckvi_counters {
    _Atomic uint64_t used_bytes;
    _Atomic uint64_t restores;
    _Atomic uint64_t restored_bytes;
    _Atomic uint64_t partial_restores;
    _Atomic int64_t restore_last_ns;
    _Atomic int64_t restore_total_ns;
    _Atomic uint64_t misses;
    _Atomic uint64_t restore_failures;
    _Atomic uint64_t puts;
    _Atomic uint64_t written_bytes;
    _Atomic int64_t put_total_ns;
    _Atomic uint64_t put_failures;
    _Atomic uint64_t refused_full;
    _Atomic uint64_t superseded;
    _Atomic uint64_t evicted;
    _Atomic uint64_t set_aside;
    _Atomic uint64_t foreign;
    _Atomic uint64_t swept;
};

/*
 * Lock order: admission_mu, then the flock on .lock, then the catalog's mutex. Everything
 * outside "guarded" is set by open and never changes.
 */
struct ckv_store {
    const struct ckv_io *io;
    const struct ckv_clock *clock;
    const struct ckv_alloc *alloc;
    struct ckv_log log;
    char *path; /* for messages */
    char *fingerprint;
    char *tokenizer_hash;
    char *model_id;    /* NULL = not written */
    char *description; /* NULL = no identity.json */
    uint64_t cap_bytes;
    uint64_t free_floor_bytes;
    uint32_t uid;
    bool single_process;
    struct ckv_io_dir root;
    bool mutex_ready;
    /* Held over listing, evicting and creating: the one exception to "no lock during
     * I/O". */
    pthread_mutex_t admission_mu;
    bool fingerprint_durable;    /* its folder; guarded by admission_mu */
    struct ckvi_catalog catalog; /* has its own mutex */
    struct ckvi_counters counters;
};

static inline void ckvi_count(_Atomic uint64_t *counter, uint64_t amount)
{
    (void)atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

/* Takes off at most what is there: the figure is an estimate between two looks. */
static inline void ckvi_uncount(_Atomic uint64_t *counter, uint64_t amount)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        counter, &value, value > amount ? value - amount : 0, memory_order_relaxed,
        memory_order_relaxed)) {}
}

static inline int64_t ckvi_now_ns(const struct ckv_store *store)
{
    return store->clock->realtime_ns(store->clock->ctx);
}

static inline int64_t ckvi_monotonic_ns(const struct ckv_store *store)
{
    return store->clock->monotonic_ns(store->clock->ctx);
}

/* "" for no namespace. */
static inline const char *ckvi_ns_text(const char *ns)
{
    return ns ? ns : "";
}

#endif

/*
 * Owns the admission lock. Invariant: whoever has it holds the flock of the file that is
 * called .lock now, not of one that somebody removed. Failure story: on failure nothing
 * is held, and the caller stores nothing.
 */
#include "store/lock.h"

#include "store/names.h"

#define WAIT_TOTAL_NS INT64_C(5000000000)
#define WAIT_FIRST_NS INT64_C(1000000)
#define WAIT_MOST_NS INT64_C(50000000)
/* A .lock that is replaced this often is not a matter of chance. */
#define REPLACED_MAX 8

/* Tries until it is free or the time is over. The sum of the naps bounds the wait even
 * under a clock that stands still. */
static enum ckv_status wait_for_lock(struct ckv_store *store, struct ckv_io_file file,
                                     struct ckv_error *error)
{
    const struct ckv_io *io = store->io;
    int64_t started_ns = ckvi_monotonic_ns(store);
    int64_t slept_ns = 0;
    int64_t nap_ns = WAIT_FIRST_NS;
    for (;;) {
        enum ckv_status status = io->lock(io->ctx, file, CKV_IO_LOCK_EXCLUSIVE, error);
        if (status != CKV_AGAIN)
            return status;
        if (slept_ns >= WAIT_TOTAL_NS ||
            ckvi_monotonic_ns(store) - started_ns >= WAIT_TOTAL_NS)
            return ckv_error_set(
                error, CKV_AGAIN, "%s: another process kept %s locked for %d s",
                store->path, CKVI_LOCK_NAME, (int)(WAIT_TOTAL_NS / 1000000000));
        store->clock->sleep_ns(store->clock->ctx, nap_ns);
        slept_ns += nap_ns;
        nap_ns = nap_ns * 2 < WAIT_MOST_NS ? nap_ns * 2 : WAIT_MOST_NS;
    }
}

/* Opens and locks .lock once. *current: it still has its name. */
static enum ckv_status try_file(struct ckv_store *store, struct ckv_io_file *file,
                                bool *current, struct ckv_error *error)
{
    struct ckv_io_stat opened;
    struct ckv_io_stat named;
    enum ckv_status status = ckv_io_open_file(store->io, store->root, CKVI_LOCK_NAME,
                                              CKV_IO_CREATE_OR_OPEN, file, error);
    *current = false;
    if (status != CKV_OK)
        return status;
    status = wait_for_lock(store, *file, error);
    if (status == CKV_UNSUPPORTED && store->single_process) {
        *current = true;
        return CKV_OK;
    }
    if (status != CKV_OK)
        return status;
    status = ckv_io_stat_file(store->io, *file, &opened, error);
    if (status != CKV_OK)
        return status;
    status = ckv_io_stat_name(store->io, store->root, CKVI_LOCK_NAME, &named, error);
    if (status == CKV_NOTFOUND)
        return CKV_OK;
    *current =
        status == CKV_OK && opened.device == named.device && opened.inode == named.inode;
    return status;
}

enum ckv_status ckvi_admission_lock(struct ckv_store *store, struct ckv_io_file *held,
                                    struct ckv_error *error)
{
    enum ckv_status status = CKV_OK;
    bool current = false;
    *held = CKV_IO_FILE_NONE;
    (void)pthread_mutex_lock(&store->admission_mu);
    for (int i = 0; i < REPLACED_MAX && status == CKV_OK && !current; i++) {
        ckv_io_close_file(store->io, held);
        status = try_file(store, held, &current, error);
    }
    if (status == CKV_OK && !current)
        status = ckv_error_set(error, CKV_AGAIN, "%s: %s is replaced again and again",
                               store->path, CKVI_LOCK_NAME);
    if (status == CKV_OK)
        return CKV_OK;
    ckv_io_close_file(store->io, held);
    (void)pthread_mutex_unlock(&store->admission_mu);
    if (status == CKV_UNSUPPORTED)
        ckv_error_prefix(error,
                         "%s: the file system has no locks between processes "
                         "(option single_process accepts it)",
                         store->path);
    return status;
}

void ckvi_admission_unlock(struct ckv_store *store, struct ckv_io_file *held)
{
    ckv_io_close_file(store->io, held);
    (void)pthread_mutex_unlock(&store->admission_mu);
}

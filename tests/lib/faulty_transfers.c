/*
 * Owns transfers of the faulty io. A submit becomes a batch that remembers what is wrong
 * with each request until wait; requests go to the inner table one by one. A request that
 * moves only part of its bytes goes there as a copy with a smaller size.
 */
#include "lib/faulty_calls.h"
#include "lib/require.h"
#include <string.h>

struct item {
    struct ckv_io_request sent; /* what the inner table sees */
    struct test_fault fault;
    bool faulty;
    bool at_inner;
};

struct test_batch {
    struct test_batch *next;
    struct ckv_io_request *requests;
    size_t count;
    struct item *items;
};

static enum test_call call_of(const struct ckv_io_request *request)
{
    return request->op == CKV_IO_OP_WRITE ? TEST_CALL_WRITE : TEST_CALL_READ;
}

static void free_batch(struct test_batch *batch)
{
    free(batch->items);
    free(batch);
}

static void prepare_item(struct test_faulty_io *faulty,
                         const struct ckv_io_request *request, struct item *item)
{
    item->sent = *request;
    item->at_inner = true;
    item->faulty = test_faulty_meet(faulty, call_of(request), NULL, NULL, &item->fault);
    if (!item->faulty || item->fault.after)
        return;
    if (item->fault.partial_bytes < item->sent.size_bytes)
        item->sent.size_bytes = item->fault.partial_bytes;
    item->at_inner = item->sent.size_bytes > 0;
}

/* Gives `count` items to the inner table; on a refusal those that it took are waited for,
 * so that the whole batch counts as not taken. */
static enum ckv_status send_items(const struct ckv_io *inner, struct item *items,
                                  size_t count, struct ckv_error *error)
{
    enum ckv_status status = CKV_OK;
    size_t sent = 0;
    while (sent < count && !status) {
        if (items[sent].at_inner)
            status = inner->submit(inner->ctx, &items[sent].sent, 1, error);
        if (!status)
            sent++;
    }
    for (size_t i = 0; status && i < sent; i++) {
        if (items[i].at_inner)
            (void)inner->wait(inner->ctx, &items[i].sent, 1, NULL);
    }
    return status;
}

static enum ckv_status submit(void *ctx, struct ckv_io_request *requests, size_t count,
                              struct ckv_error *error)
{
    struct test_faulty_io *faulty = ctx;
    struct test_batch *batch = calloc(1, sizeof *batch);
    enum ckv_status status;
    TEST_REQUIRE(batch);
    batch->requests = requests;
    batch->count = count;
    batch->items = calloc(count + 1, sizeof *batch->items);
    TEST_REQUIRE(batch->items);
    for (size_t i = 0; i < count; i++)
        prepare_item(faulty, &requests[i], &batch->items[i]);
    status = send_items(faulty->inner, batch->items, count, error);
    if (status) {
        free_batch(batch);
        return status;
    }
    pthread_mutex_lock(&faulty->mutex);
    batch->next = faulty->batches;
    faulty->batches = batch;
    pthread_mutex_unlock(&faulty->mutex);
    return CKV_OK;
}

static struct test_batch *take_batch(struct test_faulty_io *faulty,
                                     const struct ckv_io_request *requests, size_t count)
{
    struct test_batch **link;
    struct test_batch *batch;
    pthread_mutex_lock(&faulty->mutex);
    link = &faulty->batches;
    while (*link && (*link)->requests != requests)
        link = &(*link)->next;
    batch = *link;
    TEST_REQUIRE(batch && batch->count == count);
    *link = batch->next;
    pthread_mutex_unlock(&faulty->mutex);
    return batch;
}

static void finish_item(struct test_faulty_io *faulty, struct item *item,
                        struct ckv_io_request *request)
{
    const struct ckv_io *inner = faulty->inner;
    if (item->at_inner)
        (void)inner->wait(inner->ctx, &item->sent, 1, NULL);
    request->done_bytes = item->at_inner ? item->sent.done_bytes : 0;
    request->status = item->at_inner ? item->sent.status : CKV_OK;
    request->os_errno = item->at_inner ? item->sent.os_errno : 0;
    if (item->faulty && (item->fault.os_errno || item->fault.status)) {
        request->os_errno = item->fault.os_errno;
        request->status = test_faulty_report(&item->fault, call_of(request), NULL);
    }
    pthread_mutex_lock(&faulty->mutex);
    if (request->op == CKV_IO_OP_WRITE)
        faulty->written_bytes += request->done_bytes;
    else
        faulty->read_bytes += request->done_bytes;
    pthread_mutex_unlock(&faulty->mutex);
}

static enum ckv_status wait_for(void *ctx, struct ckv_io_request *requests, size_t count,
                                struct ckv_error *error)
{
    struct test_faulty_io *faulty = ctx;
    struct test_batch *batch = take_batch(faulty, requests, count);
    enum ckv_status status = CKV_OK;
    for (size_t i = 0; i < count; i++) {
        finish_item(faulty, &batch->items[i], &requests[i]);
        if (requests[i].status && !status)
            status = ckv_error_set_errno(
                error, requests[i].status, requests[i].os_errno, "%s of %zu bytes",
                test_call_name(call_of(&requests[i])), requests[i].size_bytes);
    }
    free_batch(batch);
    return status;
}

void test_faulty_fill_transfers(struct test_faulty_io *faulty)
{
    faulty->io.submit = submit;
    faulty->io.wait = wait_for;
}

void test_faulty_drop_batches(struct test_faulty_io *faulty)
{
    while (faulty->batches) {
        struct test_batch *next = faulty->batches->next;
        free_batch(faulty->batches);
        faulty->batches = next;
    }
}

/*
 * Owns faults, counts and traces around an io table. Every call that can fail passes
 * `meet`, which counts it, tells the hook, and says whether it has to fail. The calls
 * themselves are in faulty_calls.c.
 */
#include "lib/faulty_io.h"

#include "lib/faulty_calls.h"
#include "lib/require.h"
#include <string.h>

const char *test_call_name(enum test_call call)
{
    switch (call) {
    case TEST_CALL_ANY:
        return "any";
#define CALL_NAME(name, text)                                                            \
    case TEST_CALL_##name:                                                               \
        return text;
        TEST_CALL_LIST(CALL_NAME)
#undef CALL_NAME
    case TEST_CALL_COUNT:
        break;
    }
    return "unknown";
}

static void copy_name(char to[CKV_IO_NAME_MAX + 1], const char *name)
{
    to[0] = '\0';
    if (name)
        (void)snprintf(to, CKV_IO_NAME_MAX + 1, "%s", name);
}

static void add_trace(struct test_faulty_io *faulty, const struct test_call_event *event)
{
    size_t count = faulty->trace_count;
    if (!faulty->tracing)
        return;
    if ((count & (count - 1)) == 0) {
        size_t capacity = count ? 2 * count : 1;
        faulty->trace = realloc(faulty->trace, capacity * sizeof *faulty->trace);
        TEST_REQUIRE(faulty->trace);
    }
    faulty->trace[faulty->trace_count++] = *event;
}

static bool applies(const struct test_faulty_io *faulty, const struct test_fault *fault,
                    enum test_call call)
{
    size_t count = faulty->counts[fault->call];
    if (fault->nth == 0 || (fault->call != TEST_CALL_ANY && fault->call != call))
        return false;
    return count == fault->nth || (fault->from_then_on && count > fault->nth);
}

bool test_faulty_meet(struct test_faulty_io *faulty, enum test_call call,
                      const char *name, const char *to, struct test_fault *fault)
{
    struct test_call_event event;
    test_hook_fn hook = NULL;
    size_t nth;
    bool fails = false;
    event.call = call;
    copy_name(event.name, name);
    copy_name(event.to, to);
    pthread_mutex_lock(&faulty->mutex);
    faulty->counts[TEST_CALL_ANY]++;
    faulty->counts[call]++;
    add_trace(faulty, &event);
    for (size_t i = 0; i < TEST_FAULTS_MAX && !fails; i++) {
        fails = applies(faulty, &faulty->faults[i], call);
        if (fails)
            *fault = faulty->faults[i];
    }
    if (fails)
        faulty->fired++;
    if (faulty->hook_call == TEST_CALL_ANY || faulty->hook_call == call)
        hook = faulty->hook;
    nth = faulty->counts[faulty->hook_call];
    pthread_mutex_unlock(&faulty->mutex);
    if (hook)
        hook(faulty->hook_ctx, &event, nth);
    return fails;
}

enum ckv_status test_faulty_report(const struct test_fault *fault, enum test_call call,
                                   struct ckv_error *error)
{
    enum ckv_status status = fault->status;
    if (!status)
        status = ckv_status_from_errno(fault->os_errno);
    return ckv_error_set_errno(error, status, fault->os_errno, "%s fails as told",
                               test_call_name(call));
}

void test_faulty_io_init(struct test_faulty_io *faulty, const struct ckv_io *inner)
{
    memset(faulty, 0, sizeof *faulty);
    faulty->inner = inner;
    TEST_REQUIRE(pthread_mutex_init(&faulty->mutex, NULL) == 0);
    test_faulty_fill_table(faulty);
    test_faulty_fill_transfers(faulty);
}

void test_faulty_io_deinit(struct test_faulty_io *faulty)
{
    test_faulty_drop_batches(faulty);
    free(faulty->trace);
    faulty->trace = NULL;
    pthread_mutex_destroy(&faulty->mutex);
}

bool test_faulty_io_clean(struct test_faulty_io *faulty)
{
    bool clean;
    pthread_mutex_lock(&faulty->mutex);
    clean = faulty->open_dirs == 0 && faulty->open_files == 0 && !faulty->batches;
    if (!clean)
        fprintf(stderr, "left open: %zu folders, %zu files%s\n", faulty->open_dirs,
                faulty->open_files, faulty->batches ? ", transfers not waited for" : "");
    pthread_mutex_unlock(&faulty->mutex);
    return clean;
}

void test_faulty_io_fail(struct test_faulty_io *faulty, const struct test_fault *fault)
{
    size_t slot = 0;
    TEST_REQUIRE(fault->nth > 0);
    pthread_mutex_lock(&faulty->mutex);
    while (slot < TEST_FAULTS_MAX && faulty->faults[slot].nth != 0)
        slot++;
    TEST_REQUIRE(slot < TEST_FAULTS_MAX);
    faulty->faults[slot] = *fault;
    faulty->faults[slot].nth += faulty->counts[fault->call];
    pthread_mutex_unlock(&faulty->mutex);
}

void test_faulty_io_fail_nth(struct test_faulty_io *faulty, size_t nth, int os_errno,
                             bool from_then_on)
{
    struct test_fault fault = {
        .nth = nth, .os_errno = os_errno, .from_then_on = from_then_on};
    test_faulty_io_fail(faulty, &fault);
}

void test_faulty_io_reset(struct test_faulty_io *faulty)
{
    pthread_mutex_lock(&faulty->mutex);
    memset(faulty->faults, 0, sizeof faulty->faults);
    memset(faulty->counts, 0, sizeof faulty->counts);
    faulty->fired = 0;
    faulty->read_bytes = 0;
    faulty->written_bytes = 0;
    faulty->hook = NULL;
    faulty->hook_ctx = NULL;
    faulty->hook_call = TEST_CALL_ANY;
    free(faulty->trace);
    faulty->trace = NULL;
    faulty->trace_count = 0;
    pthread_mutex_unlock(&faulty->mutex);
}

long test_faulty_io_find(const struct test_faulty_io *faulty, enum test_call call,
                         const char *name, size_t from)
{
    for (size_t i = from; i < faulty->trace_count; i++) {
        const struct test_call_event *event = &faulty->trace[i];
        if (event->call != call)
            continue;
        if (!name || strcmp(event->name, name) == 0 || strcmp(event->to, name) == 0)
            return (long)i;
    }
    return -1;
}

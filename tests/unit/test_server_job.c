/* A job between its two sides, the queue it waits in, and sockets whose peers go away. */
#include "job.h"
#include "queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { QUEUE_LIMIT = 10 };

/* Stands for a connection: counts what is done to it. */
struct connection {
    int suspended;
    int resumed;
};

static void suspend(void *connection)
{
    ((struct connection *)connection)->suspended++;
}

static void resume(void *connection)
{
    ((struct connection *)connection)->resumed++;
}

static const struct srv_waker waker = {suspend, resume};

static struct srv_job *make_job(bool stream)
{
    struct srv_buf body = {0};
    struct srv_job *job = srv_job_create(&body);

    assert_non_null(job);
    job->request.stream = stream;
    return job;
}

static struct srv_fault make_fault(void)
{
    struct srv_fault fault;

    srv_fault_set(&fault, 503, "stopping", NULL, "stopping");
    return fault;
}

static void expect_read(struct srv_job *job, const char *text)
{
    char bytes[256];
    size_t count = 0;

    assert_int_equal(srv_job_read_or_suspend(job, bytes, sizeof(bytes), &count),
                     SRV_READ_BYTES);
    assert_int_equal(count, strlen(text));
    assert_memory_equal(bytes, text, count);
}

static enum srv_job_read read_nothing(struct srv_job *job)
{
    char byte;
    size_t count = 0;
    enum srv_job_read result = srv_job_read_or_suspend(job, &byte, 1, &count);

    assert_int_not_equal(result, SRV_READ_BYTES);
    return result;
}

static void test_a_whole_answer_sleeps_until_it_is_done(void **state)
{
    struct connection connection = {0};
    struct srv_job *job = make_job(false);
    struct srv_buf body;

    (void)state;
    srv_job_attach(job, &connection, -1, &waker);
    assert_int_equal(srv_job_answer_or_suspend(job), SRV_ANSWER_WAIT);
    assert_int_equal(connection.suspended, 1);
    assert_true(srv_job_begin(job));
    assert_int_equal(connection.resumed, 0);
    srv_job_finish(job, "{}", 2);
    assert_int_equal(connection.resumed, 1);
    assert_int_equal(srv_job_answer_or_suspend(job), SRV_ANSWER_BODY);
    body = srv_job_take_body(job);
    assert_string_equal(body.data, "{}");
    srv_buf_deinit(&body);
    srv_job_detach(job);
    srv_job_unref(job);
}

static void test_a_stream_is_read_as_it_comes(void **state)
{
    struct connection connection = {0};
    struct srv_job *job = make_job(true);

    (void)state;
    srv_job_attach(job, &connection, -1, &waker);
    assert_int_equal(srv_job_answer_or_suspend(job), SRV_ANSWER_WAIT);
    assert_true(srv_job_begin(job));
    assert_int_equal(connection.resumed, 1);
    assert_int_equal(srv_job_answer_or_suspend(job), SRV_ANSWER_STREAM);
    assert_int_equal(read_nothing(job), SRV_READ_SUSPENDED);
    assert_true(srv_job_write(job, "one", 3));
    assert_int_equal(connection.resumed, 2);
    /* Awake already: it must not be resumed again. */
    assert_true(srv_job_write(job, "two", 3));
    assert_int_equal(connection.resumed, 2);
    expect_read(job, "onetwo");
    assert_int_equal(read_nothing(job), SRV_READ_SUSPENDED);
    srv_job_finish(job, "end", 3);
    assert_int_equal(connection.resumed, 3);
    expect_read(job, "end");
    assert_int_equal(read_nothing(job), SRV_READ_END);
    assert_int_equal(connection.suspended, 3);
    srv_job_detach(job);
    srv_job_unref(job);
}

static void test_a_fault_before_the_answer_is_a_status(void **state)
{
    struct connection connection = {0};
    struct srv_fault fault = make_fault();
    struct srv_job *job = make_job(true);

    (void)state;
    srv_job_attach(job, &connection, -1, &waker);
    assert_int_equal(srv_job_answer_or_suspend(job), SRV_ANSWER_WAIT);
    srv_job_fail(job, &fault);
    assert_int_equal(srv_job_answer_or_suspend(job), SRV_ANSWER_FAULT);
    assert_int_equal(job->fault.status, 503);
    srv_job_detach(job);
    srv_job_unref(job);
}

static void test_a_fault_after_the_answer_began_is_an_event(void **state)
{
    struct connection connection = {0};
    struct srv_fault fault = make_fault();
    struct srv_job *job = make_job(true);

    (void)state;
    srv_job_attach(job, &connection, -1, &waker);
    assert_true(srv_job_begin(job));
    srv_job_fail(job, &fault);
    assert_int_equal(srv_job_answer_or_suspend(job), SRV_ANSWER_STREAM);
    expect_read(job,
                "data: {\"error\":{\"message\":\"stopping\",\"type\":\"server_error\","
                "\"param\":null,\"code\":\"stopping\"}}\n\n");
    assert_int_equal(read_nothing(job), SRV_READ_END);
    srv_job_detach(job);
    srv_job_unref(job);
}

static void test_ticks_begin_a_waiting_stream_and_keep_it_alive(void **state)
{
    struct connection connection = {0};
    struct srv_job *job = make_job(true);

    (void)state;
    srv_job_attach(job, &connection, -1, &waker);
    assert_int_equal(srv_job_answer_or_suspend(job), SRV_ANSWER_WAIT);
    srv_job_tick(job);
    assert_int_equal(srv_job_answer_or_suspend(job), SRV_ANSWER_STREAM);
    /* Not read yet: no second comment. */
    srv_job_tick(job);
    srv_job_tick(job);
    expect_read(job, ": keep-alive\n\n");
    srv_job_tick(job);
    expect_read(job, ": keep-alive\n\n");
    /* A reply that flows needs none. */
    assert_true(srv_job_begin(job));
    srv_job_tick(job);
    assert_true(srv_job_write(job, "x", 1));
    expect_read(job, ": keep-alive\n\nx");
    srv_job_tick(job);
    assert_int_equal(read_nothing(job), SRV_READ_SUSPENDED);
    srv_job_detach(job);
    srv_job_unref(job);
}

static void test_a_whole_answer_is_not_ticked(void **state)
{
    struct connection connection = {0};
    struct srv_job *job = make_job(false);

    (void)state;
    srv_job_attach(job, &connection, -1, &waker);
    assert_int_equal(srv_job_answer_or_suspend(job), SRV_ANSWER_WAIT);
    srv_job_tick(job);
    assert_int_equal(connection.resumed, 0);
    assert_int_equal(job->out.length, 0);
    srv_job_detach(job);
    srv_job_unref(job);
}

static void test_a_closed_socket_cancels_and_wakes(void **state)
{
    struct connection connection = {0};
    struct srv_job *job = make_job(false);
    int ends[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    srv_job_attach(job, &connection, ends[0], &waker);
    assert_int_equal(srv_job_answer_or_suspend(job), SRV_ANSWER_WAIT);
    assert_false(srv_job_check_gone(job));
    assert_int_equal(write(ends[1], "x", 1), 1); /* the next request is no reason to go */
    assert_false(srv_job_check_gone(job));
    assert_int_equal(recv(ends[0], &(char){0}, 1, 0), 1);
    close(ends[1]);
    assert_true(srv_job_check_gone(job));
    assert_int_equal(connection.resumed, 1);
    assert_int_equal(srv_job_answer_or_suspend(job), SRV_ANSWER_GONE);
    assert_false(srv_job_begin(job));
    assert_false(srv_job_write(job, "x", 1));
    srv_job_detach(job);
    assert_true(srv_job_check_gone(job));
    assert_int_equal(connection.resumed, 1);
    close(ends[0]);
    srv_job_unref(job);
}

static void test_after_detach_the_connection_is_left_alone(void **state)
{
    struct connection connection = {0};
    struct srv_job *job = make_job(true);

    (void)state;
    srv_job_attach(job, &connection, 0, &waker);
    assert_int_equal(srv_job_answer_or_suspend(job), SRV_ANSWER_WAIT);
    srv_job_detach(job);
    assert_int_equal(job->fd, -1);
    assert_true(srv_job_check_gone(job));
    assert_false(srv_job_write(job, "x", 1));
    srv_job_finish(job, "x", 1);
    assert_int_equal(connection.resumed, 0);
    srv_job_unref(job);
}

static void test_the_queue_is_first_come_first_served_and_bounded(void **state)
{
    struct srv_queue queue;
    struct srv_job *jobs[QUEUE_LIMIT + 1];
    size_t waiting;
    size_t running;
    int i;

    (void)state;
    assert_true(srv_queue_init(&queue, QUEUE_LIMIT));
    for (i = 0; i <= QUEUE_LIMIT; i++)
        jobs[i] = make_job(false);
    for (i = 0; i < QUEUE_LIMIT; i++)
        assert_int_equal(srv_queue_push(&queue, jobs[i]), SRV_PUSH_OK);
    assert_false(srv_queue_has_room(&queue));
    assert_int_equal(srv_queue_push(&queue, jobs[QUEUE_LIMIT]), SRV_PUSH_FULL);
    assert_ptr_equal(srv_queue_take(&queue), jobs[0]);
    srv_queue_count(&queue, &waiting, &running);
    assert_int_equal(waiting, QUEUE_LIMIT - 1);
    assert_int_equal(running, 1);
    assert_int_equal(srv_queue_push(&queue, jobs[QUEUE_LIMIT]), SRV_PUSH_OK);
    srv_queue_done(&queue);
    for (i = 1; i <= QUEUE_LIMIT; i++) {
        assert_ptr_equal(srv_queue_take(&queue), jobs[i]);
        srv_queue_done(&queue);
    }
    for (i = 0; i <= QUEUE_LIMIT; i++)
        srv_job_unref(jobs[i]);
    srv_queue_deinit(&queue);
}

static void test_a_full_queue_drops_who_went_away(void **state)
{
    struct srv_queue queue;
    struct srv_job *last = make_job(false);
    int i;

    (void)state;
    assert_true(srv_queue_init(&queue, QUEUE_LIMIT));
    for (i = 0; i < QUEUE_LIMIT; i++) {
        struct srv_job *job = make_job(false);

        assert_int_equal(srv_queue_push(&queue, job), SRV_PUSH_OK);
        if (i % 2 == 1)
            srv_job_detach(job);
        srv_job_unref(job);
    }
    assert_true(srv_queue_has_room(&queue));
    assert_int_equal(srv_queue_push(&queue, last), SRV_PUSH_OK);
    for (i = 0; i < QUEUE_LIMIT / 2; i++) {
        struct srv_job *job = srv_queue_take(&queue);

        assert_ptr_not_equal(job, last);
        assert_int_equal(job->state, SRV_JOB_QUEUED);
        srv_queue_done(&queue);
    }
    assert_ptr_equal(srv_queue_take(&queue), last);
    srv_queue_done(&queue);
    srv_job_unref(last);
    srv_queue_deinit(&queue);
}

static void test_closing_ends_what_waits(void **state)
{
    struct srv_queue queue;
    struct srv_fault fault = make_fault();
    struct srv_job *job = make_job(false);

    (void)state;
    assert_true(srv_queue_init(&queue, QUEUE_LIMIT));
    assert_int_equal(srv_queue_push(&queue, job), SRV_PUSH_OK);
    srv_queue_close(&queue, &fault);
    assert_int_equal(srv_job_answer_or_suspend(job), SRV_ANSWER_FAULT);
    assert_null(srv_queue_take(&queue));
    assert_int_equal(srv_queue_push(&queue, job), SRV_PUSH_CLOSED);
    srv_job_unref(job);
    srv_queue_deinit(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_answer_sleeps_until_it_is_done),
        cmocka_unit_test(test_a_stream_is_read_as_it_comes),
        cmocka_unit_test(test_a_fault_before_the_answer_is_a_status),
        cmocka_unit_test(test_a_fault_after_the_answer_began_is_an_event),
        cmocka_unit_test(test_ticks_begin_a_waiting_stream_and_keep_it_alive),
        cmocka_unit_test(test_a_whole_answer_is_not_ticked),
        cmocka_unit_test(test_a_closed_socket_cancels_and_wakes),
        cmocka_unit_test(test_after_detach_the_connection_is_left_alone),
        cmocka_unit_test(test_the_queue_is_first_come_first_served_and_bounded),
        cmocka_unit_test(test_a_full_queue_drops_who_went_away),
        cmocka_unit_test(test_closing_ends_what_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

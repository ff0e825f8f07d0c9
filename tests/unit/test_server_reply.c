/* From token bytes to the answer that a client sees. */
#include "reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static const struct srv_usage usage = {
    .prompt_tokens = 10, .completion_tokens = 3, .cached_tokens = 9};

static struct srv_job *make_job(bool stream, bool include_usage, const char *stop)
{
    struct srv_buf body = {0};
    struct srv_job *job = srv_job_create(&body);

    assert_non_null(job);
    job->request.stream = stream;
    job->request.include_usage = include_usage;
    if (stop)
        job->request.stops[job->request.stop_count++] = strdup(stop);
    strcpy(job->id, "chatcmpl-1");
    job->model = "m";
    job->created_s = 5;
    assert_true(srv_job_begin(job));
    return job;
}

/* Runs the pieces through a reply; what the job then holds goes to `out`. */
static void run(struct srv_job *job, const char *const *pieces, size_t count,
                const char *reason, char *out, size_t size)
{
    struct srv_reply reply;
    size_t i;

    assert_true(srv_reply_begin(&reply, job));
    for (i = 0; i < count && !srv_reply_is_stopped(&reply); i++)
        assert_true(srv_reply_add(&reply, pieces[i], strlen(pieces[i])));
    assert_true(srv_reply_flush(&reply));
    assert_true(srv_reply_finish(&reply, reason, &usage));
    srv_reply_deinit(&reply);
    assert_true(job->out.length < size);
    memcpy(out, job->out.data, job->out.length + 1);
    srv_job_unref(job);
}

#define CHUNK(delta, reason)                                                             \
    "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":5,"   \
    "\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":" delta ",\"logprobs\":null,"   \
    "\"finish_reason\":" reason "}]}\n\n"
#define CHUNK_U(delta, reason)                                                           \
    "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":5,"   \
    "\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":" delta ",\"logprobs\":null,"   \
    "\"finish_reason\":" reason "}],\"usage\":null}\n\n"
#define USAGE                                                                            \
    "\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3,\"total_tokens\":13,"       \
    "\"prompt_tokens_details\":{\"cached_tokens\":9}}"

static void test_a_stream_cuts_no_character(void **state)
{
    static const char end_and_more[] = "\xAC"
                                       "b";
    const char *const pieces[] = {"a\xE2", "\x82", end_and_more, "\xF0\x9F"};
    char out[4096];

    (void)state;
    run(make_job(true, false, NULL), pieces, 4, "length", out, sizeof(out));
    assert_string_equal(
        out, CHUNK("{\"role\":\"assistant\",\"content\":\"\"}", "null")
                 CHUNK("{\"content\":\"a\"}", "null") CHUNK("{\"content\":\"\xE2\x82\xAC"
                                                            "b\"}",
                                                            "null")
                     CHUNK("{\"content\":\"\xEF\xBF\xBD\"}", "null")
                         CHUNK("{}", "\"length\"") "data: [DONE]\n\n");
}

static void test_a_stream_ends_with_usage_when_asked(void **state)
{
    const char *const pieces[] = {"hi"};
    char out[4096];

    (void)state;
    run(make_job(true, true, NULL), pieces, 1, "stop", out, sizeof(out));
    assert_string_equal(
        out,
        CHUNK_U("{\"role\":\"assistant\",\"content\":\"\"}", "null")
            CHUNK_U("{\"content\":\"hi\"}", "null") CHUNK_U(
                "{}",
                "\"stop\"") "data: "
                            "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\","
                            "\"created\":5,\"model\":\"m\",\"choices\":[]," USAGE "}\n\n"
                            "data: [DONE]\n\n");
}

static void test_a_stop_string_never_shows_in_part(void **state)
{
    const char *const pieces[] = {"one S", "TO", "P two"};
    char out[4096];

    (void)state;
    run(make_job(true, false, "STOP"), pieces, 3, "stop", out, sizeof(out));
    assert_string_equal(out, CHUNK("{\"role\":\"assistant\",\"content\":\"\"}", "null")
                                 CHUNK("{\"content\":\"one \"}", "null")
                                     CHUNK("{}", "\"stop\"") "data: [DONE]\n\n");
}

static void test_held_text_comes_out_at_the_end(void **state)
{
    const char *const pieces[] = {"one S", "TO"};
    char out[4096];

    (void)state;
    run(make_job(true, false, "STOP"), pieces, 2, "length", out, sizeof(out));
    assert_non_null(
        strstr(out, CHUNK("{\"content\":\"STO\"}", "null") CHUNK("{}", "\"length\"")));
}

static void test_a_whole_answer(void **state)
{
    const char *const pieces[] = {"say \"", "\xC3", "\xA9\"\n"};
    char out[4096];

    (void)state;
    run(make_job(false, false, NULL), pieces, 3, "stop", out, sizeof(out));
    assert_string_equal(
        out, "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":5,"
             "\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":{\"role\":"
             "\"assistant\",\"content\":\"say \\\"\xC3\xA9\\\"\\n\",\"refusal\":null},"
             "\"logprobs\":null,\"finish_reason\":\"stop\"}]," USAGE "}");
}

static void test_an_empty_answer_has_empty_content(void **state)
{
    char out[4096];
    json_t *json;
    const char *content = NULL;

    (void)state;
    run(make_job(false, false, NULL), NULL, 0, "stop", out, sizeof(out));
    json = json_loads(out, 0, NULL);
    assert_int_equal(
        json_unpack(json, "{s:[{s:{s:s}}]}", "choices", "message", "content", &content),
        0);
    assert_string_equal(content, "");
    json_decref(json);
}

#define TEXT_CHUNK(text, reason)                                                         \
    "data: {\"id\":\"chatcmpl-1\",\"object\":\"text_completion\",\"created\":5,"         \
    "\"model\":\"m\",\"choices\":[{\"index\":0,\"text\":" text ",\"logprobs\":null,"     \
    "\"finish_reason\":" reason "}]}\n\n"

static void test_a_streamed_completion_has_text_and_no_role(void **state)
{
    const char *const pieces[] = {"a\xE2\x82", "\xAC"};
    struct srv_job *job = make_job(true, false, NULL);
    char out[4096];

    (void)state;
    job->request.kind = SRV_REQUEST_COMPLETION;
    run(job, pieces, 2, "length", out, sizeof(out));
    assert_string_equal(out,
                        TEXT_CHUNK("\"a\"", "null") TEXT_CHUNK("\"\xE2\x82\xAC\"", "null")
                            TEXT_CHUNK("\"\"", "\"length\"") "data: [DONE]\n\n");
}

static void test_a_whole_completion(void **state)
{
    const char *const pieces[] = {"so ", "it is"};
    struct srv_job *job = make_job(false, false, NULL);
    char out[4096];

    (void)state;
    job->request.kind = SRV_REQUEST_COMPLETION;
    run(job, pieces, 2, "stop", out, sizeof(out));
    assert_string_equal(
        out, "{\"id\":\"chatcmpl-1\",\"object\":\"text_completion\",\"created\":5,"
             "\"model\":\"m\",\"choices\":[{\"index\":0,\"text\":\"so it is\","
             "\"logprobs\":null,\"finish_reason\":\"stop\"}]," USAGE "}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stream_cuts_no_character),
        cmocka_unit_test(test_a_stream_ends_with_usage_when_asked),
        cmocka_unit_test(test_a_stop_string_never_shows_in_part),
        cmocka_unit_test(test_held_text_comes_out_at_the_end),
        cmocka_unit_test(test_a_whole_answer),
        cmocka_unit_test(test_an_empty_answer_has_empty_content),
        cmocka_unit_test(test_a_streamed_completion_has_text_and_no_role),
        cmocka_unit_test(test_a_whole_completion),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Validation of chat and completion requests. */
#include "request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#define MESSAGES "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

static bool parse(const char *body, struct srv_request *request, struct srv_fault *fault)
{
    *fault = (struct srv_fault){0};
    return srv_request_parse(SRV_REQUEST_CHAT, body, strlen(body), request, fault);
}

/* A request with one more field beside the messages. */
static bool parse_with(const char *field, struct srv_request *request,
                       struct srv_fault *fault)
{
    char body[8192];

    snprintf(body, sizeof(body), "{" MESSAGES ",%s}", field);
    return parse(body, request, fault);
}

static void expect_refused(const char *body, int status, const char *param)
{
    struct srv_request request;
    struct srv_fault fault;

    assert_false(parse(body, &request, &fault));
    assert_int_equal(fault.status, status);
    assert_string_equal(fault.param, param);
    assert_true(param[0] == '\0' || strstr(fault.message, param) != NULL);
    assert_string_equal(fault.type, "invalid_request_error");
    assert_null(request.messages);
}

static void expect_field_refused(const char *field, const char *param)
{
    char body[8192];

    snprintf(body, sizeof(body), "{" MESSAGES ",%s}", field);
    expect_refused(body, 400, param);
}

static void expect_field_accepted(const char *field)
{
    struct srv_request request;
    struct srv_fault fault;

    if (!parse_with(field, &request, &fault))
        fail_msg("%s: %s", field, fault.message);
    srv_request_deinit(&request);
}

static void test_a_minimal_request_has_the_defaults(void **state)
{
    struct srv_request request;
    struct srv_fault fault;

    (void)state;
    assert_true(parse("{" MESSAGES "}", &request, &fault));
    assert_int_equal(request.message_count, 1);
    assert_string_equal(request.messages[0].role, "user");
    assert_string_equal(request.messages[0].content, "hi");
    assert_null(request.model);
    assert_int_equal(request.max_tokens, 0);
    assert_true(request.sampling.temperature == 1.0f);
    assert_true(request.sampling.top_p == 1.0f);
    assert_false(request.has_seed);
    assert_int_equal(request.stop_count, 0);
    assert_false(request.stream);
    assert_false(request.include_usage);
    srv_request_deinit(&request);
}

static void test_every_supported_field_is_read(void **state)
{
    struct srv_request request;
    struct srv_fault fault;

    (void)state;
    assert_true(
        parse_with("\"model\":\"m\",\"max_tokens\":7,\"temperature\":0.5,\"top_p\":0.25,"
                   "\"seed\":42,\"stop\":[\"a\",\"b\"],\"stream\":true,"
                   "\"stream_options\":{\"include_usage\":true}",
                   &request, &fault));
    assert_string_equal(request.model, "m");
    assert_int_equal(request.max_tokens, 7);
    assert_true(request.sampling.temperature == 0.5f);
    assert_true(request.sampling.top_p == 0.25f);
    assert_true(request.has_seed);
    assert_int_equal(request.sampling.seed, 42);
    assert_int_equal(request.stop_count, 2);
    assert_string_equal(request.stops[0], "a");
    assert_string_equal(request.stops[1], "b");
    assert_true(request.stream);
    assert_true(request.include_usage);
    srv_request_deinit(&request);
}

static void test_every_way_of_sampling_is_read(void **state)
{
    struct srv_request request;
    struct srv_fault fault;

    (void)state;
    assert_true(parse("{" MESSAGES "}", &request, &fault));
    assert_int_equal(request.sampling.top_k, 0);
    assert_true(request.sampling.min_p == 0.0f);
    assert_true(request.sampling.repetition_penalty == 1.0f);
    assert_true(request.sampling.frequency_penalty == 0.0f);
    assert_true(request.sampling.presence_penalty == 0.0f);
    srv_request_deinit(&request);
    assert_true(parse_with("\"top_k\":40,\"min_p\":0.125,\"repeat_penalty\":1.5,"
                           "\"frequency_penalty\":-2,\"presence_penalty\":0.5",
                           &request, &fault));
    assert_int_equal(request.sampling.top_k, 40);
    assert_true(request.sampling.min_p == 0.125f);
    assert_true(request.sampling.repetition_penalty == 1.5f);
    assert_true(request.sampling.frequency_penalty == -2.0f);
    assert_true(request.sampling.presence_penalty == 0.5f);
    srv_request_deinit(&request);
    assert_true(parse_with("\"top_k\":-1", &request, &fault));
    assert_int_equal(request.sampling.top_k, 0);
    srv_request_deinit(&request);
}

static void test_a_salt_has_up_to_256_bytes(void **state)
{
    struct srv_request request;
    struct srv_fault fault;
    char field[300];

    (void)state;
    snprintf(field, sizeof(field), "\"cache_salt\":\"%0256d\"", 0);
    assert_true(parse_with(field, &request, &fault));
    assert_int_equal(strlen(request.cache_salt), 256);
    srv_request_deinit(&request);
    snprintf(field, sizeof(field), "\"cache_salt\":\"%0257d\"", 0);
    expect_field_refused(field, "cache_salt");
}

static bool parse_completion(const char *body, struct srv_request *request,
                             struct srv_fault *fault)
{
    *fault = (struct srv_fault){0};
    return srv_request_parse(SRV_REQUEST_COMPLETION, body, strlen(body), request, fault);
}

static void test_prompts_are_texts_or_tokens(void **state)
{
    static const char *const texts[] = {"{\"prompt\":\"once\"}",
                                        "{\"prompt\":[\"once\"]}"};
    static const char *const tokens[] = {"{\"prompt\":[7,0,2147483647]}",
                                         "{\"prompt\":[[7,0,2147483647]]}"};
    struct srv_request request;
    struct srv_fault fault;
    size_t i;

    (void)state;
    for (i = 0; i < 2; i++) {
        assert_true(parse_completion(texts[i], &request, &fault));
        assert_int_equal(request.kind, SRV_REQUEST_COMPLETION);
        assert_string_equal(request.prompt, "once");
        assert_int_equal(request.prompt_token_count, 0);
        assert_int_equal(request.max_tokens, 16);
        srv_request_deinit(&request);
        assert_true(parse_completion(tokens[i], &request, &fault));
        assert_null(request.prompt);
        assert_int_equal(request.prompt_token_count, 3);
        assert_int_equal(request.prompt_tokens[0], 7);
        assert_int_equal(request.prompt_tokens[1], 0);
        assert_int_equal(request.prompt_tokens[2], INT32_MAX);
        srv_request_deinit(&request);
    }
}

static void test_bad_completions_are_refused_by_name(void **state)
{
    static const char *const bodies[][2] = {
        {"{}", "prompt"},
        {"{\"prompt\":null}", "prompt"},
        {"{\"prompt\":\"\"}", "prompt"},
        {"{\"prompt\":[]}", "prompt"},
        {"{\"prompt\":[[]]}", "prompt"},
        {"{\"prompt\":[\"\"]}", "prompt"},
        {"{\"prompt\":{}}", "prompt"},
        {"{\"prompt\":7}", "prompt"},
        {"{\"prompt\":[\"a\",\"b\"]}", "prompt"},
        {"{\"prompt\":[[1],[2]]}", "prompt"},
        {"{\"prompt\":[1,\"a\"]}", "prompt"},
        {"{\"prompt\":[1,-1]}", "prompt"},
        {"{\"prompt\":[1,2147483648]}", "prompt"},
        {"{\"prompt\":[1.5]}", "prompt"},
        {"{\"prompt\":\"x\",\"messages\":[]}", "messages"},
        {"{\"prompt\":\"x\",\"max_completion_tokens\":1}", "max_completion_tokens"},
        {"{\"prompt\":\"x\",\"echo\":true}", "echo"},
        {"{\"prompt\":\"x\",\"best_of\":2}", "best_of"},
        {"{\"prompt\":\"x\",\"suffix\":\"y\"}", "suffix"},
        {"{\"prompt\":\"x\",\"logprobs\":0}", "logprobs"},
    };
    struct srv_request request;
    struct srv_fault fault;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        if (parse_completion(bodies[i][0], &request, &fault))
            fail_msg("accepted: %s", bodies[i][0]);
        assert_int_equal(fault.status, 400);
        assert_string_equal(fault.param, bodies[i][1]);
        assert_null(request.prompt);
        assert_null(request.prompt_tokens);
    }
}

static void test_both_names_of_the_limit(void **state)
{
    struct srv_request request;
    struct srv_fault fault;

    (void)state;
    assert_true(parse_with("\"max_completion_tokens\":9", &request, &fault));
    assert_int_equal(request.max_tokens, 9);
    srv_request_deinit(&request);
    expect_field_accepted("\"max_tokens\":9,\"max_completion_tokens\":9");
    expect_field_refused("\"max_tokens\":8,\"max_completion_tokens\":9",
                         "max_completion_tokens");
}

static void test_seeds_differ_when_only_their_upper_half_does(void **state)
{
    struct srv_request request;
    struct srv_fault fault;

    (void)state;
    assert_true(parse_with("\"seed\":4294967296", &request, &fault));
    assert_int_equal(request.sampling.seed, 1);
    srv_request_deinit(&request);
    assert_true(parse_with("\"seed\":-1", &request, &fault));
    assert_true(request.has_seed);
    srv_request_deinit(&request);
}

static void test_content_in_parts_is_joined(void **state)
{
    struct srv_request request;
    struct srv_fault fault;

    (void)state;
    assert_true(
        parse("{\"messages\":[{\"role\":\"developer\",\"content\":["
              "{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]},"
              "{\"role\":\"user\",\"content\":\"\"},"
              "{\"role\":\"assistant\",\"content\":\"c\",\"refusal\":null,"
              "\"tool_calls\":[],\"annotations\":[]}]}",
              &request, &fault));
    assert_int_equal(request.message_count, 3);
    assert_string_equal(request.messages[0].role, "system");
    assert_string_equal(request.messages[0].content, "ab");
    assert_string_equal(request.messages[1].content, "");
    assert_string_equal(request.messages[2].role, "assistant");
    assert_string_equal(request.messages[2].content, "c");
    srv_request_deinit(&request);
}

static void test_unsupported_fields_are_refused_by_name(void **state)
{
    static const char *const fields[][2] = {
        {"\"n\":2", "n"},
        {"\"n\":1.0", "n"},
        {"\"tools\":[{\"type\":\"function\"}]", "tools"},
        {"\"tool_choice\":\"required\"", "tool_choice"},
        {"\"tool_choice\":{\"type\":\"function\"}", "tool_choice"},
        {"\"parallel_tool_calls\":1", "parallel_tool_calls"},
        {"\"functions\":[{}]", "functions"},
        {"\"function_call\":{\"name\":\"f\"}", "function_call"},
        {"\"logprobs\":true", "logprobs"},
        {"\"top_logprobs\":3", "top_logprobs"},
        {"\"logit_bias\":{\"1\":5}", "logit_bias"},
        {"\"response_format\":{\"type\":\"json_object\"}", "response_format"},
        {"\"response_format\":{\"type\":\"text\",\"x\":1}", "response_format"},
        {"\"prompt\":\"x\"", "prompt"},
        {"\"echo\":false", "echo"},
        {"\"modalities\":[\"text\",\"audio\"]", "modalities"},
        {"\"audio\":{\"voice\":\"x\"}", "audio"},
        {"\"prediction\":{\"type\":\"content\"}", "prediction"},
        {"\"reasoning_effort\":\"high\"", "reasoning_effort"},
        {"\"verbosity\":\"low\"", "verbosity"},
        {"\"web_search_options\":{}", "web_search_options"},
        {"\"store\":true", "store"},
        {"\"service_tier\":\"flex\"", "service_tier"},
        {"\"grammar\":\"x\"", "grammar"},
        {"\"stream\":true,\"stream_options\":{\"x\":1}", "stream_options"},
        {"\"stream_options\":{\"include_usage\":true}", "stream_options"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        expect_field_refused(fields[i][0], fields[i][1]);
}

static void test_defaults_of_unsupported_fields_are_accepted(void **state)
{
    static const char *const fields[] = {
        "\"n\":1",
        "\"n\":null",
        "\"tools\":[]",
        "\"tools\":null",
        "\"tool_choice\":\"none\"",
        "\"tool_choice\":\"auto\"",
        "\"parallel_tool_calls\":true",
        "\"functions\":[]",
        "\"logprobs\":false",
        "\"top_logprobs\":0",
        "\"logit_bias\":{}",
        "\"response_format\":{\"type\":\"text\"}",
        "\"top_k\":0",
        "\"top_k\":-1",
        "\"min_p\":0",
        "\"repetition_penalty\":1.25,\"repeat_penalty\":1.25",
        "\"cache_salt\":null",
        "\"frequency_penalty\":0",
        "\"presence_penalty\":0.0",
        "\"modalities\":[\"text\"]",
        "\"audio\":null",
        "\"store\":false",
        "\"service_tier\":\"auto\"",
        "\"user\":\"u\"",
        "\"metadata\":{\"k\":\"v\"}",
        "\"prompt_cache_key\":\"k\"",
        "\"safety_identifier\":\"s\"",
        "\"seed\":null",
        "\"stop\":null",
        "\"stop\":[]",
        "\"stream_options\":null",
        "\"stream_options\":{\"include_usage\":false}",
        "\"temperature\":0",
        "\"temperature\":2",
        "\"top_p\":1",
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        expect_field_accepted(fields[i]);
}

static void test_values_out_of_range_are_refused_by_name(void **state)
{
    static const char *const fields[][2] = {
        {"\"max_tokens\":0", "max_tokens"},
        {"\"max_tokens\":-1", "max_tokens"},
        {"\"max_tokens\":1.5", "max_tokens"},
        {"\"max_tokens\":3000000000", "max_tokens"},
        {"\"temperature\":-0.1", "temperature"},
        {"\"temperature\":2.1", "temperature"},
        {"\"temperature\":\"1\"", "temperature"},
        {"\"top_p\":0", "top_p"},
        {"\"top_p\":1.1", "top_p"},
        {"\"top_k\":-2", "top_k"},
        {"\"top_k\":1.5", "top_k"},
        {"\"top_k\":2147483648", "top_k"},
        {"\"min_p\":-0.1", "min_p"},
        {"\"min_p\":1.1", "min_p"},
        {"\"repetition_penalty\":0", "repetition_penalty"},
        {"\"repetition_penalty\":10.5", "repetition_penalty"},
        {"\"repeat_penalty\":\"1\"", "repeat_penalty"},
        {"\"repetition_penalty\":1.0,\"repeat_penalty\":1.1", "repeat_penalty"},
        {"\"repeat_penalty\":1.1,\"repetition_penalty\":1.0", "repetition_penalty"},
        {"\"frequency_penalty\":2.1", "frequency_penalty"},
        {"\"presence_penalty\":-2.1", "presence_penalty"},
        {"\"cache_salt\":\"\"", "cache_salt"},
        {"\"cache_salt\":1", "cache_salt"},
        {"\"seed\":1.5", "seed"},
        {"\"seed\":\"1\"", "seed"},
        {"\"stop\":\"\"", "stop"},
        {"\"stop\":[\"a\",\"\"]", "stop"},
        {"\"stop\":[1]", "stop"},
        {"\"stop\":[\"a\",\"b\",\"c\",\"d\",\"e\"]", "stop"},
        {"\"stream\":1", "stream"},
        {"\"stream_options\":[]", "stream_options"},
        {"\"stream\":true,\"stream_options\":{\"include_usage\":1}",
         "stream_options.include_usage"},
        {"\"model\":1", "model"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        expect_field_refused(fields[i][0], fields[i][1]);
}

static void test_bad_messages_are_refused_by_place(void **state)
{
    static const char *const bodies[][2] = {
        {"{}", "messages"},
        {"{\"messages\":null}", "messages"},
        {"{\"messages\":[]}", "messages"},
        {"{\"messages\":\"hi\"}", "messages"},
        {"{\"messages\":[1]}", "messages"},
        {"{\"messages\":[{\"content\":\"x\"}]}", "messages[0].role"},
        {"{\"messages\":[{\"role\":\"tool\",\"content\":\"x\"}]}", "messages[0].role"},
        {"{\"messages\":[{\"role\":\"user\"}]}", "messages[0].content"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":null}]}", "messages[0].content"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":[]}]}", "messages[0].content"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]}",
         "messages[0].content"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]}",
         "messages[0].content"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"x\"},"
         "{\"role\":\"user\",\"content\":\"x\",\"name\":\"bob\"}]}",
         "messages[1].name"},
        {"{\"messages\":[{\"role\":\"assistant\",\"content\":\"x\",\"tool_calls\":[{}]}]"
         "}",
         "messages[0].tool_calls"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"extra\":1}]}",
         "messages[0].extra"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        expect_refused(bodies[i][0], 400, bodies[i][1]);
}

static void test_what_is_no_json_object_is_refused(void **state)
{
    static const char *const bodies[] = {
        "",
        "[]",
        "1",
        "{" MESSAGES,
        "{" MESSAGES "}x",
        "{" MESSAGES "," MESSAGES "}", /* a key twice */
        "{\"messages\":[{\"role\":\"user\",\"content\":\"\\u0000\"}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"\xFF\"}]}",
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        expect_refused(bodies[i], 400, "");
}

static void test_depth_is_bounded_but_not_inside_strings(void **state)
{
    char field[400] = "\"metadata\":\"";
    char nested[200];

    (void)state;
    memset(field + strlen(field), '[', 100);
    strcat(field, "\\\"[[\"");
    expect_field_accepted(field);

    snprintf(nested, sizeof(nested), "{" MESSAGES ",\"metadata\":");
    memset(nested + strlen(nested), '[', SRV_JSON_DEPTH_MAX);
    expect_refused(nested, 400, "");
}

static void test_names_from_outside_are_made_printable(void **state)
{
    struct srv_request request;
    struct srv_fault fault;

    (void)state;
    assert_false(parse_with("\"a\\n\xC3\xA9\":1", &request, &fault));
    assert_string_equal(fault.param, "a\?\?\?");
    assert_string_equal(fault.message, "unknown field 'a\?\?\?'");
}

static void test_faults_encode_as_the_api_has_them(void **state)
{
    struct srv_fault fault;
    char *text;

    (void)state;
    srv_fault_set(&fault, 400, "invalid_value", "n", "bad \"%s\"", "n");
    text = srv_fault_encode(&fault);
    assert_string_equal(text, "{\"error\":{\"message\":\"bad \\\"n\\\"\","
                              "\"type\":\"invalid_request_error\",\"param\":\"n\","
                              "\"code\":\"invalid_value\"}}");
    free(text);
    srv_fault_set(&fault, 500, NULL, NULL, "broken");
    text = srv_fault_encode(&fault);
    assert_string_equal(text,
                        "{\"error\":{\"message\":\"broken\",\"type\":\"server_error\","
                        "\"param\":null,\"code\":null}}");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_minimal_request_has_the_defaults),
        cmocka_unit_test(test_every_supported_field_is_read),
        cmocka_unit_test(test_every_way_of_sampling_is_read),
        cmocka_unit_test(test_a_salt_has_up_to_256_bytes),
        cmocka_unit_test(test_prompts_are_texts_or_tokens),
        cmocka_unit_test(test_bad_completions_are_refused_by_name),
        cmocka_unit_test(test_both_names_of_the_limit),
        cmocka_unit_test(test_seeds_differ_when_only_their_upper_half_does),
        cmocka_unit_test(test_content_in_parts_is_joined),
        cmocka_unit_test(test_unsupported_fields_are_refused_by_name),
        cmocka_unit_test(test_defaults_of_unsupported_fields_are_accepted),
        cmocka_unit_test(test_values_out_of_range_are_refused_by_name),
        cmocka_unit_test(test_bad_messages_are_refused_by_place),
        cmocka_unit_test(test_what_is_no_json_object_is_refused),
        cmocka_unit_test(test_depth_is_bounded_but_not_inside_strings),
        cmocka_unit_test(test_names_from_outside_are_made_printable),
        cmocka_unit_test(test_faults_encode_as_the_api_has_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

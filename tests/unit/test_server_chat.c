/* Validation of chat completion requests. */
#include "chat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#define MESSAGES "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

static bool parse(const char *body, struct srv_chat *chat, struct srv_fault *fault)
{
    *fault = (struct srv_fault){0};
    return srv_chat_parse(body, strlen(body), chat, fault);
}

/* A request with one more field beside the messages. */
static bool parse_with(const char *field, struct srv_chat *chat, struct srv_fault *fault)
{
    char body[8192];

    snprintf(body, sizeof(body), "{" MESSAGES ",%s}", field);
    return parse(body, chat, fault);
}

static void expect_refused(const char *body, int status, const char *param)
{
    struct srv_chat chat;
    struct srv_fault fault;

    assert_false(parse(body, &chat, &fault));
    assert_int_equal(fault.status, status);
    assert_string_equal(fault.param, param);
    assert_true(param[0] == '\0' || strstr(fault.message, param) != NULL);
    assert_string_equal(fault.type, "invalid_request_error");
    assert_null(chat.messages);
}

static void expect_field_refused(const char *field, const char *param)
{
    char body[8192];

    snprintf(body, sizeof(body), "{" MESSAGES ",%s}", field);
    expect_refused(body, 400, param);
}

static void expect_field_accepted(const char *field)
{
    struct srv_chat chat;
    struct srv_fault fault;

    if (!parse_with(field, &chat, &fault))
        fail_msg("%s: %s", field, fault.message);
    srv_chat_deinit(&chat);
}

static void test_a_minimal_request_has_the_defaults(void **state)
{
    struct srv_chat chat;
    struct srv_fault fault;

    (void)state;
    assert_true(parse("{" MESSAGES "}", &chat, &fault));
    assert_int_equal(chat.message_count, 1);
    assert_string_equal(chat.messages[0].role, "user");
    assert_string_equal(chat.messages[0].content, "hi");
    assert_null(chat.model);
    assert_int_equal(chat.max_tokens, 0);
    assert_true(chat.temperature == 1.0f);
    assert_true(chat.top_p == 1.0f);
    assert_false(chat.has_seed);
    assert_int_equal(chat.stop_count, 0);
    assert_false(chat.stream);
    assert_false(chat.include_usage);
    srv_chat_deinit(&chat);
}

static void test_every_supported_field_is_read(void **state)
{
    struct srv_chat chat;
    struct srv_fault fault;

    (void)state;
    assert_true(
        parse_with("\"model\":\"m\",\"max_tokens\":7,\"temperature\":0.5,\"top_p\":0.25,"
                   "\"seed\":42,\"stop\":[\"a\",\"b\"],\"stream\":true,"
                   "\"stream_options\":{\"include_usage\":true}",
                   &chat, &fault));
    assert_string_equal(chat.model, "m");
    assert_int_equal(chat.max_tokens, 7);
    assert_true(chat.temperature == 0.5f);
    assert_true(chat.top_p == 0.25f);
    assert_true(chat.has_seed);
    assert_int_equal(chat.seed, 42);
    assert_int_equal(chat.stop_count, 2);
    assert_string_equal(chat.stops[0], "a");
    assert_string_equal(chat.stops[1], "b");
    assert_true(chat.stream);
    assert_true(chat.include_usage);
    srv_chat_deinit(&chat);
}

static void test_both_names_of_the_limit(void **state)
{
    struct srv_chat chat;
    struct srv_fault fault;

    (void)state;
    assert_true(parse_with("\"max_completion_tokens\":9", &chat, &fault));
    assert_int_equal(chat.max_tokens, 9);
    srv_chat_deinit(&chat);
    expect_field_accepted("\"max_tokens\":9,\"max_completion_tokens\":9");
    expect_field_refused("\"max_tokens\":8,\"max_completion_tokens\":9",
                         "max_completion_tokens");
}

static void test_seeds_differ_when_only_their_upper_half_does(void **state)
{
    struct srv_chat chat;
    struct srv_fault fault;

    (void)state;
    assert_true(parse_with("\"seed\":4294967296", &chat, &fault));
    assert_int_equal(chat.seed, 1);
    srv_chat_deinit(&chat);
    assert_true(parse_with("\"seed\":-1", &chat, &fault));
    assert_true(chat.has_seed);
    srv_chat_deinit(&chat);
}

static void test_content_in_parts_is_joined(void **state)
{
    struct srv_chat chat;
    struct srv_fault fault;

    (void)state;
    assert_true(
        parse("{\"messages\":[{\"role\":\"developer\",\"content\":["
              "{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]},"
              "{\"role\":\"user\",\"content\":\"\"},"
              "{\"role\":\"assistant\",\"content\":\"c\",\"refusal\":null,"
              "\"tool_calls\":[],\"annotations\":[]}]}",
              &chat, &fault));
    assert_int_equal(chat.message_count, 3);
    assert_string_equal(chat.messages[0].role, "system");
    assert_string_equal(chat.messages[0].content, "ab");
    assert_string_equal(chat.messages[1].content, "");
    assert_string_equal(chat.messages[2].role, "assistant");
    assert_string_equal(chat.messages[2].content, "c");
    srv_chat_deinit(&chat);
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
        {"\"frequency_penalty\":0.5", "frequency_penalty"},
        {"\"presence_penalty\":-1", "presence_penalty"},
        {"\"modalities\":[\"text\",\"audio\"]", "modalities"},
        {"\"audio\":{\"voice\":\"x\"}", "audio"},
        {"\"prediction\":{\"type\":\"content\"}", "prediction"},
        {"\"reasoning_effort\":\"high\"", "reasoning_effort"},
        {"\"verbosity\":\"low\"", "verbosity"},
        {"\"web_search_options\":{}", "web_search_options"},
        {"\"store\":true", "store"},
        {"\"service_tier\":\"flex\"", "service_tier"},
        {"\"top_k\":40", "top_k"},
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
    struct srv_chat chat;
    struct srv_fault fault;

    (void)state;
    assert_false(parse_with("\"a\\n\xC3\xA9\":1", &chat, &fault));
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

/*
 * Flags and operands of a subcommand, in every order in which people type them.
 */
#include "args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ARGC_MAX 8

struct line {
    bool force;
    bool quiet;
    bool parsed;
    int count;
    char *argv[ARGC_MAX + 1];
    struct cli_args_problem problem;
};

/* Parses the words (a list that ends with NULL) behind a command's name. */
static struct line parse(char *const *words)
{
    static char name[] = "command";
    struct line line = {.argv = {name}};
    const struct cli_flag flags[] = {
        {"force", 'f', &line.force},
        {"quiet", 'q', &line.quiet},
        {"other", 0, &line.quiet},
    };
    int argc = 1;
    for (; *words != NULL; words++) {
        assert_true(argc < ARGC_MAX);
        line.argv[argc++] = *words;
    }
    line.parsed = cli_args_parse(argc, line.argv, flags, 3, &line.count, &line.problem);
    return line;
}

static void flags_stand_anywhere(void **state)
{
    char *words[] = {"in", "--force", "out", "-q", NULL};
    (void)state;
    struct line line = parse(words);
    assert_true(line.parsed);
    assert_true(line.force);
    assert_true(line.quiet);
    assert_int_equal(line.count, 2);
    assert_string_equal(line.argv[1], "in");
    assert_string_equal(line.argv[2], "out");
}

static void letters_may_be_joined(void **state)
{
    char *words[] = {"-fq", NULL};
    (void)state;
    struct line line = parse(words);
    assert_true(line.parsed);
    assert_true(line.force && line.quiet);
    assert_int_equal(line.count, 0);
}

static void two_dashes_end_the_flags(void **state)
{
    char *words[] = {"-", "--", "--force", "-q", NULL};
    (void)state;
    struct line line = parse(words);
    assert_true(line.parsed);
    assert_false(line.force || line.quiet);
    assert_int_equal(line.count, 3);
    assert_string_equal(line.argv[1], "-");
    assert_string_equal(line.argv[2], "--force");
    assert_string_equal(line.argv[3], "-q");
}

static void an_unknown_flag_is_named_with_the_nearest(void **state)
{
    char *slip[] = {"--froce", NULL};
    char *wild[] = {"--something", NULL};
    char *letter[] = {"-fx", NULL};
    (void)state;
    struct line line = parse(slip);
    assert_false(line.parsed);
    assert_string_equal(line.problem.argument, "--froce");
    assert_string_equal(line.problem.nearest, "force");
    assert_false(line.problem.has_value);
    line = parse(wild);
    assert_false(line.parsed);
    assert_null(line.problem.nearest);
    line = parse(letter);
    assert_false(line.parsed);
    assert_string_equal(line.problem.argument, "-fx");
}

static void a_flag_takes_no_value_and_no_abbreviation(void **state)
{
    char *value[] = {"--force=yes", NULL};
    char *shorter[] = {"--forc", NULL};
    (void)state;
    struct line line = parse(value);
    assert_false(line.parsed);
    assert_true(line.problem.has_value);
    assert_string_equal(line.problem.nearest, "force");
    assert_false(line.force);
    line = parse(shorter);
    assert_false(line.parsed);
    assert_false(line.force);
}

static void help_is_asked_for_before_two_dashes_only(void **state)
{
    char *asked[] = {"command", "x", "-h", NULL};
    char *not_asked[] = {"command", "--", "--help", NULL};
    char *name[] = {"--help", NULL};
    (void)state;
    assert_true(cli_args_ask_help(3, asked));
    assert_false(cli_args_ask_help(3, not_asked));
    assert_false(cli_args_ask_help(1, name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_stand_anywhere),
        cmocka_unit_test(letters_may_be_joined),
        cmocka_unit_test(two_dashes_end_the_flags),
        cmocka_unit_test(an_unknown_flag_is_named_with_the_nearest),
        cmocka_unit_test(a_flag_takes_no_value_and_no_abbreviation),
        cmocka_unit_test(help_is_asked_for_before_two_dashes_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * `coldkv bench`: runs one benchmark of the library and prints what came out, as a table
 * while it runs or as JSON at the end. What is measured, and how, is bench/'s business.
 */
#include "args.h"
#include "command.h"
#include "output.h"

#include <bench.h>
#include <stdlib.h>
#include <string.h>

const char cli_bench_help[] =
    "Measures the library beside the limits of this machine, in the same run.\n"
    "\n"
    "    coldkv bench NAME [--json] [--pairs N] [--min-ms N] [--all]\n"
    "    coldkv bench --list\n"
    "\n"
    "Each case is measured in turn with its limit, over and over: the case, the limit,\n"
    "the limit, the case, and so on. `ratio` is the median of what the case reached of\n"
    "its limit pair by pair, with the quartiles of the pairs behind it. `A/A` is the\n"
    "case measured against itself in the same way: how far chance alone leads. Two\n"
    "numbers that differ by less than the quartiles of A/A are equal.\n"
    "\n"
    "    --json      a JSON array of {bench, case, value, unit, limit, ratio} and more:\n"
    "                limitName; ratioLow and ratioHigh, the quartiles; goal and\n"
    "                goalRatio, null where there is none; pairs. Each case has a second\n"
    "                row, \"CASE A/A\", whose limit is the case itself\n"
    "    --pairs N   how often each pair is measured: 1 to 999; default 9\n"
    "    --min-ms N  how long one measurement takes at least: 0 to 60000; default 10.\n"
    "                0 = a single run, too short for figures that mean something\n"
    "    --all       every combination instead of a representative set: takes minutes\n"
    "    --list      names the benchmarks, and says what each measures\n"
    "\n"
    "Examples:\n"
    "    coldkv bench codec\n"
    "    coldkv bench codec --pairs 25 --min-ms 50      on a busy machine\n"
    "    coldkv bench codec --json | jq '.[] | select(.goal) | [.case, .goalRatio]'\n"
    "\n"
    "Exit code: 0 measured, goals met or not; 1 it could not be done, or what was\n"
    "measured gave wrong results; 2 usage.\n";

struct run {
    bool as_json;
    bool list;
    const char *unit; /* of the header printed last; NULL = none */
    json_t *rows;     /* NULL in text mode, or after memory ran out */
    struct bench_options options;
};

static void print_header(const struct bench_result *result)
{
    printf("%-36s %7s %7s  %-19s  %-19s  %s\n", "case", result->unit, result->limit_name,
           "ratio (quartiles)", "A/A (quartiles)", "goal");
}

static void print_quartiles(const struct bench_quartiles *q)
{
    printf("  %5.3f (%5.3f-%5.3f)", q->median, q->low, q->high);
}

/* At least 1 = met. */
static double goal_ratio(const struct bench_result *result)
{
    return result->at_most ? result->goal / result->value : result->value / result->goal;
}

static void print_row(struct run *run, const struct bench_result *result)
{
    if (run->unit == NULL || strcmp(run->unit, result->unit) != 0)
        print_header(result);
    run->unit = result->unit;
    printf("%-36s %7.2f %7.2f", result->name, result->value, result->limit);
    print_quartiles(&result->ratio);
    print_quartiles(&result->itself);
    if (result->goal > 0)
        printf("  %g: %s", result->goal, goal_ratio(result) >= 1 ? "met" : "missed");
    putchar('\n');
}

/* One row; the case to its limit, or with `itself` to itself. */
static json_t *json_row(const struct bench_result *result, bool itself)
{
    const struct bench_quartiles *ratio = itself ? &result->itself : &result->ratio;
    bool has_goal = !itself && result->goal > 0;
    return json_pack("{s:s, s:s+, s:f, s:s, s:f, s:f, s:s, s:f, s:f, s:o, s:o, s:i}",
                     "bench", result->bench, "case", result->name, itself ? " A/A" : "",
                     "value", result->value, "unit", result->unit, "limit",
                     itself ? result->value : result->limit, "ratio", ratio->median,
                     "limitName", itself ? "itself" : result->limit_name, "ratioLow",
                     ratio->low, "ratioHigh", ratio->high, "goal",
                     has_goal ? json_real(result->goal) : json_null(), "goalRatio",
                     has_goal ? json_real(goal_ratio(result)) : json_null(), "pairs",
                     (int)result->pairs);
}

static void note_json(struct run *run, const struct bench_result *result)
{
    for (int itself = 0; itself < 2 && run->rows != NULL; itself++) {
        if (json_array_append_new(run->rows, json_row(result, itself == 1)) == 0)
            continue;
        json_decref(run->rows);
        run->rows = NULL;
    }
}

static void note(void *ctx, const struct bench_result *result)
{
    struct run *run = ctx;
    if (run->as_json) {
        note_json(run, result);
        return;
    }
    print_row(run, result);
    (void)cli_output_flush();
}

static int print_list(void)
{
    size_t count;
    const struct bench_suite *suites = bench_suites(&count);
    for (size_t i = 0; i < count; i++)
        printf("%s: %s\n\n%s", suites[i].name, suites[i].summary, suites[i].explanation);
    return CLI_EXIT_GOOD;
}

/* A decimal number from `low` to `high`, and nothing else. */
static bool read_number(const char *text, unsigned low, unsigned high, unsigned *out)
{
    char *end;
    if (text == NULL || *text < '0' || *text > '9')
        return false;
    unsigned long value = strtoul(text, &end, 10);
    if (*end != '\0' || value < low || value > high)
        return false;
    *out = (unsigned)value;
    return true;
}

/* Whether argv[at] is --name or --name=value; *width arguments then belong to it. */
static bool is_option(char **argv, int at, const char *name, const char **value,
                      int *width)
{
    size_t length = strlen(name);
    if (strncmp(argv[at], name, length) != 0)
        return false;
    if (argv[at][length] == '=') {
        *value = argv[at] + length + 1;
        *width = 1;
        return true;
    }
    *value = argv[at + 1]; /* NULL at the end */
    *width = *value == NULL ? 1 : 2;
    return argv[at][length] == '\0';
}

/* Takes the options with numbers out of argv, which ends with NULL. False after a
 * complaint. */
static bool take_numbers(int *argc, char **argv, struct bench_options *options)
{
    const struct {
        const char *name;
        unsigned low, high;
        unsigned *out;
    } numbers[] = {{"--pairs", 1, BENCH_PAIRS_MAX, &options->pairs},
                   {"--min-ms", 0, BENCH_MIN_MS_MAX, &options->min_ms}};
    int kept = 1;
    int at = 1;
    while (at < *argc && strcmp(argv[at], "--") != 0) {
        const char *value;
        int width = 0;
        size_t i = 0;
        while (i < 2 && !is_option(argv, at, numbers[i].name, &value, &width))
            i++;
        if (i == 2) {
            argv[kept++] = argv[at++];
            continue;
        }
        if (!read_number(value, numbers[i].low, numbers[i].high, numbers[i].out)) {
            (void)cli_usage_error("bench", "%s wants a number from %u to %u",
                                  numbers[i].name, numbers[i].low, numbers[i].high);
            return false;
        }
        at += width;
    }
    while (at < *argc)
        argv[kept++] = argv[at++];
    *argc = kept;
    return true;
}

static int no_such_bench(const char *typed)
{
    size_t count;
    const struct bench_suite *suites = bench_suites(&count);
    fputs("coldkv bench: there is no benchmark ", stderr);
    cli_print_escaped(stderr, typed);
    fputs("; there are:", stderr);
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, " %s", suites[i].name);
    fputs("\nTry: coldkv bench --list\n", stderr);
    return CLI_EXIT_USAGE;
}

static int run_suite(struct run *run, const struct bench_suite *suite)
{
    struct ckv_error error;
    ckv_error_clear(&error);
    if (run->as_json)
        run->rows = json_array();
    enum ckv_status status = suite->run(&run->options, note, run, &error);
    json_t *rows = run->rows;
    run->rows = NULL;
    if (status != CKV_OK) {
        cli_complain("bench", "%s", cli_error_text(&error, ""));
        json_decref(rows);
        return CLI_EXIT_FAILED;
    }
    if (run->as_json)
        return cli_print_json("bench", rows) ? CLI_EXIT_GOOD : CLI_EXIT_FAILED;
    return CLI_EXIT_GOOD;
}

int cli_bench_run(int argc, char **argv)
{
    struct run run = {0};
    bool unused = false;
    /* The last two were taken already; here they are for "did you mean". */
    const struct cli_flag flags[] = {
        {"json", 0, &run.as_json}, {"all", 0, &run.options.all}, {"list", 0, &run.list},
        {"pairs", 0, &unused},     {"min-ms", 0, &unused},
    };
    struct cli_args_problem problem;
    int count;
    bench_options_init(&run.options);
    if (!take_numbers(&argc, argv, &run.options))
        return CLI_EXIT_USAGE;
    if (!cli_args_parse(argc, argv, flags, sizeof flags / sizeof flags[0], &count,
                        &problem))
        return cli_usage_problem("bench", &problem);
    if (run.list && count == 0)
        return print_list();
    if (count != 1 || run.list)
        return cli_usage_error("bench", "wants exactly one NAME, or --list alone");
    const struct bench_suite *suite = bench_find(argv[1]);
    return suite == NULL ? no_such_bench(argv[1]) : run_suite(&run, suite);
}

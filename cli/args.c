/*
 * Owns the reading of a subcommand's command line. Nothing is printed here: a problem is
 * described, and the caller words it.
 */
#include "args.h"

#include "text.h"

#include <string.h>

#define FLAGS_MAX 16u

static const struct cli_flag *find_long(const struct cli_flag *flags, size_t count,
                                        const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(flags[i].name) == length && memcmp(flags[i].name, name, length) == 0)
            return &flags[i];
    }
    return NULL;
}

static bool take_long(const char *argument, const struct cli_flag *flags, size_t count,
                      struct cli_args_problem *problem)
{
    const char *name = argument + 2;
    size_t length = strcspn(name, "=");
    const struct cli_flag *flag = find_long(flags, count, name, length);
    if (flag != NULL && name[length] == '\0') {
        *flag->value = true;
        return true;
    }
    problem->argument = argument;
    problem->has_value = flag != NULL;
    if (flag != NULL) {
        problem->nearest = flag->name;
        return false;
    }
    const char *names[FLAGS_MAX + 1] = {NULL};
    for (size_t i = 0; i < count && i < FLAGS_MAX; i++)
        names[i] = flags[i].name;
    problem->nearest = cli_text_nearest(name, names);
    return false;
}

/* "-qf" is "-q -f". */
static bool take_short(const char *argument, const struct cli_flag *flags, size_t count,
                       struct cli_args_problem *problem)
{
    for (const char *letter = argument + 1; *letter != '\0'; letter++) {
        size_t i = 0;
        while (i < count && flags[i].letter != *letter)
            i++;
        if (i == count) {
            problem->argument = argument;
            return false;
        }
        *flags[i].value = true;
    }
    return true;
}

bool cli_args_parse(int argc, char **argv, const struct cli_flag *flags,
                    size_t flag_count, int *count, struct cli_args_problem *problem)
{
    bool flags_ended = false;
    int operands = 0;
    *problem = (struct cli_args_problem){0};
    *count = 0;
    for (int i = 1; i < argc; i++) {
        char *argument = argv[i];
        if (flags_ended || argument[0] != '-' || argument[1] == '\0') {
            argv[++operands] = argument;
            continue;
        }
        if (strcmp(argument, "--") == 0) {
            flags_ended = true;
            continue;
        }
        bool taken = argument[1] == '-'
                         ? take_long(argument, flags, flag_count, problem)
                         : take_short(argument, flags, flag_count, problem);
        if (!taken)
            return false;
    }
    *count = operands;
    return true;
}

bool cli_args_ask_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    }
    return false;
}

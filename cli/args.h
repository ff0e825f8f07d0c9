/* The command line: flags without values, and operands, in any order. */
#ifndef COLDKV_CLI_ARGS_H
#define COLDKV_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>

struct cli_flag {
    const char *name; /* long form without its dashes */
    char letter;      /* short form, or 0 */
    bool *value;      /* set to true when the flag is there */
};

/* What was wrong; the texts point into argv and the flags. */
struct cli_args_problem {
    const char *argument; /* as typed */
    const char *nearest;  /* flag that was probably meant, or NULL */
    bool has_value;       /* a known flag was given "=value" */
};

/**
 * Takes the flags out of argv[1..argc-1] and moves the operands up to argv[1..count], in
 * their order. "--" ends the flags; a lone "-" is an operand. False when an argument is
 * no known flag; *problem then says which.
 */
bool cli_args_parse(int argc, char **argv, const struct cli_flag *flags,
                    size_t flag_count, int *count, struct cli_args_problem *problem);

/* Whether "--help" or "-h" stands among the flags. */
bool cli_args_ask_help(int argc, char **argv);

#endif

/* What a subcommand of `coldkv` is, and how it ends. */
#ifndef COLDKV_CLI_COMMAND_H
#define COLDKV_CLI_COMMAND_H

/* Exit codes; stable, documented in docs/cli.md. */
enum cli_exit {
    CLI_EXIT_GOOD = 0,   /* done, and nothing is wrong with any file */
    CLI_EXIT_FAILED = 1, /* a file is bad, or the work could not be done */
    CLI_EXIT_USAGE = 2,  /* the command line makes no sense */
};

struct cli_command {
    const char *name;
    const char *summary; /* one line of the overview */
    const char *help;    /* the whole text; NULL = the command answers --help itself */
    /* argv[0] is the command's name. Returns an exit code. */
    int (*run)(int argc, char **argv);
};

extern const char cli_inspect_help[];
extern const char cli_verify_help[];
extern const char cli_repack_help[];
extern const char cli_bench_help[];

int cli_inspect_run(int argc, char **argv);
int cli_verify_run(int argc, char **argv);
int cli_repack_run(int argc, char **argv);
int cli_bench_run(int argc, char **argv);
int cli_serve_run(int argc, char **argv);

#endif

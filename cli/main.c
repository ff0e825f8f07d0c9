/*
 * The command `coldkv`: picks the subcommand, answers questions about itself, and turns
 * lost output into an exit code. The subcommands use the library's public headers only.
 */
#include "args.h"
#include "command.h"
#include "output.h"
#include "text.h"

#include <coldkv/export.h>
#include <stdio.h>
#include <string.h>

static const struct cli_command commands[] = {
    {"serve", "serve a model over HTTP, with a prompt cache that survives on disk", NULL,
     cli_serve_run},
    {"inspect", "show what a cache file holds", cli_inspect_help, cli_inspect_run},
    {"verify", "read cache files completely and compare every hash", cli_verify_help,
     cli_verify_run},
    {"repack", "read, verify and write a cache file again", cli_repack_help,
     cli_repack_run},
    {"bench", "measure the library beside the limits of this machine", cli_bench_help,
     cli_bench_run},
};

#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static const struct cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static void print_overview(FILE *out)
{
    fputs("coldkv keeps the prompt caches of language models on disk, so that a prompt "
          "that\n"
          "was evaluated once is never evaluated again.\n"
          "\n"
          "    coldkv COMMAND [arguments]\n"
          "\n",
          out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "    %-8s  %s\n", commands[i].name, commands[i].summary);
    fputs("    help      this text, or `coldkv help COMMAND`\n"
          "\n"
          "Examples:\n"
          "    coldkv serve --model model.gguf --ssd-cache ~/.cache/coldkv\n"
          "    coldkv verify ~/.cache/coldkv\n"
          "    coldkv inspect --json entry.mlxkv\n"
          "\n"
          "Exit codes: 0 good; 1 a file is bad or the work could not be done; 2 usage.\n"
          "`coldkv --version` names the version of the command and of the library.\n",
          out);
}

static int unknown_command(const char *typed)
{
    const char *names[COMMAND_COUNT + 2] = {"help"};
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i + 1] = commands[i].name;
    const char *nearest = cli_text_nearest(typed, names);
    fputs("coldkv: there is no command ", stderr);
    cli_print_escaped(stderr, typed);
    if (nearest != NULL)
        fprintf(stderr, "; did you mean `coldkv %s`?", nearest);
    fputs("\nTry: coldkv help\n", stderr);
    return CLI_EXIT_USAGE;
}

static int help_on(const struct cli_command *command)
{
    if (command->help == NULL) {
        char name[16];
        char help[] = "--help";
        snprintf(name, sizeof name, "%s", command->name);
        char *argv[] = {name, help, NULL};
        return command->run(2, argv);
    }
    fputs(command->help, stdout);
    return CLI_EXIT_GOOD;
}

static int run_help(int argc, char **argv)
{
    if (argc < 2) {
        print_overview(stdout);
        return CLI_EXIT_GOOD;
    }
    const struct cli_command *command = find_command(argv[1]);
    return command == NULL ? unknown_command(argv[1]) : help_on(command);
}

static int run_version(void)
{
    if (strcmp(CKV_VERSION_STRING, ckv_version()) == 0)
        printf("coldkv %s\n", CKV_VERSION_STRING);
    else
        printf("coldkv %s with library %s\n", CKV_VERSION_STRING, ckv_version());
    return CLI_EXIT_GOOD;
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_overview(stderr);
        return CLI_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        return run_version();
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 ||
        strcmp(name, "-h") == 0)
        return run_help(argc - 1, argv + 1);
    const struct cli_command *command = find_command(name);
    if (command == NULL)
        return unknown_command(name);
    if (command->help != NULL && cli_args_ask_help(argc - 1, argv + 1))
        return help_on(command);
    return command->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    cli_output_init();
    return cli_output_finish(run(argc, argv));
}

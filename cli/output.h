/* Where the command's words go: answers to stdout, everything else to stderr. */
#ifndef COLDKV_CLI_OUTPUT_H
#define COLDKV_CLI_OUTPUT_H

#include "args.h"

#include <coldkv/export.h>
#include <coldkv/status.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Before anything is opened: makes sure that descriptors 0 to 2 are taken, so that no
 * file is mistaken for stdout, and turns a closed pipe into a write error. */
void cli_output_init(void);

/* Whether everything written to stdout arrived so far; flushes it. */
bool cli_output_flush(void);

/* Ends the program's output. Returns `code`, or CLI_EXIT_FAILED when stdout was lost. */
int cli_output_finish(int code);

/* Prints `text` escaped. */
void cli_print_escaped(FILE *out, const char *text);

/* "coldkv COMMAND: message" as one line on stderr. */
void cli_complain(const char *command, const char *format, ...) CKV_PRINTF(2, 3);

/* Complains about a file: its path as typed, escaped, then what the error says. */
void cli_complain_file(const char *command, const char *path,
                       const struct ckv_error *error);

/* The error's text, or what the status means when it has none; without "NAME: " at its
 * beginning, for callers that have named the file already. */
const char *cli_error_text(const struct ckv_error *error, const char *path);

/* Says what is wrong with the command line and where help is. Returns CLI_EXIT_USAGE. */
int cli_usage_problem(const char *command, const struct cli_args_problem *problem);
int cli_usage_error(const char *command, const char *format, ...) CKV_PRINTF(2, 3);

/* A JSON string: `text` itself when it is UTF-8, else its escaped form. */
json_t *cli_json_text(const char *text);

/* Prints the value to stdout as ASCII with a newline, and drops the reference. `value`
 * NULL or incomplete memory: complains, false. */
bool cli_print_json(const char *command, json_t *value);

/* A bar on stderr while something long runs; only on a terminal, else it does nothing. */
struct cli_progress {
    const char *label;
    bool on;
    bool drawn;
    int64_t next_ns; /* not redrawn before */
    uint64_t done_bytes;
    uint64_t total_bytes;
};

void cli_progress_start(struct cli_progress *progress, const char *label, bool wanted,
                        uint64_t total_bytes);
void cli_progress_update(struct cli_progress *progress, uint64_t done_bytes);
/* Wipes the bar, before something else is printed and at the end. */
void cli_progress_clear(struct cli_progress *progress);

#endif

/*
 * Owns stdout and stderr. Invariant: bytes from files, names and the command line reach
 * them only escaped. A write to stdout that fails is remembered by stdio and becomes the
 * exit code at the end, so callers print without looking.
 */
#include "output.h"

#include "command.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cli_output_init(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) != -1 || errno != EBADF)
            continue;
        /* The wrong way round on purpose: using it fails instead of being lost. */
        if (open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            _exit(CLI_EXIT_FAILED);
    }
    signal(SIGPIPE, SIG_IGN);
}

bool cli_output_flush(void)
{
    return fflush(stdout) == 0 && !ferror(stdout);
}

/* Whether nobody reads stdout any more: then there is nobody to complain to. */
static bool reader_is_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

int cli_output_finish(int code)
{
    if (cli_output_flush())
        return code;
    if (!reader_is_gone())
        fputs("coldkv: the output could not be written\n", stderr);
    return code == CLI_EXIT_GOOD ? CLI_EXIT_FAILED : code;
}

void cli_print_escaped(FILE *out, const char *text)
{
    char shown[512];
    while (*text != '\0') {
        char piece[sizeof shown / CLI_ESCAPED_BYTE_MAX];
        size_t length = strnlen(text, sizeof piece - 1);
        memcpy(piece, text, length);
        piece[length] = '\0';
        cli_text_escape(piece, shown, sizeof shown);
        fputs(shown, out);
        text += length;
    }
}

static void complain(const char *command, const char *format, va_list args)
{
    fprintf(stderr, "coldkv %s: ", command);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

void cli_complain(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(command, format, args);
    va_end(args);
}

const char *cli_error_text(const struct ckv_error *error, const char *path)
{
    if (error->text[0] == '\0')
        return ckv_status_text(error->status);
    const char *slash = strrchr(path, '/');
    char shown[CKV_ERROR_TEXT_SIZE];
    const char *names[] = {path, slash == NULL ? path : slash + 1};
    for (size_t i = 0; i < 2; i++) {
        size_t length = cli_text_escape(names[i], shown, sizeof shown);
        if (length > 0 && length < sizeof shown &&
            strncmp(error->text, shown, length) == 0 &&
            strncmp(error->text + length, ": ", 2) == 0)
            return error->text + length + 2;
    }
    return error->text;
}

void cli_complain_file(const char *command, const char *path,
                       const struct ckv_error *error)
{
    fprintf(stderr, "coldkv %s: ", command);
    cli_print_escaped(stderr, path);
    fprintf(stderr, ": %s\n", cli_error_text(error, path));
}

static int point_to_help(const char *command)
{
    fprintf(stderr, "Try: coldkv %s --help\n", command);
    return CLI_EXIT_USAGE;
}

int cli_usage_problem(const char *command, const struct cli_args_problem *problem)
{
    fprintf(stderr, "coldkv %s: ", command);
    if (problem->has_value) {
        fprintf(stderr, "--%s takes no value\n", problem->nearest);
        return point_to_help(command);
    }
    fputs("unknown option ", stderr);
    cli_print_escaped(stderr, problem->argument);
    if (problem->nearest != NULL)
        fprintf(stderr, "; did you mean --%s?", problem->nearest);
    fputc('\n', stderr);
    return point_to_help(command);
}

int cli_usage_error(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(command, format, args);
    va_end(args);
    return point_to_help(command);
}

json_t *cli_json_text(const char *text)
{
    if (cli_text_is_utf8(text))
        return json_string(text);
    size_t size = cli_text_escape(text, NULL, 0) + 1;
    char *shown = malloc(size);
    if (shown == NULL)
        return NULL;
    cli_text_escape(text, shown, size);
    json_t *value = json_string(shown);
    free(shown);
    return value;
}

/* jansson leaves DEL as it is; JSON allows that, a terminal need not see it. */
static int write_ascii(const char *data, size_t size, void *out)
{
    for (size_t i = 0; i < size; i++) {
        if (data[i] == 0x7f)
            fputs("\\u007f", out);
        else
            fputc(data[i], out);
    }
    return 0;
}

bool cli_print_json(const char *command, json_t *value)
{
    if (value == NULL || json_dump_callback(value, write_ascii, stdout,
                                            JSON_INDENT(2) | JSON_ENSURE_ASCII) != 0) {
        cli_complain(command, "out of memory");
        json_decref(value);
        return false;
    }
    json_decref(value);
    putchar('\n');
    return true;
}

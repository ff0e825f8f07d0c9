/* The command line of `coldkv serve`.
 * Invariant: every option stands once in the table, which also makes the parser; the help
 * text stands beside it. Failure: one line on stderr that names the option and what it
 * wants. */
#include "options.h"

#include <coldkv/store.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { KIND_TEXT, KIND_PORT, KIND_COUNT, KIND_SIZE, KIND_FLAG };

struct option {
    const char *name;
    enum kind kind;
    size_t offset;
    uint64_t low;
    uint64_t high;
};

#define FIELD(member) offsetof(struct srv_options, member)

static const struct option options[] = {
    {"--model", KIND_TEXT, FIELD(model), 0, 0},
    {"--host", KIND_TEXT, FIELD(host), 0, 0},
    {"--port", KIND_PORT, FIELD(port), 0, UINT16_MAX},
    {"--ctx-size", KIND_COUNT, FIELD(context_size), 64, 1u << 24},
    {"--threads", KIND_COUNT, FIELD(thread_count), 1, 512},
    {"--chat-template", KIND_TEXT, FIELD(chat_template), 0, 0},
    {"--ssd-cache", KIND_TEXT, FIELD(cache_dir), 0, 0},
    {"--ssd-cache-max", KIND_SIZE, FIELD(cache_max_bytes), 0, 0},
    {"--ssd-cache-free-floor", KIND_SIZE, FIELD(cache_free_floor_bytes), 0, 0},
    {"--ssd-cache-init", KIND_FLAG, FIELD(cache_init), 0, 0},
    {"--ssd-cache-allow-shared-dir", KIND_FLAG, FIELD(cache_allow_shared), 0, 0},
    {"--prompt-cache", KIND_SIZE, FIELD(prompt_cache_bytes), 0, 0},
    {"--ssd-demote-idle", KIND_COUNT, FIELD(demote_idle_s), 1, 1u << 30},
    {"--spill-queue", KIND_SIZE, FIELD(spill_queue_bytes), 0, 0},
    {"--min-tokens", KIND_COUNT, FIELD(min_tokens), 1, 1u << 24},
    {"--min-growth", KIND_COUNT, FIELD(min_growth_tokens), 1, 1u << 24},
    {"--shutdown-timeout", KIND_COUNT, FIELD(shutdown_timeout_s), 1, 86400},
    {"--api-key-file", KIND_TEXT, FIELD(api_key_file), 0, 0},
    {"--trace", KIND_TEXT, FIELD(trace_file), 0, 0},
    {"--keepalive", KIND_COUNT, FIELD(keepalive_s), 1, 3600},
};

static const char help[] =
    "Usage: coldkv serve --model FILE [--ssd-cache DIR] [options]\n"
    "\n"
    "Serves a GGUF model over HTTP in the manner of the OpenAI API, and remembers every "
    "prompt\n"
    "it has evaluated: its key/value cache goes to DIR after the reply, and is read back "
    "when a\n"
    "later prompt begins with the same tokens, also after a restart.\n"
    "\n"
    "  --model FILE             the model (GGUF)\n"
    "  --host ADDRESS           address to listen on (default 127.0.0.1); any address "
    "that\n"
    "                           others can reach needs --api-key-file\n"
    "  --port N                 port (default 8080); 0 takes a free one, see the line "
    "printed\n"
    "  --ctx-size N             tokens of context (default: what the model was trained "
    "with)\n"
    "  --threads N              threads that compute (default: one per processor, at "
    "most 16)\n"
    "  --chat-template NAME     format of the conversation, when the model's own is "
    "missing or\n"
    "                           unknown; known families only, this is no Jinja engine\n"
    "\n"
    "The cold tier:\n"
    "  --ssd-cache DIR          keep prompt caches in this folder (made when missing)\n"
    "  --ssd-cache-max SIZE     most bytes it may take, such as 512M or 8G (default: "
    "32G, or\n"
    "                           a fifth of the free space when that is less)\n"
    "  --ssd-cache-free-floor SIZE\n"
    "                           store nothing when less than this is free on the disk\n"
    "                           (default: 2G, or a twentieth of the disk when that is "
    "more)\n"
    "  --ssd-cache-init         use DIR although it holds other things\n"
    "  --ssd-cache-allow-shared-dir\n"
    "                           use DIR although others own it or may write there\n"
    "  --prompt-cache SIZE      most bytes of prompt caches in memory (default: 8G, or a "
    "quarter\n"
    "                           of the machine's memory when that is less); 0 keeps "
    "none\n"
    "  --ssd-demote-idle SECONDS\n"
    "                           give the memory back of what was not used for so long, "
    "and\n"
    "                           leave it to the disk (default: never)\n"
    "  --spill-queue SIZE       most bytes that wait to be written (default 2G); beyond "
    "it the\n"
    "                           oldest is not stored\n"
    "  --min-tokens N           do not store fewer tokens than this (default 256)\n"
    "  --min-growth N           store a conversation again only when it grew by so many "
    "tokens\n"
    "                           (default: 256, or a twentieth when that is more); at "
    "the end\n"
    "                           and on a flush it is stored in any case\n"
    "  --shutdown-timeout SECONDS\n"
    "                           how long SIGTERM may take to store the rest (default "
    "120)\n"
    "\n"
    "Access and diagnosis:\n"
    "  --api-key-file FILE      the first line is the key; clients must send it as\n"
    "                           'Authorization: Bearer KEY' (all but /health)\n"
    "  --keepalive SECONDS      how often a waiting stream gets a comment (default 10)\n"
    "  --trace FILE             append one JSON line per request, with token ids: "
    "whoever reads\n"
    "                           it can read the prompts (mode 0600)\n"
    "  --help                   this text\n"
    "\n"
    "When it is ready it prints one line, `coldkv: listening on http://HOST:PORT`. Ask "
    "it:\n"
    "\n"
    "  curl http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: "
    "application/json' \\\n"
    "       -d '{\"messages\": [{\"role\": \"user\", \"content\": \"What is a "
    "cache?\"}]}'\n"
    "\n"
    "and see in usage.prompt_tokens_details.cached_tokens what did not have to be "
    "evaluated.\n"
    "Also: GET /v1/models, GET /health, GET /stats, GET /metrics (Prometheus), and\n"
    "POST /admin/cache/flush, which stores everything and proves it.\n"
    "\n"
    "SIGTERM or Ctrl-C ends the running reply, stores it and exits; a second one exits "
    "at once.\n"
    "Exit status: 0 after a signal, 1 when it cannot run, 2 when the command line is "
    "wrong.\n";

bool srv_number_parse(const char *text, uint64_t low, uint64_t high, uint64_t *number)
{
    char *end;
    unsigned long long value;

    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < low || value > high)
        return false;
    *number = value;
    return true;
}

/* "", "B", and the like after a number: how many bits to shift. */
static bool unit_shift(const char *unit, unsigned *shift)
{
    static const char letters[] = "KMGT";
    const char *letter;

    *shift = 0;
    if (*unit == '\0')
        return true;
    letter = strchr(letters, *unit >= 'a' && *unit <= 'z' ? *unit - 'a' + 'A' : *unit);
    if (!letter)
        return strcmp(unit, "B") == 0;
    *shift = 10u * ((unsigned)(letter - letters) + 1);
    return unit[1] == '\0' || strcmp(unit + 1, "iB") == 0 || strcmp(unit + 1, "B") == 0;
}

bool srv_size_parse(const char *text, uint64_t *bytes)
{
    char *end;
    unsigned long long value;
    unsigned shift;

    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    value = strtoull(text, &end, 10);
    /* The largest value stands for "default" where the size ends up. */
    if (errno != 0 || !unit_shift(end, &shift) || value > (CKV_DEFAULT - 1) >> shift)
        return false;
    *bytes = (uint64_t)value << shift;
    return true;
}

static const struct option *find_option(const char *name, size_t length)
{
    size_t i;

    for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (strlen(options[i].name) == length &&
            memcmp(options[i].name, name, length) == 0)
            return &options[i];
    }
    return NULL;
}

static bool set_option(const struct option *option, const char *value,
                       struct srv_options *out)
{
    void *field = (char *)out + option->offset;
    uint64_t number = 0;

    switch (option->kind) {
    case KIND_TEXT:
        *(const char **)field = value;
        return value[0] != '\0';
    case KIND_FLAG:
        *(bool *)field = true;
        return true;
    case KIND_SIZE:
        return srv_size_parse(value, (uint64_t *)field);
    case KIND_PORT:
        if (!srv_number_parse(value, option->low, option->high, &number))
            return false;
        *(uint16_t *)field = (uint16_t)number;
        return true;
    case KIND_COUNT:
        if (!srv_number_parse(value, option->low, option->high, &number))
            return false;
        *(uint32_t *)field = (uint32_t)number;
        return true;
    }
    return false;
}

static enum srv_parse_result complain(const struct option *option, const char *value)
{
    switch (option->kind) {
    case KIND_SIZE:
        fprintf(stderr, "coldkv serve: %s wants a size such as 512M or 8G, not \"%s\"\n",
                option->name, value);
        break;
    case KIND_PORT:
    case KIND_COUNT:
        fprintf(stderr, "coldkv serve: %s wants a number from %llu to %llu, not \"%s\"\n",
                option->name, (unsigned long long)option->low,
                (unsigned long long)option->high, value);
        break;
    case KIND_TEXT:
    case KIND_FLAG:
        fprintf(stderr, "coldkv serve: %s wants a value\n", option->name);
        break;
    }
    return SRV_PARSE_USAGE;
}

/* Takes the option at argv[*at], with its value from "--name=value" or from the next
 * argument. */
static enum srv_parse_result parse_one(int argc, char **argv, int *at,
                                       struct srv_options *out)
{
    const char *argument = argv[*at];
    size_t length = strcspn(argument, "=");
    const struct option *option = find_option(argument, length);
    const char *value = "";

    if (!option) {
        fprintf(stderr, "coldkv serve: unknown argument \"%s\" (try --help)\n", argument);
        return SRV_PARSE_USAGE;
    }
    if (option->kind == KIND_FLAG && argument[length] == '=') {
        fprintf(stderr, "coldkv serve: %s takes no value\n", option->name);
        return SRV_PARSE_USAGE;
    }
    if (argument[length] == '=')
        value = argument + length + 1;
    else if (option->kind != KIND_FLAG && *at + 1 < argc)
        value = argv[++*at];
    return set_option(option, value, out) ? SRV_PARSE_OK : complain(option, value);
}

enum srv_parse_result srv_options_parse(int argc, char **argv, struct srv_options *out)
{
    int i;

    *out = (struct srv_options){
        .host = "127.0.0.1",
        .port = 8080,
        .cache_max_bytes = CKV_DEFAULT,
        .cache_free_floor_bytes = CKV_DEFAULT,
        .prompt_cache_bytes = CKV_DEFAULT,
        .spill_queue_bytes = CKV_DEFAULT,
        .min_tokens = 256,
        .shutdown_timeout_s = 120,
        .keepalive_s = 10,
    };
    for (i = 1; i < argc; i++) {
        enum srv_parse_result result;

        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(help, stdout);
            return SRV_PARSE_HELP;
        }
        result = parse_one(argc, argv, &i, out);
        if (result != SRV_PARSE_OK)
            return result;
    }
    if (!out->model) {
        fprintf(stderr, "coldkv serve: --model FILE is needed (try --help)\n");
        return SRV_PARSE_USAGE;
    }
    return SRV_PARSE_OK;
}

char *srv_key_load(const char *path, char *why, size_t why_size)
{
    char line[1024] = "";
    FILE *file = fopen(path, "re");
    size_t length;
    size_t i;

    if (!file) {
        snprintf(why, why_size, "%s", strerror(errno));
        return NULL;
    }
    if (!fgets(line, sizeof(line), file))
        line[0] = '\0';
    fclose(file);
    length = strcspn(line, "\r\n");
    if (length == sizeof(line) - 1) {
        snprintf(why, why_size, "its first line is too long");
        return NULL;
    }
    line[length] = '\0';
    for (i = 0; i < length && line[i] > 0x20 && line[i] < 0x7F; i++) {}
    if (length == 0 || i < length) {
        snprintf(why, why_size,
                 "its first line is no key (printable ASCII without spaces)");
        return NULL;
    }
    return strdup(line);
}

#ifndef COLDKV_SERVER_OPTIONS_H
#define COLDKV_SERVER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the command line says. Strings are borrowed from argv, except `api_key`. */
struct srv_options {
    const char *model;
    const char *host;
    uint16_t port;
    uint32_t context_size; /* 0 = the model's own */
    uint32_t thread_count; /* 0 = one for each processor, at most 16 */
    const char *chat_template;
    const char *cache_dir;           /* NULL = no cold tier */
    uint64_t cache_max_bytes;        /* CKV_DEFAULT = the store's own default */
    uint64_t cache_free_floor_bytes; /* likewise */
    bool cache_init;
    bool cache_allow_shared;
    uint64_t prompt_cache_bytes; /* RAM; CKV_DEFAULT = see srv_cold_options */
    uint64_t spill_queue_bytes;  /* CKV_DEFAULT = the queue's own default */
    uint32_t demote_idle_s;      /* 0 = never */
    uint32_t min_tokens;
    uint32_t min_growth_tokens; /* 0 = the larger of 256 and 5 % */
    uint32_t shutdown_timeout_s;
    const char *api_key_file;
    const char *trace_file;
    uint32_t keepalive_s;
};

enum srv_parse_result {
    SRV_PARSE_OK,
    SRV_PARSE_HELP,  /* help was printed on stdout */
    SRV_PARSE_USAGE, /* what is wrong was printed on stderr */
};

/* argv[0] is skipped. */
enum srv_parse_result srv_options_parse(int argc, char **argv, struct srv_options *out);

/* "4096", "512M", "8G", "8GiB": bytes, with K, M, G and T as powers of 1024. */
bool srv_size_parse(const char *text, uint64_t *bytes);

/* Whole decimal number from `low` to `high`. */
bool srv_number_parse(const char *text, uint64_t low, uint64_t high, uint64_t *number);

/* First line of the file, without its line end, on the heap. NULL with the reason in
 * `why`: not readable, empty, or with bytes that cannot be in a header. */
char *srv_key_load(const char *path, char *why, size_t why_size);

#endif

/*
 * `coldkv inspect`: one file's header for people and for scripts. Reads prefix and header
 * only; what it shows was checked by the reader, the tensors' bytes were not. Token ids
 * are somebody's prompt and stay out unless asked for.
 */
#include "inspect.h"

#include "args.h"
#include "command.h"
#include "output.h"
#include "place.h"
#include "text.h"

#include <coldkv/reader.h>
#include <inttypes.h>
#include <stdio.h>

const char cli_inspect_help[] =
    "Shows what a cache file holds, from its header alone.\n"
    "\n"
    "    coldkv inspect FILE [--json] [--tokens]\n"
    "\n"
    "The header's hash and every rule of the format are checked; the tensors' bytes are\n"
    "not read (that is what `coldkv verify` does).\n"
    "\n"
    "    --json      one JSON object; its keys are stable (docs/cli.md)\n"
    "    --tokens    also the token ids. They are the prompt: mind who reads them.\n"
    "\n"
    "How to read it:\n"
    "    offset      tokens that a cache has seen\n"
    "    floor       the shortest prefix to which it can still be cut: 0 = anywhere; a\n"
    "                sliding window that has filled, or a recurrent state, only as a "
    "whole\n"
    "    canonical   writing the entry again gives the same bytes (`coldkv repack`)\n"
    "\n"
    "Examples:\n"
    "    coldkv inspect entry.mlxkv\n"
    "    coldkv inspect --json entry.mlxkv | jq '.tokens, .caches[0].kind'\n"
    "\n"
    "Exit code: 0 shown, 1 the file cannot be read or is no valid cache file, 2 usage.\n";

/* What the format calls the tensors of a kind, in order; NULL where it names none. */
static const char *tensor_name(enum ckv_cache_kind kind, size_t index)
{
    static const char *const plain[] = {"keys", "values"};
    static const char *const quantized[] = {"keys",   "key scales",   "key biases",
                                            "values", "value scales", "value biases"};
    static const char *const turbo[] = {"key codes", "key scales", "key zeros",
                                        "value codes", "value scales"};
    switch (kind) {
    case CKV_CACHE_KV:
    case CKV_CACHE_ROTATING:
        return index < 2 ? plain[index] : NULL;
    case CKV_CACHE_QKV:
    case CKV_CACHE_ROTATING_QKV:
        return index < 6 ? quantized[index] : NULL;
    case CKV_CACHE_TURBOQUANT:
        return index < 5 ? turbo[index] : NULL;
    case CKV_CACHE_SSM:
    case CKV_CACHE_STATE:
        break;
    }
    return NULL;
}

static void print_scalars(const struct ckv_cache *cache)
{
    switch (cache->kind) {
    case CKV_CACHE_ROTATING:
        printf("  idx %" PRIu64 "  maxSize %" PRIu64, cache->idx, cache->max_size);
        break;
    case CKV_CACHE_QKV:
        printf("  groupSize %" PRIu32 "  bits %" PRIu32, cache->group_size, cache->bits);
        break;
    case CKV_CACHE_ROTATING_QKV:
        printf("  idx %" PRIu64 "  maxSize %" PRIu64 "  groupSize %" PRIu32
               "  bits %" PRIu32,
               cache->idx, cache->max_size, cache->group_size, cache->bits);
        break;
    case CKV_CACHE_TURBOQUANT:
        printf("  kBits %" PRIu32 "  vBits %" PRIu32 "  headDim %" PRIu32, cache->k_bits,
               cache->v_bits, cache->head_dim);
        break;
    case CKV_CACHE_STATE:
        fputs("  engine ", stdout);
        cli_print_escaped(stdout, cache->engine);
        break;
    case CKV_CACHE_KV:
    case CKV_CACHE_SSM:
        break;
    }
}

#define SHAPE_TEXT (CKV_RANK_MAX * 21u + 3u)

static const char *shape_text(const struct ckv_tensor *tensor, char out[SHAPE_TEXT])
{
    size_t used = 0;
    out[used++] = '[';
    for (uint32_t i = 0; i < tensor->rank; i++) {
        int length = snprintf(out + used, SHAPE_TEXT - used, "%s%" PRIu64,
                              i == 0 ? "" : ",", tensor->shape[i]);
        used += (size_t)length;
    }
    snprintf(out + used, SHAPE_TEXT - used, "]");
    return out;
}

static void print_tensor(const struct ckv_header *header, const struct ckv_cache *cache,
                         size_t index)
{
    const struct ckv_tensor *tensor = &cache->tensors[index];
    char shape[SHAPE_TEXT];
    char number[32];
    const char *name = tensor_name(cache->kind, index);
    if (name == NULL) {
        snprintf(number, sizeof number, "tensor %zu", index);
        name = number;
    }
    printf("  %-12s  %-8s  %-20s  %12" PRIu64 " bytes  at %-12" PRIu64 "  %016" PRIx64
           "\n",
           name, ckv_dtype_name(tensor->dtype), shape_text(tensor, shape), tensor->bytes,
           header->prefix.data_start + tensor->offset, tensor->hash);
}

static void print_caches(const struct ckv_header *header)
{
    const struct ckv_entry *entry = &header->entry;
    for (size_t i = 0; i < entry->cache_count; i++) {
        const struct ckv_cache *cache = &entry->caches[i];
        printf("\ncache %zu  %s  offset %" PRIu64 "  floor %" PRIu64, i,
               ckv_cache_kind_name(cache->kind), cache->offset, ckv_cache_floor(cache));
        print_scalars(cache);
        putchar('\n');
        for (size_t j = 0; j < cache->tensor_count; j++)
            print_tensor(header, cache, j);
    }
}

static void print_floor(const struct ckv_entry *entry)
{
    uint64_t floor = ckv_entry_floor(entry);
    printf("  %-18s %" PRIu64, "floor", floor);
    if (entry->token_count == 0)
        puts("");
    else if (floor == 0)
        puts(" (serves every prompt that begins as it does)");
    else if (floor >= entry->token_count)
        puts(" (serves only prompts that begin with all of it)");
    else
        printf(" (serves prompts that share at least %" PRIu64 " tokens)\n", floor);
}

static void print_tokens(const struct ckv_entry *entry)
{
    fputs("\ntoken ids", stdout);
    for (size_t i = 0; i < entry->token_count; i++)
        printf("%s%" PRIu32, i % 12 == 0 ? "\n  " : " ", entry->tokens[i]);
    putchar('\n');
}

static void print_text(const struct cli_inspected *file)
{
    const struct ckv_header *header = file->header;
    const struct ckv_entry *entry = &header->entry;
    char time[CLI_TIME_TEXT];
    char size[CLI_SIZE_TEXT];
    struct ckv_error why;
    ckv_error_clear(&why);

    cli_print_escaped(stdout, file->path);
    printf("\n  %-18s %u, %s\n", "format version", CKV_FORMAT_VERSION,
           header->canonical ? "canonical"
                             : "not canonical (unknown keys or other spellings)");
    printf("  %-18s %s (%" PRIu64 ")\n", "createdAt",
           cli_text_time(entry->created_at_ms, time), entry->created_at_ms);
    for (size_t i = 0; i < entry->meta_count; i++) {
        printf("  %-18s \"", ckv_meta_key_name(entry->meta[i].key));
        cli_print_escaped(stdout, entry->meta[i].value);
        puts("\"");
    }
    printf("  %-18s %zu\n", "tokens", entry->token_count);
    print_floor(entry);
    printf("  %-18s %" PRIu32 " bytes, hash %016" PRIx64 "; tensors begin at %" PRIu32
           "\n",
           "header", header->prefix.header_bytes, header->prefix.header_hash,
           header->prefix.data_start);
    printf("  %-18s %" PRIu64 " bytes (%s), tensors %" PRIu64 "\n", "file",
           header->file_size, cli_text_size(header->file_size, size),
           ckv_entry_tensor_bytes(entry));
    if (ckv_entry_check_offsets(entry, &why) != CKV_OK)
        printf("  %-18s no: %s\n", "served by a store", why.text);
    print_caches(header);
    if (file->show_tokens)
        print_tokens(entry);
}

static int show(struct cli_inspected *file, bool as_json)
{
    if (as_json) {
        bool printed = cli_print_json("inspect", cli_inspect_json(file));
        return printed ? CLI_EXIT_GOOD : CLI_EXIT_FAILED;
    }
    print_text(file);
    return CLI_EXIT_GOOD;
}

int cli_inspect_run(int argc, char **argv)
{
    bool as_json = false;
    struct cli_inspected file = {0};
    const struct cli_flag flags[] = {
        {"json", 0, &as_json},
        {"tokens", 0, &file.show_tokens},
    };
    struct cli_args_problem problem;
    int count;
    if (!cli_args_parse(argc, argv, flags, 2, &count, &problem))
        return cli_usage_problem("inspect", &problem);
    if (count != 1)
        return cli_usage_error("inspect", "wants exactly one FILE, not %d", count);
    file.path = argv[1];

    struct ckv_error error;
    struct cli_place place;
    struct ckv_reader *reader = NULL;
    int code = CLI_EXIT_FAILED;
    ckv_error_clear(&error);
    enum ckv_status status = cli_place_open(file.path, &place, &error);
    if (status == CKV_OK)
        status =
            ckv_reader_open(ckv_io_posix(), place.dir, place.name, NULL, &reader, &error);
    if (status != CKV_OK) {
        cli_complain_file("inspect", file.path, &error);
        goto out;
    }
    file.name = place.name;
    file.header = ckv_reader_header(reader);
    code = show(&file, as_json);
out:
    ckv_reader_close(reader);
    cli_place_close(&place);
    return code;
}

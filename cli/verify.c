/*
 * `coldkv verify`: are these files what their hashes say? Reads everything, changes
 * nothing: a store sets bad files aside by itself, this only reports. One file's fault
 * never keeps the others from being looked at.
 */
#include "args.h"
#include "command.h"
#include "output.h"
#include "place.h"
#include "text.h"
#include "walk.h"

#include <coldkv/reader.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char cli_verify_help[] =
    "Reads cache files completely and compares every hash.\n"
    "\n"
    "    coldkv verify PATH... [--json] [--quiet]\n"
    "\n"
    "PATH is a file, or a folder: then every *.mlxkv below it, at any depth. A store in\n"
    "use may be verified; nothing is changed or locked. What a store set aside (*.bad) "
    "and\n"
    "temporaries (*.part, *.tmp) are counted but not read; name such a file to verify "
    "it.\n"
    "\n"
    "    --json       one JSON object instead of lines (docs/cli.md)\n"
    "    --quiet, -q  only the lines of files that are bad or could not be read\n"
    "\n"
    "Each file that is not simply good gets one line:\n"
    "    bad          contents contradict a hash or a rule of the format\n"
    "    failed       it could not be read, which says nothing about its contents\n"
    "    skipped      in a folder: another format version, or no cache file at all\n"
    "    warning      good, but unused bytes of it are not zero: no known writer does "
    "that\n"
    "\n"
    "Examples:\n"
    "    coldkv verify ~/.cache/coldkv\n"
    "    coldkv verify --quiet backup/*.mlxkv && echo all good\n"
    "\n"
    "Exit code: 0 every file is good; 1 a file is bad or could not be read, a named file "
    "is\n"
    "of another kind or version, or no file was verified at all; 2 usage.\n";

enum verdict {
    VERDICT_GOOD,
    VERDICT_WARNING, /* good, unused bytes are not zero */
    VERDICT_SKIPPED, /* not a file of this format version */
    VERDICT_BAD,
    VERDICT_FAILED, /* could not be read */
    VERDICT_COUNT,
};

static const char *const verdict_names[VERDICT_COUNT] = {"good", "warning", "skipped",
                                                         "bad", "failed"};

struct run {
    bool as_json;
    bool quiet;
    uint64_t counts[VERDICT_COUNT];
    uint64_t passed_bytes; /* sizes of the files that are done, for the bar */
    uint64_t good_bytes;   /* sizes of those that are good */
    json_t *problems;      /* NULL in text mode, or after memory ran out */
    struct cli_progress progress;
};

static void note_json(struct run *run, enum verdict verdict, const char *path,
                      enum ckv_status status, const char *reason)
{
    json_t *problem = json_pack("{s:s, s:o, s:s, s:s}", "result", verdict_names[verdict],
                                "path", cli_json_text(path), "status",
                                ckv_status_name(status), "reason", reason);
    if (run->problems != NULL && json_array_append_new(run->problems, problem) != 0) {
        json_decref(run->problems);
        run->problems = NULL;
    }
}

/* Counts a file and, unless it is good, says why. */
static void note(struct run *run, enum verdict verdict, const char *path,
                 const struct ckv_error *error)
{
    run->counts[verdict]++;
    if (verdict == VERDICT_GOOD)
        return;
    const char *reason = cli_error_text(error, path);
    if (run->as_json) {
        note_json(run, verdict, path, error->status, reason);
        return;
    }
    if (run->quiet && verdict < VERDICT_BAD)
        return;
    cli_progress_clear(&run->progress);
    printf("%s: ", verdict_names[verdict]);
    cli_print_escaped(stdout, path);
    printf(": %s\n", reason);
}

static void note_unreadable(void *ctx, const char *path, const struct ckv_error *error)
{
    note(ctx, VERDICT_FAILED, path, error);
}

static enum ckv_status advance(void *ctx, uint64_t done_bytes, uint64_t total_bytes)
{
    struct run *run = ctx;
    (void)total_bytes;
    cli_progress_update(&run->progress, run->passed_bytes + done_bytes);
    return CKV_OK;
}

/* What a failure says about a file: a named one was meant to be a good cache file, one in
 * a folder may be another program's or vanish while a store evicts. */
static enum verdict judge(enum ckv_status status, bool named)
{
    switch (status) {
    case CKV_CORRUPT:
    case CKV_TOOBIG:
        return VERDICT_BAD;
    case CKV_VERSION:
    case CKV_FOREIGN:
    case CKV_NOTFOUND:
    case CKV_VANISHED:
        return named ? VERDICT_FAILED : VERDICT_SKIPPED;
    default:
        return VERDICT_FAILED;
    }
}

static void verify_file(struct run *run, const struct cli_found *file)
{
    struct cli_place place;
    struct ckv_reader *reader = NULL;
    struct ckv_error error;
    bool padding = false;
    ckv_error_clear(&error);
    enum ckv_status status = cli_place_open(file->path, &place, &error);
    if (status == CKV_OK)
        status =
            ckv_reader_open(ckv_io_posix(), place.dir, place.name, NULL, &reader, &error);
    if (status == CKV_OK)
        status = ckv_reader_verify(reader, advance, run, &padding, &error);
    enum verdict verdict = VERDICT_GOOD;
    if (status != CKV_OK) {
        error.status = status;
        verdict = judge(status, file->named);
    } else if (padding) {
        verdict = VERDICT_WARNING;
        ckv_error_set(&error, CKV_OK, "bytes that the format leaves unused are not zero");
    }
    note(run, verdict, file->path, &error);
    run->passed_bytes += file->size_bytes;
    if (status == CKV_OK)
        run->good_bytes += file->size_bytes;
    ckv_reader_close(reader);
    cli_place_close(&place);
}

static void print_summary(const struct run *run, const struct cli_walk *walk)
{
    char size[CLI_SIZE_TEXT];
    uint64_t good = run->counts[VERDICT_GOOD] + run->counts[VERDICT_WARNING];
    printf("%" PRIu64 " good, %" PRIu64 " bad", good, run->counts[VERDICT_BAD]);
    if (run->counts[VERDICT_FAILED] > 0)
        printf(", %" PRIu64 " failed", run->counts[VERDICT_FAILED]);
    if (run->counts[VERDICT_SKIPPED] > 0)
        printf(", %" PRIu64 " skipped", run->counts[VERDICT_SKIPPED]);
    if (run->counts[VERDICT_WARNING] > 0)
        printf(", %" PRIu64 " with a warning", run->counts[VERDICT_WARNING]);
    printf("; %s", cli_text_size(run->good_bytes, size));
    if (walk->bad_count > 0)
        printf("; not read: %zu set aside (*.bad)", walk->bad_count);
    if (walk->temporary_count > 0)
        printf("; not read: %zu temporary", walk->temporary_count);
    if (walk->special_count > 0)
        printf("; not read: %zu not regular files", walk->special_count);
    putchar('\n');
}

static json_t *summary_json(struct run *run, const struct cli_walk *walk)
{
    json_t *problems = run->problems;
    run->problems = NULL;
    uint64_t good = run->counts[VERDICT_GOOD] + run->counts[VERDICT_WARNING];
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I}, s:o}", "good",
                     (json_int_t)good, "bad", (json_int_t)run->counts[VERDICT_BAD],
                     "failed", (json_int_t)run->counts[VERDICT_FAILED], "skipped",
                     (json_int_t)run->counts[VERDICT_SKIPPED], "warnings",
                     (json_int_t)run->counts[VERDICT_WARNING], "bytes",
                     (json_int_t)run->good_bytes, "notRead", "setAside",
                     (json_int_t)walk->bad_count, "temporary",
                     (json_int_t)walk->temporary_count, "special",
                     (json_int_t)walk->special_count, "problems", problems);
}

static int conclude(struct run *run, const struct cli_walk *walk)
{
    uint64_t good = run->counts[VERDICT_GOOD] + run->counts[VERDICT_WARNING];
    uint64_t wrong = run->counts[VERDICT_BAD] + run->counts[VERDICT_FAILED];
    int code = wrong == 0 && good > 0 ? CLI_EXIT_GOOD : CLI_EXIT_FAILED;
    if (run->as_json)
        return cli_print_json("verify", summary_json(run, walk)) ? code : CLI_EXIT_FAILED;
    if (!run->quiet)
        print_summary(run, walk);
    if (good == 0 && wrong == 0)
        cli_complain("verify", "no file was verified: there is no .mlxkv file of format "
                               "version 3 here");
    return code;
}

static int verify_all(struct run *run, struct cli_walk *walk, char **paths, int count)
{
    for (int i = 0; i < count; i++) {
        if (cli_walk_add(walk, paths[i]) != CKV_OK) {
            cli_complain("verify", "out of memory");
            return CLI_EXIT_FAILED;
        }
    }
    uint64_t total = 0;
    for (size_t i = 0; i < walk->count; i++)
        total += walk->files[i].size_bytes;
    cli_progress_start(&run->progress, "verify", !run->quiet, total);
    for (size_t i = 0; i < walk->count; i++) {
        verify_file(run, &walk->files[i]);
        cli_progress_update(&run->progress, run->passed_bytes);
        if (!run->as_json && !cli_output_flush())
            break; /* nobody hears us any more */
    }
    cli_progress_clear(&run->progress);
    return conclude(run, walk);
}

int cli_verify_run(int argc, char **argv)
{
    struct run run = {0};
    const struct cli_flag flags[] = {
        {"json", 0, &run.as_json},
        {"quiet", 'q', &run.quiet},
    };
    struct cli_args_problem problem;
    int count;
    if (!cli_args_parse(argc, argv, flags, 2, &count, &problem))
        return cli_usage_problem("verify", &problem);
    if (count == 0)
        return cli_usage_error("verify", "wants at least one PATH, a file or a folder");
    if (run.as_json)
        run.problems = json_array();
    struct cli_walk walk = {.failed = note_unreadable, .failed_ctx = &run};
    int code = verify_all(&run, &walk, argv + 1, count);
    cli_walk_deinit(&walk);
    json_decref(run.problems);
    return code;
}

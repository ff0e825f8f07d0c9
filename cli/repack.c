/*
 * `coldkv repack`: reads one file, proves it, writes it again. Everything that the format
 * knows is kept, order and time stamp included, so a canonical file comes out byte for
 * byte. What the format does not know is dropped only on request. The new file appears
 * complete and durable, or not at all; IN is never touched.
 */
#include "args.h"
#include "command.h"
#include "output.h"
#include "place.h"
#include "text.h"

#include <coldkv/clock.h>
#include <coldkv/hash.h>
#include <coldkv/reader.h>
#include <coldkv/writer.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

const char cli_repack_help[] =
    "Reads a cache file, verifies it, and writes its contents to a new file.\n"
    "\n"
    "    coldkv repack IN OUT [--drop-unknown] [--force]\n"
    "\n"
    "The metadata, their order and createdAt are kept: a canonical file comes out byte "
    "for\n"
    "byte the same, holes instead of zeros where the format leaves gaps. IN is only "
    "read.\n"
    "OUT appears when it is complete and on the disk, never half written.\n"
    "\n"
    "    --drop-unknown  write the file although something will be lost: header keys "
    "this\n"
    "                    version does not know, other spellings of the same header, "
    "bytes\n"
    "                    in the unused gaps\n"
    "    --force, -f     replace OUT when it exists\n"
    "\n"
    "Examples:\n"
    "    coldkv repack old.mlxkv new.mlxkv && cmp old.mlxkv new.mlxkv\n"
    "    coldkv repack --drop-unknown from-elsewhere.mlxkv clean.mlxkv\n"
    "\n"
    "Exit code: 0 written and durable; 1 IN is bad or holds something unknown, OUT "
    "exists or\n"
    "is IN, or writing failed; 2 usage.\n";

#define COPY_BYTES ((size_t)4 * 1024 * 1024)

struct repack {
    const char *in_path;
    const char *out_path;
    bool drop_unknown;
    bool force;
    struct cli_place in;
    struct cli_place out;
    struct ckv_reader *reader;
    const struct ckv_entry *entry;
    void *buffer;
    struct cli_progress progress;
};

/* The first signal only asks; the writer then removes its temporary. */
static volatile sig_atomic_t stop_signal;

static void note_signal(int number)
{
    stop_signal = number;
}

static void watch_signals(bool watch)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = watch ? note_signal : SIG_DFL,
                               .sa_flags = SA_RESTART};
    struct sigaction old;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

static enum ckv_status check_signal(struct ckv_error *error)
{
    if (stop_signal == 0)
        return CKV_OK;
    return ckv_error_set(error, CKV_CANCELLED, "interrupted, nothing was written");
}

/*
 * The reader's source with the hashes watched once more: bytes that changed after the
 * verification must not get a fresh hash and become "good".
 */
struct checked_source {
    struct ckv_source inner;
    const struct ckv_entry *entry;
    struct ckv_wyhash_state hash;
};

static enum ckv_status view_checked(void *ctx, size_t cache, size_t tensor,
                                    uint64_t offset, size_t wanted, const void **data,
                                    size_t *size, struct ckv_error *error)
{
    struct checked_source *source = ctx;
    const struct ckv_tensor *expected = &source->entry->caches[cache].tensors[tensor];
    enum ckv_status status = source->inner.view(source->inner.ctx, cache, tensor, offset,
                                                wanted, data, size, error);
    if (status != CKV_OK)
        return status;
    if (offset == 0)
        ckv_wyhash_init(&source->hash, 0);
    ckv_wyhash_update(&source->hash, *data, *size);
    if (offset + *size == expected->bytes &&
        ckv_wyhash_digest(&source->hash) != expected->hash)
        return ckv_error_set(error, CKV_CORRUPT,
                             "caches[%zu].tensors[%zu] changed while it was copied",
                             cache, tensor);
    return CKV_OK;
}

static enum ckv_status done_checked(void *ctx, size_t cache, size_t tensor,
                                    uint64_t offset, size_t size, struct ckv_error *error)
{
    struct checked_source *source = ctx;
    if (source->inner.done == NULL)
        return CKV_OK;
    return source->inner.done(source->inner.ctx, cache, tensor, offset, size, error);
}

/* A writer takes createdAt 0 for "now"; this clock makes it mean 1970 again. */
static int64_t epoch_ns(void *ctx)
{
    (void)ctx;
    return 0;
}

static enum ckv_status write_steps(struct repack *job, struct ckv_writer *writer,
                                   struct ckv_error *error)
{
    enum ckv_status status = CKV_OK;
    uint64_t total = ckv_entry_tensor_bytes(job->entry);
    cli_progress_start(&job->progress, "write ", true, total);
    while (status == CKV_OK && ckv_writer_next(writer) != CKV_STEP_DONE) {
        status = check_signal(error);
        if (status == CKV_OK)
            status = ckv_writer_step(writer, error);
        cli_progress_update(&job->progress, ckv_writer_done_bytes(writer));
    }
    cli_progress_clear(&job->progress);
    if (status == CKV_OK)
        return ckv_writer_commit(writer, error);
    ckv_writer_abort(writer);
    return status;
}

static enum ckv_status write_out(struct repack *job, struct ckv_error *error)
{
    struct ckv_clock epoch = *ckv_clock_system();
    struct ckv_writer_options options;
    struct ckv_writer *writer = NULL;
    struct ckv_reader_source storage = {
        .reader = job->reader, .buffer = job->buffer, .size = COPY_BYTES};
    struct checked_source checked = {.entry = job->entry};
    struct ckv_source source = {
        .ctx = &checked, .view = view_checked, .done = done_checked};
    ckv_source_from_reader(&storage, &checked.inner);
    ckv_writer_options_init(&options);
    options.replace = job->force;
    epoch.realtime_ns = epoch_ns;
    options.clock = &epoch;
    enum ckv_status status =
        ckv_writer_begin(ckv_io_posix(), job->out.dir, job->out.name, job->entry, &source,
                         &options, &writer, error);
    if (status != CKV_OK)
        return status;
    return write_steps(job, writer, error);
}

static enum ckv_status advance(void *ctx, uint64_t done_bytes, uint64_t total_bytes)
{
    struct repack *job = ctx;
    (void)total_bytes;
    cli_progress_update(&job->progress, done_bytes);
    return stop_signal == 0 ? CKV_OK : CKV_CANCELLED;
}

/* Opens IN and proves it; says what is wrong with it. */
static bool read_in(struct repack *job)
{
    struct ckv_error error;
    bool padding = false;
    ckv_error_clear(&error);
    enum ckv_status status = cli_place_open(job->in_path, &job->in, &error);
    if (status == CKV_OK)
        status = ckv_reader_open(ckv_io_posix(), job->in.dir, job->in.name, NULL,
                                 &job->reader, &error);
    if (status == CKV_OK) {
        job->entry = &ckv_reader_header(job->reader)->entry;
        cli_progress_start(&job->progress, "verify", true,
                           ckv_entry_tensor_bytes(job->entry));
        status = ckv_reader_verify(job->reader, advance, job, &padding, &error);
        cli_progress_clear(&job->progress);
    }
    if (status == CKV_CANCELLED)
        return false;
    if (status != CKV_OK) {
        cli_complain_file("repack", job->in_path, &error);
        return false;
    }
    if (job->drop_unknown)
        return true;
    if (!ckv_reader_header(job->reader)->canonical)
        ckv_error_set(
            &error, CKV_UNSUPPORTED,
            "the header has keys or spellings that this version does not write; "
            "to lose them: --drop-unknown");
    else if (padding)
        ckv_error_set(&error, CKV_UNSUPPORTED,
                      "bytes that the format leaves unused are not zero; to lose them: "
                      "--drop-unknown");
    else
        return true;
    cli_complain_file("repack", job->in_path, &error);
    return false;
}

static bool same_file(const struct repack *job, const struct ckv_io_stat *out)
{
    const struct ckv_io_stat *in = ckv_reader_stat(job->reader);
    return in->device == out->device && in->inode == out->inode;
}

/* Opens the folder of OUT and looks whether OUT may be written. */
static bool look_at_out(struct repack *job)
{
    bool exists = false;
    struct ckv_io_stat stat = {0};
    struct ckv_error error;
    ckv_error_clear(&error);
    enum ckv_status status =
        cli_place_open_target(job->out_path, &job->out, &exists, &error);
    if (status == CKV_OK && exists)
        status =
            ckv_io_stat_name(ckv_io_posix(), job->out.dir, job->out.name, &stat, &error);
    if (status == CKV_OK && exists) {
        if (stat.type != CKV_IO_TYPE_FILE)
            status = ckv_error_set(&error, CKV_DENIED, "is no regular file; name a file");
        else if (same_file(job, &stat))
            status = ckv_error_set(&error, CKV_INVALID,
                                   "is the file that is read; choose another name");
        else if (!job->force)
            status = ckv_error_set(&error, CKV_EXISTS,
                                   "exists already; choose another name, or --force");
    }
    if (status != CKV_OK)
        cli_complain_file("repack", job->out_path, &error);
    return status == CKV_OK;
}

static int repack(struct repack *job)
{
    struct ckv_error error;
    ckv_error_clear(&error);
    if (!read_in(job) || !look_at_out(job))
        return CLI_EXIT_FAILED;
    job->buffer = malloc(COPY_BYTES);
    if (job->buffer == NULL) {
        cli_complain("repack", "out of memory");
        return CLI_EXIT_FAILED;
    }
    enum ckv_status status = write_out(job, &error);
    if (status == CKV_EXISTS)
        ckv_error_set(&error, status, "exists already; choose another name, or --force");
    if (status == CKV_OK)
        return CLI_EXIT_GOOD;
    cli_complain_file("repack", job->out_path, &error);
    return CLI_EXIT_FAILED;
}

int cli_repack_run(int argc, char **argv)
{
    struct repack job = {0};
    const struct cli_flag flags[] = {
        {"drop-unknown", 0, &job.drop_unknown},
        {"force", 'f', &job.force},
    };
    struct cli_args_problem problem;
    int count;
    if (!cli_args_parse(argc, argv, flags, 2, &count, &problem))
        return cli_usage_problem("repack", &problem);
    if (count != 2)
        return cli_usage_error("repack", "wants two files, IN and OUT, not %d", count);
    job.in_path = argv[1];
    job.out_path = argv[2];
    watch_signals(true);
    int code = repack(&job);
    free(job.buffer);
    ckv_reader_close(job.reader);
    cli_place_close(&job.in);
    cli_place_close(&job.out);
    watch_signals(false);
    if (stop_signal != 0)
        raise(stop_signal); /* whoever started us sees what ended us */
    return code;
}

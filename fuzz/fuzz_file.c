/*
 * Fuzzes the reader on whole files: open, verify, restore through small windows. The
 * input is a header's JSON text, then, behind a NUL byte, the tensor data; prefix and
 * hash are made to fit. The first byte says how long the file is cut.
 *
 * What must hold: no fault of the sanitizers, no read beyond the file, and a restore that
 * says OK filled every byte of every tensor.
 */
#include <coldkv/hash.h>
#include <coldkv/reader.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                  \
    do {                                                                                 \
        if (!(condition))                                                                \
            abort();                                                                     \
    } while (0)

/* One file in memory behind the few calls that a reader makes. */
struct memory_file {
    const uint8_t *bytes;
    size_t size;
};

static enum ckv_status open_file(void *ctx, struct ckv_io_dir dir, const char *name,
                                 enum ckv_io_open_mode mode, struct ckv_io_file *out,
                                 struct ckv_error *error)
{
    (void)ctx;
    (void)dir;
    (void)name;
    (void)error;
    MUST(mode == CKV_IO_READ);
    out->handle = 1;
    return CKV_OK;
}

static void close_file(void *ctx, struct ckv_io_file file)
{
    (void)ctx;
    MUST(file.handle == 1);
}

static enum ckv_status stat_file(void *ctx, struct ckv_io_file file,
                                 struct ckv_io_stat *out, struct ckv_error *error)
{
    const struct memory_file *memory = ctx;
    (void)file;
    (void)error;
    memset(out, 0, sizeof *out);
    out->type = CKV_IO_TYPE_FILE;
    out->size_bytes = memory->size;
    out->link_count = 1;
    return CKV_OK;
}

static void advise(void *ctx, struct ckv_io_file file, uint64_t offset,
                   uint64_t size_bytes, enum ckv_io_advice advice)
{
    (void)ctx;
    (void)file;
    (void)offset;
    (void)size_bytes;
    (void)advice;
}

static enum ckv_status submit(void *ctx, struct ckv_io_request *requests, size_t count,
                              struct ckv_error *error)
{
    const struct memory_file *memory = ctx;
    (void)error;
    for (size_t i = 0; i < count; i++) {
        struct ckv_io_request *request = &requests[i];
        MUST(request->op == CKV_IO_OP_READ);
        MUST(request->offset <= memory->size);
        MUST(request->size_bytes <= memory->size - request->offset);
        memcpy(request->data, memory->bytes + request->offset, request->size_bytes);
        request->done_bytes = request->size_bytes;
        request->status = CKV_OK;
    }
    return CKV_OK;
}

static enum ckv_status wait_all(void *ctx, struct ckv_io_request *requests, size_t count,
                                struct ckv_error *error)
{
    (void)ctx;
    (void)requests;
    (void)count;
    (void)error;
    return CKV_OK;
}

/* Lends 3000 bytes at a time and adds up what was taken. */
struct small_sink {
    uint8_t window[3000];
    uint64_t taken_bytes;
    unsigned drops;
};

static enum ckv_status lend(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                            size_t wanted, void **data, size_t *size,
                            struct ckv_error *error)
{
    struct small_sink *sink = ctx;
    (void)cache;
    (void)tensor;
    (void)offset;
    (void)error;
    *data = sink->window;
    *size = wanted < sizeof sink->window ? wanted : sizeof sink->window;
    return CKV_OK;
}

static enum ckv_status took(void *ctx, size_t cache, size_t tensor, uint64_t offset,
                            size_t size, struct ckv_error *error)
{
    struct small_sink *sink = ctx;
    (void)cache;
    (void)tensor;
    (void)offset;
    (void)error;
    sink->taken_bytes += size;
    return CKV_OK;
}

static void drop(void *ctx)
{
    struct small_sink *sink = ctx;
    sink->drops++;
}

static void restore(struct ckv_reader *reader, bool verify)
{
    struct small_sink target = {.taken_bytes = 0};
    struct ckv_sink sink = {&target, lend, took, drop};
    struct ckv_restore_options options;
    struct ckv_restore *running = NULL;
    enum ckv_status status;
    ckv_restore_options_init(&options);
    options.verify = verify;
    options.chunk_bytes = 10000;
    MUST(ckv_restore_begin(reader, &sink, &options, &running, NULL) == CKV_OK);
    status = ckv_restore_finish(running, NULL);
    MUST(target.drops == (status != CKV_OK));
    if (status == CKV_OK)
        MUST(target.taken_bytes ==
             ckv_entry_tensor_bytes(&ckv_reader_header(reader)->entry));
}

static void examine(const struct memory_file *memory)
{
    struct ckv_io io = {.ctx = (void *)memory,
                        .name = "fuzz",
                        .open_file = open_file,
                        .close_file = close_file,
                        .stat_file = stat_file,
                        .advise = advise,
                        .submit = submit,
                        .wait = wait_all};
    struct ckv_io_dir dir = {1};
    struct ckv_reader *reader = NULL;
    bool nonzero = false;
    enum ckv_status status;
    if (ckv_reader_open(&io, dir, "file", NULL, &reader, NULL) != CKV_OK)
        return;
    MUST(ckv_reader_header(reader)->file_size == memory->size);
    status = ckv_reader_verify(reader, NULL, NULL, &nonzero, NULL);
    MUST(status == CKV_OK || status == CKV_CORRUPT);
    restore(reader, true);
    restore(reader, false);
    ckv_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end;
    struct ckv_prefix prefix;
    struct memory_file memory;
    uint8_t *bytes;
    size_t json_size;
    size_t data_size;
    size_t cut;
    if (size < 2)
        return 0;
    cut = data[0];
    data++;
    size--;
    end = memchr(data, 0, size);
    json_size = end ? (size_t)(end - data) : size;
    data_size = end ? size - json_size - 1 : 0;
    prefix.header_bytes = (uint32_t)json_size;
    prefix.data_start = (uint32_t)ckv_file_align(CKV_PREFIX_BYTES + json_size);
    prefix.header_hash = ckv_wyhash(data, json_size, 0);
    memory.size = prefix.data_start + data_size;
    bytes = calloc(1, memory.size);
    MUST(bytes);
    ckv_prefix_encode(&prefix, bytes);
    memcpy(bytes + CKV_PREFIX_BYTES, data, json_size);
    if (data_size > 0)
        memcpy(bytes + prefix.data_start, end + 1, data_size);
    memory.bytes = bytes;
    memory.size -= cut;
    examine(&memory);
    free(bytes);
    return 0;
}

/* The request trace, for tests and measurements.
 * Invariant: a line is appended by one write, so lines of several processes do not mix.
 * Failure: a line that cannot be written is lost, and reported by the caller. */
#include "trace.h"

#include "buf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int srv_trace_open(const char *path, struct srv_fault *fault)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (fd < 0)
        srv_fault_set(fault, 500, NULL, NULL, "cannot open the trace %s: %s", path,
                      strerror(errno));
    return fd;
}

static bool append_tokens(struct srv_buf *out, const char *name, const int32_t *tokens,
                          size_t count)
{
    size_t i;
    bool ok = srv_buf_append_text(out, ",\"") && srv_buf_append_text(out, name) &&
              srv_buf_append_text(out, "\":[");

    for (i = 0; ok && i < count; i++) {
        char number[16];

        snprintf(number, sizeof(number), "%s%" PRId32, i > 0 ? "," : "", tokens[i]);
        ok = srv_buf_append_text(out, number);
    }
    return ok && srv_buf_append_text(out, "]");
}

static bool encode(struct srv_buf *out, const struct srv_trace_line *line)
{
    char numbers[400];
    char hash[24] = "null";

    if (line->has_logits)
        snprintf(hash, sizeof(hash), "\"%016" PRIx64 "\"", line->first_logits_hash);
    snprintf(numbers, sizeof(numbers),
             "{\"id\":\"%s\",\"outcome\":\"%s\",\"cached_tokens\":%zu,\"source\":\"%s\","
             "\"first_logits_wyhash\":%s,"
             "\"wait_ms\":%.3f,\"ttft_ms\":%.3f,\"prefill_ms\":%.3f,\"restore_ms\":%.3f,"
             "\"restored_bytes\":%" PRIu64,
             line->id, line->outcome, line->cached_count, line->source, hash,
             line->wait_ms, line->ttft_ms, line->prefill_ms, line->restore_ms,
             line->restored_bytes);
    return srv_buf_append_text(out, numbers) &&
           append_tokens(out, "prompt_tokens", line->prompt, line->prompt_count) &&
           append_tokens(out, "evaluated_tokens", line->evaluated,
                         line->evaluated_count) &&
           append_tokens(out, "generated_tokens", line->generated,
                         line->generated_count) &&
           srv_buf_append_text(out, "}\n");
}

bool srv_trace_append(int fd, const struct srv_trace_line *line)
{
    struct srv_buf text = {0};
    bool ok = encode(&text, line);

    ok = ok && write(fd, text.data, text.length) == (ssize_t)text.length;
    srv_buf_deinit(&text);
    return ok;
}

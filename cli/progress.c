/*
 * Owns the progress bar: one line on stderr, redrawn in place a few times per second and
 * wiped before anything else is printed. Without a terminal it never writes.
 */
#include "output.h"
#include "text.h"

#include <coldkv/clock.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define REDRAW_NS 100000000
#define BAR_WIDTH 30
#define LINE_WIDTH 78

void cli_progress_start(struct cli_progress *progress, const char *label, bool wanted,
                        uint64_t total_bytes)
{
    *progress = (struct cli_progress){
        .label = label,
        .on = wanted && isatty(STDERR_FILENO) == 1,
        .total_bytes = total_bytes,
    };
}

static void draw(struct cli_progress *progress)
{
    char bar[BAR_WIDTH + 1];
    char done[CLI_SIZE_TEXT];
    char total[CLI_SIZE_TEXT];
    double part = progress->total_bytes == 0
                      ? 1.0
                      : (double)progress->done_bytes / (double)progress->total_bytes;
    if (part > 1.0)
        part = 1.0;
    size_t filled = (size_t)(part * BAR_WIDTH);
    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', filled);
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r%s [%s] %3d %%  %s of %s   ", progress->label, bar,
            (int)(part * 100.0), cli_text_size(progress->done_bytes, done),
            cli_text_size(progress->total_bytes, total));
    fflush(stderr);
    progress->drawn = true;
}

void cli_progress_update(struct cli_progress *progress, uint64_t done_bytes)
{
    progress->done_bytes = done_bytes;
    if (!progress->on)
        return;
    const struct ckv_clock *clock = ckv_clock_system();
    int64_t now = clock->monotonic_ns(clock->ctx);
    bool ended = done_bytes >= progress->total_bytes;
    if (progress->drawn && !ended && now < progress->next_ns)
        return;
    progress->next_ns = now + REDRAW_NS;
    draw(progress);
}

void cli_progress_clear(struct cli_progress *progress)
{
    if (!progress->drawn)
        return;
    fprintf(stderr, "\r%*s\r", LINE_WIDTH, "");
    fflush(stderr);
    progress->drawn = false;
}

/* The heartbeat of waiting streams, and of what the tiers do now and then.
 * Invariant: the thread sleeps in poll and nowhere else, so closing the pipe's write end
 * ends it. Failure: without it streams work, but stay silent while they wait; start
 * reports it. */
#include "ticker.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

static void *run(void *arg)
{
    struct srv_ticker *ticker = arg;
    struct pollfd watched = {.fd = ticker->wake_pipe[0], .events = POLLIN};

    for (;;) {
        int ready = poll(&watched, 1, (int)ticker->interval_s * 1000);

        if (ready > 0)
            return NULL;
        if (ready != 0)
            continue;
        srv_queue_tick(ticker->queue);
        if (ticker->cold)
            srv_cold_tick(ticker->cold);
    }
}

bool srv_ticker_start(struct srv_ticker *ticker, struct srv_queue *queue,
                      struct srv_cold *cold, uint32_t interval_s)
{
    ticker->queue = queue;
    ticker->cold = cold;
    ticker->interval_s = interval_s;
    if (pipe(ticker->wake_pipe) != 0)
        return false;
    (void)fcntl(ticker->wake_pipe[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ticker->wake_pipe[1], F_SETFD, FD_CLOEXEC);
    if (pthread_create(&ticker->thread, NULL, run, ticker) == 0)
        return true;
    close(ticker->wake_pipe[0]);
    close(ticker->wake_pipe[1]);
    return false;
}

void srv_ticker_stop(struct srv_ticker *ticker)
{
    close(ticker->wake_pipe[1]);
    pthread_join(ticker->thread, NULL);
    close(ticker->wake_pipe[0]);
}

/* Signals, without handlers: one thread waits for them.
 * Invariant: nothing runs in signal context. Failure: start says so, and the server does
 * not run. */
#include "stopper.h"

#include "log.h"

#include <unistd.h>

static void *run(void *arg)
{
    struct srv_stopper *stopper = arg;
    bool again = false;
    int number;

    for (;;) {
        if (sigwait(&stopper->signals, &number) != 0)
            continue;
        if (again)
            _exit(128 + number);
        again = true;
        srv_log("stopping: the running reply is finished, and what is held is stored (a "
                "second signal ends at once)");
        pthread_mutex_lock(&stopper->mu);
        stopper->asked = true;
        pthread_cond_broadcast(&stopper->changed);
        pthread_mutex_unlock(&stopper->mu);
    }
    return NULL;
}

bool srv_stopper_start(struct srv_stopper *stopper)
{
    stopper->asked = false;
    sigemptyset(&stopper->signals);
    sigaddset(&stopper->signals, SIGTERM);
    sigaddset(&stopper->signals, SIGINT);
    if (pthread_sigmask(SIG_BLOCK, &stopper->signals, &stopper->before) != 0)
        return false;
    pthread_mutex_init(&stopper->mu, NULL);
    pthread_cond_init(&stopper->changed, NULL);
    if (pthread_create(&stopper->thread, NULL, run, stopper) == 0)
        return true;
    pthread_sigmask(SIG_SETMASK, &stopper->before, NULL);
    return false;
}

void srv_stopper_stop(struct srv_stopper *stopper)
{
    /* sigwait is where it can be cancelled; it holds no mutex there. */
    pthread_cancel(stopper->thread);
    pthread_join(stopper->thread, NULL);
    pthread_cond_destroy(&stopper->changed);
    pthread_mutex_destroy(&stopper->mu);
    pthread_sigmask(SIG_SETMASK, &stopper->before, NULL);
}

bool srv_stopper_is_asked(struct srv_stopper *stopper)
{
    bool asked;

    pthread_mutex_lock(&stopper->mu);
    asked = stopper->asked;
    pthread_mutex_unlock(&stopper->mu);
    return asked;
}

void srv_stopper_wait(struct srv_stopper *stopper)
{
    pthread_mutex_lock(&stopper->mu);
    while (!stopper->asked)
        pthread_cond_wait(&stopper->changed, &stopper->mu);
    pthread_mutex_unlock(&stopper->mu);
}

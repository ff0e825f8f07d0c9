#ifndef COLDKV_SERVER_STOPPER_H
#define COLDKV_SERVER_STOPPER_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* SIGTERM and SIGINT: the first asks for an orderly end, the second ends the process at
 * once. */
struct srv_stopper {
    pthread_mutex_t mu;
    pthread_cond_t changed;
    bool asked; /* guarded by mu */
    pthread_t thread;
    sigset_t signals;
    sigset_t before;
};

/* Blocks both signals in the calling thread, hence in those it makes later: call it
 * before the first of them. */
bool srv_stopper_start(struct srv_stopper *stopper);
void srv_stopper_stop(struct srv_stopper *stopper);

bool srv_stopper_is_asked(struct srv_stopper *stopper);
void srv_stopper_wait(struct srv_stopper *stopper);

#endif

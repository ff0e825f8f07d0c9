#ifndef COLDKV_SERVER_SERVE_H
#define COLDKV_SERVER_SERVE_H

/* `coldkv serve`: runs the server until a signal ends it. argv[0] is the command's own
 * name and is skipped. Returns the exit status: 0 after a signal or --help, 1 when it
 * cannot run, 2 when the command line is wrong. Call it from the main thread before any
 * other thread exists. */
int coldkv_serve_main(int argc, char **argv);

#endif

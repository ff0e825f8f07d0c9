/* `coldkv serve`, in a build without the server: says why, and how to get it. */
#include "command.h"

#include <stdio.h>

int cli_serve_run(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    fputs(
        "coldkv serve: this build has no server: " COLDKV_NO_SERVER_REASON ".\n"
        "\n"
        "In the source tree, `make serve` sets everything up and starts it. By hand: it\n"
        "needs libllama (-DCOLDKV_LLAMA_ROOT=/path with include/ and lib/ below it, or "
        "one\n"
        "that find_package or pkg-config finds) and libmicrohttpd; configure again, and\n"
        "build.\n",
        stderr);
    return CLI_EXIT_USAGE;
}

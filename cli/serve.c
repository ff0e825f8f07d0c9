/* `coldkv serve`, in a build that has the server: its own command line, help included. */
#include "command.h"

#include <serve.h>

int cli_serve_run(int argc, char **argv)
{
    return coldkv_serve_main(argc, argv);
}

/* Assertions on our own state; never on data from a disk, a socket or a user. */
#ifndef COLDKV_BASE_ASSERT_H
#define COLDKV_BASE_ASSERT_H

#include <stdlib.h>

/* On in every build: cheap invariants whose breach would write wrong bytes. */
#define CKV_ASSERT(condition)                                                            \
    do {                                                                                 \
        if (!(condition))                                                                \
            abort();                                                                     \
    } while (0)

#endif

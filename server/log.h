#ifndef COLDKV_SERVER_LOG_H
#define COLDKV_SERVER_LOG_H

#include <coldkv/export.h>

/* One line on stderr, "coldkv: ...". Never the text of a prompt or a reply, never token
 * ids. Thread safe; control bytes in what is formatted are escaped. */
void srv_log(const char *format, ...) CKV_PRINTF(1, 2);

#endif

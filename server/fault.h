#ifndef COLDKV_SERVER_FAULT_H
#define COLDKV_SERVER_FAULT_H

#include <stdarg.h>
#include <stdbool.h>

#include <coldkv/export.h>

/* Why a request is not served, in the words of the OpenAI API. status 0 = no fault. */
struct srv_fault {
    int status;       /* HTTP */
    const char *type; /* static: "invalid_request_error", "server_error", ... */
    const char *code; /* static, or NULL */
    char param[96];   /* the field it is about, or "" */
    char message[768];
};

/* Fills `fault` and returns false, so that a check is one line. Texts from outside are
 * escaped, and what does not fit is cut. param and code may be NULL. */
bool srv_fault_set(struct srv_fault *fault, int status, const char *code,
                   const char *param, const char *format, ...) CKV_PRINTF(5, 6);

/* The error object as JSON, on the heap; NULL when memory is short. */
char *srv_fault_encode(const struct srv_fault *fault);

#endif

/* Visibility and compiler attributes shared by all public headers. */
#ifndef COLDKV_EXPORT_H
#define COLDKV_EXPORT_H

#if defined(__GNUC__) || defined(__clang__)
#define CKV_API __attribute__((visibility("default")))
#define CKV_WARN_UNUSED __attribute__((warn_unused_result))
#define CKV_PRINTF(format_index, first)                                                  \
    __attribute__((format(printf, format_index, first)))
#else
#define CKV_API
#define CKV_WARN_UNUSED
#define CKV_PRINTF(format_index, first)
#endif

/** Version of the headers; ckv_version() gives that of the library in use. */
#define CKV_VERSION_MAJOR 0
#define CKV_VERSION_MINOR 1
#define CKV_VERSION_PATCH 0
#define CKV_VERSION_STRING "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the library that is linked, as "major.minor.patch". Static storage. */
CKV_API const char *ckv_version(void);

#ifdef __cplusplus
}
#endif

#endif

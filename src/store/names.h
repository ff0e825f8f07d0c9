/* Which names under a store's directory are the store's own; nothing else is ever indexed
 * or removed. */
#ifndef COLDKV_STORE_NAMES_H
#define COLDKV_STORE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#define CKVI_LOCK_NAME ".lock"
#define CKVI_IDENTITY_NAME "identity.json"

/* Text sizes with terminator. */
#define CKVI_UUID_SIZE 37
#define CKVI_FILE_NAME_SIZE 48
#define CKVI_FOLDER_NAME_SIZE 17

enum ckvi_name_kind {
    CKVI_NAME_OTHER = 0, /* not ours: never touched */
    CKVI_NAME_ENTRY,     /* <uuid>.mlxkv */
    CKVI_NAME_BAD,       /* <uuid>.bad */
    CKVI_NAME_PART,      /* .<uuid>.part, a writer's temporary */
    CKVI_NAME_TMP,       /* <uuid>.mlxkv.tmp, another program's temporary */
};

/* What a name in a namespace's folder is. uuid (may be NULL) gets the UUID's text unless
 * the name is OTHER. */
enum ckvi_name_kind ckvi_name_classify(const char *name, char uuid[CKVI_UUID_SIZE]);

/* "<uuid>.mlxkv" and "<uuid>.bad". */
void ckvi_name_entry(const char *uuid, char out[CKVI_FILE_NAME_SIZE]);
void ckvi_name_bad(const char *uuid, char out[CKVI_FILE_NAME_SIZE]);

/* [A-Za-z0-9._-]{1,128}, no leading dot. */
bool ckvi_fingerprint_valid(const char *fingerprint);

/* The folder of a namespace: "base" for "", else wyhash of its bytes in hex, unpadded. */
void ckvi_folder_name(const char *ns, char out[CKVI_FOLDER_NAME_SIZE]);
/* Whether a name is one that ckvi_folder_name makes. */
bool ckvi_folder_name_valid(const char *name);

#endif

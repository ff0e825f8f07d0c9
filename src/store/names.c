/*
 * Owns the patterns of the store's names. Pure functions; what fits no pattern exactly is
 * not ours, and "not ours" is never deleted.
 */
#include "store/names.h"

#include <coldkv/hash.h>
#include <coldkv/store.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define UUID_LENGTH (CKVI_UUID_SIZE - 1)
#define BASE_FOLDER "base"

static const char entry_suffix[] = ".mlxkv";
static const char bad_suffix[] = ".bad";
static const char part_suffix[] = ".part";
static const char tmp_suffix[] = ".mlxkv.tmp";

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* 8-4-4-4-12 lower-case hex digits; stops at the terminator. */
static bool starts_with_uuid(const char *text)
{
    for (size_t i = 0; i < UUID_LENGTH; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : !is_hex(text[i]))
            return false;
    }
    return true;
}

static enum ckvi_name_kind classify_suffix(const char *suffix, bool dotted)
{
    if (dotted)
        return strcmp(suffix, part_suffix) == 0 ? CKVI_NAME_PART : CKVI_NAME_OTHER;
    if (strcmp(suffix, entry_suffix) == 0)
        return CKVI_NAME_ENTRY;
    if (strcmp(suffix, bad_suffix) == 0)
        return CKVI_NAME_BAD;
    if (strcmp(suffix, tmp_suffix) == 0)
        return CKVI_NAME_TMP;
    return CKVI_NAME_OTHER;
}

enum ckvi_name_kind ckvi_name_classify(const char *name, char uuid[CKVI_UUID_SIZE])
{
    enum ckvi_name_kind kind;
    bool dotted = name[0] == '.';
    const char *start = dotted ? name + 1 : name;
    if (!starts_with_uuid(start))
        return CKVI_NAME_OTHER;
    kind = classify_suffix(start + UUID_LENGTH, dotted);
    if (kind != CKVI_NAME_OTHER && uuid) {
        memcpy(uuid, start, UUID_LENGTH);
        uuid[UUID_LENGTH] = '\0';
    }
    return kind;
}

void ckvi_name_entry(const char *uuid, char out[CKVI_FILE_NAME_SIZE])
{
    (void)snprintf(out, CKVI_FILE_NAME_SIZE, "%.36s%s", uuid, entry_suffix);
}

void ckvi_name_bad(const char *uuid, char out[CKVI_FILE_NAME_SIZE])
{
    (void)snprintf(out, CKVI_FILE_NAME_SIZE, "%.36s%s", uuid, bad_suffix);
}

bool ckvi_fingerprint_valid(const char *fingerprint)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789._-";
    size_t length;
    if (!fingerprint || fingerprint[0] == '.')
        return false;
    length = strspn(fingerprint, allowed);
    return length >= 1 && length <= CKV_FINGERPRINT_MAX && fingerprint[length] == '\0';
}

void ckvi_folder_name(const char *ns, char out[CKVI_FOLDER_NAME_SIZE])
{
    if (ns[0] == '\0') {
        memcpy(out, BASE_FOLDER, sizeof BASE_FOLDER);
        return;
    }
    (void)snprintf(out, CKVI_FOLDER_NAME_SIZE, "%" PRIx64, ckv_wyhash(ns, strlen(ns), 0));
}

bool ckvi_folder_name_valid(const char *name)
{
    size_t length = 0;
    if (strcmp(name, BASE_FOLDER) == 0)
        return true;
    while (is_hex(name[length]))
        length++;
    if (length == 0 || length >= CKVI_FOLDER_NAME_SIZE || name[length] != '\0')
        return false;
    return name[0] != '0' || length == 1;
}

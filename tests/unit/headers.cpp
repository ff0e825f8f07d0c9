// The library from C++11: every header together, its macros, and a call into each part
// that a program would begin with.
#include <coldkv/coldkv.h>

#include <cstdio>
#include <cstring>

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            std::printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);          \
            return 1;                                                                    \
        }                                                                                \
    } while (0)

static int check_names()
{
    char version[32];
    std::snprintf(version, sizeof version, "%d.%d.%d", CKV_VERSION_MAJOR,
                  CKV_VERSION_MINOR, CKV_VERSION_PATCH);
    CHECK(std::strcmp(version, CKV_VERSION_STRING) == 0);
    CHECK(std::strcmp(ckv_version(), CKV_VERSION_STRING) == 0);
    CHECK(std::strcmp(ckv_status_name(CKV_CORRUPT), "corrupt") == 0);
    CHECK(ckv_dtype_size(CKV_DTYPE_BFLOAT16) == 2);
    CHECK(ckv_wyhash("abc", 3, 0) == 0x02a4f1d7cb516c72ULL);
    CHECK(ckv_clock_system()->realtime_ns(nullptr) > 0);
    CHECK(ckv_alloc_default() != nullptr);
    return 0;
}

static int check_io()
{
    ckv_io_dir dir = CKV_IO_DIR_NONE;
    ckv_io_file file = CKV_IO_FILE_NONE;
    ckv_error error;
    CHECK(dir.handle == -1 && file.handle == -1);
    CHECK(std::strcmp(ckv_io_posix()->name, "posix") == 0);
    CHECK(!ckv_io_name_valid(".."));
    CHECK(ckv_io_open_file(ckv_io_posix(), dir, "x", CKV_IO_READ, &file, &error) ==
          CKV_INVALID);
    return 0;
}

int main()
{
    return check_names() || check_io();
}

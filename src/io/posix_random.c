/*
 * Owns random bytes of the POSIX table: the kernel's generator, through the call that the
 * platform has, else through /dev/urandom. Failure story: all bytes or a failure; never
 * weaker numbers in place of missing ones.
 */
#include "io/posix.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#if defined(__linux__) || defined(__APPLE__)
#include <sys/random.h>
#endif

/* Fills `data`, or returns false to have the device asked instead. */
static bool ask_kernel(unsigned char *data, size_t size)
{
#if defined(__linux__)
    while (size > 0) {
        ssize_t got = getrandom(data, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        data += got;
        size -= (size_t)got;
    }
    return true;
#elif defined(__APPLE__) || defined(__FreeBSD__) || defined(__OpenBSD__)
    const size_t at_once = 256; /* the most that getentropy gives */
    while (size > 0) {
        size_t part = size < at_once ? size : at_once;
        if (getentropy(data, part) != 0)
            return false;
        data += part;
        size -= part;
    }
    return true;
#else
    (void)data;
    return size == 0;
#endif
}

static enum ckv_status ask_device(unsigned char *data, size_t size,
                                  struct ckv_error *error)
{
    static const char path[] = "/dev/urandom";
    enum ckv_status status = CKV_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return ckvi_posix_fail(error, errno, "open", path);
    while (size > 0) {
        ssize_t got = read(fd, data, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            status = ckvi_posix_fail(error, got < 0 ? errno : EIO, "read", path);
            break;
        }
        data += got;
        size -= (size_t)got;
    }
    (void)close(fd);
    return status;
}

enum ckv_status ckvi_posix_random(void *ctx, void *data, size_t size,
                                  struct ckv_error *error)
{
    (void)ctx;
    return ask_kernel(data, size) ? CKV_OK : ask_device(data, size, error);
}

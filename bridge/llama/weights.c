/*
 * Owns which bytes of a tensor stand for it, and reading them.
 *
 * Invariant: the same bytes give the same digest wherever they lie. What sampling cannot
 * see is a change between the samples of a large tensor: retraining or requantizing
 * touches nearly every byte, a patch of a few bytes may be missed. `full` is for those.
 *
 * Failure story: a read that fails or ends early fails the identity, and with it the
 * bridge; no digest is made of part of what was asked for.
 */
#include "weights.h"

#include "digest.h"
#include "memory.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#define WHOLE_BYTES ((uint64_t)CKVI_LLAMA_SAMPLES * CKVI_LLAMA_SAMPLE_BYTES)

uint64_t ckvi_llama_sample_offset(uint64_t bytes, uint32_t index)
{
    uint64_t span = bytes - CKVI_LLAMA_SAMPLE_BYTES;
    uint64_t gaps = CKVI_LLAMA_SAMPLES - 1;
    /* span * index / gaps without a product that overflows. */
    return span / gaps * index + span % gaps * index / gaps;
}

static enum ckv_status read_exactly(int fd, uint64_t offset, unsigned char *buffer,
                                    size_t size, struct ckv_error *error)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(fd, buffer + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ckv_error_set_errno(error, ckv_status_from_errno(errno), errno,
                                       "reading weights at byte %" PRIu64, offset + done);
        if (got == 0)
            return ckv_error_set(error, CKV_CORRUPT,
                                 "the model file ends at byte %" PRIu64
                                 " inside its weights",
                                 offset + done);
        done += (size_t)got;
    }
    return CKV_OK;
}

static enum ckv_status put_samples(struct ckvi_llama_digest *digest,
                                   const struct ckvi_llama_range *range,
                                   unsigned char *buffer, struct ckv_error *error)
{
    enum ckv_status status = CKV_OK;
    for (uint32_t i = 0; !status && i < CKVI_LLAMA_SAMPLES; i++) {
        uint64_t offset = range->offset + ckvi_llama_sample_offset(range->bytes, i);
        status = read_exactly(range->fd, offset, buffer, CKVI_LLAMA_SAMPLE_BYTES, error);
        if (!status)
            ckvi_llama_digest_put(digest, buffer, CKVI_LLAMA_SAMPLE_BYTES);
    }
    return status;
}

static enum ckv_status put_all(struct ckvi_llama_digest *digest,
                               const struct ckvi_llama_range *range,
                               unsigned char *buffer, struct ckv_error *error)
{
    enum ckv_status status = CKV_OK;
    for (uint64_t done = 0; !status && done < range->bytes;) {
        uint64_t left = range->bytes - done;
        size_t size = left < WHOLE_BYTES ? (size_t)left : (size_t)WHOLE_BYTES;
        status = read_exactly(range->fd, range->offset + done, buffer, size, error);
        if (!status)
            ckvi_llama_digest_put(digest, buffer, size);
        done += size;
    }
    return status;
}

enum ckv_status ckvi_llama_range_digest(const struct ckvi_llama_range *range, bool full,
                                        const struct ckv_alloc *alloc,
                                        char text[CKV_SHA256_TEXT_SIZE],
                                        struct ckv_error *error)
{
    unsigned char *buffer = ckvi_llama_allocate_payload(alloc, WHOLE_BYTES);
    struct ckvi_llama_digest digest;
    enum ckv_status read_status;
    enum ckv_status status;
    text[0] = '\0';
    if (!buffer)
        return ckvi_llama_nomem(error, "samples of the weights");
    ckvi_llama_digest_init(&digest, alloc, error);
    if (full || range->bytes <= WHOLE_BYTES)
        read_status = put_all(&digest, range, buffer, error);
    else
        read_status = put_samples(&digest, range, buffer, error);
    status = ckvi_llama_digest_finish(&digest, text);
    ckvi_llama_release(alloc, buffer, WHOLE_BYTES, 1);
    return read_status ? read_status : status;
}

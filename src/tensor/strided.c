/*
 * Owns the one loop that moves elements between two layouts of the same shape. Trailing
 * axes that are contiguous on both sides move as one run, so that the usual case (rows of
 * keys and values) is a memcpy per KV head.
 */
#include "tensor/strided.h"

#include "base/assert.h"
#include <coldkv/array.h>
#include <string.h>

void ckvi_contiguous_strides(const uint64_t *shape, uint32_t rank, uint64_t *stride)
{
    uint64_t step = 1;
    for (uint32_t i = rank; i-- > 0;) {
        stride[i] = step;
        step *= shape[i];
    }
}

void ckvi_strided_copy(void *to, const uint64_t *to_stride, const void *from,
                       const uint64_t *from_stride, const uint64_t *shape, uint32_t rank,
                       size_t item)
{
    uint64_t at[CKV_ARRAY_RANK_MAX] = {0};
    uint64_t run = 1;
    uint32_t outer = rank;
    unsigned char *out = to;
    const unsigned char *in = from;
    CKV_ASSERT(rank <= CKV_ARRAY_RANK_MAX);
    for (uint32_t i = 0; i < rank; i++)
        if (shape[i] == 0)
            return;
    while (outer > 0 && (shape[outer - 1] == 1 || (to_stride[outer - 1] == run &&
                                                   from_stride[outer - 1] == run))) {
        run *= shape[outer - 1];
        outer--;
    }
    for (;;) {
        uint32_t axis = outer;
        memcpy(out, in, (size_t)run * item);
        while (axis > 0) {
            axis--;
            at[axis]++;
            out += to_stride[axis] * item;
            in += from_stride[axis] * item;
            if (at[axis] < shape[axis])
                break;
            out -= shape[axis] * to_stride[axis] * item;
            in -= shape[axis] * from_stride[axis] * item;
            at[axis] = 0;
            if (axis == 0)
                return;
        }
        if (outer == 0)
            return;
    }
}

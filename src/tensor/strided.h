/* Copies between strided layouts of one shape. */
#ifndef COLDKV_TENSOR_STRIDED_H
#define COLDKV_TENSOR_STRIDED_H

#include <stddef.h>
#include <stdint.h>

/* Strides in elements of `item` bytes; rank <= 8; the regions do not overlap. */
void ckvi_strided_copy(void *to, const uint64_t *to_stride, const void *from,
                       const uint64_t *from_stride, const uint64_t *shape, uint32_t rank,
                       size_t item);

/* The strides of a contiguous array of this shape. */
void ckvi_contiguous_strides(const uint64_t *shape, uint32_t rank, uint64_t *stride);

#endif

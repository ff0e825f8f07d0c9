/* Raw access to rows of arrays, for the code that fills them. */
#ifndef COLDKV_TENSOR_ROWS_H
#define COLDKV_TENSOR_ROWS_H

#include <coldkv/array.h>

/* Address of element [b, h, row, 0] of a rank 4 array. */
void *ckvi_array_at(const struct ckv_array *array, uint64_t b, uint64_t h, uint64_t row);

/* Makes `rows` claimed rows part of the view without writing them. */
void ckvi_array_extend(struct ckv_array *array, uint64_t rows);

/* Cuts the view to its first `rows` rows. What lies behind becomes capacity at once when
 * nobody else holds the buffer. */
void ckvi_array_cut(struct ckv_array *array, uint64_t rows);

#endif

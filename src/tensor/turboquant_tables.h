/* The constants of the TurboQuant codec, expanded for its loops. */
#ifndef COLDKV_TENSOR_TURBOQUANT_TABLES_H
#define COLDKV_TENSOR_TURBOQUANT_TABLES_H

#include <stddef.h>
#include <stdint.h>

#define CKVI_TURBOQUANT_DIM_MAX 512u
#define CKVI_TURBOQUANT_CODES_MAX 256u

/* dim (64, 128, 256 or 512) factors of -1 or 1. */
void ckvi_turboquant_signs(size_t dim, float *out);
/* 2^bits centroids, ascending; bits 2, 3, 4, 5 or 8. */
void ckvi_turboquant_centroids(uint32_t bits, float *out);
/* The 2^bits - 1 boundaries between them. */
void ckvi_turboquant_boundaries(uint32_t bits, float *out);

#endif

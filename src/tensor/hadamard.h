/* The Walsh-Hadamard transform, normalised so that it is its own inverse. */
#ifndef COLDKV_TENSOR_HADAMARD_H
#define COLDKV_TENSOR_HADAMARD_H

#include <stddef.h>

/* In place, natural (Sylvester) order; count 64, 128, 256 or 512. */
void ckvi_hadamard(float *x, size_t count);

#endif

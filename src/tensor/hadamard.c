/*
 * Owns the Walsh-Hadamard transform of the TurboQuant codec. Every element is a fixed
 * tree of additions, so steps may be taken together (the first two are here) without a
 * change in any bit. Cannot fail.
 */
#include "tensor/hadamard.h"

#include "base/assert.h"
#include "tensor/exact.h"

#define SMALL 16u

/* Steps of distance 1 and 2. */
static inline void transform_four(float *x)
{
    float a = x[0] + x[1], b = x[0] - x[1];
    float c = x[2] + x[3], d = x[2] - x[3];
    x[0] = a + c;
    x[1] = b + d;
    x[2] = a - c;
    x[3] = b - d;
}

static inline void transform_step(float *restrict low, float *restrict high,
                                  size_t distance)
{
    for (size_t j = 0; j < distance; j++) {
        float a = low[j], b = high[j];
        low[j] = a + b;
        high[j] = a - b;
    }
}

/* All steps within SMALL elements, with every count known to the compiler. */
static void transform_small(float *x)
{
    for (size_t i = 0; i < SMALL; i += 4)
        transform_four(x + i);
    transform_step(x, x + 4, 4);
    transform_step(x + 8, x + 12, 4);
    transform_step(x, x + 8, 8);
}

/* 1 / sqrt(count), rounded to float32. */
static float normal_factor(size_t count)
{
    switch (count) {
    case 64:
        return 0.125f;
    case 128:
        return 0x1.6a09e6p-4f;
    case 256:
        return 0.0625f;
    default:
        CKV_ASSERT(count == 512);
        return 0x1.6a09e6p-5f;
    }
}

void ckvi_hadamard(float *x, size_t count)
{
    float factor = normal_factor(count);
    for (size_t i = 0; i < count; i += SMALL)
        transform_small(x + i);
    for (size_t distance = SMALL; distance < count; distance *= 2)
        for (size_t i = 0; i < count; i += 2 * distance)
            transform_step(x + i, x + i + distance, distance);
    for (size_t i = 0; i < count; i++)
        x[i] *= factor;
}

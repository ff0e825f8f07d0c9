/*
 * Owns the Walsh-Hadamard transform of the TurboQuant codec. Every element is a fixed
 * tree of additions, so steps may be taken together (the first two are) without a change
 * in any bit. Cannot fail.
 */
#include "tensor/hadamard.h"

#include "base/assert.h"
#include "tensor/exact.h"

/* Steps of distance 1 and 2. */
static void transform_fours(float *x, size_t count)
{
    for (size_t i = 0; i < count; i += 4) {
        float a = x[i] + x[i + 1], b = x[i] - x[i + 1];
        float c = x[i + 2] + x[i + 3], d = x[i + 2] - x[i + 3];
        x[i] = a + c;
        x[i + 1] = b + d;
        x[i + 2] = a - c;
        x[i + 3] = b - d;
    }
}

static void transform_step(float *restrict low, float *restrict high, size_t distance)
{
    for (size_t j = 0; j < distance; j++) {
        float a = low[j], b = high[j];
        low[j] = a + b;
        high[j] = a - b;
    }
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
    transform_fours(x, count);
    for (size_t distance = 4; distance < count; distance *= 2)
        for (size_t i = 0; i < count; i += 2 * distance)
            transform_step(x + i, x + i + distance, distance);
    for (size_t i = 0; i < count; i++)
        x[i] *= factor;
}

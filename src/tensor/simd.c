/*
 * Owns the choice between plain and vector loops, made from the processor at the first
 * use. The one mutable word of the library outside its handles: a relaxed atomic, because
 * every value of it leads to the same bytes. Cannot fail; the plain loops always exist.
 */
#include "tensor/simd.h"

#include "tensor/affine.h"
#include "tensor/float.h"
#include <stdatomic.h>
#include <stdbool.h>

#ifdef CKVI_HAVE_AVX2
#include <cpuid.h>
#endif

enum choice { UNDECIDED, PLAIN, FASTEST };

static _Atomic int choice = UNDECIDED;

static const struct ckvi_simd plain = {
    .name = "plain",
    .widen_bf16 = ckvi_widen_bf16_plain,
    .widen_f16 = ckvi_widen_f16_plain,
    .narrow_bf16 = ckvi_narrow_bf16_plain,
    .narrow_f16 = ckvi_narrow_f16_plain,
    .affine_codes = ckvi_affine_codes_plain,
    .affine_values = ckvi_affine_values_plain,
};

#ifdef CKVI_HAVE_AVX2
static const struct ckvi_simd fastest = {
    .name = "avx2",
    .widen_bf16 = ckvi_widen_bf16_avx2,
    .widen_f16 = ckvi_widen_f16_avx2,
    .narrow_bf16 = ckvi_narrow_bf16_avx2,
    .narrow_f16 = ckvi_narrow_f16_avx2,
    .affine_codes = ckvi_affine_codes_avx2,
    .affine_values = ckvi_affine_values_avx2,
};

static bool fastest_runs_here(void)
{
    unsigned int a, b, c, d;
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) &&
           (c & bit_F16C) != 0;
}
#else
#define fastest plain

static bool fastest_runs_here(void)
{
    return false;
}
#endif

void ckv_simd_enable(bool enable)
{
    int made = enable && fastest_runs_here() ? FASTEST : PLAIN;
    atomic_store_explicit(&choice, made, memory_order_relaxed);
}

const struct ckvi_simd *ckvi_simd(void)
{
    int made = atomic_load_explicit(&choice, memory_order_relaxed);
    if (made == UNDECIDED) {
        /* Loses to a concurrent ckv_simd_enable, which is the later word. */
        int decided = fastest_runs_here() ? FASTEST : PLAIN;
        if (atomic_compare_exchange_strong_explicit(
                &choice, &made, decided, memory_order_relaxed, memory_order_relaxed))
            made = decided;
    }
    return made == FASTEST ? &fastest : &plain;
}

const char *ckv_simd_name(void)
{
    return ckvi_simd()->name;
}

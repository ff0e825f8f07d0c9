/*
 * Owns the table of cache kinds: their names, scalars, tensors, rules and floors. To add
 * a kind is to add a row here; writer and reader follow the table.
 *
 * Invariant: what check accepts, a cache can be rebuilt from without another look at
 * shapes or scalars.
 */
#include "cache/kind.h"

#include "cache/check.h"
#include <inttypes.h>
#include <string.h>

#define WORD_BITS 32u /* quantized codes are packed into 32-bit words */
#define TURBO_BLOCK 32u

static const char *const kv_names[] = {"keys", "values"};
static const char *const qkv_names[] = {"keys packed",   "keys scales",
                                        "keys biases",   "values packed",
                                        "values scales", "values biases"};
static const char *const turbo_names[] = {"kIdx", "kScales", "kZeros", "vPacked",
                                          "vScales"};

static enum ckv_status check_pair(const struct ckvi_exam *exam)
{
    enum ckv_status status = ckvi_check_rows(exam, 0);
    if (!status)
        status = ckvi_check_rows(exam, 1);
    if (!status)
        status = ckvi_check_float(exam, 0);
    if (!status)
        status = ckvi_check_dtype(exam, 1, exam->cache->tensors[0].dtype);
    return status;
}

static enum ckv_status check_kv(const struct ckvi_exam *exam)
{
    enum ckv_status status = check_pair(exam);
    return status ? status : ckvi_check_offset_rows(exam);
}

static enum ckv_status check_rotating(const struct ckvi_exam *exam)
{
    enum ckv_status status = check_pair(exam);
    return status ? status : ckvi_check_ring(exam);
}

/* One of the two triples, beginning at tensor `first`: packed codes, scales, biases. The
 * scales' width times the group size is the head dim, from which the packed width
 * follows. A group is 1, 2 or 4 words' worth of elements, so the quotient is exact; with
 * at most 2^53 groups the product stays below 2^58. */
static enum ckv_status check_triple(const struct ckvi_exam *exam, size_t first)
{
    const struct ckv_cache *cache = exam->cache;
    enum ckv_dtype scale_type = cache->tensors[1].dtype;
    uint64_t groups;
    enum ckv_status status = CKV_OK;
    for (size_t i = first; i < first + 3 && !status; i++)
        status = ckvi_check_rows(exam, i);
    if (!status)
        status = ckvi_check_dtype(exam, first, CKV_DTYPE_UINT32);
    if (!status)
        status = ckvi_check_float(exam, first + 1);
    if (!status)
        status = ckvi_check_dtype(exam, first + 1, scale_type);
    if (!status)
        status = ckvi_check_dtype(exam, first + 2, scale_type);
    if (status)
        return status;
    groups = cache->tensors[first + 1].shape[3];
    status = ckvi_check_axis(exam, first + 2, 3, groups, "groups of the scales");
    if (status)
        return status;
    return ckvi_check_axis(exam, first, 3,
                           groups * (cache->group_size / WORD_BITS) * cache->bits,
                           "groups x groupSize x bits / 32");
}

static enum ckv_status check_six(const struct ckvi_exam *exam)
{
    static const uint32_t group_sizes[] = {32, 64, 128, 0};
    static const uint32_t widths[] = {2, 3, 4, 5, 6, 8, 0};
    const struct ckv_cache *cache = exam->cache;
    enum ckv_status status;
    status = ckvi_check_member(exam, "groupSize", cache->group_size, group_sizes,
                               "32, 64, 128");
    if (!status)
        status = ckvi_check_member(exam, "bits", cache->bits, widths, "2, 3, 4, 5, 6, 8");
    if (!status)
        status = check_triple(exam, 0);
    if (!status)
        status = check_triple(exam, 3);
    return status;
}

static enum ckv_status check_qkv(const struct ckvi_exam *exam)
{
    enum ckv_status status = check_six(exam);
    return status ? status : ckvi_check_offset_rows(exam);
}

static enum ckv_status check_rotating_qkv(const struct ckvi_exam *exam)
{
    enum ckv_status status = check_six(exam);
    return status ? status : ckvi_check_ring(exam);
}

static enum ckv_status check_ssm(const struct ckvi_exam *exam)
{
    (void)exam;
    return CKV_OK;
}

static enum ckv_status check_turbo_scalars(const struct ckvi_exam *exam)
{
    static const uint32_t key_bits[] = {2, 4, 5, 8, 0};
    static const uint32_t value_bits[] = {2, 3, 4, 5, 8, 0};
    static const uint32_t dims[] = {64, 128, 256, 512, 0};
    const struct ckv_cache *cache = exam->cache;
    enum ckv_status status;
    status = ckvi_check_member(exam, "kBits", cache->k_bits, key_bits, "2, 4, 5, 8");
    if (!status)
        status =
            ckvi_check_member(exam, "vBits", cache->v_bits, value_bits, "2, 3, 4, 5, 8");
    if (!status)
        status = ckvi_check_member(exam, "headDim", cache->head_dim, dims,
                                   "64, 128, 256, 512");
    return status;
}

static enum ckv_status check_turboquant(const struct ckvi_exam *exam)
{
    const struct ckv_cache *cache = exam->cache;
    const uint64_t blocks = cache->head_dim / TURBO_BLOCK;
    const uint64_t widths[5] = {(uint64_t)cache->head_dim * cache->k_bits / 8, blocks,
                                blocks, (uint64_t)cache->head_dim * cache->v_bits / 8,
                                blocks};
    static const char *const why[5] = {"headDim x kBits / 8", "headDim / 32",
                                       "headDim / 32", "headDim x vBits / 8",
                                       "headDim / 32"};
    const enum ckv_dtype types[5] = {
        cache->k_bits == 8 ? CKV_DTYPE_INT8 : CKV_DTYPE_UINT8, CKV_DTYPE_FLOAT16,
        CKV_DTYPE_FLOAT16, CKV_DTYPE_UINT8, CKV_DTYPE_FLOAT16};
    enum ckv_status status = check_turbo_scalars(exam);
    for (size_t i = 0; i < 5 && !status; i++) {
        status = ckvi_check_rows(exam, i);
        if (!status)
            status = ckvi_check_dtype(exam, i, types[i]);
        if (!status)
            status = ckvi_check_axis(exam, i, 3, widths[i], why[i]);
    }
    return status ? status : ckvi_check_offset_rows(exam);
}

static bool engine_name_valid(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789._-";
    size_t length = strnlen(name, CKV_ENGINE_NAME_MAX + 1);
    return length > 0 && length <= CKV_ENGINE_NAME_MAX && strspn(name, allowed) == length;
}

static enum ckv_status check_state(const struct ckvi_exam *exam)
{
    const struct ckv_cache *cache = exam->cache;
    enum ckv_status status = CKV_OK;
    if (!engine_name_valid(cache->engine))
        return ckvi_bad_field(exam, "engine", "expected [A-Za-z0-9._-]{1,63}");
    if (cache->floor > cache->offset)
        return ckvi_bad_field(exam, "floor",
                              "expected at most %" PRIu64 " (offset), found %" PRIu64,
                              cache->offset, cache->floor);
    for (size_t i = 0; i < cache->tensor_count && !status; i++) {
        if (cache->tensors[i].rank != 1)
            return ckvi_bad_tensor(exam, i, "shape", "expected rank 1, found %" PRIu32,
                                   cache->tensors[i].rank);
        status = ckvi_check_dtype(exam, i, CKV_DTYPE_UINT8);
    }
    return status;
}

static uint64_t floor_zero(const struct ckv_cache *cache)
{
    (void)cache;
    return 0;
}

/* A ring that has wrapped (or is about to: offset == max_size) has lost its older rows.
 */
static uint64_t floor_ring(const struct ckv_cache *cache)
{
    return cache->offset < cache->max_size ? 0 : cache->offset;
}

static uint64_t floor_offset(const struct ckv_cache *cache)
{
    return cache->offset;
}

static uint64_t floor_own(const struct ckv_cache *cache)
{
    return cache->floor;
}

#define BIT CKVI_FIELD_BIT
#define RING_FIELDS                                                                      \
    (BIT(CKVI_FIELD_OFFSET) | BIT(CKVI_FIELD_IDX) | BIT(CKVI_FIELD_MAX_SIZE))
#define GROUP_FIELDS (BIT(CKVI_FIELD_GROUP_SIZE) | BIT(CKVI_FIELD_BITS))

static const struct ckvi_kind kinds[CKV_CACHE_KIND_COUNT + 1] = {
    [CKV_CACHE_KV] = {"kv", BIT(CKVI_FIELD_OFFSET), kv_names, 2, check_kv, floor_zero},
    [CKV_CACHE_ROTATING] = {"rotating", RING_FIELDS, kv_names, 2, check_rotating,
                            floor_ring},
    [CKV_CACHE_QKV] = {"qkv", BIT(CKVI_FIELD_OFFSET) | GROUP_FIELDS, qkv_names, 6,
                       check_qkv, floor_zero},
    [CKV_CACHE_ROTATING_QKV] = {"rotating-qkv", RING_FIELDS | GROUP_FIELDS, qkv_names, 6,
                                check_rotating_qkv, floor_ring},
    [CKV_CACHE_SSM] = {"ssm", BIT(CKVI_FIELD_OFFSET), NULL, 0, check_ssm, floor_offset},
    [CKV_CACHE_TURBOQUANT] = {"turboquant",
                              BIT(CKVI_FIELD_OFFSET) | BIT(CKVI_FIELD_K_BITS) |
                                  BIT(CKVI_FIELD_V_BITS) | BIT(CKVI_FIELD_HEAD_DIM),
                              turbo_names, 5, check_turboquant, floor_zero},
    [CKV_CACHE_STATE] = {"state",
                         BIT(CKVI_FIELD_OFFSET) | BIT(CKVI_FIELD_ENGINE) |
                             BIT(CKVI_FIELD_FLOOR),
                         NULL, 0, check_state, floor_own},
};

const struct ckvi_kind *ckvi_kind_of(enum ckv_cache_kind kind)
{
    unsigned value = (unsigned)kind;
    return value >= 1 && value <= CKV_CACHE_KIND_COUNT ? &kinds[value] : NULL;
}

bool ckvi_kind_find(const char *name, size_t size, enum ckv_cache_kind *out)
{
    for (unsigned i = 1; i <= CKV_CACHE_KIND_COUNT; i++) {
        if (strlen(kinds[i].name) != size || memcmp(kinds[i].name, name, size) != 0)
            continue;
        *out = (enum ckv_cache_kind)i;
        return true;
    }
    return false;
}

/*
 * The life of caches of every kind: they are filled, cloned, go on; the clones are saved,
 * loaded, and go on too. Both lines of life must be equal, byte for byte.
 *
 *     cc lifecycle.c $(pkg-config --cflags --libs coldkv) && ./a.out folder
 */
#include <coldkv/coldkv.h>
#include <coldkv/float.h>
#include <coldkv/lifecycle.h>
#include <stdio.h>

enum { KINDS = 6, HEADS = 2, DIM = 64, CELLS = HEADS * DIM, PROMPT = 70, REPLY = 30 };

static const struct ckv_cache_params layers[KINDS] = {
    {.kind = CKV_CACHE_KV},
    {.kind = CKV_CACHE_ROTATING, .max_size = 64},
    {.kind = CKV_CACHE_QKV, .bits = 8, .group_size = 64},
    {.kind = CKV_CACHE_ROTATING_QKV, .max_size = 64, .bits = 4, .group_size = 32},
    {.kind = CKV_CACHE_TURBOQUANT, .k_bits = 8, .v_bits = 3},
    {.kind = CKV_CACHE_SSM},
};

/* What a model would compute for element i of a token. */
static float activation(uint64_t token, uint64_t i, uint64_t salt)
{
    return (float)((token * 31 + i * 7 + salt) % 97) / 48;
}

/* Keys or values of some tokens, [1, HEADS, count, DIM]. */
static enum ckv_status project(uint64_t first, uint64_t count, uint64_t salt,
                               struct ckv_array *out, struct ckv_error *error)
{
    const uint64_t shape[4] = {1, HEADS, count, DIM};
    uint16_t rows[PROMPT * CELLS];
    for (uint64_t i = 0; i < count * CELLS; i++)
        rows[i] = ckv_bf16_from_f32(activation(first + i / DIM % count, i % DIM, salt));
    return ckv_array_from_bytes(NULL, CKV_DTYPE_BFLOAT16, 4, shape, 2, rows, out, error);
}

/* A recurrent layer has no rows: each token turns its old state into a new one. */
static enum ckv_status recur(struct ckv_live_cache *cache, uint64_t first, uint64_t count,
                             struct ckv_error *error)
{
    const uint64_t shape[3] = {1, HEADS, DIM};
    for (size_t slot = 0; slot < 2; slot++) {
        struct ckv_array old[CKV_CACHE_ARRAYS_MAX], state;
        float sums[CELLS] = {0};
        size_t old_count = ckv_cache_state(cache, old);
        if (slot < old_count)
            ckv_array_read(&old[slot], sums);
        while (old_count > 0)
            ckv_array_unref(&old[--old_count]);
        for (uint64_t i = 0; i < count * CELLS; i++)
            sums[i % CELLS] =
                sums[i % CELLS] / 2 + activation(first + i / CELLS, i, slot);
        enum ckv_status status = ckv_array_from_bytes(NULL, CKV_DTYPE_FLOAT32, 3, shape,
                                                      0, sums, &state, error);
        if (status == CKV_OK)
            status = ckv_cache_set_slot(cache, slot, &state, error);
        ckv_array_unref(&state);
        if (status != CKV_OK)
            return status;
    }
    return ckv_cache_advance(cache, count, error);
}

static enum ckv_status evaluate(struct ckv_live_cache *const *caches, uint64_t first,
                                uint64_t count, struct ckv_error *error)
{
    struct ckv_array keys = CKV_ARRAY_NONE, values = CKV_ARRAY_NONE;
    enum ckv_status status = project(first, count, 1, &keys, error);
    if (status == CKV_OK)
        status = project(first, count, 2, &values, error);
    for (size_t i = 0; i < KINDS && status == CKV_OK; i++) {
        enum ckv_cache_kind kind = layers[i].kind;
        if (kind == CKV_CACHE_QKV || kind == CKV_CACHE_ROTATING_QKV) {
            status = ckv_cache_append_quantized(caches[i], &keys, &values, NULL, error);
        } else if (kind == CKV_CACHE_SSM) {
            status = recur(caches[i], first, count, error);
        } else {
            status = ckv_cache_append(caches[i], &keys, &values, NULL, NULL, error);
        }
    }
    ckv_array_unref(&keys);
    ckv_array_unref(&values);
    return status;
}

static enum ckv_status reply(struct ckv_live_cache *const *caches,
                             struct ckv_error *error)
{
    enum ckv_status status = CKV_OK;
    for (uint64_t i = 0; i < REPLY && status == CKV_OK; i++)
        status = evaluate(caches, PROMPT + i, 1, error);
    return status;
}

static enum ckv_status save(struct ckv_io_dir dir, struct ckv_live_cache *const *caches,
                            const uint32_t *tokens, struct ckv_error *error)
{
    struct ckv_writer_options options;
    struct ckv_snapshot *snapshot = NULL;
    enum ckv_status status =
        ckv_snapshot_create(NULL, caches, KINDS, tokens, PROMPT, &snapshot, error);
    if (status != CKV_OK)
        return status;
    ckv_writer_options_init(&options);
    options.replace = true;
    status =
        ckv_save(ckv_io_posix(), dir, "lifecycle.mlxkv", ckv_snapshot_entry(snapshot),
                 ckv_snapshot_source(snapshot), &options, error);
    ckv_snapshot_destroy(snapshot);
    return status;
}

/* Prints a line; true when both caches are in the same state. */
static bool compare(const struct ckv_live_cache *a, const struct ckv_live_cache *b)
{
    struct ckv_array left[CKV_CACHE_ARRAYS_MAX], right[CKV_CACHE_ARRAYS_MAX];
    char signature[CKV_SIGNATURE_SIZE];
    size_t count = ckv_cache_state(a, left), other = ckv_cache_state(b, right);
    bool equal = count == other && ckv_cache_offset(a) == ckv_cache_offset(b) &&
                 ckv_cache_idx(a) == ckv_cache_idx(b);
    ckv_cache_signature(a, signature);
    for (size_t i = 0; i < count && equal; i++)
        equal = ckv_array_equal(&left[i], &right[i]);
    printf("%-23s offset %d, %d arrays, %6d bytes: %s\n", signature,
           (int)ckv_cache_offset(a), (int)count, (int)ckv_cache_bytes(a),
           equal ? "equal" : "DIFFERENT");
    while (count > 0)
        ckv_array_unref(&left[--count]);
    while (other > 0)
        ckv_array_unref(&right[--other]);
    return equal;
}

int main(int argc, char **argv)
{
    const struct ckv_io *io = ckv_io_posix();
    struct ckv_io_dir dir = CKV_IO_DIR_NONE;
    struct ckv_live_cache *caches[KINDS] = {0}, *clones[KINDS] = {0};
    struct ckv_loaded loaded = {0};
    struct ckv_error error = {0};
    uint32_t tokens[PROMPT];
    bool equal = false;
    for (uint32_t i = 0; i < PROMPT; i++)
        tokens[i] = 1000 + i;
    enum ckv_status status =
        ckv_io_open_root(io, argc > 1 ? argv[1] : "lifecycle", true, NULL, &dir, &error);
    for (size_t i = 0; i < KINDS && status == CKV_OK; i++)
        status = ckv_cache_create(NULL, &layers[i], &caches[i], &error);
    if (status == CKV_OK)
        status = evaluate(caches, 0, PROMPT, &error);
    if (status == CKV_OK)
        status = ckv_caches_clone(caches, KINDS, clones, &error);
    if (status == CKV_OK) /* what the caches do now, the clones never see */
        status = reply(caches, &error);
    if (status == CKV_OK)
        status = save(dir, clones, tokens, &error);
    if (status == CKV_OK)
        status = ckv_load(io, dir, "lifecycle.mlxkv", NULL, &loaded, &error);
    if (status == CKV_OK)
        status = reply(loaded.caches, &error);
    equal = status == CKV_OK;
    for (size_t i = 0; i < KINDS && status == CKV_OK; i++)
        equal = compare(caches[i], loaded.caches[i]) && equal;
    if (status != CKV_OK)
        fprintf(stderr, "lifecycle: %s\n", error.text);
    ckv_loaded_deinit(&loaded);
    ckv_caches_destroy(clones, KINDS);
    ckv_caches_destroy(caches, KINDS);
    ckv_io_close_dir(io, &dir);
    return equal ? 0 : 1;
}

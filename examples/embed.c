/*
 * coldkv inside an engine of your own. Run it twice on one folder: the first run
 * evaluates its prompt and stores what that cost, the second finds it.
 *
 *     cc embed.c $(pkg-config --cflags --libs coldkv) && ./a.out folder && ./a.out folder
 */
#include <coldkv/coldkv.h>
#include <stdio.h>
#include <string.h>

enum { LAYERS = 2, HEADS = 2, CAPACITY = 16, DIM = 4, LENGTH = 9 };

/* The engine's memory: per layer keys (0) and values (1) in bf16, with room
 * for CAPACITY rows. */
struct engine {
    uint16_t rows[LAYERS][2][HEADS][CAPACITY][DIM];
};

/* For coldkv a tensor is [1, HEADS, LENGTH, DIM] without gaps. We lend it run by run:
 * from byte `offset` to the end of that head's rows. */
static char *locate(struct engine *engine, size_t layer, size_t tensor, uint64_t offset,
                    size_t wanted, size_t *size)
{
    size_t head_bytes = sizeof(uint16_t[LENGTH][DIM]);
    size_t inside = (size_t)offset % head_bytes;
    *size = head_bytes - inside < wanted ? head_bytes - inside : wanted;
    return (char *)engine->rows[layer][tensor][(size_t)offset / head_bytes] + inside;
}

/* Out of the engine. One with device memory would copy to a staging buffer here. */
static enum ckv_status view(void *ctx, size_t layer, size_t tensor, uint64_t offset,
                            size_t wanted, const void **data, size_t *size,
                            struct ckv_error *error)
{
    (void)error;
    *data = locate(ctx, layer, tensor, offset, wanted, size);
    return CKV_OK;
}

/* Into the engine. Nothing may be used before the whole restore said OK. */
static enum ckv_status lend(void *ctx, size_t layer, size_t tensor, uint64_t offset,
                            size_t wanted, void **data, size_t *size,
                            struct ckv_error *error)
{
    (void)error;
    *data = locate(ctx, layer, tensor, offset, wanted, size);
    return CKV_OK;
}

/* An entry was found. Can this engine take it, and where shall it go? */
static enum ckv_status prepare(void *ctx, const struct ckv_entry *entry, uint64_t prefix,
                               struct ckv_sink *sink, struct ckv_error *error)
{
    if (entry->cache_count != LAYERS || entry->token_count != LENGTH)
        return ckv_error_set(error, CKV_REFUSED, "the %d tokens do not fit", (int)prefix);
    *sink = (struct ckv_sink){.ctx = ctx, .lend = lend};
    return CKV_OK;
}

static enum ckv_status save(struct ckv_store *store, struct engine *engine,
                            const uint32_t *tokens, struct ckv_error *error)
{
    struct ckv_tensor tensor = {.dtype = CKV_DTYPE_BFLOAT16,
                                .rank = 4,
                                .shape = {1, HEADS, LENGTH, DIM},
                                .bytes = sizeof(uint16_t[HEADS][LENGTH][DIM])};
    struct ckv_tensor pairs[LAYERS][2] = {{tensor, tensor}, {tensor, tensor}};
    struct ckv_cache caches[LAYERS] = {{.kind = CKV_CACHE_KV}, {.kind = CKV_CACHE_KV}};
    for (size_t i = 0; i < LAYERS; i++) {
        caches[i].offset = LENGTH;
        caches[i].tensors = pairs[i];
        caches[i].tensor_count = 2;
    }
    struct ckv_entry entry = {
        .tokens = tokens, .token_count = LENGTH, .caches = caches, .cache_count = LAYERS};
    struct ckv_source source = {.ctx = engine, .any_thread = true, .view = view};
    return ckv_store_put(store, "", &entry, &source, NULL, NULL, error);
}

/* What would cost seconds. */
static void evaluate(struct engine *engine)
{
    uint16_t *cells = (uint16_t *)engine->rows;
    for (size_t i = 0; i < sizeof engine->rows / sizeof *cells; i++)
        cells[i] = i / DIM % CAPACITY < LENGTH ? (uint16_t)(i + 1) : 0;
}

int main(int argc, char **argv)
{
    /* Of a prompt the last token is always evaluated: its output begins the reply. */
    const uint32_t prompt[LENGTH + 1] = {1, 15, 27, 9, 31, 4, 4, 8, 2, 77};
    /* The fingerprint names whatever changes the meaning of the rows. */
    const struct ckv_store_identity identity = {.fingerprint = "example-weights",
                                                .tokenizer_hash = "example-tokenizer"};
    static struct engine engine, expected;
    struct ckv_store_options options;
    struct ckv_store *store = NULL;
    struct ckv_restore_target target = {.ctx = &engine, .prepare = prepare};
    struct ckv_restored hit;
    struct ckv_error error = {0};
    ckv_store_options_init(&options);
    options.cap_bytes = 64u << 20; /* the most that may lie on the disk */
    options.free_floor_bytes = 0;  /* leave it at its default in earnest */
    enum ckv_status status = ckv_store_open(argc > 1 ? argv[1] : "embed-store", &identity,
                                            &options, &store, &error);
    if (status != CKV_OK)
        goto out;
    evaluate(&expected);
    status = ckv_store_restore(store, "", prompt, LENGTH + 1, &target, &hit, &error);
    if (status == CKV_OK) {
        printf("found: %d of %d tokens need no evaluation; %s\n", (int)hit.prefix,
               LENGTH + 1,
               memcmp(engine.rows, expected.rows, sizeof engine.rows) ? "WRONG"
                                                                      : "equal");
    } else if (status == CKV_NOTFOUND) { /* any fault of the store is a miss, no more */
        evaluate(&engine);
        status = save(store, &engine, prompt, &error);
        if (status == CKV_OK)
            printf("stored: %d tokens, durable from here on\n", LENGTH);
    }
out:
    if (status != CKV_OK)
        fprintf(stderr, "embed: %s\n", error.text);
    ckv_store_close(store);
    return status == CKV_OK ? 0 : 1;
}

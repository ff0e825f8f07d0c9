/*
 * Owns the knowledge of how libllama lays out a sequence state.
 *
 * Invariant: a layout is learned once, from bytes that the context wrote itself; after
 * that every structural byte of a foreign state has exactly one legal value, except the
 * source's sequence id, which must be the same everywhere. So no byte that steers
 * libllama's reader comes from a file unchecked.
 *
 * Failure story: what does not fit is UNSUPPORTED while learning and CORRUPT while
 * checking; no read leaves the given bytes.
 */
#include "blob.h"

#include "memory.h"

#include <inttypes.h>

#define CELL_BYTES 12u

/* Bytes that are taken from the front; never past the end. */
struct cursor {
    const unsigned char *data;
    size_t size;
    size_t at;
};

static bool take(struct cursor *cursor, void *out, size_t size)
{
    if (size > cursor->size - cursor->at)
        return false;
    memcpy(out, cursor->data + cursor->at, size);
    cursor->at += size;
    return true;
}

static bool skip(struct cursor *cursor, uint64_t size)
{
    if (size > cursor->size - cursor->at)
        return false;
    cursor->at += (size_t)size;
    return true;
}

static bool take_rows(struct cursor *cursor, bool transposed,
                      struct ckvi_llama_rows *rows)
{
    uint64_t row_bytes;
    if (!take(cursor, &rows->type, sizeof rows->type))
        return false;
    if (transposed) {
        if (!take(cursor, &rows->element_bytes, sizeof rows->element_bytes) ||
            !take(cursor, &rows->width, sizeof rows->width))
            return false;
        row_bytes = (uint64_t)rows->element_bytes * rows->width;
    } else if (!take(cursor, &row_bytes, sizeof row_bytes)) {
        return false;
    }
    rows->token_bytes = row_bytes;
    return row_bytes <= CKVI_LLAMA_ROW_BYTES_MAX && skip(cursor, row_bytes);
}

static bool learn_rows(struct cursor *cursor, struct ckvi_llama_layout *layout)
{
    for (uint32_t i = 0; i < layout->layer_count; i++)
        if (!take_rows(cursor, false, &layout->rows[i]))
            return false;
    if (cursor->at == cursor->size)
        return true;
    layout->value_count = layout->layer_count;
    for (uint32_t i = 0; i < layout->layer_count; i++)
        if (!take_rows(cursor, layout->values_transposed,
                       &layout->rows[layout->layer_count + i]))
            return false;
    return cursor->at == cursor->size;
}

/* The part before the rows; *layers is what the state claims. */
static bool learn_head(struct cursor *cursor, uint32_t *transposed, uint32_t *layers)
{
    uint32_t head[4];
    uint32_t cell[3];
    return take(cursor, head, sizeof head) && head[0] == CKVI_LLAMA_BLOB_MAGIC &&
           head[2] == 1 && head[3] == 1 && take(cursor, cell, sizeof cell) &&
           cell[0] == 0 && cell[1] == 1 && cell[2] == head[1] &&
           take(cursor, transposed, sizeof *transposed) && *transposed <= 1 &&
           take(cursor, layers, sizeof *layers) && *layers >= 1 &&
           *layers <= CKVI_LLAMA_LAYERS_MAX;
}

enum ckv_status ckvi_llama_layout_learn(struct ckvi_llama_layout *layout,
                                        const struct ckv_alloc *alloc, const void *data,
                                        size_t size, struct ckv_error *error)
{
    struct cursor cursor = {.data = data, .size = size};
    uint32_t transposed = 0;
    uint32_t layers = 0;
    *layout = (struct ckvi_llama_layout){.alloc = alloc};
    if (!learn_head(&cursor, &transposed, &layers))
        return ckv_error_set(error, CKV_UNSUPPORTED,
                             "the model's state is not that of a plain attention cache "
                             "with one stream");
    layout->values_transposed = transposed != 0;
    layout->layer_count = layers;
    layout->rows = ckvi_llama_allocate(alloc, 2 * (size_t)layers, sizeof *layout->rows);
    if (!layout->rows) {
        layout->layer_count = 0;
        return ckvi_llama_nomem(error, "the state's layout");
    }
    if (!learn_rows(&cursor, layout)) {
        ckvi_llama_layout_deinit(layout);
        return ckv_error_set(error, CKV_UNSUPPORTED,
                             "the model's state has more than keys and values of %" PRIu32
                             " layers (at byte %zu of %zu)",
                             layers, cursor.at, size);
    }
    layout->token_bytes = CELL_BYTES;
    for (uint32_t i = 0; i < layers + layout->value_count; i++)
        layout->token_bytes += layout->rows[i].token_bytes;
    layout->fixed_bytes = (uint64_t)size - layout->token_bytes;
    return CKV_OK;
}

void ckvi_llama_layout_deinit(struct ckvi_llama_layout *layout)
{
    if (layout->rows)
        ckvi_llama_release(layout->alloc, layout->rows, 2 * (size_t)layout->layer_count,
                           sizeof *layout->rows);
    *layout = (struct ckvi_llama_layout){0};
}

bool ckvi_llama_layout_size(const struct ckvi_llama_layout *layout, uint64_t token_count,
                            uint64_t *bytes)
{
    if (token_count == 0 || layout->token_bytes == 0 ||
        token_count > (SIZE_MAX - layout->fixed_bytes) / layout->token_bytes)
        return false;
    *bytes = layout->fixed_bytes + token_count * layout->token_bytes;
    return true;
}

static enum ckv_status corrupt(struct ckv_error *error, const char *field,
                               uint64_t expected, uint64_t found)
{
    return ckv_error_set(error, CKV_CORRUPT,
                         "llama.cpp state: %s is %" PRIu64 ", expected %" PRIu64, field,
                         found, expected);
}

static enum ckv_status check_u32(struct cursor *cursor, const char *field,
                                 uint32_t expected, struct ckv_error *error)
{
    uint32_t found = 0;
    if (!take(cursor, &found, sizeof found))
        return ckv_error_set(error, CKV_CORRUPT, "llama.cpp state: ends before %s",
                             field);
    return found == expected ? CKV_OK : corrupt(error, field, expected, found);
}

static enum ckv_status check_cells(struct cursor *cursor, uint32_t sequence,
                                   uint64_t token_count, struct ckv_error *error)
{
    for (uint64_t i = 0; i < token_count; i++) {
        const uint32_t expected[3] = {(uint32_t)i, 1, sequence};
        uint32_t cell[3];
        if (!take(cursor, cell, sizeof cell))
            return ckv_error_set(error, CKV_CORRUPT,
                                 "llama.cpp state: ends in the cells");
        if (cell[0] != expected[0])
            return corrupt(error, "the position of a cell", expected[0], cell[0]);
        if (cell[1] != expected[1])
            return corrupt(error, "the sequence count of a cell", expected[1], cell[1]);
        if (cell[2] != expected[2])
            return corrupt(error, "the sequence of a cell", expected[2], cell[2]);
    }
    return CKV_OK;
}

static enum ckv_status check_head(struct cursor *cursor,
                                  const struct ckvi_llama_layout *layout,
                                  uint64_t token_count, struct ckv_error *error)
{
    uint32_t sequence = 0;
    enum ckv_status status =
        check_u32(cursor, "the magic number", CKVI_LLAMA_BLOB_MAGIC, error);
    if (status)
        return status;
    if (!take(cursor, &sequence, sizeof sequence) || sequence >= CKVI_LLAMA_SEQUENCES_MAX)
        return ckv_error_set(error, CKV_CORRUPT,
                             "llama.cpp state: sequence %" PRIu32 " is out of range",
                             sequence);
    status = check_u32(cursor, "the number of streams", 1, error);
    if (!status)
        status = check_u32(cursor, "the number of cells", (uint32_t)token_count, error);
    if (!status)
        status = check_cells(cursor, sequence, token_count, error);
    if (!status)
        status = check_u32(cursor, "the transposition of values",
                           layout->values_transposed, error);
    if (!status)
        status = check_u32(cursor, "the number of layers", layout->layer_count, error);
    return status;
}

static enum ckv_status check_rows(struct cursor *cursor,
                                  const struct ckvi_llama_rows *rows, bool transposed,
                                  uint64_t token_count, struct ckv_error *error)
{
    uint64_t row_bytes = 0;
    enum ckv_status status =
        check_u32(cursor, "the type of a layer", (uint32_t)rows->type, error);
    if (status)
        return status;
    if (transposed) {
        status =
            check_u32(cursor, "the element size of a layer", rows->element_bytes, error);
        if (!status)
            status = check_u32(cursor, "the width of a layer", rows->width, error);
        if (status)
            return status;
    } else {
        if (!take(cursor, &row_bytes, sizeof row_bytes))
            return ckv_error_set(error, CKV_CORRUPT,
                                 "llama.cpp state: ends in the head of a layer");
        if (row_bytes != rows->token_bytes)
            return corrupt(error, "the row size of a layer", rows->token_bytes,
                           row_bytes);
    }
    /* Cannot overflow: the whole state's size was compared before. */
    if (!skip(cursor, token_count * rows->token_bytes))
        return ckv_error_set(error, CKV_CORRUPT,
                             "llama.cpp state: ends in the rows of a layer");
    return CKV_OK;
}

enum ckv_status ckvi_llama_blob_check(const struct ckvi_llama_layout *layout,
                                      const void *data, size_t size, uint64_t token_count,
                                      struct ckv_error *error)
{
    struct cursor cursor = {.data = data, .size = size};
    uint64_t expected = 0;
    enum ckv_status status;
    if (token_count > INT32_MAX ||
        !ckvi_llama_layout_size(layout, token_count, &expected))
        return ckv_error_set(error, CKV_CORRUPT,
                             "llama.cpp state: %" PRIu64 " tokens are out of range",
                             token_count);
    if (size != expected)
        return corrupt(error, "the size in bytes", expected, size);
    status = check_head(&cursor, layout, token_count, error);
    for (uint32_t i = 0; !status && i < layout->layer_count + layout->value_count; i++) {
        bool transposed = layout->values_transposed && i >= layout->layer_count;
        status = check_rows(&cursor, &layout->rows[i], transposed, token_count, error);
    }
    if (!status && cursor.at != size)
        status = corrupt(error, "the end of the last layer", size, cursor.at);
    return status;
}

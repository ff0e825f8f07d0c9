#ifndef COLDKV_SERVER_ENGINE_PARTS_H
#define COLDKV_SERVER_ENGINE_PARTS_H

#include "engine.h"

#include <llama.h>

/* The inside of the engine, for the files engine*.c only. */

enum { SRV_ENGINE_NAME_SIZE = 128 };

struct srv_engine {
    struct llama_model *model;
    struct llama_context *context;
    struct llama_context_params params;
    struct llama_batch batch;
    struct llama_sampler *sampler;
    const struct llama_vocab *vocab;
    const char *chat_template; /* the model's own text or a known name; borrowed */
    size_t longest_piece_bytes;
    char *piece;
    size_t piece_size;
    bool backend_ready;
    char name[SRV_ENGINE_NAME_SIZE];
};

#endif

#ifndef COLDKV_SERVER_ENGINE_H
#define COLDKV_SERVER_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fault.h"
#include "request.h"

/* The model: everything that needs llama.h is behind this header. One sequence, number 0,
 * alone in its context. */

struct llama_context;
struct llama_context_params;
struct srv_engine;

struct srv_engine_options {
    const char *model_path;
    uint32_t context_size;     /* 0 = the model's own */
    uint32_t thread_count;     /* 0 = one per processor, at most 16 */
    const char *chat_template; /* NULL = the model's own */
    /* Asked while the model loads; true gives it up. */
    bool (*is_cancelled)(void *ctx);
    void *cancel_ctx;
};

/* Loads the model and makes the context. On failure `fault->message` says why. */
bool srv_engine_create(const struct srv_engine_options *options, struct srv_engine **out,
                       struct srv_fault *fault);
void srv_engine_destroy(struct srv_engine *engine);

/* Constant after creation; any thread. */
uint32_t srv_engine_context_size(const struct srv_engine *engine);
uint32_t srv_engine_thread_count(const struct srv_engine *engine);
uint32_t srv_engine_batch_size(const struct srv_engine *engine);
const char *srv_engine_model_name(const struct srv_engine *engine);

/* For the bridge: the context and the parameters it was made with. */
struct llama_context *srv_engine_context(struct srv_engine *engine);
const struct llama_context_params *srv_engine_context_params(
    const struct srv_engine *engine);

/* The tokens of what a request wants to have evaluated (the caller frees them): the
 * conversation, formatted up to the opening of the assistant's turn; or the prompt's text
 * behind the beginning-of-text token, if the model has one; or the prompt's tokens as
 * they are. Any thread: needs the vocabulary only. */
bool srv_engine_tokenize(const struct srv_engine *engine,
                         const struct srv_request *request, int32_t **tokens,
                         size_t *token_count, struct srv_fault *fault);

/* The rest only from the thread that owns the engine. */

/* Forgets all tokens. */
void srv_engine_clear(struct srv_engine *engine);

/* Evaluates up to srv_engine_batch_size tokens at `position`. */
bool srv_engine_evaluate(struct srv_engine *engine, const int32_t *tokens, size_t count,
                         size_t position, bool want_logits);

/* The row of logits for the token evaluated last; valid until the next evaluation. NULL
 * if it was not wanted. */
const float *srv_engine_logits(struct srv_engine *engine, size_t *count);

/* How the following tokens are chosen. The penalties see the last 64 tokens, of which the
 * prompt's count too. */
bool srv_engine_set_sampler(struct srv_engine *engine,
                            const struct srv_sampling *sampling, const int32_t *prompt,
                            size_t prompt_count);
int32_t srv_engine_sample(struct srv_engine *engine);

bool srv_engine_is_end(const struct srv_engine *engine, int32_t token);

/* The bytes of a token; any part of a character is possible. They stay valid until the
 * next call. NULL when memory is short. */
const char *srv_engine_piece(struct srv_engine *engine, int32_t token, size_t *length);

#endif

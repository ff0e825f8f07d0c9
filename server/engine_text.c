/* From conversations and texts to tokens, and from a token to its bytes.
 * Invariant: only the vocabulary and the template are read, so that another thread may
 * evaluate meanwhile. Failure: a fault that names the field the text came from. */
#include "engine_parts.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The conversation as one text, on the heap. */
static char *format_chat(const struct srv_engine *engine,
                         const struct srv_message *messages, size_t count, size_t *length)
{
    struct llama_chat_message *chat = calloc(count, sizeof(*chat));
    char *text = NULL;
    int32_t needed;
    size_t i;

    if (!chat)
        return NULL;
    for (i = 0; i < count; i++)
        chat[i] = (struct llama_chat_message){messages[i].role, messages[i].content};
    needed = llama_chat_apply_template(engine->chat_template, chat, count, true, NULL, 0);
    if (needed > 0)
        text = malloc((size_t)needed + 1);
    if (text)
        llama_chat_apply_template(engine->chat_template, chat, count, true, text, needed);
    free(chat);
    *length = needed > 0 ? (size_t)needed : 0;
    return text;
}

/* The beginning-of-text token is put there by hand: some templates bring it along, and
 * asking the tokenizer for it would then give two, and at times an end-of-text token
 * behind the prompt. */
static int32_t *tokenize_text(const struct srv_engine *engine, const char *text,
                              size_t length, size_t *count)
{
    llama_token bos = llama_vocab_bos(engine->vocab);
    size_t capacity = length + 16;
    int32_t *tokens = malloc((capacity + 1) * sizeof(*tokens));
    int32_t got;

    if (!tokens)
        return NULL;
    got = llama_tokenize(engine->vocab, text, (int32_t)length, tokens + 1,
                         (int32_t)capacity, false, true);
    if (got <= 0) {
        free(tokens);
        return NULL;
    }
    *count = (size_t)got;
    if (llama_vocab_get_add_bos(engine->vocab) && bos != LLAMA_TOKEN_NULL &&
        tokens[1] != bos) {
        tokens[0] = bos;
        ++*count;
    } else {
        memmove(tokens, tokens + 1, *count * sizeof(*tokens));
    }
    return tokens;
}

/* Takes over `text`, which came from the field `input`. */
static bool tokenize_input(const struct srv_engine *engine, char *text, size_t length,
                           const char *input, int32_t **tokens, size_t *token_count,
                           struct srv_fault *fault)
{
    uint32_t context_size = srv_engine_context_size(engine);

    if (length > INT32_MAX / 2 || length / engine->longest_piece_bytes > context_size) {
        free(text);
        return srv_fault_set(fault, 400, "context_length_exceeded", input,
                             "'%s' is far longer than the context of %u tokens", input,
                             context_size);
    }
    *tokens = tokenize_text(engine, text, length, token_count);
    free(text);
    return *tokens || srv_fault_set(fault, 500, NULL, input, "'%s' has no tokens", input);
}

/* Tokens as the client gave them: each must be one of the vocabulary. */
static bool copy_tokens(const struct srv_engine *engine,
                        const struct srv_request *request, int32_t **tokens,
                        size_t *token_count, struct srv_fault *fault)
{
    size_t count = request->prompt_token_count;
    int32_t size = llama_vocab_n_tokens(engine->vocab);
    size_t i;

    for (i = 0; i < count; i++) {
        if (request->prompt_tokens[i] < 0 || request->prompt_tokens[i] >= size)
            return srv_fault_set(fault, 400, "invalid_value", "prompt",
                                 "'prompt' holds the token %d; the model has 0 to %d",
                                 request->prompt_tokens[i], size - 1);
    }
    *tokens = malloc(count * sizeof(**tokens));
    if (!*tokens)
        return srv_fault_set(fault, 500, NULL, NULL, "out of memory");
    memcpy(*tokens, request->prompt_tokens, count * sizeof(**tokens));
    *token_count = count;
    return true;
}

bool srv_engine_tokenize(const struct srv_engine *engine,
                         const struct srv_request *request, int32_t **tokens,
                         size_t *token_count, struct srv_fault *fault)
{
    const char *input = srv_request_input_name(request->kind);
    size_t length;
    char *text;

    if (request->prompt_token_count > 0)
        return copy_tokens(engine, request, tokens, token_count, fault);
    if (request->kind == SRV_REQUEST_CHAT) {
        text = format_chat(engine, request->messages, request->message_count, &length);
    } else {
        text = strdup(request->prompt);
        length = strlen(request->prompt);
    }
    if (!text)
        return srv_fault_set(fault, 500, NULL, input,
                             "'%s' cannot be formatted for the model", input);
    return tokenize_input(engine, text, length, input, tokens, token_count, fault);
}

bool srv_engine_is_end(const struct srv_engine *engine, int32_t token)
{
    return llama_vocab_is_eog(engine->vocab, token);
}

const char *srv_engine_piece(struct srv_engine *engine, int32_t token, size_t *length)
{
    int32_t got = llama_token_to_piece(engine->vocab, token, engine->piece,
                                       (int32_t)engine->piece_size, 0, false);

    if (got < 0) {
        size_t needed = (size_t) - (long)got;
        char *larger = realloc(engine->piece, needed);

        if (!larger)
            return NULL;
        engine->piece = larger;
        engine->piece_size = needed;
        got = llama_token_to_piece(engine->vocab, token, engine->piece, (int32_t)needed,
                                   0, false);
    }
    *length = got > 0 ? (size_t)got : 0;
    return engine->piece;
}

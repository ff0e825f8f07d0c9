/* libllama in tests: quiet, on the CPU, two threads, one recipe. Failures end the
 * program.
 */
#ifndef COLDKV_TESTS_LLAMA_SESSION_H
#define COLDKV_TESTS_LLAMA_SESSION_H

#include <llama.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Once per program, and its end. */
void test_llama_start(void);
void test_llama_stop(void);

struct llama_model *test_llama_load(const char *path);

/* 1024 tokens, one sequence, unified, f16, flash attention on, batches of 256. */
struct llama_context_params test_llama_params(void);
struct llama_context *test_llama_context(struct llama_model *model,
                                         const struct llama_context_params *params);

/* Evaluates tokens from `position` on in batches; the last one's logits are kept. */
void test_llama_evaluate(struct llama_context *context, int32_t sequence,
                         const int32_t *tokens, size_t count, size_t position);

/* The likeliest tokens and all rows of logits behind them. */
struct test_run {
    int32_t *tokens;
    float *logits; /* count rows */
    size_t count;
    size_t width;
};

/* Evaluates `token` at `position` and goes on greedily: `count` rows of logits, of which
 * each but the last gave the token that was evaluated next. */
struct test_run *test_llama_generate(struct llama_context *context, int32_t sequence,
                                     int32_t token, size_t position, size_t count);
void test_run_destroy(struct test_run *run);
/* Bit for bit. */
bool test_run_equals(const struct test_run *a, const struct test_run *b);

/* Whether nothing is in the sequence, by everything that libllama tells. */
bool test_llama_is_empty(struct llama_context *context, int32_t sequence);

#endif

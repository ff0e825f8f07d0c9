/* Small GGUF files for tests of the bridge, written through gguf.h. */
#ifndef COLDKV_TESTS_LLAMA_FIXTURE_H
#define COLDKV_TESTS_LLAMA_FIXTURE_H

#include <gguf.h>
#include <stdint.h>

struct test_gguf {
    struct gguf_context *gguf; /* set keys here */
    struct ggml_context *tensors;
};

void test_gguf_init(struct test_gguf *made);
void test_gguf_deinit(struct test_gguf *made);
/* `rows` of `width` elements; bytes: the n-th is (n * 31 + seed) & 0xff, or, for F32,
 * small numbers that depend on n and the seed. */
void test_gguf_add(struct test_gguf *made, const char *name, enum ggml_type type,
                   int64_t width, int64_t rows, uint32_t seed);
/* The same number in every element; F32 only. */
void test_gguf_add_constant(struct test_gguf *made, const char *name, int64_t width,
                            float value);
void test_gguf_write(const struct test_gguf *made, const char *path);

/* A small model with random weights: "llama" (full attention, 2 layers, 1 KV head of 64),
 * "gemma3" (sliding window), "mamba" (recurrent) or "qwen2vl" (M-RoPE). No vocabulary,
 * 300 tokens, trained for 2048 positions. */
#define TEST_MODEL_TOKENS 300
void test_gguf_fill_model(struct test_gguf *made, const char *architecture,
                          uint32_t seed);

/* The fixed file whose identity is known (test_llama_keys.c, test_llama_weights.c). */
void test_gguf_fill_golden(struct test_gguf *made);

#endif

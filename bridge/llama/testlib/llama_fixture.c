/* Owns GGUF files made up for tests; failures end the program. */
#include "llama_fixture.h"

#include "require.h"
#include <ggml.h>

#include <string.h>

#define TENSOR_MEMORY ((size_t)64 << 20)

void test_gguf_init(struct test_gguf *made)
{
    const struct ggml_init_params params = {.mem_size = TENSOR_MEMORY};
    made->gguf = gguf_init_empty();
    made->tensors = ggml_init(params);
    TEST_LLAMA_REQUIRE(made->gguf && made->tensors);
}

void test_gguf_deinit(struct test_gguf *made)
{
    gguf_free(made->gguf);
    ggml_free(made->tensors);
    memset(made, 0, sizeof *made);
}

static struct ggml_tensor *add(struct test_gguf *made, const char *name,
                               enum ggml_type type, int64_t width, int64_t rows)
{
    struct ggml_tensor *tensor =
        rows > 1 ? ggml_new_tensor_2d(made->tensors, type, width, rows)
                 : ggml_new_tensor_1d(made->tensors, type, width);
    TEST_LLAMA_REQUIRE(tensor);
    ggml_set_name(tensor, name);
    return tensor;
}

void test_gguf_add(struct test_gguf *made, const char *name, enum ggml_type type,
                   int64_t width, int64_t rows, uint32_t seed)
{
    struct ggml_tensor *tensor = add(made, name, type, width, rows);
    size_t size = ggml_nbytes(tensor);
    unsigned char *bytes = tensor->data;
    float *numbers = tensor->data;
    uint32_t random = seed * 2654435761u + 12345u;
    for (size_t i = 0; type != GGML_TYPE_F32 && i < size; i++)
        bytes[i] = (unsigned char)(i * 31u + seed);
    for (size_t i = 0; type == GGML_TYPE_F32 && i < size / sizeof(float); i++) {
        random = random * 1664525u + 1013904223u;
        numbers[i] = ((float)(random >> 16) - 32768.0f) / 327680.0f;
    }
    gguf_add_tensor(made->gguf, tensor);
}

void test_gguf_add_constant(struct test_gguf *made, const char *name, int64_t width,
                            float value)
{
    struct ggml_tensor *tensor = add(made, name, GGML_TYPE_F32, width, 1);
    float *numbers = tensor->data;
    for (int64_t i = 0; i < width; i++)
        numbers[i] = value;
    gguf_add_tensor(made->gguf, tensor);
}

void test_gguf_write(const struct test_gguf *made, const char *path)
{
    TEST_LLAMA_REQUIRE(gguf_write_to_file(made->gguf, path, false));
}

void test_gguf_fill_golden(struct test_gguf *made)
{
    static const int32_t numbers[] = {1, -2, 300000};
    static const char *words[] = {"a", "", "bc"};
    static const char *merges[] = {"a b", "ab c"};
    struct gguf_context *gguf = made->gguf;
    gguf_set_val_str(gguf, "general.architecture", "tiny");
    gguf_set_val_str(gguf, "general.name", "Tiny");
    gguf_set_val_u32(gguf, "tiny.block_count", 2);
    gguf_set_val_f32(gguf, "tiny.rope.freq_base", 1000000.0f);
    gguf_set_val_f32(gguf, "tiny.epsilon", 1e-5f);
    gguf_set_val_f64(gguf, "tiny.third", 1.0 / 3.0);
    gguf_set_val_bool(gguf, "tiny.flag", true);
    gguf_set_val_i8(gguf, "tiny.i8", -5);
    gguf_set_val_u8(gguf, "tiny.u8", 200);
    gguf_set_val_i16(gguf, "tiny.i16", -300);
    gguf_set_val_u16(gguf, "tiny.u16", 65535);
    gguf_set_val_i32(gguf, "tiny.i32", -70000);
    gguf_set_val_u64(gguf, "tiny.u64", UINT64_C(18446744073709551615));
    gguf_set_val_i64(gguf, "tiny.i64", INT64_C(-1099511627776));
    gguf_set_val_str(gguf, "tiny.note", "say \"\\\" \xc3\xa9\n");
    gguf_set_arr_data(gguf, "tiny.numbers", GGUF_TYPE_INT32, numbers, 3);
    gguf_set_arr_str(gguf, "tiny.words", words, 3);
    gguf_set_val_str(gguf, "another.key", "x");
    gguf_set_val_str(gguf, "tokenizer.ggml.model", "gpt2");
    gguf_set_val_str(gguf, "tokenizer.ggml.pre", "tiny");
    gguf_set_arr_str(gguf, "tokenizer.ggml.merges", merges, 2);
    gguf_set_val_str(gguf, "tokenizer.chat_template", "{{ messages }}");
    test_gguf_add(made, "b.weight", GGML_TYPE_I8, 3, 1, 1);
    test_gguf_add(made, "a.weight", GGML_TYPE_F16, 8, 2, 2);
    test_gguf_add(made, "c.weight", GGML_TYPE_I8, 1000, 300, 3);
}

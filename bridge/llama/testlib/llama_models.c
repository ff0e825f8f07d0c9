/* Owns small models with random weights, complete enough for libllama to load and run. */
#include "llama_fixture.h"
#include "require.h"

#include <ggml.h>

#include <stdio.h>
#include <string.h>

enum {
    LAYERS = 2,
    WIDTH = 128,
    HEADS = 2,
    KV_HEADS = 1,
    HEAD = 64,
    INNER = 128,
    ATTENTION = HEADS * HEAD,
    KV_ATTENTION = KV_HEADS * HEAD,
    SSM_INNER = 2 * WIDTH, /* the only factor that libllama knows */
    SSM_BOTH = 2 * SSM_INNER,
    SSM_STATE = 8,
    SSM_RANK = 4,
    SSM_KERNEL = 4,
};

/* Names and shapes of one layer; rows 1 and constant for norms. */
struct part {
    const char *name;
    int64_t width;
    int64_t rows;
    bool is_norm;
};

static const struct part attention_parts[] = {
    {"attn_norm.weight", WIDTH, 1, true},
    {"attn_q.weight", WIDTH, ATTENTION, false},
    {"attn_k.weight", WIDTH, KV_ATTENTION, false},
    {"attn_v.weight", WIDTH, KV_ATTENTION, false},
    {"attn_output.weight", ATTENTION, WIDTH, false},
    {"ffn_norm.weight", WIDTH, 1, true},
    {"ffn_gate.weight", WIDTH, INNER, false},
    {"ffn_up.weight", WIDTH, INNER, false},
    {"ffn_down.weight", INNER, WIDTH, false},
    {NULL, 0, 0, false},
};

static const struct part gemma3_parts[] = {
    {"post_attention_norm.weight", WIDTH, 1, true},
    {"attn_k_norm.weight", HEAD, 1, true},
    {"attn_q_norm.weight", HEAD, 1, true},
    {"post_ffw_norm.weight", WIDTH, 1, true},
    {NULL, 0, 0, false},
};

static const struct part qwen2vl_parts[] = {
    {"attn_q.bias", ATTENTION, 1, false},
    {"attn_k.bias", KV_ATTENTION, 1, false},
    {"attn_v.bias", KV_ATTENTION, 1, false},
    {NULL, 0, 0, false},
};

static const struct part mamba_parts[] = {
    {"attn_norm.weight", WIDTH, 1, true},
    {"ssm_in.weight", WIDTH, SSM_BOTH, false},
    {"ssm_conv1d.weight", SSM_KERNEL, SSM_INNER, false},
    {"ssm_conv1d.bias", SSM_INNER, 1, false},
    {"ssm_x.weight", SSM_INNER, SSM_RANK + 2 * SSM_STATE, false},
    {"ssm_dt.weight", SSM_RANK, SSM_INNER, false},
    {"ssm_dt.bias", SSM_INNER, 1, false},
    {"ssm_a", SSM_STATE, SSM_INNER, false},
    {"ssm_d", SSM_INNER, 1, false},
    {"ssm_out.weight", SSM_INNER, WIDTH, false},
    {NULL, 0, 0, false},
};

static void add_parts(struct test_gguf *made, const struct part *parts, int layer,
                      uint32_t seed)
{
    for (size_t i = 0; parts[i].name; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.%s", layer, parts[i].name);
        if (parts[i].is_norm)
            test_gguf_add_constant(made, name, parts[i].width, 1.0f);
        else
            test_gguf_add(made, name, GGML_TYPE_F32, parts[i].width, parts[i].rows,
                          seed * 1000 + (uint32_t)layer * 100 + (uint32_t)i);
    }
}

static void set_u32(struct test_gguf *made, const char *architecture, const char *name,
                    uint32_t value)
{
    char key[128];
    snprintf(key, sizeof key, "%s.%s", architecture, name);
    gguf_set_val_u32(made->gguf, key, value);
}

static void set_common_keys(struct test_gguf *made, const char *architecture)
{
    char key[128];
    gguf_set_val_str(made->gguf, "general.architecture", architecture);
    gguf_set_val_str(made->gguf, "general.name", "Random");
    gguf_set_val_str(made->gguf, "tokenizer.ggml.model", "none");
    set_u32(made, architecture, "vocab_size", TEST_MODEL_TOKENS);
    set_u32(made, architecture, "context_length", 2048);
    set_u32(made, architecture, "embedding_length", WIDTH);
    set_u32(made, architecture, "block_count", LAYERS);
    set_u32(made, architecture, "feed_forward_length", INNER);
    set_u32(made, architecture, "attention.head_count", HEADS);
    set_u32(made, architecture, "attention.head_count_kv", KV_HEADS);
    set_u32(made, architecture, "attention.key_length", HEAD);
    set_u32(made, architecture, "attention.value_length", HEAD);
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", architecture);
    gguf_set_val_f32(made->gguf, key, 1e-5f);
}

void test_gguf_fill_model(struct test_gguf *made, const char *architecture, uint32_t seed)
{
    static const int32_t sections[4] = {16, 8, 8, 0};
    const struct part *parts = attention_parts;
    const struct part *more = NULL;
    set_common_keys(made, architecture);
    if (strcmp(architecture, "gemma3") == 0) {
        more = gemma3_parts;
        set_u32(made, architecture, "attention.sliding_window", 64);
    } else if (strcmp(architecture, "qwen2vl") == 0) {
        more = qwen2vl_parts;
        gguf_set_arr_data(made->gguf, "qwen2vl.rope.dimension_sections", GGUF_TYPE_INT32,
                          sections, 4);
    } else if (strcmp(architecture, "mamba") == 0) {
        parts = mamba_parts;
        set_u32(made, architecture, "ssm.conv_kernel", SSM_KERNEL);
        set_u32(made, architecture, "ssm.inner_size", SSM_INNER);
        set_u32(made, architecture, "ssm.state_size", SSM_STATE);
        set_u32(made, architecture, "ssm.time_step_rank", SSM_RANK);
    } else {
        TEST_LLAMA_REQUIRE(strcmp(architecture, "llama") == 0);
    }
    test_gguf_add(made, "token_embd.weight", GGML_TYPE_F32, WIDTH, TEST_MODEL_TOKENS,
                  seed);
    test_gguf_add_constant(made, "output_norm.weight", WIDTH, 1.0f);
    for (int layer = 0; layer < LAYERS; layer++) {
        add_parts(made, parts, layer, seed);
        if (more)
            add_parts(made, more, layer, seed + 500);
    }
}

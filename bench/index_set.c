/*
 * Owns the entries and prompts that the prefix index is measured with. Invariant: where
 * an entry or a prompt leaves what it shares with others, it has a token that is nowhere
 * else, so that it is known how many tokens differ and what a search must find.
 */
#include "index_set.h"

#include <stdlib.h>
#include <string.h>

#define VOCABULARY 128000u
#define SHORT_MIN 256u
#define SHORT_MAX 4096u
#define SHORT_PER_LONG 100u
/* First tokens of what is not shared: of entries, of prompts. */
#define OWN_TOKENS (UINT32_C(1) << 20)
#define PROMPT_TOKENS (UINT32_C(1) << 31)

static uint64_t next_number(uint64_t *state)
{
    uint64_t x = (*state += UINT64_C(0x9e3779b97f4a7c15));
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint32_t number_below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)(next_number(state) % bound);
}

static void fill(uint32_t *tokens, size_t count, uint64_t *state)
{
    for (size_t i = 0; i < count; i++)
        tokens[i] = number_below(state, VOCABULARY);
}

static void *count_allocate(void *ctx, size_t size, size_t align)
{
    const struct ckv_alloc *libc = ckv_alloc_default();
    struct index_set *set = ctx;
    void *block = libc->allocate(libc->ctx, size, align);
    if (block != NULL)
        set->live_bytes += size;
    return block;
}

static void *count_resize(void *ctx, void *block, size_t old_size, size_t new_size,
                          size_t align)
{
    const struct ckv_alloc *libc = ckv_alloc_default();
    struct index_set *set = ctx;
    void *moved = libc->resize(libc->ctx, block, old_size, new_size, align);
    if (moved != NULL)
        set->live_bytes = set->live_bytes - old_size + new_size;
    return moved;
}

static void count_release(void *ctx, void *block, size_t size, size_t align)
{
    const struct ckv_alloc *libc = ckv_alloc_default();
    struct index_set *set = ctx;
    set->live_bytes -= size;
    libc->release(libc->ctx, block, size, align);
}

/* What entry i is like; its tokens follow from the state that is left. */
struct plan {
    uint64_t state;
    uint32_t length;
    uint32_t shared;
    uint32_t base;
    bool fixed; /* cannot be cut */
};

static bool is_long(size_t i)
{
    return i % (SHORT_PER_LONG + 1) == 0;
}

static struct plan plan_entry(size_t i)
{
    struct plan plan = {.state = i, .length = INDEX_SET_LONG};
    size_t rank = is_long(i) ? i / (SHORT_PER_LONG + 1) : i;
    if (!is_long(i))
        plan.length = SHORT_MIN + number_below(&plan.state, SHORT_MAX - SHORT_MIN + 1);
    plan.base = number_below(&plan.state, INDEX_SET_BASES);
    if (rank % 3 == 0)
        plan.shared = 1 + number_below(&plan.state, plan.length);
    plan.fixed = i > 0 && number_below(&plan.state, 4) == 0;
    return plan;
}

static void make_tokens(const struct index_set *set, size_t i, struct plan *plan,
                        uint32_t *tokens)
{
    memcpy(tokens, set->bases[plan->base], plan->shared * sizeof *tokens);
    fill(tokens + plan->shared, plan->length - plan->shared, &plan->state);
    if (plan->shared < plan->length)
        tokens[plan->shared] = OWN_TOKENS + (uint32_t)i;
}

static enum ckv_status insert(struct index_set *set, size_t i, uint32_t *tokens,
                              struct ckv_error *error)
{
    struct plan plan = plan_entry(i);
    struct ckv_index_entry entry = {.id = i + 1,
                                    .floor = plan.fixed ? plan.length : 0,
                                    .bytes = (uint64_t)plan.length * 1000 + i % 1000,
                                    .recency = i,
                                    .tokens = tokens,
                                    .token_count = plan.length};
    make_tokens(set, i, &plan, tokens);
    set->distinct_tokens += plan.length - plan.shared;
    if (plan.shared > set->used[plan.base]) {
        set->distinct_tokens += plan.shared - set->used[plan.base];
        set->used[plan.base] = plan.shared;
    }
    if (!plan.fixed && plan.shared > set->usable[plan.base])
        set->usable[plan.base] = plan.shared;
    return ckv_index_insert(set->index, &entry, error);
}

/* A long entry that can be cut, whole or up to a place in it. */
static void make_return(struct index_set *set, struct index_prompt *prompt,
                        uint64_t *state, bool whole)
{
    size_t long_count = (set->entry_count + SHORT_PER_LONG) / (SHORT_PER_LONG + 1);
    struct plan plan;
    size_t i;
    do {
        i = next_number(state) % long_count * (SHORT_PER_LONG + 1);
        plan = plan_entry(i);
    } while (plan.fixed);
    make_tokens(set, i, &plan, prompt->tokens);
    prompt->prefix = INDEX_SET_LONG - 1;
    if (!whole)
        prompt->prefix = 1 + number_below(state, INDEX_SET_LONG - 1);
}

/* Something new behind what others begin with. */
static void make_newcomer(struct index_set *set, struct index_prompt *prompt,
                          uint64_t *state)
{
    uint32_t base = number_below(state, INDEX_SET_BASES);
    uint32_t shared = set->usable[base];
    if (shared > SHORT_MAX)
        shared = SHORT_MAX;
    memcpy(prompt->tokens, set->bases[base], shared * sizeof *prompt->tokens);
    fill(prompt->tokens + shared, INDEX_SET_LONG - shared, state);
    prompt->prefix = shared;
}

static void make_prompts(struct index_set *set)
{
    uint64_t state = UINT64_C(1) << 40;
    for (uint32_t i = 0; i < INDEX_SET_PROMPTS; i++) {
        struct index_prompt *prompt = &set->prompts[i];
        if (i % 3 < 2)
            make_return(set, prompt, &state, i % 3 == 0);
        else
            make_newcomer(set, prompt, &state);
        if (prompt->prefix < INDEX_SET_LONG - 1)
            prompt->tokens[prompt->prefix] = PROMPT_TOKENS + i;
    }
}

enum ckv_status index_set_init(struct index_set *set, size_t short_count,
                               struct ckv_error *error)
{
    uint64_t state = UINT64_C(1) << 41;
    uint32_t *tokens = malloc(INDEX_SET_LONG * sizeof *tokens);
    enum ckv_status status = CKV_OK;
    *set = (struct index_set){
        .alloc = {set, count_allocate, count_resize, count_release},
        .entry_count = short_count + (short_count + SHORT_PER_LONG - 1) / SHORT_PER_LONG,
        .bases = malloc(INDEX_SET_BASES * sizeof *set->bases),
        .prompts = malloc(INDEX_SET_PROMPTS * sizeof *set->prompts)};
    if (tokens == NULL || set->bases == NULL || set->prompts == NULL)
        status = ckv_error_set(error, CKV_NOMEM, "bench: no memory for prompts");
    if (status == CKV_OK)
        status = ckv_index_create(&set->alloc, &set->index, error);
    for (size_t i = 0; i < INDEX_SET_BASES && status == CKV_OK; i++)
        fill(set->bases[i], INDEX_SET_LONG, &state);
    for (size_t i = 0; i < set->entry_count && status == CKV_OK; i++)
        status = insert(set, i, tokens, error);
    if (status == CKV_OK)
        make_prompts(set);
    else
        index_set_deinit(set);
    free(tokens);
    return status;
}

void index_set_deinit(struct index_set *set)
{
    ckv_index_destroy(set->index);
    free(set->bases);
    free(set->prompts);
    memset(set, 0, sizeof *set);
}

bool index_set_find(const struct index_set *set, size_t prompt)
{
    const struct index_prompt *asked = &set->prompts[prompt];
    struct ckv_index_match matches[3];
    size_t count = ckv_index_find(set->index, asked->tokens, INDEX_SET_LONG, matches, 3);
    return asked->prefix == (count > 0 ? matches[0].prefix : 0);
}

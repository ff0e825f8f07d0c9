/* How the next token is chosen: a chain of libllama's samplers.
 * Invariant: a chain belongs to one request, and has seen its tokens in their order.
 * Failure: no chain. */
#include "engine_parts.h"

#include <math.h>

/* How many of the last tokens the penalties look at; libllama's own default. */
enum { PENALTY_TOKENS = 64 };

static bool is_penalized(const struct srv_sampling *sampling)
{
    return sampling->repetition_penalty < 1.0f || sampling->repetition_penalty > 1.0f ||
           fabsf(sampling->frequency_penalty) > 0.0f ||
           fabsf(sampling->presence_penalty) > 0.0f;
}

/* Takes over `link`. */
static bool add_link(struct llama_sampler *chain, struct llama_sampler *link)
{
    if (link)
        llama_sampler_chain_add(chain, link);
    return link != NULL;
}

static bool add_penalties(struct llama_sampler *chain, const struct llama_vocab *vocab,
                          const struct srv_sampling *sampling)
{
    return add_link(chain, llama_sampler_init_penalties(
                               llama_vocab_n_tokens(vocab), PENALTY_TOKENS,
                               sampling->repetition_penalty, sampling->frequency_penalty,
                               sampling->presence_penalty));
}

/* In the order of libllama's own tools. What is off is left out: it would only cost. */
static bool fill_chain(struct llama_sampler *chain, const struct llama_vocab *vocab,
                       const struct srv_sampling *sampling)
{
    bool ok = !is_penalized(sampling) || add_penalties(chain, vocab, sampling);

    if (sampling->temperature <= 0.0f)
        return ok && add_link(chain, llama_sampler_init_greedy());
    if (sampling->top_k > 0)
        ok = ok && add_link(chain, llama_sampler_init_top_k(sampling->top_k));
    if (sampling->top_p < 1.0f)
        ok = ok && add_link(chain, llama_sampler_init_top_p(sampling->top_p, 1));
    if (sampling->min_p > 0.0f)
        ok = ok && add_link(chain, llama_sampler_init_min_p(sampling->min_p, 1));
    return ok && add_link(chain, llama_sampler_init_temp(sampling->temperature)) &&
           add_link(chain, llama_sampler_init_dist(sampling->seed));
}

bool srv_engine_set_sampler(struct srv_engine *engine,
                            const struct srv_sampling *sampling, const int32_t *prompt,
                            size_t prompt_count)
{
    struct llama_sampler *chain =
        llama_sampler_chain_init(llama_sampler_chain_default_params());
    size_t at = prompt_count > PENALTY_TOKENS ? prompt_count - PENALTY_TOKENS : 0;

    if (engine->sampler)
        llama_sampler_free(engine->sampler);
    engine->sampler = chain;
    if (!chain || !fill_chain(chain, engine->vocab, sampling))
        return false;
    for (; at < prompt_count; at++)
        llama_sampler_accept(chain, prompt[at]);
    return true;
}

int32_t srv_engine_sample(struct srv_engine *engine)
{
    return llama_sampler_sample(engine->sampler, engine->context, -1);
}

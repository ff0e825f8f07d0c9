/*
 * Fuzzes the prefix index. The input is a history: what is inserted, removed, touched and
 * asked for, after three bytes that say with what kind of tokens.
 *
 * What must hold: no fault of the sanitizers; after every step the answers of the plain
 * model (tests/lib/index_model.h) and the invariants of the tree.
 */
#include "lib/index_history.h"
#include "store/tree.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_agree(const struct index_history *history, const char *difference)
{
    struct ckvi_tree_facts facts;
    if (difference) {
        fprintf(stderr, "differs from the model: %s\n", difference);
        abort();
    }
    if (!ckvi_tree_check(history->index, &facts) || facts.joints || facts.slack ||
        facts.tokens != index_model_distinct(&history->model))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct index_history history = {0};
    if (size < 3)
        return 0;
    if (ckv_index_create(NULL, &history.index, NULL) != CKV_OK)
        abort();
    history.alphabet = 1u + data[0];
    history.length_max = 1u + data[1] % INDEX_HISTORY_TOKENS;
    history.count_max = 1u + data[2] % 128;
    history.data = data + 3;
    history.size = size - 3;
    while (index_history_goes_on(&history))
        must_agree(&history, index_history_step(&history));
    must_agree(&history, index_history_empty(&history));
    ckv_index_destroy(history.index);
    index_history_deinit(&history);
    return 0;
}

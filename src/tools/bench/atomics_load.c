/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics, see atomics_load.h.
 */
#include "atomics_load.h"

#include <stdio.h>
#include <string.h>


static const atomics_op_t atomics_ops[] = {
    {"fadd", UCT_ATOMIC_OP_ADD, 0},
    {"fand", UCT_ATOMIC_OP_AND, 0},
    {"for", UCT_ATOMIC_OP_OR, 0},
    {"fxor", UCT_ATOMIC_OP_XOR, 0},
    {"swap", UCT_ATOMIC_OP_SWAP, 0},
    {"cswap", UCT_ATOMIC_OP_CSWAP, 0},
    {"add", UCT_ATOMIC_OP_ADD, 1},
    {"and", UCT_ATOMIC_OP_AND, 1},
    {"or", UCT_ATOMIC_OP_OR, 1},
    {"xor", UCT_ATOMIC_OP_XOR, 1}
};


const atomics_op_t *atomics_op_find(const char *name)
{
    unsigned i;

    for (i = 0; i < sizeof(atomics_ops) / sizeof(atomics_ops[0]); ++i) {
        if (!strcmp(name, atomics_ops[i].name)) {
            return &atomics_ops[i];
        }
    }

    return NULL;
}

int atomics_op_is_offered(const cost_uct_t *uct, const atomics_op_t *op)
{
    uint64_t flags = op->is_posted ? uct->attr.cap.atomic64.op_flags :
                                     uct->attr.cap.atomic64.fop_flags;

    return (flags & UCS_BIT(op->op)) != 0;
}

void atomics_words_init(atomics_words_t *words)
{
    unsigned i;

    memset(words, 0, sizeof(*words));
    for (i = 0; i < ATOMICS_WORDS; ++i) {
        words->words[i].words = words;
        memset(&words->words[i].value, COST_FILL, sizeof(words->words[i].value));
    }
}

/* All except AND and OR change the word each time */
static uint64_t atomics_operand(const atomics_op_t *op, uint64_t value)
{
    switch (op->op) {
    case UCT_ATOMIC_OP_AND:
        return ~1ul;
    case UCT_ATOMIC_OP_SWAP:
    case UCT_ATOMIC_OP_CSWAP:
        return value + 1;
    default:
        return 1;
    }
}

static uint64_t atomics_apply(const atomics_op_t *op, uint64_t value,
                              uint64_t operand)
{
    switch (op->op) {
    case UCT_ATOMIC_OP_ADD:
        return value + operand;
    case UCT_ATOMIC_OP_AND:
        return value & operand;
    case UCT_ATOMIC_OP_OR:
        return value | operand;
    case UCT_ATOMIC_OP_XOR:
        return value ^ operand;
    default:
        return operand;
    }
}

static void atomics_completed(uct_completion_t *self)
{
    atomics_word_t *word   = (atomics_word_t*)self;
    atomics_words_t *words = word->words;

    words->wrong    += (self->status != UCS_OK) || (word->result != word->value);
    word->value      = atomics_apply(words->op, word->value,
                                     atomics_operand(words->op, word->value));
    word->is_pending = 0;
    --words->pending;
}

ucs_status_t atomics_post(cost_uct_t *uct, atomics_words_t *words, unsigned long i)
{
    atomics_word_t *word = &words->words[i % ATOMICS_WORDS];
    uint64_t remote      = uct->remote + ((i % ATOMICS_WORDS) * sizeof(uint64_t));
    uct_rkey_t rkey      = uct->rkey.rkey;
    uint64_t operand     = atomics_operand(words->op, word->value);
    ucs_status_t status;

    if (word->is_pending) {
        return UCS_ERR_NO_RESOURCE;
    }

    if (words->op->is_posted) {
        status = uct_ep_atomic64_post(uct->ep, words->op->op, operand, remote, rkey);
        if (status == UCS_OK) {
            word->value = atomics_apply(words->op, word->value, operand);
        }
        return status;
    }

    word->comp.func   = atomics_completed;
    word->comp.count  = 1;
    word->comp.status = UCS_OK;
    status = (words->op->op == UCT_ATOMIC_OP_CSWAP) ?
             uct_ep_atomic_cswap64(uct->ep, word->value, operand, remote, rkey,
                                   &word->result, &word->comp) :
             uct_ep_atomic64_fetch(uct->ep, words->op->op, operand, &word->result,
                                   remote, rkey, &word->comp);
    if ((status == UCS_INPROGRESS) || (status == UCS_OK)) {
        word->is_pending = 1;
        ++words->pending;
        if (status == UCS_OK) {
            atomics_completed(&word->comp);
        }
    }

    return status;
}

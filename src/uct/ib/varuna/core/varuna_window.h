/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Pure: decides by the contents of the targets which operations of a window were
 * executed, where neither a PSN nor a log shows it.
 *
 * A queue pair executes in order, so what was executed is a prefix of the window. Each
 * prefix leaves some bytes in the targets: those of the last write to each of them. The
 * longest prefix whose bytes are all there counts as executed. It may be longer than
 * what was really executed; then the missing writes would change nothing that a later one
 * has not changed. To decide write by write would be wrong: of W1 = A and W2 = B to one
 * word, W1 seems to be lost when both were executed, and repeated it destroys B.
 *
 * The write after the prefix may have been executed in part: where it overlaps the
 * prefix, its bytes are accepted as well.
 *
 * Some operations leave no bytes that are known: atomics, and writes of data that the
 * CPU cannot read. They are part of the prefix if a write after them is.
 *
 * If the network may place packets out of order, what was executed need not be a prefix.
 * Then a write counts as executed if all of its bytes that no later write covers are
 * there, and it overlaps no earlier write which is not. If later writes cover all of its
 * bytes, these (or one that covers it alone) must have been executed, or its bytes be there:
 * otherwise it would be reported as complete before anybody can see its value, or a newer
 * one.
 */
#ifndef UCT_VARUNA_WINDOW_H_
#define UCT_VARUNA_WINDOW_H_

#include "varuna_def.h"

#include <stddef.h>

typedef enum {
    UCT_VARUNA_WINDOW_EXECUTED,
    UCT_VARUNA_WINDOW_LOST,
    UCT_VARUNA_WINDOW_UNKNOWN    /* The targets do not tell */
} uct_varuna_window_verdict_t;

/* Copy @a length bytes at @a offset of what an operation writes. */
typedef void (*uct_varuna_window_copy_t)(const void *arg, size_t offset, void *dst,
                                         size_t length);

typedef struct uct_varuna_window_op {
    uint64_t                    addr;
    size_t                      length;
    const void                  *arg;      /* Of copy */
    uint8_t                     is_known;  /* Its bytes can be copied */
    uint8_t                     matches;   /* Unordered: its bytes are there, */
    uint8_t                     is_seen;   /* and no later write covers all of them */
    uint8_t                     is_there;  /* Unordered: all of its bytes are there, also
                                              those that others cover */
    uct_varuna_window_verdict_t verdict;   /* Out */
} uct_varuna_window_op_t;

typedef struct uct_varuna_window uct_varuna_window_t;

/**
 * Begin to decide on a window.
 *
 * @param [in] max_ops    Operations that will be added at most, not 0.
 * @param [in] chunk      Bytes which are read at once at most.
 * @param [in] copy       Reads what the operations write.
 * @param [in] unordered  What was executed need not be a prefix.
 *
 * @return NULL if there is no memory.
 */
uct_varuna_window_t *uct_varuna_window_create(unsigned max_ops, size_t chunk,
                                              uct_varuna_window_copy_t copy,
                                              int unordered);

void uct_varuna_window_destroy(uct_varuna_window_t *window);

/** Add the next operation, in posting order. */
void uct_varuna_window_add(uct_varuna_window_t *window, uint64_t addr, size_t length,
                           const void *arg, int is_known);

/**
 * What is to be read next.
 *
 * @param [out] index_p   Operation whose target it is.
 * @param [out] offset_p  There.
 *
 * @return Number of bytes, 0 if nothing is left to be read.
 */
size_t uct_varuna_window_next(const uct_varuna_window_t *window, unsigned *index_p,
                              size_t *offset_p);

/** The bytes which uct_varuna_window_next() has named were read. */
void uct_varuna_window_feed(uct_varuna_window_t *window, const void *target,
                            size_t length);

/**
 * Nothing is left to be read: fill in the verdicts.
 *
 * @return Nonzero if some operation is known to be executed. If none is, then either none
 *         was, or the targets were written since: all are UNKNOWN.
 */
int uct_varuna_window_decide(uct_varuna_window_t *window);

/** @return The operation @a index. */
const uct_varuna_window_op_t *
uct_varuna_window_op(const uct_varuna_window_t *window, unsigned index);

/** @return How many were added. */
unsigned uct_varuna_window_num_ops(const uct_varuna_window_t *window);

#endif

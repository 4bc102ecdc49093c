/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Which operations of a window were executed. See varuna_window.h.
 */
#include "varuna_window.h"

#include <ucs/debug/assert.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <string.h>

/* A byte of the piece: which operation wrote it last */
#define UCT_VARUNA_WINDOW_UNWRITTEN  UINT32_MAX

struct uct_varuna_window {
    uct_varuna_window_copy_t copy;
    int                      unordered;
    size_t                   chunk;
    unsigned                 max_ops;
    unsigned                 num_ops;
    unsigned                 index;     /* What is read next, */
    size_t                   offset;    /* and where in it */
    uint8_t                  *possible; /* For each k: the first k operations, and no
                                           others but in part, may be what was executed */
    uint8_t                  *expected; /* Of the piece: after some operations; */
    uint32_t                 *writer;   /* who wrote it; */
    uint8_t                  *data;     /* what the next operation writes */
    uct_varuna_window_op_t   ops[0];
};

/* Part of a piece which an operation covers. */
typedef struct uct_varuna_window_part {
    size_t                   start;     /* In the piece */
    size_t                   length;    /* 0: none */
} uct_varuna_window_part_t;

uct_varuna_window_t *uct_varuna_window_create(unsigned max_ops, size_t chunk,
                                              uct_varuna_window_copy_t copy,
                                              int unordered)
{
    size_t size = sizeof(uct_varuna_window_t) +
                  (max_ops * sizeof(uct_varuna_window_op_t)) + (max_ops + 1) +
                  (chunk * (sizeof(uint32_t) + 2));
    uct_varuna_window_t *window;

    window = ucs_calloc(1, size, "varuna_window");
    if (window == NULL) {
        return NULL;
    }

    window->copy      = copy;
    window->unordered = unordered;
    window->chunk     = chunk;
    window->max_ops   = max_ops;
    window->writer    = (uint32_t*)&window->ops[max_ops];
    window->expected  = (uint8_t*)&window->writer[chunk];
    window->data      = &window->expected[chunk];
    window->possible  = &window->data[chunk];
    memset(window->possible, 1, max_ops + 1);
    return window;
}

void uct_varuna_window_destroy(uct_varuna_window_t *window)
{
    ucs_free(window);
}

void uct_varuna_window_add(uct_varuna_window_t *window, uint64_t addr, size_t length,
                           const void *arg, int is_known)
{
    uct_varuna_window_op_t *op = &window->ops[window->num_ops];

    ucs_assert(window->num_ops < window->max_ops);
    op->addr     = addr;
    op->length   = length;
    op->arg      = arg;
    op->is_known = is_known;
    op->matches  = 1;
    op->is_there = is_known;
    ++window->num_ops;
}

size_t uct_varuna_window_next(const uct_varuna_window_t *window, unsigned *index_p,
                              size_t *offset_p)
{
    const uct_varuna_window_op_t *op;
    size_t offset = window->offset;
    unsigned i;

    for (i = window->index; i < window->num_ops; ++i, offset = 0) {
        op = &window->ops[i];
        if (op->is_known && (offset < op->length)) {
            *index_p  = i;
            *offset_p = offset;
            return ucs_min(op->length - offset, window->chunk);
        }
    }

    return 0;
}

static uct_varuna_window_part_t
uct_varuna_window_part(const uct_varuna_window_op_t *op, uint64_t addr, size_t length)
{
    uint64_t start = ucs_max(op->addr, addr);
    uint64_t end   = ucs_min(op->addr + op->length, addr + length);
    uct_varuna_window_part_t part = { 0, 0 };

    if (start < end) {
        part.start  = start - addr;
        part.length = end - start;
    }

    return part;
}

/* Whether the bytes of the piece are those that some operations have left, or of the next
 * one, @a op, in its part. */
static int
uct_varuna_window_piece_matches(const uct_varuna_window_t *window,
                                const uint8_t *target, size_t length,
                                const uct_varuna_window_op_t *op,
                                uct_varuna_window_part_t part)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        if ((window->writer[i] == UCT_VARUNA_WINDOW_UNWRITTEN) ||
            !window->ops[window->writer[i]].is_known ||
            (target[i] == window->expected[i])) {
            continue;
        }

        if ((i < part.start) || (i >= (part.start + part.length)) ||
            (op->is_known && (target[i] != window->data[i - part.start]))) {
            return 0;
        }
    }

    return 1;
}

/* One more operation has written the piece. */
static void uct_varuna_window_piece_write(uct_varuna_window_t *window, unsigned index,
                                          uct_varuna_window_part_t part)
{
    size_t i;

    for (i = 0; i < part.length; ++i) {
        window->writer[part.start + i]   = index;
        window->expected[part.start + i] = window->data[i];
    }
}

/* Unordered: what is not there, was not written by the last operation that covers it. */
static void uct_varuna_window_note_missing(uct_varuna_window_t *window,
                                           const uint8_t *target, size_t length)
{
    uct_varuna_window_op_t *op;
    size_t i;

    for (i = 0; i < length; ++i) {
        if (window->writer[i] != UCT_VARUNA_WINDOW_UNWRITTEN) {
            op           = &window->ops[window->writer[i]];
            op->is_seen  = 1;
            op->matches &= op->is_known && (target[i] == window->expected[i]);
        }
    }
}

static void uct_varuna_window_judge_piece(uct_varuna_window_t *window, uint64_t addr,
                                          const uint8_t *target, size_t length)
{
    static const uct_varuna_window_part_t none = { 0, 0 };
    int matches                                = 1; /* What was written so far */
    uct_varuna_window_op_t *op;
    uct_varuna_window_part_t part;
    unsigned i;

    memset(window->writer, 0xff, length * sizeof(*window->writer));
    for (i = 0; i < window->num_ops; ++i) {
        op   = &window->ops[i];
        part = uct_varuna_window_part(op, addr, length);
        if (part.length == 0) {
            window->possible[i] &= matches;
            continue;
        }

        if (op->is_known) {
            window->copy(op->arg, addr + part.start - op->addr, window->data,
                         part.length);
            op->is_there &= !memcmp(window->data, target + part.start, part.length);
        }
        window->possible[i] &= matches ||
                               uct_varuna_window_piece_matches(window, target, length,
                                                               op, part);
        uct_varuna_window_piece_write(window, i, part);
        matches = uct_varuna_window_piece_matches(window, target, length, NULL, none);
    }

    window->possible[i] &= matches;
    uct_varuna_window_note_missing(window, target, length);
}

void uct_varuna_window_feed(uct_varuna_window_t *window, const void *target,
                            size_t length)
{
    unsigned index;
    size_t offset;

    ucs_assert_always(length == uct_varuna_window_next(window, &index, &offset));
    uct_varuna_window_judge_piece(window, window->ops[index].addr + offset, target,
                                  length);
    window->index  = index;
    window->offset = offset + length;
}

static int uct_varuna_window_decide_prefix(uct_varuna_window_t *window)
{
    unsigned longest = window->num_ops;
    unsigned known   = 0; /* Up to the last one that has left something */
    uct_varuna_window_op_t *op;
    unsigned i;

    while (!window->possible[longest]) {
        --longest; /* That nothing was executed is always possible */
    }

    for (i = 0; i < longest; ++i) {
        if (window->ops[i].is_known && (window->ops[i].length > 0)) {
            known = i + 1;
        }
    }

    for (i = 0; i < window->num_ops; ++i) {
        op = &window->ops[i];
        if (i < known) {
            op->verdict = UCT_VARUNA_WINDOW_EXECUTED;
        } else if ((op->length == 0) || ((known > 0) && (i >= longest))) {
            op->verdict = UCT_VARUNA_WINDOW_LOST;
        } else {
            op->verdict = UCT_VARUNA_WINDOW_UNKNOWN;
        }
    }

    return known > 0;
}

static int uct_varuna_window_overlaps(const uct_varuna_window_op_t *a,
                                      const uct_varuna_window_op_t *b)
{
    return uct_varuna_window_part(a, b->addr, b->length).length > 0;
}

/* Whether an operation from @a begin to before @a end overlaps this one, and was not
 * executed as far as known. */
static int uct_varuna_window_overlaps_lost(const uct_varuna_window_t *window,
                                           const uct_varuna_window_op_t *op,
                                           unsigned begin, unsigned end)
{
    unsigned i;

    for (i = begin; i < end; ++i) {
        if ((window->ops[i].verdict != UCT_VARUNA_WINDOW_EXECUTED) &&
            uct_varuna_window_overlaps(op, &window->ops[i])) {
            return 1;
        }
    }

    return 0;
}

/* Whether a write of which nothing need be seen has left its value, or a newer one. */
static int uct_varuna_window_has_left(const uct_varuna_window_t *window, unsigned index)
{
    const uct_varuna_window_op_t *op = &window->ops[index];
    const uct_varuna_window_op_t *later;
    unsigned i;

    if (op->is_seen || op->is_there) {
        return 1;
    }

    for (i = index + 1; i < window->num_ops; ++i) {
        later = &window->ops[i];
        if ((later->verdict == UCT_VARUNA_WINDOW_EXECUTED) &&
            (uct_varuna_window_part(later, op->addr, op->length).length == op->length)) {
            return 1;
        }
    }

    return !uct_varuna_window_overlaps_lost(window, op, index + 1, window->num_ops);
}

static int uct_varuna_window_decide_each(uct_varuna_window_t *window)
{
    int found = 0;
    uct_varuna_window_op_t *op;
    unsigned i, num_changed;

    for (i = 0; i < window->num_ops; ++i) {
        op          = &window->ops[i];
        op->verdict = (op->is_known && op->matches) ? UCT_VARUNA_WINDOW_EXECUTED :
                      UCT_VARUNA_WINDOW_UNKNOWN;
    }

    do {
        num_changed = 0;
        for (i = 0; i < window->num_ops; ++i) {
            op = &window->ops[i];
            if ((op->verdict == UCT_VARUNA_WINDOW_EXECUTED) &&
                (uct_varuna_window_overlaps_lost(window, op, 0, i) ||
                 !uct_varuna_window_has_left(window, i))) {
                op->verdict = UCT_VARUNA_WINDOW_UNKNOWN;
                ++num_changed;
            }
        }
    } while (num_changed > 0);

    for (i = 0; i < window->num_ops; ++i) {
        found |= (window->ops[i].verdict == UCT_VARUNA_WINDOW_EXECUTED);
    }

    return found;
}

int uct_varuna_window_decide(uct_varuna_window_t *window)
{
    return window->unordered ? uct_varuna_window_decide_each(window) :
           uct_varuna_window_decide_prefix(window);
}

const uct_varuna_window_op_t *
uct_varuna_window_op(const uct_varuna_window_t *window, unsigned index)
{
    ucs_assert(index < window->num_ops);
    return &window->ops[index];
}

unsigned uct_varuna_window_num_ops(const uct_varuna_window_t *window)
{
    return window->num_ops;
}

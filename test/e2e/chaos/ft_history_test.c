/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Tests of the check for linearizability: histories that are linearizable, and
 * histories with one error each. Then random histories of a simulated register, which
 * must pass, and the same with one read of an old value, which must fail.
 */
#include "ft_history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FT_MAX_RECORDS 64

static unsigned ft_test_failures;
static uint64_t ft_test_state = 1;


/* "w1 0 10" writes 1 from time 0 to 10, "r1 5 7" reads it, "W1 0 10" is executed twice;
 * "/" separates */
static size_t ft_test_parse(const char *text, ft_record_t *records)
{
    size_t num = 0;
    unsigned long value, start, end;
    char kind;
    int length;

    while (sscanf(text, " %c%lu %lu %lu%n", &kind, &value, &start, &end,
                  &length) == 4) {
        memset(&records[num], 0, sizeof(*records));
        records[num].write = (kind != 'r');
        records[num].again = (kind == 'W');
        records[num].value = value;
        records[num].start = start;
        records[num].end   = end;
        ++num;
        text += length;
        text += strspn(text, " /");
    }

    return num;
}

static void ft_test(const char *text, int good)
{
    ft_record_t records[FT_MAX_RECORDS];
    size_t num        = ft_test_parse(text, records);
    const char *wrong = ft_history_check(records, num);

    if ((wrong == NULL) != good) {
        printf("FAILED: %s: %s\n", text, (wrong == NULL) ? "passed" : wrong);
        ++ft_test_failures;
    }
}

static unsigned ft_test_random(unsigned limit)
{
    ft_test_state = (ft_test_state * 6364136223846793005ull) + 1;
    return (ft_test_state >> 33) % limit;
}

/* Execute an earlier write again, unless one was executed twice already. @return
 * Whether it was executed again. */
static int ft_test_again(ft_record_t *records, size_t num, uint64_t moment,
                         uint64_t *value)
{
    ft_record_t *last = NULL;
    size_t i;

    for (i = 0; i < num; ++i) {
        if (records[i].again) {
            return 0;
        }
        if (records[i].write && (records[i].value != *value)) {
            last = &records[i];
        }
    }

    if (last == NULL) {
        return 0;
    }

    last->again = 1;
    last->end   = moment + ft_test_random(10);
    *value      = last->value;
    return 1;
}

/* Operations of three clients, each with its own time of effect, and one of them
 * executed twice with @a again. With @a stale, a late read returns a value that an
 * earlier read has seen replaced. */
static void ft_test_random_history(unsigned seed, int stale, int again)
{
    ft_record_t records[FT_MAX_RECORDS];
    uint64_t value = 0, old = 0, moment = 10;
    size_t num     = 0;
    const char *wrong;

    ft_test_state = seed;
    memset(records, 0, sizeof(records));
    while (num < 40) {
        moment                += 1 + ft_test_random(20);
        if (again && (num > 20)) {
            again = !ft_test_again(records, num, moment, &value);
            continue;
        }

        records[num].write     = ft_test_random(2);
        records[num].start     = moment - ft_test_random(10);
        records[num].end       = moment + ft_test_random(10);
        if (records[num].write) {
            old   = value;
            value = num + 1;
        }
        records[num++].value = value;
    }

    if (stale) {
        records[num].value = value;
        records[num].start = moment + 100;
        records[num].end   = moment + 110;
        ++num;
        records[num].value = old;
        records[num].start = moment + 200;
        records[num].end   = moment + 210;
        ++num;
    }

    wrong = ft_history_check(records, num);
    if ((wrong == NULL) == stale) {
        printf("FAILED: random history %u, stale %d, again %d: %s\n", seed,
               stale, again, (wrong == NULL) ? "passed" : wrong);
        ++ft_test_failures;
    }
}

int main(void)
{
    unsigned seed;

    /* in order; concurrent; first value; two writes in either order */
    ft_test("w1 0 10 / r1 11 12 / w2 20 30 / r2 31 32", 1);
    ft_test("w1 0 10 / r1 5 7 / r0 1 3 / w2 5 15 / r2 16 17", 1);
    ft_test("r0 0 5 / w1 10 20 / r0 11 13 / r1 14 16 / r1 21 22", 1);
    ft_test("w1 0 10 / w2 0 10 / r2 11 12 / r2 13 14", 1);
    ft_test("w1 0 10 / w2 0 10 / r1 11 12 / r1 13 14", 1);
    /* the old value again: A, B, A */
    ft_test("w1 0 10 / w2 20 30 / r2 31 32 / r1 33 34", 0);
    ft_test("w1 0 10 / w2 20 30 / r1 31 32", 0);
    ft_test("w1 0 10 / w2 0 10 / r1 11 12 / r2 13 14 / r1 15 16", 0);
    ft_test("w1 0 10 / r1 11 12 / r0 13 14", 0);
    /* seen before it was written; never written; written twice */
    ft_test("r1 0 5 / w1 10 20", 0);
    ft_test("r7 0 5", 0);
    ft_test("w1 0 5 / w1 6 7", 0);
    /* a write that was lost */
    ft_test("w1 0 5 / w2 10 15 / r1 20 25", 0);
    ft_test("w1 0 5 / r0 10 15", 0);
    /* executed twice: between, or not; seen before, after or both; not a third time,
     * and not after its end */
    ft_test("W1 0 40 / r1 5 6 / w2 10 15 / r2 16 17 / r1 41 42", 1);
    ft_test("w1 0 40 / r1 5 6 / w2 10 15 / r2 16 17 / r1 41 42", 0);
    ft_test("W1 0 40 / r1 5 6 / r1 7 8 / r1 41 42", 1);
    ft_test("W1 0 40 / w2 10 15 / r2 16 17 / r1 41 42", 1);
    ft_test("W1 0 40 / r1 1 30 / w2 10 15 / r2 16 17 / r1 18 20 / r1 41 42", 1);
    ft_test("W1 0 40 / r1 5 6 / w2 10 15 / r2 16 17 / r1 20 21 / r2 22 23", 0);
    ft_test("W1 0 10 / w2 20 30 / r2 31 32 / r1 33 34", 0);
    ft_test("W1 0 40 / r0 41 42", 0);
    ft_test("W1 0 40 / r1 5 6 / W2 7 80 / r2 16 17 / r1 20 21 / w3 22 23 /"
            " r3 24 25 / r2 26 27", 1);
    ft_test("W1 0 40 / r1 5 6 / w2 7 80 / r2 16 17 / r1 20 21 / w3 22 23 /"
            " r3 24 25 / r2 26 27", 0);
    for (seed = 1; seed <= 500; ++seed) {
        ft_test_random_history(seed, 0, 0);
        ft_test_random_history(seed, 1, 0);
        ft_test_random_history(seed, 0, 1);
        ft_test_random_history(seed, 1, 1);
    }

    printf("%u failures\n", ft_test_failures);
    return ft_test_failures != 0;
}

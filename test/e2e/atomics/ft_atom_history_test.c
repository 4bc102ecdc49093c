/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Tests of the search for an order of atomics (ft_atom_history.c): histories that have
 * one, and histories with one error each. Then random histories of a simulated word,
 * which must pass, and the same with one operation executed twice, not executed, or
 * with another result, which must fail.
 */
#include "ft_atom_history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FT_MAX_RECORDS 64
#define FT_ROUNDS      2000

static unsigned ft_test_failures;
static uint64_t ft_test_state = 1;


static unsigned ft_test_random(unsigned limit)
{
    ft_test_state = (ft_test_state * 6364136223846793005ul) +
                    1442695040888963407ul;
    return (ft_test_state >> 33) % limit;
}

/* "CLIENT START END KIND:COMPARE:VALUE:RESULT", "/" separates */
static size_t ft_test_parse(const char *text, unsigned word,
                            ft_atom_record_t *records)
{
    size_t num = 0;
    unsigned client;
    unsigned long start, end;
    char atom[64];
    int length;

    while (sscanf(text, " %u %lu %lu %63[^ /]%n", &client, &start, &end, atom,
                  &length) == 4) {
        memset(&records[num], 0, sizeof(*records));
        records[num].client = client;
        records[num].word   = word;
        records[num].width  = 8;
        records[num].start  = start;
        records[num].end    = end;
        if (ft_atoms_parse(atom, &records[num].atom) != 1) {
            abort();
        }
        ++num;
        text += length;
        text += strspn(text, " /");
    }

    return num;
}

static void ft_test(const char *text, unsigned word, uint64_t last, int good)
{
    ft_atom_record_t records[FT_MAX_RECORDS];
    size_t num        = ft_test_parse(text, word, records);
    const char *wrong = ft_atom_history_check(records, num, last);

    if ((wrong == NULL) != good) {
        printf("FAILED: %s: %s\n", text, (wrong == NULL) ? "passed" : wrong);
        ++ft_test_failures;
    }
}

static void ft_test_given(void)
{
    static const unsigned all = FT_ATOM_WORD_ALL;

    /* One after the other, and at the same time */
    ft_test("0 0 1 fadd:0:1:0 / 1 2 3 fadd:0:1:1", all, 2, 1);
    ft_test("0 0 5 fadd:0:1:1 / 1 0 5 fadd:0:1:0", all, 2, 1);
    ft_test("0 0 1 fadd:0:1:1 / 1 2 3 fadd:0:1:0", all, 2, 0);
    /* Executed twice; not at all */
    ft_test("0 0 1 padd:0:1:0", all, 2, 0);
    ft_test("0 0 1 padd:0:1:0", all, 0, 0);
    ft_test("0 0 1 padd:0:1:0", all, 1, 1);
    /* A value that returned after another one */
    ft_test("0 0 9 cswap:0:1:0 / 0 10 12 cswap:1:0:1 / 1 0 20 cswap:0:2:0", all,
            2, 1);
    ft_test("0 0 9 cswap:0:1:0 / 0 10 12 cswap:1:0:1 / 1 2 8 cswap:0:2:0", all,
            2, 0);
    /* A failed one returns the value of that time */
    ft_test("0 0 1 cswap:0:1:0 / 1 2 3 cswap:5:6:0", all, 1, 0);
    ft_test("0 0 1 cswap:0:1:0 / 1 2 3 cswap:5:6:1", all, 1, 1);
    ft_test("0 0 1 for:0:4:0 / 1 0 2 fand:0:3:4 / 1 3 4 fxor:0:1:0", all, 1, 1);
    /* Conclusions from values */
    ft_test("0 0 9 fadd:0:1:0 / 1 0 9 fadd:0:1:0", FT_ATOM_WORD_FADD, 2, 0);
    ft_test("0 0 9 cswap:0:7:0 / 1 0 9 cswap:0:8:0", FT_ATOM_WORD_CHAIN, 8, 0);
    ft_test("0 0 9 cswap:0:7:0 / 1 0 9 cswap:7:8:7", FT_ATOM_WORD_CHAIN, 8, 1);
    ft_test("0 0 9 swap:0:7:0 / 1 0 9 swap:0:8:7", FT_ATOM_WORD_SWAP, 8, 1);
    ft_test("0 0 9 swap:0:7:0 / 1 0 9 swap:0:8:0", FT_ATOM_WORD_SWAP, 8, 0);
}

/* A history of a simulated word: each operation is executed at its own time. @return
 * The final value */
static uint64_t ft_test_make(ft_atom_record_t *records, size_t num)
{
    uint64_t free_at[FT_ATOM_LOAD_CLIENTS] = {0};
    uint64_t value = 0, now = 100;
    ft_atom_record_t *record;
    size_t i;

    for (i = 0; i < num; ++i, now += 10) {
        record = &records[i];
        memset(record, 0, sizeof(*record));
        record->client       = ft_test_random(FT_ATOM_LOAD_CLIENTS);
        record->word         = FT_ATOM_WORD_ALL;
        record->width        = 8;
        record->start        = now - ft_test_random(25);
        record->start        = (record->start > free_at[record->client]) ?
                               record->start : free_at[record->client] + 1;
        record->end          = now + ft_test_random(25);
        record->end          = (record->end > record->start) ? record->end :
                               record->start;
        record->atom.op      = (ft_atom_op_t)ft_test_random(FT_ATOM_CSWAP + 1);
        record->atom.fetch   = 1;
        record->atom.compare = ft_test_random(4);
        record->atom.value   = ft_test_random(4);
        record->atom.result  = value;
        value                = ft_atom_apply(&record->atom, value, 8);
        free_at[record->client] = record->end;
        now = (now > record->start) ? now : record->start;
    }

    return value;
}

static void ft_test_at_random(void)
{
    ft_atom_record_t records[FT_MAX_RECORDS];
    unsigned wrong = 0, round;
    uint64_t last;

    for (round = 0; round < FT_ROUNDS; ++round) {
        last = ft_test_make(records, FT_MAX_RECORDS);
        if (ft_atom_history_check(records, FT_MAX_RECORDS, last) != NULL) {
            printf("FAILED: round %u: a correct history is refused\n", round);
            ++ft_test_failures;
            return;
        }

        ft_test_make(records, FT_MAX_RECORDS);
        records[ft_test_random(FT_MAX_RECORDS)].atom.result = 77;
        last   = ft_test_make(records, FT_MAX_RECORDS) + 1000;
        wrong += (ft_atom_history_check(records, FT_MAX_RECORDS, last) != NULL);
        last   = ft_test_make(records, FT_MAX_RECORDS);
        records[ft_test_random(FT_MAX_RECORDS)].atom.result = 77;
        wrong += (ft_atom_history_check(records, FT_MAX_RECORDS, last) != NULL);
    }

    if (wrong != 2 * FT_ROUNDS) {
        printf("FAILED: %u wrong histories passed\n", (2 * FT_ROUNDS) - wrong);
        ++ft_test_failures;
    }
}

int main(void)
{
    ft_test_given();
    ft_test_at_random();
    printf("%u failures\n", ft_test_failures);
    return ft_test_failures != 0;
}

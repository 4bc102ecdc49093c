/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Tests of the judge of networks without order (ft_judge_apart.c): traces that it must
 * accept, and traces with one error each. Run with RC_VARUNA_QUIRK=ooo-all.
 *
 * The plan has put 0, of 8 bytes, and put 1, of 1,024 bytes. A trace is a list of
 * entries "PUT START LENGTH QP.REQUEST PSN FLAGS", where FLAGS are "e" if the entry was
 * placed early, otherwise "-"; "/" separates them.
 */
#include "ft_judge.h"

#include <stdio.h>
#include <string.h>

#define FT_TEST_BASE 0x100000ul
#define FT_TEST_RUN  7
#define FT_TEST_SIZE 8192

/* Put 1 in four parts by request 1.2, after PSN 0, all of them early */
#define FT_TEST_EARLY "1 0 256 1.2 1 e / 1 256 256 1.2 2 e / 1 512 256 1.2 3 e /" \
                      " 1 768 256 1.2 4 e"

static const ft_plan_t ft_test_plan = {
    .num = 2,
    .ops = {{.kind = FT_PUT_SHORT, .offset = 0, .length = 8, .value_of = -1},
            {.kind = FT_PUT_ZCOPY, .offset = 4096, .length = 1024, .value_of = -1}}
};

static unsigned ft_test_failures;


/* Print the entries as "mlx5emu trace --json" does */
static void ft_test_trace(const char *text, char *trace)
{
    unsigned put, start, length, psn, seq = 0;
    char id[32], flags[8];
    int used;

    trace[0] = '\0';
    while (sscanf(text, " %u %u %u %31s %u %7s%n", &put, &start, &length, id, &psn,
                  flags, &used) == 6) {
        trace += sprintf(trace, "{\"seq\":%u,\"host\":0,\"link\":0,\"src_host\":1,"
                         "\"op\":\"write\",\"type\":\"dc\",\"src_qpn\":%u,\"psn\":%u,"
                         "\"id\":\"%s\",\"addr\":\"0x%lx\",\"length\":%u,"
                         "\"data\":\"0x%llx\",\"out_of_order\":%s}\n", ++seq, id[0],
                         psn, id, FT_TEST_BASE + ft_test_plan.ops[put].offset + start,
                         length, (unsigned long long)ft_word(FT_TEST_RUN, put, start / 8),
                         (flags[0] == 'e') ? "true" : "false");
        text  += used;
        text  += strspn(text, " /");
    }
}

/* @param [in] shows  What the judge says, NULL: nothing is wrong. */
static void ft_test(const char *text, const char *shows)
{
    char trace[FT_TEST_SIZE];
    ft_verdict_t verdict;
    int good;

    ft_test_trace(text, trace);
    ft_judge_run(trace, FT_TEST_BASE, FT_TEST_RUN, &ft_test_plan, &verdict);
    good = (shows == NULL) ? (verdict.errors + verdict.again == 0) &&
                             (verdict.executed == ft_test_plan.num) :
                             (verdict.errors + verdict.again > 0) &&
                             (strstr(verdict.text, shows) != NULL);
    if (!good) {
        printf("FAILED: %s: \"%s\" instead of \"%s\"\n", text, verdict.text,
               (shows == NULL) ? "" : shows);
        ++ft_test_failures;
    }
}

static void ft_test_good(void)
{
    /* In order, and in any other one within a lane */
    ft_test("0 0 8 1.1 0 - / 1 0 1024 1.2 4 -", NULL);
    ft_test("1 0 1024 1.2 4 - / 0 0 8 1.1 0 e", NULL);
    ft_test("1 512 512 1.2 4 e / 0 0 8 1.1 0 - / 1 0 512 1.2 2 e", NULL);
    /* Cut, and repeated on another queue pair, or on the same one after a reset */
    ft_test("0 0 8 1.1 0 - / 1 0 256 1.2 1 - / 1 0 1024 2.1 4 -", NULL);
    ft_test("0 0 8 1.1 0 - / 1 0 256 1.2 1 - / 1 0 1024 1.3 4 -", NULL);
    /* Placed before a put that never came: both are repeated */
    ft_test(FT_TEST_EARLY " / 0 0 8 2.1 0 - / 1 0 1024 2.2 4 -", NULL);
    ft_test(FT_TEST_EARLY " / 0 0 8 1.3 0 - / 1 0 1024 1.4 4 -", NULL);
    /* Not accepted in the lane's second life either */
    ft_test(FT_TEST_EARLY " / 1 0 1024 1.4 4 e / 0 0 8 2.1 0 - / 1 0 1024 2.2 4 -",
            NULL);
}

static void ft_test_bad(void)
{
    ft_test("1 0 1024 1.2 4 -", "put 0 was never executed");
    ft_test("0 0 8 1.1 0 - / 1 0 256 1.2 1 -", "put 1 was never executed");
    /* Accepted, and repeated: on the same queue pair, on another one */
    ft_test("0 0 8 1.1 0 - / 0 0 8 1.2 0 - / 1 0 1024 1.3 4 -",
            "put 0 was executed 2 times");
    ft_test("0 0 8 1.1 0 - / 1 0 1024 1.2 4 - / 1 0 1024 2.1 3 -",
            "put 1 was executed 2 times");
    /* Early, but then its predecessor came, so it was accepted */
    ft_test(FT_TEST_EARLY " / 0 0 8 1.1 0 - / 1 0 1024 2.1 3 -",
            "put 1 was executed 2 times");
    /* The second repetition: the first one was accepted */
    ft_test(FT_TEST_EARLY " / 0 0 8 1.3 0 - / 1 0 1024 1.4 4 - / 1 0 1024 2.1 3 -",
            "put 1 was executed 3 times");
    /* Late packets: of the request itself, of the one before the reset, and of another
     * queue pair */
    ft_test("0 0 8 1.1 0 - / 1 0 1024 1.2 4 - / 1 0 256 1.2 1 -",
            "a part of put 1 was written after it");
    ft_test("0 0 8 1.1 0 - / 1 0 256 1.2 1 - / 1 0 1024 1.3 4 - / 1 256 256 1.2 2 -",
            "a part of put 1 was written after it");
    ft_test(FT_TEST_EARLY " / 0 0 8 1.3 0 - / 1 0 1024 1.4 4 - / 1 0 256 1.2 1 e",
            "a part of put 1 was written after it");
    ft_test("0 0 8 1.1 0 - / 1 0 256 1.2 1 - / 1 0 1024 2.1 4 - / 1 256 256 1.2 2 -",
            "put 1 was written again in part");
    /* After a later one, on another lane */
    ft_test("1 0 1024 1.2 4 - / 0 0 8 2.1 0 -", "put 0 was executed after 1");
    ft_test("1 0 1024 1.2 4 - / 0 0 8 1.3 0 -", "put 0 was executed after 1");
}

int main(void)
{
    ft_test_good();
    ft_test_bad();
    printf("%u failures\n", ft_test_failures);
    return ft_test_failures != 0;
}

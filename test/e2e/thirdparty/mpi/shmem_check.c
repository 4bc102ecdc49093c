/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An OpenSHMEM program with checked results: put, get, atomics of 32 and 64 bits, also on
 * words that the target's processor changes, wait_until on words that another one
 * writes, locks and collectives. It does not depend on the transport; the script that
 * runs it cuts links meanwhile.
 *
 * usage: shmem_check SECONDS [rma|amo|cpu|wait|lock|coll|all]
 *
 * It runs for SECONDS at least, and until the file $CHECK_UNTIL exists if that is set.
 *
 * Exits with status 0 only if all processing elements found all results correct.
 */
#include "check.h"

#include <shmem.h>
#include <time.h>


#define CHECK_BYTES 65536
#define CHECK_MIXED 10  /* Atomics of each in one round */


/* Symmetric */
static uint8_t check_window[CHECK_BYTES];
static long check_counter64;
static int check_counter32;
static long check_swapped;
static long check_mixed64;
static int check_mixed32;
static long check_arrived;
static long check_word;
static long check_flag;
static long check_guarded;
static long check_lock;
static long check_in[4], check_out[4];
static long check_total[4];
static long check_sync[SHMEM_REDUCE_SYNC_SIZE];
static long check_work[SHMEM_REDUCE_MIN_WRKDATA_SIZE + 4];
static int check_go;
static long check_sync_bcast[SHMEM_BCAST_SYNC_SIZE];


static void check_rma(long round)
{
    static uint8_t local[CHECK_BYTES], back[CHECK_BYTES];
    size_t half = CHECK_BYTES / 2;
    int peer    = (check_rank + 1) % check_size;
    int from    = (check_rank + check_size - 1) % check_size;
    size_t i;

    for (i = 0; i < half; ++i) {
        local[i] = (uint8_t)(round + check_rank + (i * 7));
    }

    shmem_putmem(check_window, local, half, peer);
    shmem_quiet();
    shmem_getmem(back, check_window, half, peer);
    CHECK(memcmp(back, local, half) == 0, "round %ld: get after put differs",
          round);
    shmem_barrier_all();
    for (i = 0; i < half; ++i) {
        if (check_window[i] != (uint8_t)(round + from + (i * 7))) {
            CHECK(0, "round %ld: byte %zu of the window is wrong", round, i);
            break;
        }
    }

    shmem_barrier_all();
}

/* All elements add to words of the first one: results only increase */
static void check_amo(long round)
{
    static long last64 = -1;
    static int last32  = -1;
    long got64, old;
    int got32;

    got64 = shmem_long_atomic_fetch_add(&check_counter64, 1, 0);
    CHECK(got64 > last64, "round %ld: fetched %ld after %ld", round, got64,
          last64);
    last64 = got64;
    shmem_long_atomic_inc(&check_counter64, 0);

    got32 = shmem_int_atomic_fetch_inc(&check_counter32, 0);
    CHECK(got32 > last32, "round %ld: fetched %d after %d", round, got32,
          last32);
    last32 = got32;
    shmem_int_atomic_add(&check_counter32, 1, 0);

    /* An increment by compare and swap */
    old = shmem_long_atomic_fetch(&check_word, 0);
    for (;;) {
        got64 = shmem_long_atomic_compare_swap(&check_word, old, old + 1, 0);
        if (got64 == old) {
            break;
        }
        old = got64;
    }

    /* The replaced value is one that an element has written */
    got64 = shmem_long_atomic_swap(&check_swapped, (round << 8) | check_rank, 0);
    CHECK((got64 & 0xff) < check_size, "round %ld: swapped out 0x%lx", round,
          got64);
}

static void check_amo_totals(long rounds)
{
    long expected = 2 * rounds * check_size;

    shmem_barrier_all();
    if (check_rank == 0) {
        CHECK(check_counter64 == expected, "64-bit counter %ld, expected %ld",
              check_counter64, expected);
        CHECK(check_counter32 == expected, "32-bit counter %d, expected %ld",
              check_counter32, expected);
        CHECK(check_word == rounds * check_size, "compare and swap made %ld, "
              "expected %ld", check_word, rounds * check_size);
    }
}

/* The first one changes its words by its processor's instructions, while all others do by
 * OpenSHMEM's atomics */
static void check_cpu(long round)
{
    static long last64 = -1;
    static int last32  = -1;
    long old, got64;
    int got32, i;

    for (i = 0; i < CHECK_MIXED; ++i) {
        if (check_rank == 0) {
            got64 = __atomic_fetch_add(&check_mixed64, 1, __ATOMIC_SEQ_CST);
            got32 = __atomic_fetch_add(&check_mixed32, 1, __ATOMIC_SEQ_CST);
        } else if (i % 2) {
            got64 = shmem_long_atomic_fetch_add(&check_mixed64, 1, 0);
            got32 = shmem_int_atomic_fetch_add(&check_mixed32, 1, 0);
        } else {
            old = shmem_long_atomic_fetch(&check_mixed64, 0);
            while ((got64 = shmem_long_atomic_compare_swap(&check_mixed64, old,
                                                           old + 1, 0)) != old) {
                old = got64;
            }
            got32 = shmem_int_atomic_fetch_inc(&check_mixed32, 0);
        }

        CHECK(got64 > last64, "round %ld: fetched %ld after %ld", round, got64,
              last64);
        CHECK(got32 > last32, "round %ld: fetched %d after %d", round, got32,
              last32);
        last64 = got64;
        last32 = got32;
    }

    /* All arrive at all; each waits for a word that only atomics change */
    for (i = 0; i < check_size; ++i) {
        shmem_long_atomic_inc(&check_arrived, i);
    }

    shmem_quiet();
    shmem_long_wait_until(&check_arrived, SHMEM_CMP_GE, (round + 1) * check_size);
    shmem_barrier_all();
}

static void check_cpu_totals(long rounds)
{
    long expected = rounds * check_size * CHECK_MIXED;

    shmem_barrier_all();
    CHECK(check_arrived == rounds * check_size, "%ld have arrived, expected %ld",
          check_arrived, rounds * check_size);
    if (check_rank == 0) {
        CHECK(check_mixed64 == expected, "64-bit word of processor and atomics is "
              "%ld, expected %ld", check_mixed64, expected);
        CHECK(check_mixed32 == expected, "32-bit word of processor and atomics is "
              "%d, expected %ld", check_mixed32, expected);
    }
}

/* Data, followed by a flag for which the target waits */
static void check_wait(long round)
{
    int peer = (check_rank + 1) % check_size;
    int from = (check_rank + check_size - 1) % check_size;
    long value[64];
    int i;

    for (i = 0; i < 64; ++i) {
        value[i] = (round * 1000) + check_rank + i;
    }

    shmem_long_put((long*)(check_window + (CHECK_BYTES / 2)), value, 64, peer);
    shmem_fence();
    shmem_long_p(&check_flag, round + 1, peer);
    shmem_long_wait_until(&check_flag, SHMEM_CMP_GE, round + 1);
    memcpy(value, check_window + (CHECK_BYTES / 2), sizeof(value));
    for (i = 0; i < 64; ++i) {
        CHECK(value[i] == (round * 1000) + from + i,
              "round %ld: after the flag, word %d is %ld", round, i, value[i]);
    }

    shmem_barrier_all();
}

static void check_locks(void)
{
    long value;

    shmem_set_lock(&check_lock);
    value = shmem_long_g(&check_guarded, 0);
    shmem_long_p(&check_guarded, value + 1, 0);
    shmem_quiet();
    shmem_clear_lock(&check_lock);
}

static void check_collectives(long round)
{
    int i;

    for (i = 0; i < 4; ++i) {
        check_in[i] = round + check_rank + i;
    }

    shmem_long_sum_to_all(check_out, check_in, 4, 0, 0, check_size, check_work,
                          check_sync);
    for (i = 0; i < 4; ++i) {
        CHECK(check_out[i] == (check_size * (round + i)) +
                              (check_size * (check_size - 1) / 2),
              "round %ld: the sum is %ld", round, check_out[i]);
    }

    shmem_barrier_all();
}

static int check_wants(const char *what, const char *name)
{
    return !strcmp(what, "all") || !strcmp(what, name);
}

int main(int argc, char **argv)
{
    const char *what = (argc > 2) ? argv[2] : "all";
    double seconds   = (argc > 1) ? atof(argv[1]) : 1;
    long round       = 0;
    struct timespec start, now;
    int i;

    shmem_init();
    check_rank  = shmem_my_pe();
    check_size = shmem_n_pes();
    for (i = 0; i < SHMEM_REDUCE_SYNC_SIZE; ++i) {
        check_sync[i] = SHMEM_SYNC_VALUE;
    }
    for (i = 0; i < SHMEM_BCAST_SYNC_SIZE; ++i) {
        check_sync_bcast[i] = SHMEM_SYNC_VALUE;
    }
    shmem_barrier_all();
    if (check_rank == 0) {
        printf("shmem_check: started\n");
        fflush(stdout);
    }

    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        if (check_wants(what, "rma")) {
            check_rma(round);
        }
        if (check_wants(what, "amo")) {
            check_amo(round);
        }
        if (check_wants(what, "cpu")) {
            check_cpu(round);
        }
        if (check_wants(what, "wait")) {
            check_wait(round);
        }
        if (check_wants(what, "lock")) {
            check_locks();
        }
        if (check_wants(what, "coll")) {
            check_collectives(round);
        }

        ++round;
        shmem_barrier_all();
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (check_rank == 0) {
            check_go = (now.tv_sec - start.tv_sec) +
                       ((now.tv_nsec - start.tv_nsec) * 1e-9) < seconds ||
                       check_is_awaited();
            for (i = 1; i < check_size; ++i) {
                shmem_int_p(&check_go, check_go, i);
            }
        }
        shmem_barrier_all();
    } while (check_go);

    if (check_wants(what, "amo")) {
        check_amo_totals(round);
    }
    if (check_wants(what, "cpu")) {
        check_cpu_totals(round);
    }
    if (check_wants(what, "lock") && (check_rank == 0)) {
        CHECK(check_guarded == round * check_size, "the value under the lock is "
              "%ld, expected %ld", check_guarded, round * check_size);
    }

    check_in[0] = check_errors;
    shmem_barrier_all();
    shmem_long_sum_to_all(check_total, check_in, 1, 0, 0, check_size,
                          check_work, check_sync);
    if (check_rank == 0) {
        printf("shmem_check: %d PEs, %ld rounds, %ld errors\n", check_size,
               round, check_total[0]);
        fflush(stdout);
    }

    shmem_barrier_all();
    i = (check_total[0] != 0);
    shmem_finalize();
    return i;
}

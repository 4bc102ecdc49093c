/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An MPI program with checked results: windows that are synchronised by fences, and by
 * post, start, complete and wait; and a loop "read, compute, compare and swap" of all ranks
 * on one word of 4 and on one of 8 bytes. It does not depend on the transport; the script
 * that runs it cuts links meanwhile.
 *
 * usage: mpi_sync_check SECONDS [fence|pscw|cas|all]
 *
 * It runs for SECONDS at least, and until the file $CHECK_UNTIL exists if that is set.
 *
 * Exits with status 0 only if all ranks found all results correct.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


/* Each rank has a part for what its left neighbour puts, and one that its right neighbour
 * reads */
#define CHECK_WORDS 512

static int check_rank, check_size;
static int check_left, check_right;
static uint64_t check_errors;


#define CHECK(_cond, _fmt, ...) \
    do { \
        if (!(_cond)) { \
            if (check_errors++ < 10) { \
                fprintf(stderr, "rank %d: " _fmt "\n", check_rank, \
                        ##__VA_ARGS__); \
            } \
        } \
    } while (0)


static int64_t check_word(int rank, unsigned round, int place)
{
    return ((int64_t)round << 32) + (rank << 16) + place;
}

static void check_fill(int64_t *words, unsigned round)
{
    int i;

    for (i = 0; i < CHECK_WORDS; ++i) {
        words[i] = check_word(check_rank, round, i);
    }
}

static void check_compare(const int64_t *words, int rank, unsigned round,
                          const char *what)
{
    int i;

    for (i = 0; i < CHECK_WORDS; ++i) {
        if (words[i] != check_word(rank, round, i)) {
            CHECK(0, "%s, round %u: word %d of %d is %lx", what, round, i, rank,
                  (long)words[i]);
            return;
        }
    }
}

/* The epoch's operations: my words to the right, and those of the left to me */
static void check_access(MPI_Win win, const int64_t *out, int64_t *in)
{
    MPI_Put(out, CHECK_WORDS, MPI_INT64_T, check_right, 0, CHECK_WORDS, MPI_INT64_T,
            win);
    MPI_Get(in, CHECK_WORDS, MPI_INT64_T, check_right, CHECK_WORDS, CHECK_WORDS,
            MPI_INT64_T, win);
}

static void check_fence(unsigned round, MPI_Win win, int64_t *memory, int64_t *out,
                        int64_t *in)
{
    check_fill(out, round);
    check_fill(memory + CHECK_WORDS, round);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    check_access(win, out, in);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    check_compare(memory, check_left, round, "put before a fence");
    check_compare(in, check_right, round, "get before a fence");
}

static void check_pscw(unsigned round, MPI_Win win, int64_t *memory, int64_t *out,
                       int64_t *in)
{
    MPI_Group all, left, right;

    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &check_left, &left);
    MPI_Group_incl(all, 1, &check_right, &right);
    check_fill(out, round);
    check_fill(memory + CHECK_WORDS, round);
    MPI_Win_post(left, 0, win);
    MPI_Win_start(right, 0, win);
    check_access(win, out, in);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    check_compare(memory, check_left, round, "put before complete");
    check_compare(in, check_right, round, "get before complete");
    MPI_Group_free(&right);
    MPI_Group_free(&left);
    MPI_Group_free(&all);
}

/* Add 1 to a word of rank 0 */
static void check_cas(MPI_Win win, MPI_Datatype type, size_t width)
{
    int64_t seen = 0, next = 0, found = 0;
    uint64_t zero = 0;

    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Fetch_and_op(&zero, &found, type, 0, 0, MPI_NO_OP, win);
    MPI_Win_flush(0, win);
    do {
        memcpy(&seen, &found, sizeof(seen));
        next = seen + 1;
        MPI_Compare_and_swap(&next, &seen, &found, type, 0, 0, win);
        MPI_Win_flush(0, win);
    } while (memcmp(&found, &seen, width));
    MPI_Win_unlock(0, win);
}

static void check_total(MPI_Win win, const void *word, size_t width, unsigned rounds)
{
    int64_t total = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        memcpy(&total, word, width); /* The low bytes come first */
        MPI_Win_unlock(0, win);
        CHECK(total == (int64_t)rounds * check_size,
              "the word of %zu bytes is %ld instead of %ld", width, (long)total,
              (long)rounds * check_size);
    }
}

static MPI_Win check_window(size_t size, size_t unit, void *memory_p)
{
    MPI_Win win;

    MPI_Win_allocate(size, unit, MPI_INFO_NULL, MPI_COMM_WORLD, memory_p, &win);
    memset(*(void**)memory_p, 0, size);
    return win;
}

/* Whether the script still waits for an event: it makes this file then */
static int check_is_awaited(void)
{
    const char *path = getenv("CHECK_UNTIL");

    return (path != NULL) && (access(path, F_OK) != 0);
}

int main(int argc, char **argv)
{
    const char *what = (argc > 2) ? argv[2] : "all";
    int all          = !strcmp(what, "all");
    double seconds   = (argc > 1) ? atof(argv[1]) : 1;
    unsigned round   = 0;
    int64_t *fenced, *posted, *word64, *out, *in;
    MPI_Win by_fence, by_post, win32, win64;
    int32_t *word32;
    uint64_t errors;
    double end;
    int go;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    check_right = (check_rank + 1) % check_size;
    check_left  = (check_rank + check_size - 1) % check_size;
    out         = malloc(CHECK_WORDS * sizeof(*out));
    in          = malloc(CHECK_WORDS * sizeof(*in));
    by_fence    = check_window(2 * CHECK_WORDS * sizeof(*fenced), sizeof(*fenced),
                               &fenced);
    by_post     = check_window(2 * CHECK_WORDS * sizeof(*posted), sizeof(*posted),
                               &posted);
    win32       = check_window(sizeof(*word32), sizeof(*word32), &word32);
    win64       = check_window(sizeof(*word64), sizeof(*word64), &word64);
    MPI_Barrier(MPI_COMM_WORLD);

    if (check_rank == 0) {
        printf("mpi_sync_check: started\n");
        fflush(stdout);
    }

    end = MPI_Wtime() + seconds;
    do {
        if (all || !strcmp(what, "fence")) {
            check_fence(round, by_fence, fenced, out, in);
        }
        if (all || !strcmp(what, "pscw")) {
            check_pscw(round, by_post, posted, out, in);
        }
        if (all || !strcmp(what, "cas")) {
            check_cas(win32, MPI_INT32_T, sizeof(int32_t));
            check_cas(win64, MPI_INT64_T, sizeof(int64_t));
        }

        ++round;
        go = (MPI_Wtime() < end) || check_is_awaited();
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    } while (go);

    if (all || !strcmp(what, "cas")) {
        check_total(win32, word32, sizeof(int32_t), round);
        check_total(win64, word64, sizeof(int64_t), round);
    }

    MPI_Allreduce(&check_errors, &errors, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (check_rank == 0) {
        printf("mpi_sync_check: %d ranks, %u rounds, %lu errors\n", check_size, round,
               (unsigned long)errors);
    }

    MPI_Win_free(&win64);
    MPI_Win_free(&win32);
    MPI_Win_free(&by_post);
    MPI_Win_free(&by_fence);
    MPI_Finalize();
    free(in);
    free(out);
    return (errors != 0) || (round == 0);
}

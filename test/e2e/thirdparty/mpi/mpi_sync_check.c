/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An MPI program with checked results: windows that are synchronised by fences, and by
 * post, start, complete and wait; and a loop "read, compute, compare and swap" of all ranks
 * on one word of 4 and on one of 8 bytes. It does not depend on the transport; the script
 * that runs it cuts links meanwhile.
 *
 * usage: mpi_sync_check SECONDS [fence|pscw|cas|all]
 */
#include "mpi_rounds.h"


/* Each rank has a part for what its left neighbour puts, and one that its right neighbour
 * reads */
#define CHECK_WORDS 512

static int check_left, check_right;
static MPI_Win check_by_fence, check_by_post, check_win32, check_win64;
static int64_t *check_fenced, *check_posted, *check_word64;
static int32_t *check_word32;
static int64_t check_out[CHECK_WORDS], check_in[CHECK_WORDS];


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
static void check_access(MPI_Win win)
{
    MPI_Put(check_out, CHECK_WORDS, MPI_INT64_T, check_right, 0, CHECK_WORDS, MPI_INT64_T,
            win);
    MPI_Get(check_in, CHECK_WORDS, MPI_INT64_T, check_right, CHECK_WORDS, CHECK_WORDS,
            MPI_INT64_T, win);
}

static void check_fence(unsigned round)
{
    check_fill(check_out, round);
    check_fill(check_fenced + CHECK_WORDS, round);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, check_by_fence);
    check_access(check_by_fence);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, check_by_fence);
    check_compare(check_fenced, check_left, round, "put before a fence");
    check_compare(check_in, check_right, round, "get before a fence");
}

static void check_pscw(unsigned round)
{
    MPI_Group all, left, right;

    MPI_Win_get_group(check_by_post, &all);
    MPI_Group_incl(all, 1, &check_left, &left);
    MPI_Group_incl(all, 1, &check_right, &right);
    check_fill(check_out, round);
    check_fill(check_posted + CHECK_WORDS, round);
    MPI_Win_post(left, 0, check_by_post);
    MPI_Win_start(right, 0, check_by_post);
    check_access(check_by_post);
    MPI_Win_complete(check_by_post);
    MPI_Win_wait(check_by_post);
    check_compare(check_posted, check_left, round, "put before complete");
    check_compare(check_in, check_right, round, "get before complete");
    MPI_Group_free(&right);
    MPI_Group_free(&left);
    MPI_Group_free(&all);
}

/* Add 1 to a word of rank 0 */
static void check_cas_word(MPI_Win win, MPI_Datatype type, size_t width)
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

static void check_cas(unsigned round)
{
    (void)round;
    check_cas_word(check_win32, MPI_INT32_T, sizeof(int32_t));
    check_cas_word(check_win64, MPI_INT64_T, sizeof(int64_t));
}

static void check_totals(unsigned rounds)
{
    check_total(check_win32, check_word32, sizeof(int32_t), rounds);
    check_total(check_win64, check_word64, sizeof(int64_t), rounds);
}

int main(int argc, char **argv)
{
    static const check_kind_t kinds[] = {
        {"fence", check_fence, NULL},
        {"pscw",  check_pscw,  NULL},
        {"cas",   check_cas,   check_totals}
    };
    const size_t words = 2 * sizeof(check_out);
    int status;

    check_init(&argc, &argv);
    check_right    = (check_rank + 1) % check_size;
    check_left     = (check_rank + check_size - 1) % check_size;
    check_by_fence = check_window(words, sizeof(*check_fenced), &check_fenced);
    check_by_post  = check_window(words, sizeof(*check_posted), &check_posted);
    check_win32    = check_window(sizeof(*check_word32), sizeof(*check_word32), &check_word32);
    check_win64    = check_window(sizeof(*check_word64), sizeof(*check_word64), &check_word64);
    status         = check_run(argc, argv, "mpi_sync_check", kinds, 3);
    MPI_Win_free(&check_win64);
    MPI_Win_free(&check_win32);
    MPI_Win_free(&check_by_post);
    MPI_Win_free(&check_by_fence);
    MPI_Finalize();
    return status;
}

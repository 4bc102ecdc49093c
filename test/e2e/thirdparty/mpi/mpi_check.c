/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An MPI program with checked results: point-to-point messages of all protocols,
 * collectives, and one-sided windows with locks, accumulates and fetches. It does not
 * depend on the transport; the script that runs it cuts links meanwhile.
 *
 * usage: mpi_check SECONDS [p2p|coll|rma|all]
 */
#include "mpi_rounds.h"


#define CHECK_MAX_SIZE (256 * 1024)
#define CHECK_SLOTS    64


static uint8_t *check_out, *check_in;
static MPI_Win check_win;
static int64_t *check_memory;
static int64_t check_counted;


/* Each byte depends on the sender, the round and its offset */
static uint8_t check_byte(int rank, unsigned round, size_t place)
{
    return (uint8_t)((rank * 31) + (round * 7) + (place * 13) + (place >> 8));
}

static void check_fill(uint8_t *buffer, size_t size, int rank, unsigned round)
{
    size_t i;

    for (i = 0; i < size; ++i) {
        buffer[i] = check_byte(rank, round, i);
    }
}

static void check_compare(const uint8_t *buffer, size_t size, int rank,
                          unsigned round, const char *what)
{
    size_t i;

    for (i = 0; i < size; ++i) {
        if (buffer[i] != check_byte(rank, round, i)) {
            CHECK(0, "%s of %zu bytes from %d, round %u: byte %zu is wrong",
                  what, size, rank, round, i);
            return;
        }
    }
}

/* Each rank sends to its right neighbours at all distances, eager and rendezvous */
static void check_p2p(unsigned round)
{
    static const size_t sizes[] = {1, 100, 8000, 70000, CHECK_MAX_SIZE};
    MPI_Request requests[2];
    MPI_Status status;
    int distance, to, from, count;
    size_t size;
    unsigned i;

    for (distance = 1; distance < check_size; ++distance) {
        to   = (check_rank + distance) % check_size;
        from = (check_rank + check_size - distance) % check_size;
        for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
            size = sizes[i];
            check_fill(check_out, size, check_rank, round + i);
            memset(check_in, 0, size);
            MPI_Irecv(check_in, size, MPI_BYTE, from, i, MPI_COMM_WORLD,
                      &requests[0]);
            MPI_Isend(check_out, size, MPI_BYTE, to, i, MPI_COMM_WORLD,
                      &requests[1]);
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
            MPI_Wait(&requests[0], &status);
            MPI_Get_count(&status, MPI_BYTE, &count);
            CHECK((size_t)count == size, "%d bytes came instead of %zu", count,
                  size);
            check_compare(check_in, size, from, round + i, "message");
        }
    }
}

static void check_collectives(unsigned round)
{
    const int block = 512;
    int root        = round % check_size;
    int64_t mine    = ((int64_t)round << 16) + check_rank;
    int64_t sum;
    int i;

    MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == (check_size * ((int64_t)round << 16)) +
                 (check_size * (check_size - 1) / 2),
          "allreduce, round %u: %ld", round, (long)sum);

    check_fill(check_out, CHECK_MAX_SIZE / 4, root, round);
    if (check_rank != root) {
        memset(check_out, 0, CHECK_MAX_SIZE / 4);
    }
    MPI_Bcast(check_out, CHECK_MAX_SIZE / 4, MPI_BYTE, root, MPI_COMM_WORLD);
    check_compare(check_out, CHECK_MAX_SIZE / 4, root, round, "broadcast");

    for (i = 0; i < check_size; ++i) {
        check_fill(check_out + (i * block), block, check_rank, round + i);
    }
    MPI_Alltoall(check_out, block, MPI_BYTE, check_in, block, MPI_BYTE, MPI_COMM_WORLD);
    for (i = 0; i < check_size; ++i) {
        check_compare(check_in + (i * block), block, i, round + check_rank,
                      "all-to-all");
    }

    MPI_Barrier(MPI_COMM_WORLD);
}

/* Puts and gets of a rank's own slots, and a counter on rank 0 that all ranks increment
 * in all possible ways */
static void check_rma(unsigned round)
{
    int64_t one = 1, value, got, zero = 0;
    int target  = (check_rank + 1 + (round % check_size)) % check_size;
    int slot    = 1 + check_rank;

    value = ((int64_t)round << 16) + check_rank;
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, check_win);
    MPI_Put(&value, 1, MPI_INT64_T, target, slot, 1, MPI_INT64_T, check_win);
    MPI_Win_flush(target, check_win);
    got = -1;
    MPI_Get(&got, 1, MPI_INT64_T, target, slot, 1, MPI_INT64_T, check_win);
    MPI_Win_flush(target, check_win);
    MPI_Win_unlock(target, check_win);
    CHECK(got == value, "put and get, round %u: %ld instead of %ld", round,
          (long)got, (long)value);

    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, check_win);
    MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, check_win);
    MPI_Win_flush(0, check_win);
    MPI_Fetch_and_op(&one, &got, MPI_INT64_T, 0, 0, MPI_SUM, check_win);
    MPI_Win_flush(0, check_win);
    MPI_Fetch_and_op(&zero, &value, MPI_INT64_T, 0, 0, MPI_NO_OP, check_win);
    MPI_Win_flush(0, check_win);
    MPI_Win_unlock(0, check_win);
    CHECK(value > got, "the counter went from %ld to %ld", (long)got,
          (long)value);
    check_counted += 2;

    /* An exclusive lock: read, then write the incremented value */
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, check_win);
    MPI_Get(&got, 1, MPI_INT64_T, 0, CHECK_SLOTS - 1, 1, MPI_INT64_T, check_win);
    MPI_Win_flush(0, check_win);
    ++got;
    MPI_Put(&got, 1, MPI_INT64_T, 0, CHECK_SLOTS - 1, 1, MPI_INT64_T, check_win);
    MPI_Win_unlock(0, check_win);
}

static void check_rma_totals(unsigned rounds)
{
    int64_t total;

    MPI_Allreduce(&check_counted, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, check_win);
        CHECK(check_memory[0] == total, "the counter is %ld instead of %ld",
              (long)check_memory[0], (long)total);
        CHECK(check_memory[CHECK_SLOTS - 1] == (int64_t)rounds * check_size,
              "the value under the lock is %ld instead of %ld",
              (long)check_memory[CHECK_SLOTS - 1], (long)rounds * check_size);
        MPI_Win_unlock(0, check_win);
    }
}

int main(int argc, char **argv)
{
    static const check_kind_t kinds[] = {
        {"p2p",  check_p2p,         NULL},
        {"coll", check_collectives, NULL},
        {"rma",  check_rma,         check_rma_totals}
    };
    int status;

    check_init(&argc, &argv);
    check_out = malloc(CHECK_MAX_SIZE);
    check_in  = malloc(CHECK_MAX_SIZE);
    check_win = check_window(CHECK_SLOTS * sizeof(*check_memory), sizeof(*check_memory),
                             &check_memory);
    status    = check_run(argc, argv, "mpi_check", kinds, 3);
    MPI_Win_free(&check_win);
    MPI_Finalize();
    free(check_in);
    free(check_out);
    return status;
}

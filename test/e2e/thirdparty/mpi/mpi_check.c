/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An MPI program with checked results: point-to-point messages of all protocols,
 * collectives, and one-sided windows with locks, accumulates and fetches. It does not
 * depend on the transport; the script that runs it cuts links meanwhile.
 *
 * usage: mpi_check SECONDS [p2p|coll|rma|all]
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


#define CHECK_MAX_SIZE (256 * 1024)
#define CHECK_SLOTS    64


static int check_rank, check_size;
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
static void check_p2p(unsigned round, uint8_t *out, uint8_t *in)
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
            check_fill(out, size, check_rank, round + i);
            memset(in, 0, size);
            MPI_Irecv(in, size, MPI_BYTE, from, i, MPI_COMM_WORLD,
                      &requests[0]);
            MPI_Isend(out, size, MPI_BYTE, to, i, MPI_COMM_WORLD,
                      &requests[1]);
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
            MPI_Wait(&requests[0], &status);
            MPI_Get_count(&status, MPI_BYTE, &count);
            CHECK((size_t)count == size, "%d bytes came instead of %zu", count,
                  size);
            check_compare(in, size, from, round + i, "message");
        }
    }
}

static void check_collectives(unsigned round, uint8_t *out, uint8_t *in)
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

    check_fill(out, CHECK_MAX_SIZE / 4, root, round);
    if (check_rank != root) {
        memset(out, 0, CHECK_MAX_SIZE / 4);
    }
    MPI_Bcast(out, CHECK_MAX_SIZE / 4, MPI_BYTE, root, MPI_COMM_WORLD);
    check_compare(out, CHECK_MAX_SIZE / 4, root, round, "broadcast");

    for (i = 0; i < check_size; ++i) {
        check_fill(out + (i * block), block, check_rank, round + i);
    }
    MPI_Alltoall(out, block, MPI_BYTE, in, block, MPI_BYTE, MPI_COMM_WORLD);
    for (i = 0; i < check_size; ++i) {
        check_compare(in + (i * block), block, i, round + check_rank,
                      "all-to-all");
    }

    MPI_Barrier(MPI_COMM_WORLD);
}

/* Puts and gets of a rank's own slots, and a counter on rank 0 that all ranks increment
 * in all possible ways */
static void check_rma(unsigned round, MPI_Win win, int64_t *memory,
                      int64_t *counted)
{
    int64_t one = 1, value, got, zero = 0;
    int target  = (check_rank + 1 + (round % check_size)) % check_size;
    int slot    = 1 + check_rank;

    value = ((int64_t)round << 16) + check_rank;
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    MPI_Put(&value, 1, MPI_INT64_T, target, slot, 1, MPI_INT64_T, win);
    MPI_Win_flush(target, win);
    got = -1;
    MPI_Get(&got, 1, MPI_INT64_T, target, slot, 1, MPI_INT64_T, win);
    MPI_Win_flush(target, win);
    MPI_Win_unlock(target, win);
    CHECK(got == value, "put and get, round %u: %ld instead of %ld", round,
          (long)got, (long)value);

    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, win);
    MPI_Win_flush(0, win);
    MPI_Fetch_and_op(&one, &got, MPI_INT64_T, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win);
    MPI_Fetch_and_op(&zero, &value, MPI_INT64_T, 0, 0, MPI_NO_OP, win);
    MPI_Win_flush(0, win);
    MPI_Win_unlock(0, win);
    CHECK(value > got, "the counter went from %ld to %ld", (long)got,
          (long)value);
    *counted += 2;

    /* An exclusive lock: read, then write the incremented value */
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Get(&got, 1, MPI_INT64_T, 0, CHECK_SLOTS - 1, 1, MPI_INT64_T, win);
    MPI_Win_flush(0, win);
    ++got;
    MPI_Put(&got, 1, MPI_INT64_T, 0, CHECK_SLOTS - 1, 1, MPI_INT64_T, win);
    MPI_Win_unlock(0, win);
    (void)memory;
}

static void check_rma_totals(MPI_Win win, int64_t *memory, int64_t counted,
                             unsigned rounds)
{
    int64_t total;

    MPI_Allreduce(&counted, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        CHECK(memory[0] == total, "the counter is %ld instead of %ld",
              (long)memory[0], (long)total);
        CHECK(memory[CHECK_SLOTS - 1] == (int64_t)rounds * check_size,
              "the value under the lock is %ld instead of %ld",
              (long)memory[CHECK_SLOTS - 1], (long)rounds * check_size);
        MPI_Win_unlock(0, win);
    }
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
    int64_t counted  = 0;
    unsigned round   = 0;
    uint8_t *out, *in;
    int64_t *memory;
    uint64_t errors;
    double end;
    MPI_Win win;
    int go;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    out = malloc(CHECK_MAX_SIZE);
    in  = malloc(CHECK_MAX_SIZE);
    MPI_Win_allocate(CHECK_SLOTS * sizeof(*memory), sizeof(*memory),
                     MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 0, CHECK_SLOTS * sizeof(*memory));
    MPI_Barrier(MPI_COMM_WORLD);

    if (check_rank == 0) {
        printf("mpi_check: started\n");
        fflush(stdout);
    }

    end = MPI_Wtime() + seconds;
    do {
        if (all || !strcmp(what, "p2p")) {
            check_p2p(round, out, in);
        }
        if (all || !strcmp(what, "coll")) {
            check_collectives(round, out, in);
        }
        if (all || !strcmp(what, "rma")) {
            check_rma(round, win, memory, &counted);
        }

        ++round;
        go = (MPI_Wtime() < end) || check_is_awaited();
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    } while (go);

    if (all || !strcmp(what, "rma")) {
        check_rma_totals(win, memory, counted, round);
    }

    MPI_Allreduce(&check_errors, &errors, 1, MPI_UINT64_T, MPI_SUM,
                  MPI_COMM_WORLD);
    if (check_rank == 0) {
        printf("mpi_check: %d ranks, %u rounds, %lu errors\n", check_size,
               round, (unsigned long)errors);
    }

    MPI_Win_free(&win);
    MPI_Finalize();
    free(in);
    free(out);
    return (errors != 0) || (round == 0);
}

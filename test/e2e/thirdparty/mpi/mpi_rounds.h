/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The rounds of an MPI program with checked results:
 *
 * usage: PROGRAM SECONDS [KIND|all]
 *
 * It runs for SECONDS at least, and until the file $CHECK_UNTIL exists if that is set.
 * Exits with status 0 only if all ranks found all results correct.
 */
#ifndef MPI_ROUNDS_H_
#define MPI_ROUNDS_H_

#include "check.h"

#include <mpi.h>

typedef struct {
    const char *name;
    void       (*round)(unsigned round);
    void       (*totals)(unsigned rounds);  /* In the end; may be NULL */
} check_kind_t;

/* A window in which each rank has so many bytes */
static MPI_Win check_window(size_t size, size_t unit, void *memory_p)
{
    MPI_Win win;

    MPI_Win_allocate(size, unit, MPI_INFO_NULL, MPI_COMM_WORLD, memory_p, &win);
    memset(*(void**)memory_p, 0, size);
    return win;
}

static void check_init(int *argc_p, char ***argv_p)
{
    MPI_Init(argc_p, argv_p);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
}

/* Rounds of the wanted kinds. @return The program's exit status. */
static int check_run(int argc, char **argv, const char *program, const check_kind_t *kinds,
                     unsigned num_kinds)
{
    const char *what = (argc > 2) ? argv[2] : "all";
    double seconds   = (argc > 1) ? atof(argv[1]) : 1;
    unsigned round   = 0;
    uint64_t errors;
    double end;
    unsigned i;
    int go;

    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) {
        printf("%s: started\n", program);
        fflush(stdout);
    }

    end = MPI_Wtime() + seconds;
    do {
        for (i = 0; i < num_kinds; ++i) {
            if (!strcmp(what, "all") || !strcmp(what, kinds[i].name)) {
                kinds[i].round(round);
            }
        }
        ++round;
        go = (MPI_Wtime() < end) || check_is_awaited();
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    } while (go);

    for (i = 0; i < num_kinds; ++i) {
        if ((kinds[i].totals != NULL) &&
            (!strcmp(what, "all") || !strcmp(what, kinds[i].name))) {
            kinds[i].totals(round);
        }
    }

    MPI_Allreduce(&check_errors, &errors, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (check_rank == 0) {
        printf("%s: %d ranks, %u rounds, %lu errors\n", program, check_size, round,
               (unsigned long)errors);
    }

    return (errors != 0) || (round == 0);
}

#endif

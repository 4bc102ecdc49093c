/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Spawns a child, which is this program again, and exchanges messages with it.
 *
 *     mpi_spawn HOW COMMAND ARGUMENT...
 *
 * COMMAND is what MPI_Comm_spawn() starts; HOW is only printed.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 200
#define WORDS  2048 /* Eager and rendezvous messages, in turn */

static int words[WORDS];

/* Each side adds 1 to what it gets */
static int exchange(MPI_Comm comm, int begins)
{
    int errors = 0;
    int round, count, i;

    for (round = 0; round < ROUNDS; ++round) {
        count = (round % 2) ? WORDS : 4;
        if (begins) {
            for (i = 0; i < count; ++i) {
                words[i] = round * i;
            }
            MPI_Send(words, count, MPI_INT, 0, round, comm);
        }

        MPI_Recv(words, count, MPI_INT, 0, round, comm, MPI_STATUS_IGNORE);
        for (i = 0; i < count; ++i) {
            errors += (words[i] != ((round * i) + begins));
            ++words[i];
        }

        if (!begins) {
            MPI_Send(words, count, MPI_INT, 0, round, comm);
        }
    }

    return errors;
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    int errors;

    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&comm);
    if (comm != MPI_COMM_NULL) {
        errors = exchange(comm, 0);
    } else if (argc < 3) {
        fprintf(stderr, "usage: mpi_spawn HOW COMMAND ARGUMENT...\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
        return 2;
    } else {
        MPI_Comm_spawn(argv[2], &argv[3], 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &comm,
                       MPI_ERRCODES_IGNORE);
        errors = exchange(comm, 1);
        printf("mpi_spawn: %s: %d rounds, %d errors\n", argv[1], ROUNDS, errors);
    }

    MPI_Comm_disconnect(&comm);
    MPI_Finalize();
    return errors ? EXIT_FAILURE : 0;
}

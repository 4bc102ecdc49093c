/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Writes the seeds of a harness to a directory:  seeds DIRECTORY
 */
#include "fuzz.h"

static const char *seeds_dir;
static unsigned seeds_count;

static void seeds_add(const void *data, size_t size)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/seed%02u", seeds_dir, seeds_count++);
    file = fopen(path, "w");
    if ((file == NULL) || (fwrite(data, 1, size, file) != size) ||
        (fclose(file) != 0)) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return 2;
    }

    seeds_dir = argv[1];
    fuzz_seeds(seeds_add);
    return 0;
}

/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Records of chaos tests (ft_chaos.c, ft_atom_chaos.c).
 */
#include "ft_seeds.h"

#include <stdlib.h>
#include <unistd.h>

void *ft_seeds_records(const ft_seeds_t *seeds, ft_driver_t *driver,
                       const char *name, size_t size, size_t *num_p)
{
    char *records = NULL;
    size_t length = 0;
    unsigned client;
    char path[64];
    FILE *file;
    long more;

    for (client = 0; client < seeds->clients; ++client) {
        snprintf(path, sizeof(path), "%s.%u", name, client);
        file = fopen(path, "r");
        if ((file == NULL) || (fseek(file, 0, SEEK_END) != 0)) {
            ft_driver_fatal(driver, "client %u has left no records", client);
        }

        more    = ftell(file);
        records = realloc(records, length + more + 1);
        rewind(file);
        if ((records == NULL) ||
            (fread(records + length, 1, more, file) != (size_t)more)) {
            ft_driver_fatal(driver, "cannot read %s", path);
        }

        length += more;
        fclose(file);
        unlink(path);
    }

    *num_p = length / size;
    return records;
}

/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Common code of the drivers of chaos tests: their options, and the records of their
 * clients.
 */
#ifndef FT_SEEDS_H_
#define FT_SEEDS_H_

#include "ft_driver.h"

/* @a _seconds, @a _clients and @a _links: the defaults */
#define FT_SEEDS_USAGE(_seconds, _clients, _links) \
    "  -s SEED      first seed (1)\n" \
    "  -n SEEDS     number of seeds (1)\n" \
    "  -T SECONDS   for each seed (" _seconds ")\n" \
    "  -C CLIENTS   at most 4 (" _clients ")\n" \
    "  -L LINKS     (" _links ")\n"

typedef struct {
    uint64_t seed;
    unsigned num;
    double   seconds;    /* For each seed */
    unsigned clients;
    unsigned links;
} ft_seeds_t;

/* Rows of ft_option_t */
#define FT_SEEDS_OPTIONS(_seeds) \
    {'s', FT_OPTION_U64, &(_seeds)->seed}, \
    {'n', FT_OPTION_UNSIGNED, &(_seeds)->num}, \
    {'T', FT_OPTION_DOUBLE, &(_seeds)->seconds}, \
    {'C', FT_OPTION_UNSIGNED, &(_seeds)->clients}, \
    {'L', FT_OPTION_UNSIGNED, &(_seeds)->links}

/** Read the clients' records from files NAME.0, NAME.1, ..., and remove the files.
 *  @param [in]  size   Of a record.
 *  @param [out] num_p  Number of all.
 *  @return All of them, to be freed. */
void *ft_seeds_records(const ft_seeds_t *seeds, ft_driver_t *driver,
                       const char *name, size_t size, size_t *num_p);

#endif

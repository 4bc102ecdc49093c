/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Random numbers of the system, which cannot be guessed: for whoever opens something that
 * peers name. What they are for is in core/varuna_numbers.h. This room is the lowest one
 * that may ask the system, so all rooms above find them here.
 */
#ifndef UCT_VARUNA_RANDOM_H_
#define UCT_VARUNA_RANDOM_H_

#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

/** Get @a size random bytes of the system. @return UCS_ERR_IO_ERROR, and says so in
 *  the log, if there are none. */
ucs_status_t uct_varuna_random(void *data, size_t size);

/** A random number other than 0, as above. */
ucs_status_t uct_varuna_random_number(uint64_t *number_p);

#endif

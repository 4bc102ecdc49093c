/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Random numbers of the system. See varuna_random.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_random.h"

#include <ucs/debug/log.h>
#include <ucs/sys/compiler.h>
#include <errno.h>
#include <sys/random.h>

ucs_status_t uct_varuna_random(void *data, size_t size)
{
    size_t done = 0;
    ssize_t ret;

    while (done < size) {
        ret = getrandom(UCS_PTR_BYTE_OFFSET(data, done), size - done, 0);
        if (ret > 0) {
            done += ret;
        } else if ((ret == 0) || (errno != EINTR)) {
            ucs_error("failed to get %zu random bytes: %m", size);
            return UCS_ERR_IO_ERROR;
        }
    }

    return UCS_OK;
}

ucs_status_t uct_varuna_random_number(uint64_t *number_p)
{
    ucs_status_t status;
    uint64_t number;

    do {
        status = uct_varuna_random(&number, sizeof(number));
        if (status != UCS_OK) {
            return status;
        }
    } while (number == 0);

    *number_p = number;
    return UCS_OK;
}

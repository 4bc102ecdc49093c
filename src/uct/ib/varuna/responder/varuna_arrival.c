/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See varuna_arrival.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_arrival.h"
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/ucx/varuna_mlx5_dev.h>

#include <ucs/debug/log.h>
#include <ucs/time/time.h>

/* Devices of a process; each region counts if UCX does not tell them apart */
#define UCT_VARUNA_ARRIVAL_MAX       64

/* A NIC that works answers within microseconds. The thread waits for a fence as well, and for
 * less than UCT_VARUNA_CMD_HUNG in all */
#define UCT_VARUNA_ARRIVAL_TIMEOUT   4e-3 /* sec */

/* A region may have been deregistered since it was listed. That has placed its data, but the
 * read fails, and with it the queue pair */
#define UCT_VARUNA_ARRIVAL_TRIES     3

static ucs_status_t uct_varuna_arrival_read(uct_varuna_responder_t *resp, unsigned link,
                                            const uct_varuna_place_t *places, unsigned num,
                                            ucs_time_t until)
{
    uct_varuna_readback_t **readback_p = &resp->readbacks[link];
    ucs_status_t status                = UCS_OK;
    unsigned i;

    if (*readback_p == NULL) {
        status = uct_varuna_readback_open(uct_varuna_link_rc(&resp->iface->links[link])->inner,
                                          readback_p);
    }

    for (i = 0; (i < num) && (status == UCS_OK); ++i) {
        status = uct_varuna_readback_run(*readback_p, places[i].address, places[i].rkey, until);
    }

    if ((status != UCS_OK) && (*readback_p != NULL)) {
        uct_varuna_readback_close(*readback_p);
        *readback_p = NULL;
    }

    return status;
}

int uct_varuna_arrival_prove(uct_varuna_responder_t *resp, unsigned link)
{
    uct_varuna_iface_t *iface = resp->iface;
    ucs_time_t until          = ucs_get_time() +
                                ucs_time_from_sec(UCT_VARUNA_ARRIVAL_TIMEOUT);
    ucs_status_t status       = UCS_ERR_IO_ERROR;
    uct_varuna_place_t places[UCT_VARUNA_ARRIVAL_MAX];
    unsigned i, num;

    for (i = 0; (i < UCT_VARUNA_ARRIVAL_TRIES) && (status != UCS_OK); ++i) {
        num = uct_varuna_md_list_devices(iface->md, iface->links[link].nic, places,
                                         UCT_VARUNA_ARRIVAL_MAX);
        if (num == 0) {
            return 1;
        } else if (num > UCT_VARUNA_ARRIVAL_MAX) {
            break;
        }

        status = uct_varuna_arrival_read(resp, link, places, num, until);
    }

    ucs_debug("rc_varuna: %s: data has %s in the memory of %u devices",
              uct_varuna_link_name(iface, link),
              (status == UCS_OK) ? "arrived" : "perhaps not arrived", num);
    return status == UCS_OK;
}

void uct_varuna_arrival_cleanup(uct_varuna_responder_t *resp)
{
    unsigned link;

    for (link = 0; link < UCT_VARUNA_MAX_LINKS; ++link) {
        if ((resp->readbacks[link] != NULL) && !(resp->iface->cmds.left & UCS_BIT(link))) {
            uct_varuna_readback_close(resp->readbacks[link]);
        }
    }
}

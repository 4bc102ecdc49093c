/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The queues of commands to the NICs of a memory domain. See varuna_md_cmd.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_md_cmd.h"
#include "varuna_health.h"


ucs_status_t uct_varuna_md_cmds_init(uct_varuna_md_t *md)
{
    ucs_status_t status;
    unsigned nic;

    for (nic = 0; nic < md->num_nics; ++nic) {
        status = uct_varuna_cmds_create(md->nics[nic].dev_name, &md->cmds[nic]);
        if (status != UCS_OK) {
            return status;
        }
    }

    return UCS_OK;
}

void uct_varuna_md_cmds_cleanup(uct_varuna_md_t *md)
{
    unsigned nic, port;
    uct_md_h left;
    int is_left;

    for (nic = 0; nic < md->num_nics; ++nic) {
        is_left = (md->cmds[nic] != NULL) &&
                  (uct_varuna_cmds_destroy(md->cmds[nic]) != UCS_OK);
        uct_varuna_md_end_release(md, nic, is_left);
        if (!is_left) {
            continue;
        }

        left = md->nics[nic].md;
        for (port = 0; port < md->num_nics; ++port) {
            if (md->nics[port].md == left) {
                md->nics[port].md = NULL;
            }
        }
    }
}

uct_varuna_cmds_t *uct_varuna_md_cmds(const uct_varuna_md_t *md, unsigned nic)
{
    unsigned owner = uct_varuna_md_inner_owner(md, nic);

    return (owner < UCT_VARUNA_MAX_LINKS) ? md->cmds[owner] : NULL;
}

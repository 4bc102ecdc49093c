/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See varuna_choice.h. Called when the interface is opened.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_choice.h"
#include <uct/ib/varuna/core/varuna_near.h>
#include <uct/ib/varuna/md/varuna_topo.h>

#include <ucs/debug/log.h>
#include <string.h>

/* @return Position among the links of the memory domain, or their number. */
static unsigned uct_varuna_choice_find(const uct_varuna_md_t *md, const char *dev_name)
{
    size_t prefix_len = strlen(UCT_VARUNA_DEV_PREFIX);
    unsigned link;

    if (strncmp(dev_name, UCT_VARUNA_DEV_PREFIX, prefix_len) == 0) {
        dev_name += prefix_len;
    }

    for (link = 0; (link < md->num_links) &&
                   strcmp(md->nics[md->links[link]].dev_name, dev_name); ++link);
    return link;
}

/* The order of a file is kept: zeros, and the primary's place is left out. */
static void uct_varuna_choice_order(const uct_varuna_md_t *md, unsigned primary,
                                    uint8_t *order)
{
    double distances[UCT_VARUNA_MAX_LINKS];
    unsigned link;

    for (link = 0; link < md->num_links; ++link) {
        distances[link] = md->order_is_given ? link :
                          uct_varuna_nic_distance(&md->nics[md->links[primary]],
                                                  &md->nics[md->links[link]]);
    }

    uct_varuna_near_order(distances, md->num_links, primary, order);
}

ucs_status_t uct_varuna_lanes_order(uct_varuna_iface_t *iface,
                                    const char *dev_name)
{
    const uct_varuna_md_t *md = iface->md;
    uint8_t order[UCT_VARUNA_MAX_LINKS];
    uct_varuna_link_t *link;
    unsigned primary, i;
    uint8_t nic;

    primary = uct_varuna_choice_find(md, dev_name);
    if (primary == md->num_links) {
        ucs_error("rc_varuna: no link is called %s", dev_name);
        return UCS_ERR_NO_DEVICE;
    }

    uct_varuna_choice_order(md, primary, order);
    iface->num_links   = 0;
    iface->further.num = 0;
    for (i = 0; i < md->num_links; ++i) {
        nic = md->links[order[i]];
        if (md->nics[nic].set != md->nics[md->links[primary]].set) {
            /* Its addresses have another form: the interfaces of such devices use it */
            continue;
        }

        if (iface->num_links < md->vqp_links) {
            link      = &iface->links[iface->num_links++];
            link->nic = nic;
            link->set = md->nics[nic].set;
        } else {
            iface->further.nics[iface->further.num++] = nic;
        }
    }

    return UCS_OK;
}

/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See varuna_choice.h. Called when the interface is opened.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_choice.h"
#include <uct/ib/varuna/core/varuna_link.h>
#include <uct/ib/varuna/md/varuna_health.h>
#include <uct/ib/varuna/md/varuna_nic.h>

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

    pthread_mutex_lock(&iface->md->lock); /* A NIC that was reset gets another number */
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
    pthread_mutex_unlock(&iface->md->lock);

    return UCS_OK;
}


/* --- Links that cannot be opened --- */

static void uct_varuna_choice_remove(uct_varuna_iface_t *iface, unsigned link)
{
    for (--iface->num_links; link < iface->num_links; ++link) {
        iface->links[link].nic = iface->links[link + 1].nic;
        iface->links[link].set = iface->links[link + 1].set;
    }
}

void uct_varuna_choice_skip(uct_varuna_iface_t *iface)
{
    uct_varuna_md_t *md = iface->md;
    unsigned link       = iface->num_links;
    int is_due;

    while ((link-- > 0) && (iface->num_links > 1)) {
        pthread_mutex_lock(&md->lock);
        is_due = uct_varuna_backoff_is_due(&md->nics[iface->links[link].nic].no_lanes,
                                           ucs_get_time());
        pthread_mutex_unlock(&md->lock);
        if (!is_due) {
            ucs_debug("rc_varuna: %s was refused lately: it is left out",
                      uct_varuna_link_name(iface, link));
            uct_varuna_choice_remove(iface, link);
        }
    }
}

/* A NIC that is short of something, dead or hung, not an option that no NIC can satisfy */
static int uct_varuna_choice_is_shortage(ucs_status_t status)
{
    return (status == UCS_ERR_IO_ERROR) || (status == UCS_ERR_NO_MEMORY) ||
           (status == UCS_ERR_NO_RESOURCE) || (status == UCS_ERR_TIMED_OUT);
}

/* @return How loud it is: a warning, if it is news and none says that the NIC is short */
static ucs_log_level_t
uct_varuna_choice_note(uct_varuna_iface_t *iface, unsigned link, ucs_status_t status)
{
    uct_varuna_md_t *md   = iface->md;
    uct_varuna_nic_t *nic = &md->nics[iface->links[link].nic];
    uct_varuna_nic_t *own = &md->nics[uct_varuna_md_inner_owner(md, iface->links[link].nic)];
    ucs_log_level_t level;

    pthread_mutex_lock(&md->lock);
    level = !uct_varuna_backoff_failed(&nic->no_lanes, status, ucs_get_time()) ?
                    UCS_LOG_LEVEL_DEBUG :
            (own->shortages[UCT_VARUNA_SHORT_MR].backoff.failures > 0) ?
                    UCS_LOG_LEVEL_DIAG : UCS_LOG_LEVEL_WARN;
    pthread_mutex_unlock(&md->lock);
    return level;
}

int uct_varuna_choice_leave_out(uct_varuna_iface_t *iface, ucs_status_t status)
{
    unsigned link = iface->opening.failed;
    ucs_log_level_t level;

    if ((link == UCT_VARUNA_LINK_NONE) || (iface->cmds.left != 0)) {
        return 0; /* It is logged */
    }

    if (!uct_varuna_choice_is_shortage(status) || (iface->num_links == 1)) {
        ucs_error("rc_varuna: %s%s cannot be opened: %s", uct_varuna_link_name(iface, link),
                  (iface->num_links == 1) ? ", the last link," : "",
                  ucs_status_string(status));
        return 0;
    }

    level = uct_varuna_choice_note(iface, link, status);
    ucs_log(level,
            "rc_varuna: %s cannot be opened (%s): until this process opens another interface "
            "only other links carry its traffic", uct_varuna_link_name(iface, link),
            ucs_status_string(status));
    uct_varuna_choice_remove(iface, link);
    return 1;
}

void uct_varuna_choice_done(uct_varuna_iface_t *iface)
{
    uct_varuna_md_t *md = iface->md;
    unsigned link, failures;

    for (link = 0; link < iface->num_links; ++link) {
        pthread_mutex_lock(&md->lock);
        failures = uct_varuna_backoff_succeeded(&md->nics[iface->links[link].nic].no_lanes);
        pthread_mutex_unlock(&md->lock);
        if (failures > 0) {
            ucs_diag("rc_varuna: %s is open, after %u failures",
                     uct_varuna_link_name(iface, link), failures);
        }
    }
}

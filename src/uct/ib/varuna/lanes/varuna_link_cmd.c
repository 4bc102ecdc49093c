/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Commands to the NICs of links. See varuna_link_cmd.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_link_cmd.h"
#include <uct/ib/varuna/md/varuna_health.h>

#include <ucs/async/async.h>


static void uct_varuna_link_cmds_handler(int fd, ucs_event_set_types_t events, void *arg)
{
    uct_varuna_iface_t *iface = arg;

    (void)fd;
    (void)events;
    uct_varuna_cmd_sink_dispatch(&iface->cmds.sink);
}

ucs_status_t uct_varuna_link_cmds_open(uct_varuna_iface_t *iface,
                                       ucs_async_context_t *async)
{
    ucs_status_t status;

    status = uct_varuna_cmd_sink_init(&iface->cmds.sink);
    if (status != UCS_OK) {
        return status;
    }

    status = ucs_async_set_event_handler(async->mode, iface->cmds.sink.fd,
                                         UCS_EVENT_SET_EVREAD,
                                         uct_varuna_link_cmds_handler, iface, async);
    if (status != UCS_OK) {
        uct_varuna_cmd_sink_cleanup(&iface->cmds.sink);
        return status;
    }

    iface->cmds.is_open = 1;
    return UCS_OK;
}

unsigned uct_varuna_link_cmds_close(uct_varuna_iface_t *iface)
{
    unsigned hung = 0;
    uct_varuna_cmds_t *cmds;
    unsigned link;

    if (!iface->cmds.is_open) {
        return 0;
    }

    ucs_async_remove_handler(iface->cmds.sink.fd, 1);
    iface->cmds.is_open = 0;
    for (link = 0; link < iface->num_links; ++link) {
        cmds = uct_varuna_md_cmds(iface->md, iface->links[link].nic);
        if ((cmds != NULL) &&
            (uct_varuna_cmd_sink_detach(&iface->cmds.sink, cmds) != UCS_OK)) {
            hung |= UCS_BIT(link);
        }

        cmds = uct_varuna_md_handles(iface->md, iface->links[link].nic);
        if (cmds != NULL) {
            (void)uct_varuna_cmd_sink_detach(&iface->cmds.sink, cmds);
        }
    }

    uct_varuna_cmd_sink_dispatch(&iface->cmds.sink);
    uct_varuna_cmd_sink_cleanup(&iface->cmds.sink);
    return hung;
}

static void uct_varuna_link_submit_to(uct_varuna_iface_t *iface, uct_varuna_cmds_t *cmds,
                                      uct_varuna_cmd_t *cmd)
{
    if ((cmds == NULL) || !iface->cmds.is_open) {
        uct_varuna_cmd_run_now(cmd);
        return;
    }

    cmd->sink = &iface->cmds.sink;
    uct_varuna_cmds_submit(cmds, cmd);
}

void uct_varuna_link_submit(uct_varuna_iface_t *iface, unsigned link,
                            uct_varuna_cmd_t *cmd)
{
    uct_varuna_link_submit_to(iface, uct_varuna_md_cmds(iface->md, iface->links[link].nic),
                              cmd);
}

void uct_varuna_link_submit_handle(uct_varuna_iface_t *iface, unsigned link,
                                   uct_varuna_cmd_t *cmd)
{
    uct_varuna_link_submit_to(iface,
                              uct_varuna_md_handles(iface->md, iface->links[link].nic),
                              cmd);
}

int uct_varuna_link_may_answer(const uct_varuna_iface_t *iface, unsigned link,
                               const uct_varuna_cmd_t *cmd, ucs_time_t patience)
{
    return uct_varuna_cmds_may_answer(
            uct_varuna_md_cmds(iface->md, iface->links[link].nic), cmd, patience);
}

/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Verb "link": change the state of a link.
 */

#include "ctl.h"
#include "../core/emu_fabric.h"
#include "../core/emu_port.h"

#include <string.h>


static int ctl_link_run(int argc, char **argv)
{
    int status = 0;
    unsigned host, link, state;
    int ret;

    if (ctl_getopt(&ctl_verb_link, argc, argv, "", NULL, &status) != -1) {
        return status;
    }

    if (argc - optind != 2) {
        return ctl_usage_fail(&ctl_verb_link, "expected a link and a state");
    }

    for (state = 0; state < EMU_LINK_LAST; ++state) {
        if (!strcmp(argv[optind + 1], emu_link_state_names[state])) {
            break;
        }
    }

    if (state == EMU_LINK_LAST) {
        return ctl_usage_fail(&ctl_verb_link, "a link can be up, down or"
                              " silent, not \"%s\"", argv[optind + 1]);
    }

    status = ctl_fabric_open();
    if (status) {
        return status;
    }

    status = ctl_parse_port(&ctl_verb_link, argv[optind], &host, &link);
    if (status == 0) {
        ret = emu_link_set(host, link, state);
        if (ret) {
            status = ctl_fail("cannot change link %u:%u: %s", host, link,
                              strerror(-ret));
        }
    }

    emu_fabric_close();
    return status;
}

const ctl_verb_t ctl_verb_link = {
    .name    = "link",
    .run     = ctl_link_run,
    .usage   = "[-n NAME] HOST:LINK up|down|silent",
    .help    = "Change the link between a host's port and its switch",
    .details =
    "  -n NAME  Name of the fabric\n\n"
    "  down     Packets are lost both ways, programs get a port event\n"
    "  silent   Packets are lost both ways, and nothing tells\n"
    "  up       Packets pass; programs get a port event if the link was down\n"
};

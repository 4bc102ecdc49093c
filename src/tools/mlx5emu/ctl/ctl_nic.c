/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Verb "nic": kill and revive a NIC.
 */

#include "ctl.h"
#include "../core/emu_map.h"
#include "../core/emu_nic.h"

#include <errno.h>
#include <string.h>

enum {
    CTL_NIC_SILENT = 256
};

static const struct option ctl_nic_options[] = {
    {"silent", no_argument, NULL, CTL_NIC_SILENT},
    {NULL,     0,           NULL, 0}
};


static int ctl_nic_change(const char *port, int kill, int silent)
{
    unsigned host, link;
    int status, ret;

    status = ctl_fabric_open();
    if (status) {
        return status;
    }

    status = ctl_parse_port(&ctl_verb_nic, port, &host, &link);
    if (status == 0) {
        emu_link_mark(host, link, 0);
        ret = kill ? emu_nic_kill(host, link, !silent) :
                     emu_nic_revive(host, link);
        if (ret == -EALREADY) {
            status = ctl_fail("NIC %u:%u is %s already", host, link,
                              kill ? "dead" : "alive");
        } else if (ret != 0) {
            status = ctl_fail("cannot change NIC %u:%u: %s", host, link,
                              strerror(-ret));
        }
    }

    emu_fabric_close();
    return status;
}

static int ctl_nic_run(int argc, char **argv)
{
    int status = 0;
    int silent = 0;
    int kill, c;

    while ((c = ctl_getopt(&ctl_verb_nic, argc, argv, "", ctl_nic_options,
                           &status)) != -1) {
        if (c != CTL_NIC_SILENT) {
            return status;
        }
        silent = 1;
    }

    if (argc - optind != 2) {
        return ctl_usage_fail(&ctl_verb_nic, "expected a NIC, and kill or"
                              " revive");
    }

    kill = !strcmp(argv[optind + 1], "kill");
    if (!kill && strcmp(argv[optind + 1], "revive")) {
        return ctl_usage_fail(&ctl_verb_nic, "expected kill or revive, not"
                              " \"%s\"", argv[optind + 1]);
    }

    if (silent && !kill) {
        return ctl_usage_fail(&ctl_verb_nic, "--silent goes with kill");
    }

    return ctl_nic_change(argv[optind], kill, silent);
}

const ctl_verb_t ctl_verb_nic = {
    .name    = "nic",
    .run     = ctl_nic_run,
    .usage   = "[-n NAME] HOST:LINK kill [--silent] | revive",
    .help    = "Kill or revive a NIC",
    .details =
    "  -n NAME   Name of the fabric\n\n"
    "  kill      The NIC dies: no packet, completion or event comes from it or\n"
    "            gets through to it any more, calls that need it fail with"
    " EIO.\n"
    "            Programs get the event DEVICE_FATAL, unless --silent is given\n"
    "  revive    It can be opened anew. What was made on it before stays dead\n"
    "\nIn a fabric with --shared-hca all links of the host die with it.\n"
};

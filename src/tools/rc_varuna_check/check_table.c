/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The table of checks, in the order in which they run. A function with results of
 * several names is in the row of the first one.
 */
#include "check_def.h"

#include <stdio.h>
#include <string.h>


const check_entry_t check_table[] = {
    {"port", 1, check_inventory,
     "rc_varuna needs two active ports on each host.",
     "Connect the port and load its driver; name the ports to use in "
     "UCX_RC_VARUNA_LINKS."},
    {"mlx5", 1, NULL,
     "rc_varuna needs rc_mlx5 and dc_mlx5, or rc_verbs on other NICs. Without DC no lane "
     "continues at once: a failover waits for a connection. Without DEVX some facts are "
     "unknown.",
     "For the shortest failover use ConnectX-4 or later with a firmware that has DC (over "
     "a bond: lag_dct), and a kernel with DEVX. Leave devices that fail here out of "
     "UCX_RC_VARUNA_LINKS."},
    {"bond", 1, NULL,
     "A bond is one link: losing both of its ports loses the link, and its failover "
     "is the driver's.",
     "Take a second NIC as another link, or dissolve the bond and name its ports in "
     "UCX_RC_VARUNA_LINKS."},
    {"vf", 1, NULL,
     "A virtual function may report its port as active while the link is down.",
     "Keep UCX_RC_VARUNA_HEARTBEAT_INTERVAL on; make the port's state follow the "
     "link (ip link set DEV vf N state auto)."},
    {"ucx-device", 1, NULL,
     "UCX may not know this device, and then assumes its capabilities.",
     "See UCX_IB_DEVICE_SPECS, or use a newer UCX."},
    {"dct", 1, NULL,
     "dc_mlx5 cannot receive on this device.",
     "Update firmware and driver, or leave the device out of UCX_RC_VARUNA_LINKS."},
    {"ucx-build", 1, check_ucx_build,
     "rc_varuna knows the insides of the UCX that it was built for, and refuses to work with "
     "another one.",
     "Build rc_varuna for this UCX, or point LD_LIBRARY_PATH to the other one."},
    {"ooo-sl-mask", 1, check_order_mask,
     "Adaptive routing may place a log entry before its data, so on DC an entry proves "
     "nothing.",
     "Name a service level in order in UCX_IB_SL, or set UCX_RC_VARUNA_ORDERED_SL=y. If all "
     "levels are out of order, take one out of ar_sl_mask in the subnet manager, or set "
     "UCX_RC_VARUNA_AMBIGUOUS to what the program needs."},
    {"memlock", 1, check_limits,
     "Memory is registered on each link, which may exceed the limit of locked memory.",
     "ulimit -l unlimited, or memlock in /etc/security/limits.conf."},
    {"files", 1, NULL,
     "Each link opens files; a process with few descriptors cannot open all.",
     "ulimit -n 65536."},
    {"relaxed-ordering", 1, NULL,
     "With relaxed ordering a log entry may be placed before its data.",
     "UCX_IB_PCI_RELAXED_ORDERING=off."},
    {"dmabuf", 1, check_dmabuf,
     "Memory of GPUs is not registered by its dmabuf, so that UCP copies it through host memory.",
     "For zero-copy use a kernel from 5.12 on, and a GPU driver that makes dmabufs."},
    {"flush", 1, check_flush,
     "Requests of a stopped queue pair do not all complete, in order and with the "
     "status of a flush; a drain would wait in vain or free a buffer in use.",
     "Update firmware and driver. UCX_RC_VARUNA_DRAIN_TIMEOUT bounds the wait."},
    {"last-wqe", 1, check_last_wqe,
     "LAST_WQE_REACHED is missing: each fence waits for 1 ms instead.",
     "Failovers work. A receive buffer can be lost if the NIC flushes it after 1 ms."},
    {"cq-arm", 1, check_arm,
     "A program that arms a completion queue and sleeps may overlook what had just come.",
     "Update the driver. rc_varuna itself polls once more after arming."},
    {"commands", 1, check_commands,
     "Commands to the NIC fail or are slow; each recovery needs some.",
     "Update firmware and driver. UCX_RC_VARUNA_GIVE_UP must be longer than a recovery "
     "takes with such commands."},
    {"links", 0, check_links,
     "Port k of each host must reach port k of the other.",
     "Correct the cables, or name the ports of each host in the order of their networks "
     "in UCX_RC_VARUNA_LINKS."},
    {"planes", 0, NULL,
     "Ports of different links share a network. On RoCE, an ARP answer may name the "
     "wrong port (ARP flux).",
     "Give each link its own network, or set arp_ignore=1 and arp_announce=2."},
    {"mtu", 0, check_mtu,
     "RC takes the smaller path MTU of two hosts, but DC cannot: a failover waits for an RC "
     "connection, and control messages that are longer do not arrive.",
     "Give all ports of a link the same MTU, or set UCX_IB_PATH_MTU to the smaller one on "
     "all hosts."},
    {"pkey", 0, check_pkey,
     "UCX finds the two ports unreachable: they have to be members of one partition, at least "
     "one of them a full one.",
     "Name a partition in UCX_IB_PKEY on both hosts, or make the ports full members."},
    {"grh", 0, check_subnets,
     "UCX finds the two ports unreachable, whatever a router may do.",
     "Put both ports of a link into one subnet, with one subnet prefix."},
    {"gids", 1, check_gids,
     "Addresses do not show which ports reach each other, so a wrong order of ports is "
     "not detected.",
     "Give each subnet its own prefix (subnet_prefix of OpenSM; an IP network per link), "
     "or name the ports in UCX_RC_VARUNA_LINKS on every host."},
    {"psn", 0, check_psn,
     "The driver does not return the next expected PSN of a responder, so a recovery "
     "cannot use it as evidence.",
     "Keep UCX_RC_VARUNA_LOG=all: the log decides. Update the driver."},
    {"order", 0, check_order,
     "A log entry was in memory before its data: it does not prove that the data was "
     "placed.",
     "UCX_IB_AR_ENABLE=n, or another service level (UCX_IB_SL); "
     "UCX_IB_PCI_RELAXED_ORDERING=off."},
    {"order-forced", 0, NULL,
     "Queue pairs that are forced to the order of the specification do not keep it, or their "
     "context does not say so. rc_varuna believes it.",
     "Set UCX_RC_VARUNA_ORDER=unknown, and update the firmware."},
    {"order-strong", 0, NULL,
     "The strong-order flag of work requests does not keep the order, on which fences of UCX "
     "rely. rc_varuna does not.",
     "Update the firmware."},
    {"fence-err", 0, check_fence,
     "Writes that were accepted before ERR are placed after it, so log and data that are "
     "read at once are incomplete.",
     "On RC rc_varuna waits for RESET, which is checked next. On DC only "
     "UCX_RC_VARUNA_PACKET_LIFETIME helps: it must be longer than the time shown."},
    {"fence-reset", 0, NULL,
     "Memory changes after the responder was reset: nothing can be concluded from it.",
     "Do not use rc_varuna on this NIC; report it to the vendor."},
    {"psn-memory", 0, NULL,
     "The PSN does not show which writes were executed.",
     "Do not use rc_varuna on this NIC, and report it to the vendor; see also order."},
    {"fused-post", 0, check_fused,
     "Posting a write and its log entry failed.",
     "Update firmware and driver."},
    {"cut-psn", 0, check_cut,
     "After a cut, PSN and memory must agree, or a recovery decides wrongly.",
     "Run with --cut CMD and --restore CMD. If it failed, see psn, psn-memory and "
     "order."},
    {"cut-status", 0, NULL,
     "What completes after a cut looks like the program's own error, so endpoints fail "
     "instead of using another link.",
     "Keep UCX_RC_VARUNA_PORT_EVENTS on: it often comes first. Report the status shown."},
    {"port-event", 0, NULL,
     "This host gets no event when its link is down.",
     "Keep the heartbeat on (UCX_RC_VARUNA_HEARTBEAT_INTERVAL), which then detects it."},
    {"loopback", 0, NULL, "", ""},
    {"addresses", 0, NULL,
     "After a restored link, the addresses of the port differ from those of its "
     "connections.",
     "rc_varuna uses the new ones and informs its peers if UCX_RC_VARUNA_PORT_EVENTS=y. "
     "Other programs need permanent ones (a static IP address, a persistent LID)."},
    {"dead-commands", 0, check_kill,
     "A command to a dead NIC blocks its thread for this time.",
     "Raise UCX_RC_VARUNA_GIVE_UP and UCX_RC_VARUNA_PEER_TIMEOUT above it."},
    {"dead-writes", 0, NULL,
     "A NIC that is reported dead still writes.",
     "Set UCX_RC_VARUNA_PACKET_LIFETIME longer than the time shown."},
    {NULL, 0, NULL, NULL, NULL}
};


const check_entry_t *check_find(const char *name)
{
    const check_entry_t *entry;

    for (entry = check_table; entry->name != NULL; ++entry) {
        if (!strcmp(entry->name, name)) {
            return entry;
        }
    }

    return NULL;
}

/* @return the length of the first name in a list */
static size_t check_name_length(const char *list)
{
    return strcspn(list, ",");
}

static int check_is_in(const char *list, const char *name)
{
    size_t length;

    for (; *list != '\0'; list += length + (list[length] == ',')) {
        length = check_name_length(list);
        if ((strlen(name) == length) && !strncmp(list, name, length)) {
            return 1;
        }
    }

    return 0;
}

const char *check_only_unknown(const char *list)
{
    const check_entry_t *entry;
    size_t length;

    for (;; list += length + 1) {
        length = check_name_length(list);
        for (entry = check_table; entry->name != NULL; ++entry) {
            if ((entry->run != NULL) && (strlen(entry->name) == length) &&
                !strncmp(list, entry->name, length)) {
                break;
            }
        }
        if (entry->name == NULL) {
            return list;
        } else if (list[length] == '\0') {
            return NULL;
        }
    }
}

void check_only_complain(const char *unknown)
{
    const check_entry_t *entry;

    fprintf(stderr, CHECK_PROGRAM ": --only takes names of checks, and not \"%.*s\". "
            "Choose from", (int)check_name_length(unknown), unknown);
    for (entry = check_table; entry->name != NULL; ++entry) {
        if (entry->run != NULL) {
            fprintf(stderr, " %s", entry->name);
        }
    }
    fputc('\n', stderr);
}

void check_run_all(check_run_t *run, int is_local)
{
    const check_entry_t *entry;

    for (entry = check_table; entry->name != NULL; ++entry) {
        if ((entry->run != NULL) && (entry->is_local == is_local) && !run->lost &&
            ((run->opts.only == NULL) ||
             check_is_in(run->opts.only, entry->name))) {
            entry->run(run);
        }
    }
}

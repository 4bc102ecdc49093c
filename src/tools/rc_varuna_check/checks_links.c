/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Which ports reach each other, and whether addresses show it.
 */
#include "check_pair.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CHECK_REACH_WAIT 60 /* Seconds; the retries of the NIC take less */


/* @return 0 if a write arrives in the memory of the right port, otherwise errno */
static int check_reach(check_run_t *run, unsigned port, unsigned peer_port)
{
    check_scan_t scan = {.count = 1, .size = 64,
                         .base  = 0x1000 + (port * 16) + peer_port};
    check_scanned_t scanned;
    check_psn_t psn;
    check_qp_t qp;
    int ret;

    ret = check_pair_open(run, port, peer_port, &qp);
    if (ret != 0) {
        return ret;
    }

    check_nic_fill(qp.nic, &scan);
    ret = check_pair_write_slots(&qp, &scan, 0, 1);
    if (ret == 0) {
        ret = check_qp_wait(&qp, CHECK_REACH_WAIT);
    }

    /* Accepted writes may not be placed yet; RESET is the barrier */
    if ((ret == 0) &&
        ((check_ask(run, CHECK_MSG_FENCE, NULL, 0, &psn, sizeof(psn)) != 0) ||
         (check_ask(run, CHECK_MSG_RESET, NULL, 0, &(check_reply_t){0},
                    sizeof(check_reply_t)) != 0) ||
         (check_ask(run, CHECK_MSG_SCAN, &scan, sizeof(scan), &scanned,
                    sizeof(scanned)) != 0) || (scanned.whole != 1))) {
        ret = EXDEV;
    }

    check_qp_destroy(&qp);
    return ret;
}

void check_links(check_run_t *run)
{
    unsigned ours   = run->nics.count;
    unsigned theirs = run->peer.num_ports;
    unsigned i, j, cross = 0, reached = 0;
    int errors[CHECK_MAX_PORTS][CHECK_MAX_PORTS];

    for (i = 0; i < ours; ++i) {
        for (j = 0; j < theirs; ++j) {
            errors[i][j] = (run->nics.nic[i].wire.is_active &&
                            run->peer.ports[j].is_active) ?
                           check_reach(run, i, j) : ENETDOWN;
        }
    }

    if (ours != theirs) {
        check_row(run, "links", CHECK_FAIL, "hosts", "%u ports here, %u there", ours,
                  theirs);
    }

    for (i = 0; i < run->links; ++i) {
        if (errors[i][i] == 0) {
            ++reached;
            check_row(run, "links", CHECK_OK, check_pair_name(run, i, i),
                      "link %u reaches its counterpart", i);
            continue;
        }

        for (j = 0; (j < theirs) && (errors[i][j] != 0); ++j) {
        }
        if (j < theirs) {
            check_row(run, "links", CHECK_FAIL, check_pair_name(run, i, i),
                      "wrong cabling: %s reaches %s instead",
                      run->nics.nic[i].wire.name, run->peer.ports[j].name);
        } else {
            check_row(run, "links", CHECK_FAIL, check_pair_name(run, i, i),
                      "no write arrives, not even on another port: %s",
                      strerror(errors[i][i]));
        }
    }

    for (i = 0; i < ours; ++i) {
        for (j = 0; j < theirs; ++j) {
            cross += (i != j) && (errors[i][j] == 0);
        }
    }

    if ((cross > 0) && (reached == run->links)) {
        check_row(run, "planes", (run->nics.nic[0].wire.link_layer ==
                                  IBV_LINK_LAYER_ETHERNET) ? CHECK_WARN : CHECK_NOTE,
                  "hosts", "%u pairs of ports of different links reach each other: "
                  "the links share a network", cross);
    } else {
        check_row(run, "planes", CHECK_OK, "hosts", "%u pairs of ports of different"
                  " links reach each other", cross);
    }
}

void check_mtu(check_run_t *run)
{
    unsigned i, ours, theirs;

    for (i = 0; i < run->links; ++i) {
        ours   = 128u << run->nics.nic[i].wire.mtu;
        theirs = 128u << run->peer.ports[i].mtu;
        if (ours == theirs) {
            check_row(run, "mtu", CHECK_OK, check_pair_name(run, i, i),
                      "path MTU %u on both sides", ours);
        } else {
            check_row(run, "mtu", run->nics.nic[i].has_dv ? CHECK_FAIL : CHECK_NOTE,
                      check_pair_name(run, i, i), "path MTU %u here, %u there", ours,
                      theirs);
        }
    }
}

/* UCX connects ports of one partition, of which one at least is a full member */
static void check_pkey_link(check_run_t *run, unsigned link)
{
    const char *where = check_pair_name(run, link, link);
    uint16_t ours     = run->nics.nic[link].wire.pkey;
    uint16_t theirs   = run->peer.ports[link].pkey;

    if ((ours == 0) || (theirs == 0)) {
        check_row(run, "pkey", CHECK_FAIL, where, "no P_Key that UCX may use %s",
                  (ours == 0) ? "here" : "there");
    } else if ((ours ^ theirs) & CHECK_PKEY_PARTITION) {
        check_row(run, "pkey", CHECK_FAIL, where,
                  "P_Key 0x%04x here, 0x%04x there: two partitions", ours, theirs);
    } else if (!((ours | theirs) & CHECK_PKEY_FULL)) {
        check_row(run, "pkey", CHECK_FAIL, where,
                  "P_Key 0x%04x on both sides: two limited members", ours);
    } else {
        check_row(run, "pkey", CHECK_OK, where, "P_Key 0x%04x, at index %u here", ours,
                  run->nics.nic[link].pkey_index);
    }
}

void check_pkey(check_run_t *run)
{
    unsigned i;

    for (i = 0; i < run->links; ++i) {
        check_pkey_link(run, i);
    }
}

/* Whether the ports of a link are in one subnet, and packets have a GRH */
void check_subnets(check_run_t *run)
{
    const check_wire_port_t *ours, *theirs;
    const char *where;
    unsigned i;

    for (i = 0; i < run->links; ++i) {
        ours   = &run->nics.nic[i].wire;
        theirs = &run->peer.ports[i];
        where  = check_pair_name(run, i, i);
        if (ours->link_layer != theirs->link_layer) {
            check_row(run, "grh", CHECK_FAIL, where, "InfiniBand on one side, RoCE on the "
                      "other");
        } else if (ours->link_layer == IBV_LINK_LAYER_ETHERNET) {
            check_row(run, "grh", CHECK_OK, where, "RoCE: each packet has a GRH");
        } else if (memcmp(ours->gid, theirs->gid, sizeof(ours->gid) / 2)) {
            check_row(run, "grh", CHECK_FAIL, where, "two subnets: UCX connects them over "
                      "a router only if their prefixes have a FLID");
        } else {
            check_row(run, "grh", CHECK_OK, where, "one subnet: packets have %s GRH",
                      ((ours->flags | theirs->flags) & CHECK_PORT_GLOBAL) ? "a" : "no");
        }
    }
}

/* The part of an address that UCX compares to decide whether two ports reach each
 * other: the prefix of the subnet; on RoCE /24 of IPv4 or /64 of IPv6 */
static int check_gid_same_net(const check_wire_port_t *a, const check_wire_port_t *b)
{
    static const uint8_t ipv4[12] = {[10] = 0xff, [11] = 0xff};

    if (a->link_layer != b->link_layer) {
        return 0;
    }

    return (!memcmp(a->gid, ipv4, sizeof(ipv4)) &&
            (a->link_layer == IBV_LINK_LAYER_ETHERNET)) ?
           !memcmp(a->gid, b->gid, 15) : !memcmp(a->gid, b->gid, 8);
}

void check_gids(check_run_t *run)
{
    unsigned i, j;
    int same = 0;

    for (i = 0; i < run->nics.count; ++i) {
        for (j = i + 1; j < run->nics.count; ++j) {
            if (check_gid_same_net(&run->nics.nic[i].wire,
                                   &run->nics.nic[j].wire)) {
                same = 1;
                check_row(run, "gids", CHECK_WARN, "host",
                          "%s and %s have the same prefix: addresses do not "
                          "distinguish the links", run->nics.nic[i].wire.name,
                          run->nics.nic[j].wire.name);
            }
        }
    }

    if (!same) {
        check_row(run, "gids", CHECK_OK, "host", "each link has its own prefix");
    }
}

/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The client's connection, see check_pair.h.
 */
#include "check_pair.h"
#include "check_oob.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>


int check_ask(check_run_t *run, check_msg_t type, const void *in, size_t in_length,
              void *out, size_t out_length)
{
    int ret;

    if (run->lost) {
        return ENOTCONN;
    }

    ret = check_oob_call(run->fd, type, in, in_length, out, out_length);
    if (ret < 0) {
        run->lost = 1;
        return ENOTCONN;
    }

    return ret;
}

int check_pair_open_as(check_run_t *run, unsigned port, unsigned peer_port, unsigned how,
                       check_qp_t *qp)
{
    check_open_t in = {.port = peer_port, .peer_port = port, .how = how};
    check_opened_t out;
    int ret;

    ret = check_qp_create(&run->nics.nic[port],
                          (how & CHECK_OPEN_VERBS) ? CHECK_QP_SRQ : CHECK_QP_UCX, qp);
    if (ret != 0) {
        return ret;
    }

    in.qpn = qp->qpn;
    in.psn = qp->psn;
    ret    = check_ask(run, CHECK_MSG_OPEN, &in, sizeof(in), &out, sizeof(out));
    if (ret == 0) {
        qp->remote_addr = out.addr;
        qp->rkey        = out.rkey;
        ret             = check_qp_connect(qp, &run->peer.ports[peer_port],
                                           out.qpn & 0xffffff, 0,
                                           how & CHECK_OPEN_ORDERED);
    }

    if (ret != 0) {
        check_qp_destroy(qp);
    }
    return ret;
}

int check_pair_open(check_run_t *run, unsigned port, unsigned peer_port,
                    check_qp_t *qp)
{
    return check_pair_open_as(run, port, peer_port, 0, qp);
}

int check_pair_is_devx(const check_run_t *run, unsigned link)
{
    return run->nics.nic[link].wire.flags & run->peer.ports[link].flags & CHECK_PORT_DEVX;
}

const char *check_pair_name(const check_run_t *run, unsigned port,
                            unsigned peer_port)
{
    static char name[sizeof(((check_wire_row_t*)0)->where)];

    snprintf(name, sizeof(name), "%.32s -> %.32s", run->nics.nic[port].wire.name,
             run->peer.ports[peer_port].name);
    return name;
}

int check_pair_write_slots(check_qp_t *qp, const check_scan_t *scan,
                           uint32_t first, uint32_t count)
{
    uint32_t i;
    int ret;

    for (i = first; i < first + count; ++i) {
        ret = check_qp_write(qp, i * scan->size, scan->size, i * scan->size);
        if (ret != 0) {
            return ret;
        }
    }

    return 0;
}

uint32_t check_pair_packets(const check_qp_t *qp, uint32_t length)
{
    return (length + qp->mtu - 1) / qp->mtu;
}

int check_pair_is_up(const check_run_t *run, unsigned link)
{
    return run->nics.nic[link].wire.is_active && run->peer.ports[link].is_active;
}
